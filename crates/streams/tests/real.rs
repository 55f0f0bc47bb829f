//! The kernel, namespaces and emulated links, in real time. A test that cannot run here is reported as ignored.

mod examples;
mod fallback_over_link;
mod full_socket;
mod leaves_nothing;
mod tpa_memory;
mod wide_over_link;

use hopline_harness::{module, run};
use hopline_testkit::namespace::concurrent_link_tests;
use std::process::ExitCode;

fn main() -> ExitCode {
    let tests = [
        ("examples", examples::tests()),
        ("fallback_over_link", fallback_over_link::tests()),
        ("full_socket", full_socket::tests()),
        ("leaves_nothing", leaves_nothing::tests()),
        ("tpa_memory", tpa_memory::tests()),
        ("wide_over_link", wide_over_link::tests()),
    ];
    run(tests.into_iter().flat_map(|(name, tests)| module(name, tests)), Some(concurrent_link_tests()))
}
