//! The kernel, namespaces and emulated links, in real time. A test that cannot run here is reported as ignored.

mod announce;
mod bench_over_link;
mod examples;
mod fallback_over_link;
mod full_socket;
mod gateway;
mod handoff;
mod host_stack;
mod kernel;
mod neighborhood;
mod nfqueue;
mod pair;
mod small_disk;
mod split;
mod tpa_leaves_nothing;
mod tpa_memory;
mod tun_pair;
mod wide_leaves_nothing;
mod wide_over_link;

use hopline_harness::{module, run};
use hopline_testkit::namespace::at_once;
use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = split::instead() {
        return code;
    }
    if let Some(role) = gateway::role() {
        return gateway::play(&role);
    }
    if small_disk::is_the_copy() {
        return ExitCode::SUCCESS;
    }
    let tests = [
        ("announce", announce::tests()),
        ("bench_over_link", bench_over_link::tests()),
        ("examples", examples::tests()),
        ("fallback_over_link", fallback_over_link::tests()),
        ("full_socket", full_socket::tests()),
        ("gateway", gateway::tests()),
        ("handoff", handoff::tests()),
        ("host_stack", host_stack::tests()),
        ("kernel", kernel::tests()),
        ("neighborhood", neighborhood::tests()),
        ("nfqueue", nfqueue::tests()),
        ("pair", pair::tests()),
        ("small_disk", small_disk::tests()),
        ("split", split::tests()),
        ("tpa_leaves_nothing", tpa_leaves_nothing::tests()),
        ("tpa_memory", tpa_memory::tests()),
        ("tun_pair", tun_pair::tests()),
        ("wide_leaves_nothing", wide_leaves_nothing::tests()),
        ("wide_over_link", wide_over_link::tests()),
    ];
    run(tests.into_iter().flat_map(|(name, tests)| module(name, tests)), Some(at_once()))
}
