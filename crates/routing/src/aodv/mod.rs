//! AODV, the ad hoc on-demand distance vector protocol (RFC 3561), as a state machine for one node.
//!
//! The machine decides how data packets are routed; it sees no more of them than a `Copy` handle `M`. It holds the packets
//! that wait for a route and returns every one of them, in [`Event::Release`] or [`Event::Drop`].
//!
//! Not implemented: multicast, route aggregation by prefix, several interfaces (§7, §8), and the waiting after a reboot
//! (§6.13). A node that lost its state is a new machine, which a driver should start DELETE_PERIOD later.

pub mod config;
mod discovery;
mod error;
mod forwarding;
mod hello;
mod machine;
mod neighbours;
mod renewals;
mod repair;
mod repair_ends;
mod reply;
mod request;
mod router;
mod search;
mod seen;
mod stats;
mod table;
mod types;

pub use crate::DropReason;
pub use config::Config;
pub use machine::{Aodv, RouteView};
pub use stats::{Ignored, Stats};
pub use table::RouteState;
pub use types::{Carried, Decision, Event, Origin, Received, Signal, Timer, Transmit};

#[cfg(test)]
mod tests;
