//! The kernel, namespaces and emulated links, in real time. A test that cannot run here is reported as ignored.

mod announce;
mod gateway;
mod handoff;
mod host_stack;
mod neighborhood;
mod nfqueue;
mod pair;
mod split;
mod tun_pair;

use hopline_harness::{module, run};
use hopline_testkit::namespace::concurrent_link_tests;
use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = split::run_as_proxy() {
        return code;
    }
    if let Some(role) = gateway::role() {
        return gateway::run_role(&role);
    }
    let tests = [
        ("announce", announce::tests()),
        ("gateway", gateway::tests()),
        ("handoff", handoff::tests()),
        ("host_stack", host_stack::tests()),
        ("neighborhood", neighborhood::tests()),
        ("nfqueue", nfqueue::tests()),
        ("pair", pair::tests()),
        ("split", split::tests()),
        ("tun_pair", tun_pair::tests()),
    ];
    run(tests.into_iter().flat_map(|(name, tests)| module(name, tests)), Some(concurrent_link_tests()))
}
