//! Harness for tests that can be passed, failed, or ignored with a reason.
//!
//! A test of `#[test]` that finds out that it cannot run can only pass. A [`Test`] is ignored, with the reason, in two cases:
//!
//! - The machine lacks something that the test needs ([`Need`]).
//! - The machine was too busy for a check that depends on time ([`if_on_time`]), in each of [`RUNS`] runs.
//!
//! A test that has not ended after ten minutes ends the program, unless it is [long](Test::long).

mod hang;
mod late;
pub mod tshark;

pub use late::{RUNS, if_on_time};

use late::Concurrency;
use libtest_mimic::{Arguments, Completion, Conclusion, Trial};
use std::process::{Command, ExitCode};
use std::sync::{Arc, RwLock};

/// Requirement of a test on the machine.
#[derive(Clone, Copy, Debug)]
pub enum Need {
    /// This program, in a folder of `PATH`.
    Program(&'static str),
    /// This library of Python.
    PythonModule(&'static str),
    /// To mount file systems, in a mount namespace of its own.
    Mounts,
    /// Something else; the function returns why the machine does not have it, if it does not.
    Of(fn() -> Option<String>),
}

impl Need {
    /// Returns why this machine does not have it; `None` where it does.
    #[must_use]
    pub fn missing(self) -> Option<String> {
        match self {
            Self::Program(program) => {
                let path = std::env::var_os("PATH").unwrap_or_default();
                let found = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
                (!found).then(|| format!("{program} is not installed"))
            }
            Self::PythonModule(module) => {
                let tried = Command::new("python3").args(["-c", &format!("import {module}")]).output();
                let imported = tried.is_ok_and(|tried| tried.status.success());
                (!imported).then(|| format!("Python has no {module}"))
            }
            Self::Mounts => {
                let mut unshare = Command::new("unshare");
                let mount = "mount -t tmpfs -o size=64k none /tmp";
                let tried = unshare.args(["--map-root-user", "--mount", "sh", "-c", mount]).output();
                let mounted = tried.is_ok_and(|tried| tried.status.success());
                (!mounted).then(|| "no file system can be mounted here".into())
            }
            Self::Of(missing) => missing(),
        }
    }
}

/// Name of the test that a copy of this program runs instead of all others.
const ONLY: &str = "HOPLINE_TEST_ONLY";

/// A test.
pub struct Test {
    name: String,
    needs: Vec<Need>,
    body: Box<dyn Fn() + Send>,
    is_long: bool,
    concurrency: Concurrency,
    process: Process,
}

/// Process that runs the body.
#[derive(Clone, Copy)]
enum Process {
    Shared,
    /// A copy of this program, started by the command that these words begin.
    Own(&'static [&'static str]),
}

impl Test {
    /// Returns a test. `body` panics if the test fails, and is not run where one of `needs` is missing.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        needs: impl Into<Vec<Need>>,
        body: impl Fn() + Send + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            needs: needs.into(),
            body: Box::new(body),
            is_long: false,
            concurrency: Concurrency::Shared,
            process: Process::Shared,
        }
    }

    /// Marks a test that takes minutes. It is not run unless asked for (`--ignored`).
    #[must_use]
    pub fn long(self) -> Self {
        Self { is_long: true, ..self }
    }

    /// Marks a test that runs while no other test of this program does.
    #[must_use]
    pub fn alone(self) -> Self {
        Self { concurrency: Concurrency::Exclusive, ..self }
    }

    /// Marks a test that runs in a process of its own: a copy of this program. The command line of the copy is appended to
    /// `prefix`, which may be empty. Such a test must not call [`if_on_time`].
    #[must_use]
    pub fn in_own_process(self, prefix: &'static [&'static str]) -> Self {
        Self { process: Process::Own(prefix), ..self }
    }

    fn into_trial(self, floor: Arc<RwLock<()>>) -> Trial {
        let (name, is_long) = (self.name.clone(), self.is_long);
        let run = move || {
            if let Some(why) = self.needs.iter().copied().find_map(Need::missing) {
                return Ok(Completion::ignored_with(why));
            }
            let body = || match self.process {
                Process::Shared => (self.body)(),
                Process::Own(prefix) => run_copy(&self.name, prefix),
            };
            let body = || {
                if self.is_long {
                    body();
                } else {
                    hang::watch(hang::LIMIT, || hang::end_program(&self.name), body);
                }
            };
            Ok(match late::repeat(body, self.concurrency, &floor) {
                Ok(()) => Completion::Completed,
                Err(why) => Completion::ignored_with(why),
            })
        };
        Trial::ignorable_test(name, run).with_ignored_flag(is_long)
    }
}

