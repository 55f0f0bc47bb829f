//! Gateways between TCP and TPA, with the kernel's sockets as applications: over the loopback interface, and between namespaces over an
//! emulated link.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

mod announced;
mod between;
mod carried;
mod clear;
mod diverted;
pub(crate) mod helpers;
mod hostile;
mod killed;
mod measure;
mod named;
mod over_link;
mod queries;
mod refused;
mod socks;

use hopline_harness::Test;

pub(crate) use killed::{role, run_role};

pub(crate) fn tests() -> Vec<Test> {
    let tests = [
        carried::tests(),
        clear::tests(),
        refused::tests(),
        socks::tests(),
        hostile::tests(),
        killed::tests(),
        named::tests(),
        over_link::tests(),
        queries::tests(),
        diverted::tests(),
        announced::tests(),
        measure::tests(),
    ];
    tests.into_iter().flatten().collect()
}
