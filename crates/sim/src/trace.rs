//! Looking over the simulator's shoulder. Costs nothing when nobody looks.

use hopline_core::{FlowId, Instant, NodeId};
use hopline_routing::aodv;
use hopline_transport::Signal;
use hopline_wire::dot11::Frame;

mod join;
mod ns2;
mod pcap;

pub use crate::packet::{Body, Packet};
pub use ns2::Ns2;
pub use pcap::Pcap;
pub(crate) use pcap::emit;

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// The interface queue was full.
    QueueFull,
    /// The MAC gave up after its last retry.
    RetryLimit,
    /// There is no route.
    NoRoute,
    /// Hop limit exceeded.
    Ttl,
    /// Damaged on a wired link.
    LinkError,
    /// Came from a node that is not heard at the time ([`OutageSpec`](crate::spec::OutageSpec)).
    Outage,
    /// The routing agent gave it up.
    Routing(aodv::DropReason),
}

impl DropReason {
    /// The reason in words.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::QueueFull => "interface queue full",
            Self::RetryLimit => "retry limit reached",
            Self::NoRoute => "no route",
            Self::Ttl => "hop limit exceeded",
            Self::LinkError => "damaged on the link",
            Self::Outage => "link outage",
            Self::Routing(reason) => reason.as_str(),
        }
    }
}

/// Where in a node a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At its radio: MAC or interface queue.
    Radio,
    /// At a wired link or the queue before it.
    Wire,
    /// At the network layer.
    Network,
}

/// A packet as it passes: its contents, which never change, and the hops it has left.
#[derive(Clone, Copy, Debug)]
pub struct PacketView<'a> {
    /// The packet.
    pub packet: &'a Packet,
    /// Time to live as the IP header would have it here.
    pub ttl: u8,
}

/// Receives what happens. Every method has an empty default, and with [`NoTrace`] the calls vanish.
pub trait Tracer {
    /// Whether anything is looked at. A constant, so that the preparation of a trace vanishes too.
    const ENABLED: bool = true;

    /// `node` starts to send a frame over its radio.
    fn frame_sent(&mut self, now: Instant, node: NodeId, frame: &Frame<PacketView<'_>>) {
        let _ = (now, node, frame);
    }

    /// `node` received a frame over its radio intact, whoever it was for.
    fn frame_received(&mut self, now: Instant, node: NodeId, frame: &Frame<PacketView<'_>>) {
        let _ = (now, node, frame);
    }

    /// `node` starts to send a packet over a wired link.
    fn packet_sent(&mut self, now: Instant, node: NodeId, packet: PacketView<'_>) {
        let _ = (now, node, packet);
    }

    /// `node` received a packet over a wired link.
    fn packet_received(&mut self, now: Instant, node: NodeId, packet: PacketView<'_>) {
        let _ = (now, node, packet);
    }

    /// An application or transport endpoint at `node` hands a packet of a flow to the network layer.
    fn originated(&mut self, now: Instant, node: NodeId, packet: PacketView<'_>) {
        let _ = (now, node, packet);
    }

    /// A packet that is to be passed on, or a routing message, has come up from an interface of `node`.
    fn arrived(&mut self, now: Instant, node: NodeId, packet: PacketView<'_>) {
        let _ = (now, node, packet);
    }

    /// The network layer of `node` hands a packet to an interface, for `next_hop` or, if that is `None`, for everybody.
    fn routed(&mut self, now: Instant, node: NodeId, packet: PacketView<'_>, next_hop: Option<NodeId>) {
        let _ = (now, node, packet, next_hop);
    }

    /// A packet of a flow has reached `node`, which it is for. A copy that comes again is told again.
    fn delivered(&mut self, now: Instant, node: NodeId, packet: PacketView<'_>) {
        let _ = (now, node, packet);
    }

    /// The network layer of `node` tells the end of `flow` there of its route.
    fn signalled(&mut self, now: Instant, node: NodeId, flow: FlowId, signal: Signal) {
        let _ = (now, node, flow, signal);
    }

    /// `node` dropped a packet, at `place`.
    fn dropped(
        &mut self,
        now: Instant,
        node: NodeId,
        packet: PacketView<'_>,
        reason: DropReason,
        place: Place,
    ) {
        let _ = (now, node, packet, reason, place);
    }
}

/// Nobody looks.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTrace;

impl Tracer for NoTrace {
    const ENABLED: bool = false;
}
