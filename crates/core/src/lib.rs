//! Foundations of every hopline state machine: time, serial numbers, ids, random streams, timers, payloads
//! and the [machine contract](machine).
//!
//! Nothing here opens a socket, reads a clock, spawns a thread or asks the operating system for randomness.

pub mod flood;
pub mod id;
pub mod machine;
pub mod own;
pub mod payload;
pub mod pre_auth;
pub mod prefix;
pub mod rate;
pub mod rng;
pub mod seq;
pub mod time;
pub mod timer;

pub use id::{FlowId, LinkId, NodeId};
pub use machine::Machine;
pub use payload::{Length, Payload};
pub use pre_auth::PreAuthLimit;
pub use prefix::{ByPrefix, Prefix};
pub use rate::RateLimit;
pub use rng::{Purpose, Stream};
pub use seq::{Seq16, Seq32};
pub use time::{Duration, Instant};
pub use timer::{TimerKind, TimerTable};

/// The example of README.md, as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
