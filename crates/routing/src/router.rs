//! Common interface of routing agents to their node. Every protocol takes the same route query for a packet and the same
//! messages, and returns the same decisions.

pub use crate::receiver::Receiver;
use crate::{DropReason, aodv, dsr, olsr};
use hopline_core::Instant;
use hopline_wire::ipv4::{HEADER_LEN, Protocol};
use hopline_wire::udp;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Routing agent. `M` is the node's handle for a data packet.
///
/// A node calls [`route`](Self::route) for each data packet that is not for itself, passes on the messages of other agents,
/// and reports transmissions that its link layer gave up. After each call it drains [`poll_transmit`](Self::poll_transmit) and
/// [`poll_event`](Self::poll_event), and arranges to call [`handle_timeout`](Self::handle_timeout) at [`poll_timeout`](Self::poll_timeout).
pub trait Router<M: Copy> {
    /// Decides how to handle a data packet.
    fn route(&mut self, now: Instant, question: RouteQuery<M>) -> Decision;

    /// Returns whether packets for `peer` would leave at `now`, and neither wait nor be dropped.
    fn has_route(&self, now: Instant, peer: Ipv4Addr) -> bool;

    /// Handles a message that arrived or was overheard, and its payload. A message of another protocol is ignored.
    fn handle_message(&mut self, now: Instant, received: Received<M>) -> Custody;

    /// Records that a packet of any kind arrived from `neighbour`, for this node or for all. Most agents have no use for it.
    fn handle_reception(&mut self, _now: Instant, _neighbour: Ipv4Addr) {}

    /// Handles a packet for `neighbour` that the link layer gave up.
    fn handle_link_failure(
        &mut self,
        now: Instant,
        neighbour: Ipv4Addr,
        lost: FailedTransmission<M>,
    ) -> Custody;

    /// Handles the timers that are due.
    fn handle_timeout(&mut self, now: Instant);

    /// Returns the time of the next wake-up; `None`: nothing happens without another input.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Returns the next message to send.
    fn poll_transmit(&mut self, now: Instant) -> Option<Transmission<M>>;

    /// Returns the next report to the node.
    fn poll_event(&mut self) -> Option<Report<M>>;
}

/// Route query for a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteQuery<M> {
    /// The packet.
    pub packet: M,
    /// Destination within the network of the agent.
    pub destination: Ipv4Addr,
    /// Time to live on the air.
    pub ttl: u8,
    /// Protocol of the packet, for a header that goes in front of it.
    pub protocol: Protocol,
    /// Origin of the packet.
    pub origin: Origin,
}

/// Origin of a data packet that needs a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// This node itself, or a node beyond the network in which the agent routes.
    Local,
    /// Another node; the packet is to be forwarded.
    Forwarded {
        /// Previous hop.
        previous_hop: Ipv4Addr,
        /// Source address of the IP header.
        source: Ipv4Addr,
    },
}

/// Action for a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Decision {
    /// Send it to this neighbour.
    Forward {
        /// The neighbour.
        next_hop: Ipv4Addr,
    },
    /// The agent holds it until it knows a route, or puts it behind a header of its own. It comes back in a [`Report`] or in
    /// a [`Transmission`].
    Accepted,
    /// No transmission. The caller still owns the packet.
    Dropped {
        /// Reason.
        reason: DropReason,
    },
}

/// Message of a routing agent to other agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// AODV message, over UDP.
    Aodv(hopline_wire::aodv::Message),
    /// OLSR packet, over UDP; shared by all nodes that receive it.
    Olsr(Arc<hopline_wire::olsr::Packet>),
    /// DSR options, alone or in front of the payload of another packet; shared by all nodes that receive them.
    Dsr {
        /// The options.
        header: Arc<hopline_wire::dsr::Header>,
        /// Learning of its path by nodes that receive or overhear it.
        flow: dsr::Flow,
    },
}

impl Message {
    /// The protocol's name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Aodv(_) => "AODV",
            Self::Olsr(_) => "OLSR",
            Self::Dsr { .. } => "DSR",
        }
    }

    /// Returns the protocol number for the IP header.
    #[must_use]
    pub const fn protocol(&self) -> Protocol {
        match self {
            Self::Aodv(_) | Self::Olsr(_) => Protocol::Udp,
            Self::Dsr { .. } => hopline_wire::dsr::PROTOCOL,
        }
    }

    /// Returns the UDP port at both ends; `None` without UDP.
    #[must_use]
    pub const fn port(&self) -> Option<u16> {
        match self {
            Self::Aodv(_) => Some(hopline_wire::aodv::PORT),
            Self::Olsr(_) => Some(hopline_wire::olsr::PORT),
            Self::Dsr { .. } => None,
        }
    }

    /// Returns the bytes of the message, behind the UDP header if it has one.
    #[must_use]
    pub fn wire_len(&self) -> usize {
        match self {
            Self::Aodv(message) => message.wire_len(),
            Self::Olsr(packet) => packet.wire_len(),
            Self::Dsr { header, .. } => header.wire_len(),
        }
    }

    /// Appends the bytes of the message.
    pub fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Self::Aodv(message) => message.emit(out),
            Self::Olsr(packet) => packet.emit(out),
            Self::Dsr { header, .. } => header.emit(out),
        }
    }

    /// Returns the length of the IP packet with the message, without a data packet behind it.
    pub(crate) fn packet_len(&self) -> usize {
        HEADER_LEN + self.port().map_or(0, |_| udp::HEADER_LEN) + self.wire_len()
    }
}

