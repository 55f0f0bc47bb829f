//! Looking over the simulator's shoulder. Costs nothing when nobody looks.

use crate::packet::Packet;
use hopline_core::{Instant, NodeId};
use hopline_routing::aodv;
use hopline_wire::dot11::Frame;

pub use crate::packet::Body;

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
            Self::Routing(reason) => reason.as_str(),
        }
    }
}

/// Receives what happens. Every method has an empty default, and with [`NoTrace`] the calls vanish.
pub trait Tracer {
    /// Whether anything is looked at. A constant, so that the preparation of a trace vanishes too.
    const ENABLED: bool = true;

    /// `node` starts to send a frame over its radio.
    fn frame_sent(&mut self, now: Instant, node: NodeId, frame: &Frame<&Packet>) {
        let _ = (now, node, frame);
    }

    /// `node` received a frame over its radio intact, whoever it was for.
    fn frame_received(&mut self, now: Instant, node: NodeId, frame: &Frame<&Packet>) {
        let _ = (now, node, frame);
    }

    /// `node` starts to send a packet over a wired link.
    fn packet_sent(&mut self, now: Instant, node: NodeId, packet: &Packet, ttl: u8) {
        let _ = (now, node, packet, ttl);
    }

    /// `node` received a packet over a wired link.
    fn packet_received(&mut self, now: Instant, node: NodeId, packet: &Packet, ttl: u8) {
        let _ = (now, node, packet, ttl);
    }

    /// `node` dropped a packet.
    fn dropped(&mut self, now: Instant, node: NodeId, packet: &Packet, ttl: u8, reason: DropReason) {
        let _ = (now, node, packet, ttl, reason);
    }
}

/// Nobody looks.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTrace;

impl Tracer for NoTrace {
    const ENABLED: bool = false;
}
