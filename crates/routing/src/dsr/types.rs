//! What goes into and comes out of a DSR machine.

pub use crate::router::Receiver;

use crate::DropReason;
use hopline_wire::dsr::Header;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// An IP packet with a DSR Options header. `M` is the node's handle for what stands behind that header, a data packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet<M> {
    /// Source address of the IP header.
    pub source: Ipv4Addr,
    /// Destination address of the IP header; [`Ipv4Addr::BROADCAST`] of requests.
    pub destination: Ipv4Addr,
    /// Time to live of the IP header, as it is on the air.
    pub ttl: u8,
    /// The DSR Options header. Shared: all that hear a packet read the same memory.
    pub header: Arc<Header>,
    /// What it carries. [`Header::next`] says whether there is something.
    pub carried: Option<M>,
    /// Whether who hears it learns its way.
    pub flow: Flow,
}

/// Whether nodes off the way of a packet, and its target, learn that way of it (RFC 4728 §7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// They do: it tells its source route.
    Announced,
    /// They do not: the nodes on its way know it, and it need not be told.
    Established,
}

/// A packet that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received<M> {
    /// The packet. Of one that was overheard `carried` is not looked at, and should be `None`.
    pub packet: Packet<M>,
    /// The neighbour that transmitted it.
    pub from: Ipv4Addr,
    /// Whom it was transmitted to.
    pub to: Receiver,
}

/// A packet to send now: any jitter has already passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit<M> {
    /// The packet.
    pub packet: Packet<M>,
    /// The neighbour to hand it to, or [`Ipv4Addr::BROADCAST`].
    pub next_hop: Ipv4Addr,
}

/// What the link layer reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal<M> {
    /// A frame to `neighbour` was given up after all retries. The machine takes what it carried.
    LinkFailed {
        /// The neighbour that did not answer.
        neighbour: Ipv4Addr,
        /// The packet, as it was on the air.
        packet: Packet<M>,
    },
}

/// What a DSR machine tells its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<M> {
    /// A data packet has arrived where it was to go: here.
    Deliver {
        /// The packet.
        packet: M,
        /// Time to live with which it arrived.
        ttl: u8,
    },
    /// A data packet is lost.
    Drop {
        /// The packet.
        packet: M,
        /// Why.
        reason: DropReason,
    },
    /// A route this node was looking for is there.
    RouteFound {
        /// Where it leads.
        destination: Ipv4Addr,
        /// How far that is.
        hops: u8,
    },
    /// The last known route to a destination of packets of this node failed, or none could be found. Where no routes are
    /// remembered: the first hop failed, or a request that went to everybody was not answered in time.
    RouteLost {
        /// Where it led.
        destination: Ipv4Addr,
    },
    /// Take every packet for `next_hop` out of the interface queue and report each one as failed
    /// ([`Signal::LinkFailed`]).
    PurgeQueue {
        /// The lost neighbour.
        next_hop: Ipv4Addr,
    },
}

/// Why a DSR machine wants to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// A jittered request or a delayed reply is due.
    Departure,
    /// A request was not answered in time.
    Discovery,
    /// Packets have been in the send buffer too long.
    Buffer,
}

impl hopline_core::TimerKind for Timer {
    const ALL: &'static [Self] = &[Self::Departure, Self::Discovery, Self::Buffer];

    fn index(self) -> usize {
        self as usize
    }
}
