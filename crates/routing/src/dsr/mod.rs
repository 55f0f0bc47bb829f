//! DSR, dynamic source routing (RFC 4728), as a machine for one node.
//!
//! The machine decides which way data packets take, and writes it into their headers; it never sees more of them than a
//! `Copy` handle `M`. Every handle that it is given comes back once: in [`Transmit`]'s packet, in [`Event::Deliver`], or in
//! [`Event::Drop`].
//!
//! Links are taken to work both ways, as those of 802.11 do (§3.3.1): routes are learnt in both directions, replies and
//! errors go back the way that packets came, and a link that fails is forgotten in both.
//!
//! Not implemented: flow state (§7), passive and network-layer acknowledgements of this node's own (§8.3.2, §8.3.3; requests
//! of other nodes are answered), the blacklist for unidirectional links (§4.6), several interfaces (§8.4), fragmentation
//! (§8.5), requests that carry data (§8.2.1), and errors inside errors (§8.3.4).

mod agent;
mod broken;
pub mod config;
mod delayed_replies;
mod detours;
mod discovery;
mod error;
mod flows;
mod forwarding;
mod gratuitous_replies;
mod jitter;
mod learning;
mod no_cache;
mod promiscuous;
mod reply;
mod request;
mod request_table;
mod route_cache;
mod router;
mod search;
mod source_path;
mod stats;
mod types;

pub use crate::DropReason;
pub use agent::Dsr;
pub use config::Config;
pub use stats::{IgnoredReason, Stats};
pub use types::{Event, Flow, Packet, Received, Receiver, Signal, Timer, Transmit};

#[cfg(test)]
mod tests;
