//! Foundations of every hopline state machine: time, serial numbers, ids, random streams, timers, payloads
//! and the [machine contract](state_machine).
//!
//! Nothing here opens a socket, reads a clock, spawns a thread or asks the operating system for randomness.

pub mod custom_algorithm;
pub mod id;
pub mod payload;
pub mod pre_auth;
pub mod prefix;
pub mod rate;
pub mod request_admission;
pub mod rng;
pub mod seq;
mod settings;
pub mod state_machine;
pub mod time;
pub mod timer;

pub use id::{FlowId, LinkId, NodeId};
pub use payload::{Length, Payload};
pub use pre_auth::PreAuthLimit;
pub use prefix::{Prefix, PrefixCounter};
pub use rate::RateLimit;
pub use rng::{Purpose, RandomStream};
pub use seq::{Seq16, Seq32};
pub use state_machine::StateMachine;
pub use time::{Duration, Instant};
pub use timer::{TimerKind, TimerTable};

/// The example of README.md, as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
