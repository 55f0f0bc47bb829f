//! Routing: static shortest paths, and the routing agents AODV, OLSR, and DSR.

mod address_map;
pub mod aodv;
mod drop_reason;
pub mod dsr;
pub mod olsr;
mod outbox;
mod receiver;
pub mod router;
mod send_buffer;
pub mod static_routes;
#[cfg(test)]
mod tests;

pub use drop_reason::DropReason;
pub use router::{Agent, Router};
pub use static_routes::{LinkEdge, StaticRoutes};

use std::net::Ipv4Addr;

/// Returns whether `address` can belong to a node.
const fn is_host(address: Ipv4Addr) -> bool {
    !(address.is_unspecified() || address.is_multicast() || address.is_broadcast())
}

/// Novelty of a flooded message at this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DuplicateCheck {
    New,
    Duplicate,
    /// There is no room to record it.
    TableFull,
}

/// Effect of an input on the state that timers depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimerEffect {
    /// None: the timers stand.
    None,
    /// Perhaps some.
    Possible,
}
