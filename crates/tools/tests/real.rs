//! The kernel, namespaces and emulated links, in real time. A test that cannot run here is reported as ignored.

mod bench_over_link;
mod small_disk;

use hopline_harness::{module, run};
use hopline_testkit::namespace::concurrent_link_tests;
use std::process::ExitCode;

fn main() -> ExitCode {
    if small_disk::is_the_copy() {
        return ExitCode::SUCCESS;
    }
    let tests = [("bench_over_link", bench_over_link::tests()), ("small_disk", small_disk::tests())];
    run(tests.into_iter().flat_map(|(name, tests)| module(name, tests)), Some(concurrent_link_tests()))
}
