//! Tests that need the system's help, counted for what they are: passed, failed, or not run.

use super::NamespaceLink;
use crate::Emulation;
use libtest_mimic::{Arguments, Trial};
use std::io::Write;
use std::process::ExitCode;

/// Tests that run at the same time, unless the command line says otherwise.
const AT_ONCE: usize = 8;

/// The `main` of a test without harness (`harness = false`): runs `tests`, each a name and a body that panics if it
/// fails, with the options of `cargo test`. Where there can be no [`NamespaceLink`] they are reported as ignored, and
/// the reason is printed.
#[must_use]
pub fn run_tests(tests: &[(&'static str, fn())]) -> ExitCode {
    run(tests.iter().map(|&(name, body)| trial(name, body)).collect(), AT_ONCE)
}

/// A test, and the program that it needs, if it needs one.
pub type Needing = (&'static str, Option<&'static str>, fn());

/// The same for tests some of which need a program: where it is not there they are reported as ignored, and it is said.
#[must_use]
pub fn run_tests_needing(tests: &[Needing]) -> ExitCode {
    let trials = tests.iter().map(|&(name, program, body)| {
        let missing = program.filter(|program| !is_installed(program));
        if let Some(program) = missing {
            say(&format!("SKIPPED {name}: {program} is not installed"));
        }
        trial(name, body).with_ignored_flag(missing.is_some())
    });
    run(trials.collect(), AT_ONCE)
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// The same for tests that take minutes: ignored unless asked for (`--ignored`), and then all at once.
#[must_use]
pub fn run_long_tests<F: FnOnce() + Send + 'static>(tests: Vec<(&'static str, F)>) -> ExitCode {
    let at_once = tests.len().max(1);
    let trials = tests.into_iter().map(|(name, body)| trial(name, body).with_ignored_flag(true));
    run(trials.collect(), at_once)
}

fn trial(name: &str, body: impl FnOnce() + Send + 'static) -> Trial {
    Trial::test(name, move || {
        body();
        Ok(())
    })
}

fn run(mut trials: Vec<Trial>, at_once: usize) -> ExitCode {
    let mut arguments = Arguments::from_args();
    if let Some(error) = NamespaceLink::new(Emulation::default(), Emulation::default(), 0).err() {
        say(&format!("SKIPPED {} tests over a real link: {error}", trials.len()));
        trials = trials.into_iter().map(|trial| trial.with_ignored_flag(true)).collect();
        // Even if they were asked for.
        (arguments.ignored, arguments.include_ignored) = (false, false);
    }
    // They wait for the link, not for the processor.
    arguments.test_threads.get_or_insert(at_once);
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Runs `check`, which is about time, unless the machine was too busy for that; then it says so.
pub fn if_on_time(link: &NamespaceLink, what: &str, check: impl FnOnce()) {
    let lateness = link.stats().lateness;
    if lateness.is_late() {
        say(&format!("INVALID: {what}: the link was late: {lateness}"));
    } else {
        check();
    }
}

/// To people, past the capture of tests' output.
pub(super) fn say(line: &str) {
    let mut stderr = std::io::stderr();
    // Nobody to tell: nothing to do about it.
    let _ = writeln!(stderr, "{line}");
}
