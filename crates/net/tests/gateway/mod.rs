//! Gateways between TCP and TPA, with the kernel's sockets as applications: over the loopback interface, and between namespaces over an
//! emulated link.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

mod announced;
mod carried;
mod diverted;
mod helpers;
mod hostile;
mod killed;
mod measure;
mod over_link;
mod refused;
mod socks;

use hopline_harness::Test;

pub(crate) use killed::{play, role};

pub(crate) fn tests() -> Vec<Test> {
    let tests = [
        carried::tests(),
        refused::tests(),
        socks::tests(),
        hostile::tests(),
        killed::tests(),
        over_link::tests(),
        diverted::tests(),
        announced::tests(),
        measure::tests(),
    ];
    tests.into_iter().flatten().collect()
}
