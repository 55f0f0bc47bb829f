//! A host stack of our own and the kernel's TCP, over an emulated link.
//!
//! ```text
//! host A: program ── forward, SOCKS or accept ── stack 10.88.0.2 ── TUN ── kernel's routes ══ link ══ host B: kernel's TCP
//! ```

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

mod drill;
mod ends;
mod flood;
mod transfers;
mod world;

use hopline_harness::Test;

pub(crate) fn tests() -> Vec<Test> {
    [transfers::tests(), ends::tests(), flood::tests(), drill::tests()].into_iter().flatten().collect()
}
