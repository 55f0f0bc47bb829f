//! OLSR, the optimized link state routing protocol (RFC 3626), as a machine for one node with one interface.
//!
//! Nodes say HELLO to their neighbours, learn from each other's HELLOs whom they reach in two hops, and choose a few
//! neighbours as multipoint relays (MPRs). Only MPRs pass messages on, and only they tell the network of their links, to
//! the nodes that chose them (TC messages). From that every node computes a shortest path to every other one.
//!
//! The machine never sees data packets: a node asks [`Olsr::route`] for the next hop.
//!
//! Not implemented: several interfaces (MID, §5) and outside networks (HNA, §12); their messages are forwarded and not
//! processed. Nor redundant topology information and MPRs (§15, §16: `TC_REDUNDANCY` 0, `MPR_COVERAGE` 1).

mod advertising;
mod agent;
pub mod config;
mod duplicates;
mod expiring_set;
mod forwarding;
mod hello;
mod links;
mod mpr;
mod outbox;
mod router;
mod routing_table;
mod stats;
mod tc;
mod topology;
mod types;

pub use agent::Olsr;
pub use config::Config;
pub use stats::{IgnoredReason, Stats};
pub use types::{Event, LinkState, LinkView, Received, Route, Signal, Timer, Transmit};
#[cfg(test)]
mod tests;
