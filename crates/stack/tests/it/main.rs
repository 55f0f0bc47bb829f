//! Two stacks with an emulated link between them, in virtual time; and what no honest peer sends.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

mod hostile;
mod icmp_errors;
mod keep_alive;
mod memory;
mod transfers;
mod world;
