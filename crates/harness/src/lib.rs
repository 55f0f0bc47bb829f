//! Tests that need what a machine may not have, counted for what they are: passed, failed, or ignored, with the reason.
//!
//! The harness of `#[test]` knows no tests that find out that they cannot run: they pass, though nobody looked.

pub mod tshark;

use libtest_mimic::{Arguments, Completion, Conclusion, Trial};
use std::process::{Command, ExitCode};

/// What a test needs of the machine.
#[derive(Clone, Copy, Debug)]
pub enum Need {
    /// This program, in a folder of `PATH`.
    Program(&'static str),
    /// This library of Python.
    PythonModule(&'static str),
    /// To mount file systems, in a mount namespace of its own.
    Mounts,
    /// Something else: why the machine does not have it, if it does not.
    Of(fn() -> Option<String>),
}

impl Need {
    /// Why this machine does not have it; `None` where it does.
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

/// A test.
#[derive(Debug)]
pub struct Test(Trial);

impl Test {
    /// One whose `body` panics if it fails, and is not run where one of `needs` is missing.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        needs: impl Into<Vec<Need>>,
        body: impl FnOnce() + Send + 'static,
    ) -> Self {
        let needs = needs.into();
        Self(Trial::ignorable_test(name, move || {
            if let Some(why) = needs.into_iter().find_map(Need::missing) {
                return Ok(Completion::ignored_with(why));
            }
            body();
            Ok(Completion::Completed)
        }))
    }

    /// It takes minutes: not run unless asked for (`--ignored`).
    #[must_use]
    pub fn long(self) -> Self {
        Self(self.0.with_ignored_flag(true))
    }
}

/// The `main` of a test without harness (`harness = false`): runs `tests` with the options of `cargo test`. At most
/// `at_once` of them run at the same time, unless the command line says otherwise; `None`: as many as there are cores.
#[must_use]
pub fn run(tests: impl IntoIterator<Item = Test>, at_once: Option<usize>) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = arguments.test_threads.or(at_once);
    conclude(&arguments, tests).exit_code()
}

fn conclude(arguments: &Arguments, tests: impl IntoIterator<Item = Test>) -> Conclusion {
    libtest_mimic::run(arguments, tests.into_iter().map(|Test(trial)| trial).collect())
}

/// [`Test`]s named after their functions, which all have the same needs: `tests!([Need::Program("man")]; a, b)`.
#[macro_export]
macro_rules! tests {
    ($needs:expr; $($body:path),+ $(,)?) => {
        [$($crate::Test::new(stringify!($body), $needs, $body)),+]
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABSENT: Need = Need::Program("a-program-that-nobody-has");

    fn looks() {}

    fn must_not_run() {
        unreachable!("what it needs is missing");
    }

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(Need::Program("sh").missing(), None);
        let module = Need::PythonModule("a_module_that_nobody_has");
        assert_eq!(module.missing().as_deref(), Some("Python has no a_module_that_nobody_has"));
        assert_eq!(ABSENT.missing().as_deref(), Some("a-program-that-nobody-has is not installed"));
    }

    #[test]
    fn a_test_that_cannot_run_is_ignored_and_not_passed_even_if_it_is_asked_for() {
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
