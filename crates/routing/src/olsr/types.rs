//! What goes into and comes out of an OLSR machine.

use hopline_core::Instant;
use hopline_wire::olsr::{Packet, Willingness};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// A packet that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The packet; all that hear it share it.
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

/// What the link layer reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A unicast frame to `neighbour` was given up after all retries.
    LinkFailed {
        /// The neighbour that did not answer.
        neighbour: Ipv4Addr,
    },
}

/// What an OLSR machine tells its node. A route that only changes its next hop or its length is no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// There is a route where there was none.
    RouteFound {
        /// Where it leads.
        destination: Ipv4Addr,
        /// How far that is.
        hops: u8,
    },
    /// There is no route any more.
    RouteLost {
        /// Where it led.
        destination: Ipv4Addr,
    },
}

/// A route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The neighbour on the way.
    pub next_hop: Ipv4Addr,
    /// Hops to the destination.
    pub hops: u8,
}

/// A link as others may see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkView {
    /// The node at its other end.
    pub neighbour: Ipv4Addr,
    /// What it is good for.
    pub state: LinkState,
    /// The neighbour's willingness.
    pub willingness: Willingness,
    /// When the link is forgotten if nothing more is heard.
    pub expires: Instant,
}

/// What a link is good for (RFC 3626 §6.2, §14.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// Both ends hear each other.
    Symmetric,
    /// The neighbour is heard.
    Asymmetric,
    /// Not any more.
    Lost,
    /// Hysteresis does not trust it yet: it is not mentioned.
    Pending,
}

/// Why an OLSR machine wants to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// A link, a neighbour's neighbour, an MPR selector or a topology entry may have expired.
    Expiry,
    /// Time to say HELLO.
    Hello,
    /// Time for a TC message.
    Tc,
    /// A message to be passed on has waited for its jitter.
    Departure,
}

impl hopline_core::TimerKind for Timer {
    // What a HELLO or TC message says is settled before it is made, and takes along what waits.
    const ALL: &'static [Self] = &[Self::Expiry, Self::Hello, Self::Tc, Self::Departure];

    fn index(self) -> usize {
        self as usize
    }
}
