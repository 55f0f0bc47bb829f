//! Inputs and outputs of an AODV machine.

pub use crate::router::{Decision, Origin};

use crate::DropReason;
use hopline_wire::aodv::Message;
use std::net::Ipv4Addr;

/// A message that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The message.
    pub message: Message,
    /// The neighbour that transmitted it: source address of the IP header.
    pub from: Ipv4Addr,
    /// Destination address of the IP header: this node, or [`Ipv4Addr::BROADCAST`].
    pub to: Ipv4Addr,
    /// Time to live of the IP header on arrival. 1: not to be relayed.
    pub ttl: u8,
}

/// A message to send now: any jitter has already passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The message.
    pub message: Message,
    /// The next hop, or [`Ipv4Addr::BROADCAST`].
    pub next_hop: Ipv4Addr,
    /// Source address of the IP header: always this node.
    pub source: Ipv4Addr,
    /// Destination address of the IP header: the neighbour or [`Ipv4Addr::BROADCAST`]. AODV messages are handled at
    /// every hop, so even a reply is addressed to its next hop.
    pub destination: Ipv4Addr,
    /// Time to live of the IP header.
    pub ttl: u8,
}

/// Content of a failed transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedContent<M> {
    /// A data packet. The machine takes it: it comes back in [`Event::Drop`], or is buffered for local repair.
    Data {
        /// The packet.
        packet: M,
        /// Destination of the packet.
        destination: Ipv4Addr,
        /// Source of the packet.
        source: Ipv4Addr,
        /// Hops it has taken from its source to this node; 0 at the source.
        travelled: u8,
    },
    /// A route reply of this node (§6.8).
    Reply,
    /// Another AODV message.
    Control,
    /// Unknown content, or content that does not concern AODV.
    Other,
}

impl<M> FailedContent<M> {
    /// Returns the content of a failed transmission of `message`.
    #[must_use]
    pub const fn of_message(message: &Message) -> Self {
        match message {
            Message::Rrep(_) => Self::Reply,
            _ => Self::Control,
        }
    }
}

/// Report of the link layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal<M> {
    /// A unicast frame to `neighbour` was given up after all retries.
    LinkFailed {
        /// The neighbour that did not answer.
        neighbour: Ipv4Addr,
        /// Content of the frame.
        content: FailedContent<M>,
    },
    /// A packet of `neighbour` that is no AODV message arrived for this node or for all. Only used if links are sensed by
    /// HELLO (§6.9) and any packet counts ([`HelloLiveness`](super::config::HelloLiveness)); AODV messages count by themselves.
    NeighbourHeard {
        /// The neighbour.
        neighbour: Ipv4Addr,
    },
}

/// Event that an AODV machine reports to its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<M> {
    /// Send a packet that was buffered.
    Release {
        /// The packet.
        packet: M,
        /// The neighbour to send it to.
        next_hop: Ipv4Addr,
    },
    /// A packet that the machine held is lost.
    Drop {
        /// The packet.
        packet: M,
        /// Reason.
        reason: DropReason,
    },
    /// A discovery of this node found a route.
    RouteFound {
        /// Destination of the route.
        destination: Ipv4Addr,
        /// Length of the route in hops.
        hops: u8,
    },
    /// A route in use broke, was reported broken, or was not repaired. Unused routes are not reported.
    RouteLost {
        /// Destination of the lost route.
        destination: Ipv4Addr,
    },
    /// Take every packet for `next_hop` out of the interface queue and drop it with [`DropReason::LinkFailure`]: it
    /// cannot arrive.
    PurgeQueue {
        /// The lost neighbour.
        next_hop: Ipv4Addr,
    },
}

/// Reason for which an AODV machine asks to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// A jittered broadcast or a spaced-out packet is due.
    Departure,
    /// A route request was not answered in time.
    Discovery,
    /// A reply was not acknowledged (§6.8).
    ReplyAck,
    /// Packets have been in the buffer too long.
    Buffer,
    /// Time to say HELLO (§6.9).
    Hello,
    /// A neighbour may have fallen silent (§6.9).
    Neighbour,
    /// Routes may have expired.
    Purge,
    /// A repair has lasted too long (ns-2).
    Repair,
}

impl hopline_core::TimerKind for Timer {
    const ALL: &'static [Self] = &[
        Self::Departure,
        Self::Discovery,
        Self::ReplyAck,
        Self::Buffer,
        Self::Hello,
        Self::Neighbour,
        Self::Purge,
        Self::Repair,
    ];

    fn index(self) -> usize {
        self as usize
    }
}
