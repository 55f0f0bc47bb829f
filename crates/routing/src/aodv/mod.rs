//! AODV, the ad hoc on-demand distance vector protocol (RFC 3561), as a state machine for one node.
//!
//! The machine decides how data packets are routed; it sees no more of them than a `Copy` handle `M`. It holds the packets
//! that wait for a route and returns every one of them, in [`Event::Release`] or [`Event::Drop`].
//!
//! Not implemented: multicast, route aggregation by prefix, several interfaces (§7, §8), and the waiting after a reboot
//! (§6.13). A node that lost its state is a new machine, which a driver should start DELETE_PERIOD later.

mod agent;
pub mod config;
mod discoveries;
mod discovery;
mod error;
mod forwarding;
mod hello;
mod neighbour_cache;
mod neighbours;
mod repair;
mod repair_ends;
mod reply;
mod request;
mod router;
mod rreq_cache;
mod stats;
mod table;
mod types;

pub use crate::DropReason;
pub use agent::{Aodv, RouteView};
pub use config::Config;
pub use stats::{IgnoredReason, Stats};
pub use table::RouteState;
pub use types::{Decision, Event, FailedContent, Origin, Received, Signal, Timer, Transmit};

#[cfg(test)]
mod tests;
