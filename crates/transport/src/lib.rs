//! Transport endpoints as sans-IO machines.
//!
//! Each endpoint keeps the contract of [`hopline_core::state_machine`]: the simulator, the tests and the Linux daemons drive
//! the same value.

pub mod any;
mod config_error;
pub mod connection;
mod drops;
mod lifecycle;
pub mod pacing;
pub mod quic;
mod reassembly;
mod send_queue;
mod signal;
pub mod tcp;
#[cfg(test)]
mod test_script;
pub mod tpa;
pub mod wide;

pub use config_error::ConfigError;
pub use drops::{Drops, Reason};
pub use signal::Signal;

/// The example of README.md, as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