/// An IP packet with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet<M> {
    /// Source address of the IP header.
    pub source: Ipv4Addr,
    /// Destination address of the IP header.
    pub destination: Ipv4Addr,
    /// Time to live of the IP header, as it is on the air.
    pub ttl: u8,
    /// The message.
    pub message: Message,
    /// Data packet behind the message. The holder of the packet holds the data packet too.
    pub payload: Option<M>,
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
pub struct Transmission<M> {
    /// The packet.
    pub packet: Packet<M>,
    /// The next hop, or [`Ipv4Addr::BROADCAST`].
    pub next_hop: Ipv4Addr,
    /// Bytes of the packet, its IP header included; with a data packet behind the message, the bytes that it adds to that.
    pub len: usize,
}

/// Transmission that the link layer gave up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailedTransmission<M> {
    /// A data packet alone.
    Data {
        /// The packet.
        packet: M,
        /// Destination within the network of the agent.
        destination: Ipv4Addr,
        /// Source of the packet.
        source: Ipv4Addr,
        /// Hops it has taken from its source to this node; 0 at the source.
        travelled: u8,
    },
    /// A packet of the routing protocol, with the data packet behind it.
    Message(Packet<M>),
}

/// Owner of a data packet after a call of the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Custody {
    /// The agent has the data packet, and will send or drop it.
    Accepted,
    /// The caller still holds the data packet, if there is one.
    Refused,
}

/// Report of an agent to its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report<M> {
    /// Send a data packet that the agent had.
    Release {
        /// The packet.
        packet: M,
        /// The neighbour to send it to.
        next_hop: Ipv4Addr,
    },
    /// A data packet has arrived at this node, its destination.
    Deliver {
        /// The packet.
        packet: M,
        /// Time to live with which it arrived.
        ttl: u8,
    },
    /// A data packet that the agent had is lost.
    Drop {
        /// The packet.
        packet: M,
        /// Reason.
        reason: DropReason,
    },
    /// Take every packet for `next_hop` out of the interface queue: it cannot arrive.
    PurgeQueue {
        /// The lost neighbour.
        next_hop: Ipv4Addr,
        /// Treatment of those packets.
        fate: PurgedPackets,
    },
    /// A route to a destination that had none.
    RouteFound {
        /// Destination of the route.
        destination: Ipv4Addr,
    },
    /// Loss of the only route to a destination, or a search without success.
    RouteLost {
        /// Destination of the lost route.
        destination: Ipv4Addr,
    },
}

/// Treatment of packets that are taken out of a queue because their next hop is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgedPackets {
    /// Dropped.
    Dropped,
    /// The agent is informed of each packet as one that the link layer gave up.
    Failed,
}

/// Any of the agents, dispatched statically.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "nodes box it, and all agents of a network are of one kind")]
pub enum Agent<M> {
    /// RFC 3561.
    Aodv(aodv::Aodv<M>),
    /// RFC 3626.
    Olsr(olsr::Olsr),
    /// RFC 4728.
    Dsr(dsr::Dsr<M>),
}

/// Calls the same method of an agent of any kind.
macro_rules! each {
    ($self:expr, $agent:ident => $what:expr) => {
        match $self {
            Agent::Aodv($agent) => $what,
            Agent::Olsr($agent) => $what,
            Agent::Dsr($agent) => $what,
        }
    };
}

impl<M: Copy> Agent<M> {
    /// Returns the number of data packets that it has [taken](Decision::Accepted) and not given back.
    #[must_use]
    pub fn held_packets(&self) -> usize {
        match self {
            Self::Aodv(agent) => agent.held_packets(),
            Self::Olsr(_) => 0,
            Self::Dsr(agent) => agent.held_packets(),
        }
    }
}

impl<M: Copy> Router<M> for Agent<M> {
    fn route(&mut self, now: Instant, question: RouteQuery<M>) -> Decision {
        each!(self, agent => Router::route(agent, now, question))
    }

    fn has_route(&self, now: Instant, peer: Ipv4Addr) -> bool {
        each!(self, agent => Router::<M>::has_route(agent, now, peer))
    }

    fn handle_message(&mut self, now: Instant, received: Received<M>) -> Custody {
        each!(self, agent => agent.handle_message(now, received))
    }

    fn handle_reception(&mut self, now: Instant, neighbour: Ipv4Addr) {
        each!(self, agent => Router::<M>::handle_reception(agent, now, neighbour));
    }

    fn handle_link_failure(
        &mut self,
        now: Instant,
        neighbour: Ipv4Addr,
        lost: FailedTransmission<M>,
    ) -> Custody {
        each!(self, agent => agent.handle_link_failure(now, neighbour, lost))
    }

    fn handle_timeout(&mut self, now: Instant) {
        each!(self, agent => Router::<M>::handle_timeout(agent, now));
    }

    fn poll_timeout(&self) -> Option<Instant> {
        each!(self, agent => Router::<M>::poll_timeout(agent))
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Transmission<M>> {
        each!(self, agent => agent.poll_transmit(now))
    }

    fn poll_event(&mut self) -> Option<Report<M>> {
        each!(self, agent => agent.poll_event())
    }
}
