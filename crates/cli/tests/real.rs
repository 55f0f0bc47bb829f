//! The command with other programs, over emulated links and in the documentation. A test that cannot run here is reported as
//! ignored.

mod docs;
mod drills;
mod emulate;
mod iperf3;
mod link;
mod needing;
mod proxy;
mod tcp;
mod unattended;
mod virtual_time;

use hopline_harness::{module, run};
use hopline_testkit::namespace::concurrent_link_tests;
use std::process::ExitCode;

fn main() -> ExitCode {
    link::play_role();
    emulate::play_role();
    let tests = [
        ("docs", docs::tests()),
        ("drills", drills::tests()),
        ("emulate", emulate::tests()),
        ("iperf3", iperf3::tests()),
        ("link", link::tests()),
        ("needing", needing::tests()),
        ("proxy", proxy::tests()),
        ("tcp", tcp::tests()),
        ("unattended", unattended::tests()),
        ("virtual_time", virtual_time::tests()),
    ];
    let at_once = if docs::is_update() { 1 } else { concurrent_link_tests() };
    run(tests.into_iter().flat_map(|(name, tests)| module(name, tests)), Some(at_once))
}
