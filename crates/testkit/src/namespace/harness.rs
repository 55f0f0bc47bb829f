//! Tests over real links. They are reported as ignored on machines that cannot have links.

use super::NamespaceLink;
use crate::Emulation;
use hopline_harness::Need;
use std::io::Write;
use std::num::NonZero;
use std::sync::OnceLock;
use std::thread::available_parallelism;

/// Tests over real links that run at the same time for each core. They wait for links most of the time: four at once take a
/// quarter of two cores. On a machine with other work, eight at once take longer than some of them wait.
const LINK_TESTS_PER_CORE: usize = 2;

/// Returns the number of tests over real links that run at the same time, unless the command line says otherwise.
#[must_use]
pub fn concurrent_link_tests() -> usize {
    LINK_TESTS_PER_CORE * available_parallelism().map_or(1, NonZero::get)
}

/// Requirement of tests over a real link.
pub const LINK: Need = Need::Of(link_obstacle);

/// Returns the reason why there can be no [`NamespaceLink`] here, if there is one; tried once.
fn link_obstacle() -> Option<String> {
    static WHY: OnceLock<Option<String>> = OnceLock::new();
    let tried = || NamespaceLink::new(Emulation::default(), Emulation::default(), 0);
    WHY.get_or_init(|| tried().err().map(|error| error.to_string())).clone()
}

/// Runs `check`, which depends on time, unless the link was late. A test with a late link is repeated, and then ignored:
/// see [`hopline_harness::unless_late`], which panics in the same cases.
pub fn unless_late(link: &NamespaceLink, what: &str, check: impl FnOnce()) {
    let lateness = link.stats().lateness;
    let late = lateness.is_late().then(|| format!("{what}: the link was late: {lateness}"));
    hopline_harness::if_on_time(late, check);
}

/// Writes to standard error, past the capture of tests' output.
pub(super) fn print_uncaptured(line: &str) {
    let mut stderr = std::io::stderr();
    // Fails if the stream is closed: then there is no reader.
    let _ = writeln!(stderr, "{line}");
}
