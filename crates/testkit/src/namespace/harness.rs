//! Tests over real links; where there can be none they are reported as ignored.

use super::NamespaceLink;
use crate::Emulation;
use hopline_harness::{Need, Test, run};
use std::io::Write;
use std::process::ExitCode;
use std::sync::OnceLock;

/// Tests that run at the same time, unless the command line says otherwise: they wait for the link, not for the
/// processor.
const AT_ONCE: usize = 8;

/// What tests over a real link need.
pub const LINK: Need = Need::Of(why_no_link);

/// The `main` of a test without harness (`harness = false`): runs `tests`, each a name and a body that panics if it
/// fails, with the options of `cargo test`. Where there can be no [`NamespaceLink`] they are reported as ignored.
#[must_use]
pub fn run_tests(tests: &[(&'static str, fn())]) -> ExitCode {
    run(tests.iter().map(|&(name, body)| Test::new(name, [LINK], body)), Some(AT_ONCE))
}

/// A test, and the program that it needs, if it needs one.
pub type Needing = (&'static str, Option<&'static str>, fn());

/// The same for tests some of which need a program, too.
#[must_use]
pub fn run_tests_needing(tests: &[Needing]) -> ExitCode {
    let tests = tests.iter().map(|&(name, program, body)| {
        let needs: Vec<Need> = program.map(Need::Program).into_iter().chain([LINK]).collect();
        Test::new(name, needs, body)
    });
    run(tests, Some(AT_ONCE))
}

/// The same for tests that take minutes: ignored unless asked for (`--ignored`), and then all at once.
#[must_use]
pub fn run_long_tests<F: Fn() + Send + 'static>(tests: Vec<(&'static str, F)>) -> ExitCode {
    let at_once = tests.len().max(1);
    run(tests.into_iter().map(|(name, body)| Test::new(name, [LINK], body).long()), Some(at_once))
}

/// Why there can be no [`NamespaceLink`] here; tried once.
fn why_no_link() -> Option<String> {
    static WHY: OnceLock<Option<String>> = OnceLock::new();
    let tried = || NamespaceLink::new(Emulation::default(), Emulation::default(), 0);
    WHY.get_or_init(|| tried().err().map(|error| error.to_string())).clone()
}

/// Runs `check`, which depends on time, unless the link was late. A test with a late link is repeated, and then ignored:
/// see [`hopline_harness::if_on_time`], whose panics it shares.
pub fn if_on_time(link: &NamespaceLink, what: &str, check: impl FnOnce()) {
    let lateness = link.stats().lateness;
    let late = lateness.is_late().then(|| format!("{what}: the link was late: {lateness}"));
    hopline_harness::if_on_time(late, check);
}

/// To people, past the capture of tests' output.
pub(super) fn say(line: &str) {
    let mut stderr = std::io::stderr();
    // Nobody to tell: nothing to do about it.
    let _ = writeln!(stderr, "{line}");
}
