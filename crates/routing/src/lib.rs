//! Routing: shortest paths that never change, and agents that find them: AODV, OLSR, and DSR.

mod address_map;
pub mod aodv;
mod buffer;
mod drop_reason;
pub mod dsr;
pub mod olsr;
mod outbox;
pub mod router;
pub mod static_routes;
#[cfg(test)]
mod tests;

pub use drop_reason::DropReason;
pub use router::{Agent, Router};
pub use static_routes::{Edge, StaticRoutes};

use std::net::Ipv4Addr;

/// Whether `address` can be a node's.
const fn is_host(address: Ipv4Addr) -> bool {
    !(address.is_unspecified() || address.is_multicast() || address.is_broadcast())
}

/// Whether a message that floods the network is new here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sighting {
    First,
    Again,
    /// There is no room to remember it.
    Full,
}

/// Whether an input changed anything that a timer depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// No: the timers stand.
    None,
    /// Perhaps.
    Some,
}
