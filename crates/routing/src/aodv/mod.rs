//! AODV, the ad hoc on-demand distance vector protocol (RFC 3561), as a machine for one node.
//!
//! The machine decides where data packets go; it never sees more of them than a `Copy` handle `M`. It holds the packets
//! that wait for a route and gives every one of them back, in [`Event::Release`] or [`Event::Drop`].
//!
//! Not here: multicast, route aggregation by prefix, several interfaces (§7, §8), and the waiting after a reboot
//! (§6.13): a node that lost its state is a new machine, which a driver should start DELETE_PERIOD later.

pub mod config;
mod discovery;
mod error;
mod forwarding;
mod hello;
mod machine;
mod neighbours;
mod renewals;
mod repair;
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
