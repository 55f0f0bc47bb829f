//! The kernel and namespaces. A test that cannot run here is reported as ignored.

mod kernel;

use hopline_harness::{module, run};
use hopline_testkit::namespace::concurrent_link_tests;
use std::process::ExitCode;

fn main() -> ExitCode {
    run(module("kernel", kernel::tests()), Some(concurrent_link_tests()))
}