/// Runs the test `name` in a copy of this program.
fn run_copy(name: &str, prefix: &[&str]) {
    let program = std::env::current_exe().expect("it is running");
    let mut words = prefix.iter().map(AsRef::as_ref).chain([program.as_os_str()]);
    let mut command = Command::new(words.next().expect("the program is one of them"));
    let status = command.args(words).env(ONLY, name).status();
    assert!(status.as_ref().is_ok_and(std::process::ExitStatus::success), "{name}: {status:?}");
}

/// Makes this process end with the thread that has started it, which waits for it: if a test hangs, its program ends, and would leave the
/// copy behind. Commands before the copy such as `unshare` replace themselves by it, so that its parent is the program.
fn end_with_parent() {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .expect("the signal is one (prctl(2), PR_SET_PDEATHSIG)");
}

/// Prefixes the names of `tests` with that of the module that has them.
pub fn module<T: IntoIterator<Item = Test>>(name: &str, tests: T) -> impl Iterator<Item = Test> + use<'_, T> {
    tests.into_iter().map(move |test| Test { name: format!("{name}::{}", test.name), ..test })
}

/// Runs `tests` with the options of `cargo test`: the `main` of a test without harness (`harness = false`). At most
/// `at_once` tests run at the same time, unless the command line says otherwise. `None` means one for each core.
#[must_use]
pub fn run(tests: impl IntoIterator<Item = Test>, at_once: Option<usize>) -> ExitCode {
    if let Ok(only) = std::env::var(ONLY) {
        end_with_parent();
        let found = tests.into_iter().find(|test| test.name == only);
        (found.expect("the name is that of a test").body)();
        return ExitCode::SUCCESS;
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads = arguments.test_threads.or(at_once);
    conclude(&arguments, tests).exit_code()
}

fn conclude(arguments: &Arguments, tests: impl IntoIterator<Item = Test>) -> Conclusion {
    let floor = Arc::new(RwLock::new(()));
    libtest_mimic::run(arguments, tests.into_iter().map(|test| test.into_trial(floor.clone())).collect())
}

/// List of [`Test`]s that are named after their functions and have the same needs: `tests!([Need::Program("man")]; a, b)`.
#[macro_export]
macro_rules! tests {
    ($needs:expr; $($body:path),+ $(,)?) => {
        [$($crate::Test::new(stringify!($body), $needs, $body)),+]
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABSENT: Need = Need::Program("a-program-that-is-not-there");

    fn looks() {}

    fn must_not_run() {
        unreachable!("what it needs is missing");
    }

    #[test]
    fn a_missing_requirement_is_named() {
        assert_eq!(Need::Program("sh").missing(), None);
        let module = Need::PythonModule("a_module_that_is_not_there");
        assert_eq!(module.missing().as_deref(), Some("Python has no a_module_that_is_not_there"));
        assert_eq!(ABSENT.missing().as_deref(), Some("a-program-that-is-not-there is not installed"));
    }

    #[test]
    fn a_test_with_a_missing_requirement_is_ignored_even_if_requested() {
        for include_ignored in [false, true] {
            let arguments = Arguments { include_ignored, ..Arguments::default() };
            let able = crate::tests!([Need::Program("sh")]; looks);
            let unable = crate::tests!([Need::Program("sh"), ABSENT]; must_not_run);
            let long = Test::new("long", [], looks).long();
            let ended = conclude(&arguments, able.into_iter().chain(unable).chain([long]));
            let long_ran = u64::from(include_ignored);
            assert_eq!((ended.num_passed, ended.num_failed), (1 + long_ran, 0));
            assert_eq!(ended.num_ignored, 2 - long_ran);
        }
    }
}
