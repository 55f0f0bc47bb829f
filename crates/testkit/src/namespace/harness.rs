//! Tests that need the system's help, counted for what they are: passed, failed, or not run.

use super::{Emulation, NamespaceLink};
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
    let obstacle = NamespaceLink::new(Emulation::default(), Emulation::default(), 0).err();
    if let Some(error) = &obstacle {
        say(&format!("SKIPPED {} tests over a real link: {error}", tests.len()));
    }
    let trials = tests.iter().map(|&(name, body)| {
        let trial = Trial::test(name, move || {
            body();
            Ok(())
        });
        trial.with_ignored_flag(obstacle.is_some())
    });
    let mut arguments = Arguments::from_args();
    if obstacle.is_some() {
        // Even if they were asked for.
        (arguments.ignored, arguments.include_ignored) = (false, false);
    }
    // They wait for the link, not for the processor.
    arguments.test_threads.get_or_insert(AT_ONCE);
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
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
