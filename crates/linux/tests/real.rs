//! The kernel and namespaces. A test that cannot run here is reported as ignored.

mod kernel;

use hopline_harness::{module, run};
use hopline_testkit::namespace::at_once;
use std::process::ExitCode;

fn main() -> ExitCode {
    run(module("kernel", kernel::tests()), Some(at_once()))
}
