//! Inputs and outputs of a DSR machine.

pub use crate::receiver::Receiver;

use crate::DropReason;
use hopline_wire::dsr::Header;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// An IP packet with a DSR Options header. `M` is the node's handle for the payload behind that header, a data packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet<M> {
    /// Source address of the IP header.
    pub source: Ipv4Addr,
    /// Destination address of the IP header; [`Ipv4Addr::BROADCAST`] of requests.
    pub destination: Ipv4Addr,
    /// Time to live of the IP header, as it is on the air.
    pub ttl: u8,
    /// DSR Options header. Shared: all nodes that receive a packet read the same memory.
    pub header: Arc<Header>,
    /// Payload, if any. [`Header::next`] says whether there is one.
    pub payload: Option<M>,
    /// Learning of its path by nodes that receive or overhear it.
    pub flow: Flow,
}

/// Learning of a packet's path by its target and by nodes off the path (RFC 4728 §7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// They learn it: the packet announces its source route.
    Announced,
    /// They do not learn it: the nodes on the path know it, and it need not be announced.
    Established,
}

/// A packet that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received<M> {
    /// The packet. `carried` of an overheard packet is ignored, and should be `None`.
    pub packet: Packet<M>,
    /// The neighbour that transmitted it.
    pub from: Ipv4Addr,
    /// Receiver of the transmission.
    pub to: Receiver,
}

/// A packet to send now: any jitter has already passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit<M> {
    /// The packet.
    pub packet: Packet<M>,
    /// The next hop, or [`Ipv4Addr::BROADCAST`].
    pub next_hop: Ipv4Addr,
}

/// Report of the link layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal<M> {
    /// A frame to `neighbour` was given up after all retries. The machine takes its content.
    LinkFailed {
        /// The neighbour that did not answer.
        neighbour: Ipv4Addr,
        /// The packet, as it was on the air.
        packet: Packet<M>,
    },
}

/// Event that a DSR machine reports to its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<M> {
    /// A data packet has arrived at this node, its destination.
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
        /// Reason.
        reason: DropReason,
    },
    /// A search of this node found a route.
    RouteFound {
        /// Destination of the route.
        destination: Ipv4Addr,
        /// Length of the route in hops.
        hops: u8,
    },
    /// The last known route to a destination of packets of this node failed, or none could be found. Without a route cache:
    /// the first hop failed, or a flooded request was not answered in time.
    RouteLost {
        /// Destination of the lost route.
        destination: Ipv4Addr,
    },
    /// Take every packet for `next_hop` out of the interface queue and report each one as failed
    /// ([`Signal::LinkFailed`]).
    PurgeQueue {
        /// The lost neighbour.
        next_hop: Ipv4Addr,
    },
}

/// Reason for which a DSR machine asks to be woken.
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
