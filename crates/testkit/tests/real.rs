//! Emulated links between network namespaces, in real time. A test that cannot run here is reported as ignored.

mod must_hold;
mod namespace_leaves_nothing;
mod namespace_link;
mod namespace_paths;
mod namespace_tcp;
mod namespace_tpa;
mod over_udp;

use hopline_harness::{module, run};
use hopline_testkit::namespace::concurrent_link_tests;
use std::process::ExitCode;

fn main() -> ExitCode {
    let tests = [
        ("must_hold", must_hold::tests()),
        ("namespace_leaves_nothing", namespace_leaves_nothing::tests()),
        ("namespace_link", namespace_link::tests()),
        ("namespace_paths", namespace_paths::tests()),
        ("namespace_tcp", namespace_tcp::tests()),
        ("namespace_tpa", namespace_tpa::tests()),
    ];
    let ended =
        run(tests.into_iter().flat_map(|(name, tests)| module(name, tests)), Some(concurrent_link_tests()));
    must_hold::print_table();
    ended
}
