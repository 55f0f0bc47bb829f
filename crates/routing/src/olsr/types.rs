//! Inputs and outputs of an OLSR machine.

use hopline_core::Instant;
use hopline_wire::olsr::{Packet, Willingness};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// A packet that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The packet, shared by all nodes that receive it.
    pub packet: Arc<Packet>,
    /// The neighbour that transmitted it: source address of the IP header.
    pub from: Ipv4Addr,
}

/// A packet to broadcast to all neighbours now, with a time to live of 1 in the IP header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The packet.
    pub packet: Packet,
    /// Source address of the IP header: always this node.
    pub source: Ipv4Addr,
}

/// Report of the link layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A unicast frame to `neighbour` was given up after all retries.
    LinkFailed {
        /// The neighbour that did not answer.
        neighbour: Ipv4Addr,
    },
}

/// Event that an OLSR machine reports to its node. A route that only changes its next hop or its length is no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A route to a destination that had none.
    RouteFound {
        /// Destination of the route.
        destination: Ipv4Addr,
        /// Length of the route in hops.
        hops: u8,
    },
    /// Loss of the only route to a destination.
    RouteLost {
        /// Destination of the lost route.
        destination: Ipv4Addr,
    },
}

/// A route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Next hop.
    pub next_hop: Ipv4Addr,
    /// Hops to the destination.
    pub hops: u8,
}

/// Public view of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkView {
    /// The node at its other end.
    pub neighbour: Ipv4Addr,
    /// State of the link.
    pub state: LinkState,
    /// The neighbour's willingness.
    pub willingness: Willingness,
    /// Time at which the link is forgotten if nothing more is received.
    pub expires: Instant,
}

/// State of a link (RFC 3626 §6.2, §14.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// Both ends receive each other's messages.
    Symmetric,
    /// The neighbour's messages are received.
    Asymmetric,
    /// No longer received.
    Lost,
    /// Not trusted yet by hysteresis, and not advertised.
    Pending,
}

/// Reason for which an OLSR machine asks to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// A link, a neighbour's neighbour, an MPR selector or a topology entry may have expired.
    Expiry,
    /// Time to say HELLO.
    Hello,
    /// Time for a TC message.
    Tc,
    /// The jitter of a message to be forwarded has passed.
    Departure,
}

impl hopline_core::TimerKind for Timer {
    // HELLO and TC come after expiry, on which their content depends, and before departure, so that they take waiting
    // messages along.
    const ALL: &'static [Self] = &[Self::Expiry, Self::Hello, Self::Tc, Self::Departure];

    fn index(self) -> usize {
        self as usize
    }
}
