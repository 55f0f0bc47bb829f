//! Tracing of simulator events. It costs nothing when tracing is disabled.
//!
//! The tracer is a type parameter of the engine, so that the calls of `NoTrace` vanish at compile time. The engine is
//! compiled twice with this crate: with `NoTrace`, and for tracers behind a pointer.

use hopline_core::{Duration, FlowId, Instant, Length, LinkId, NodeId};
use hopline_transport::any::{Endpoint, Segment};
use hopline_wire::dot11::Frame;
use std::any::Any;
use std::fmt;

mod ns2;
mod pcap;

pub use crate::drops::DropReason;
pub use crate::ids::Side;
pub use crate::packet::{Body, InnerPacket, Packet, PacketView, TapFrame};
pub use ns2::Ns2Tracer;
pub(crate) use pcap::emit;
pub use pcap::{CaptureFilter, PcapTracer};

/// Reason for which a frame was not received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameLossReason {
    /// Other signals covered it.
    Collision,
    /// The station itself was sending.
    Transmitting,
    /// It was too weak to be understood, whatever else was on the air.
    BelowSensitivity,
    /// Bits of it were damaged.
    Errors,
    /// An outage between the two nodes.
    Outage,
}

impl FrameLossReason {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Collision, Self::Transmitting, Self::BelowSensitivity, Self::Errors, Self::Outage];

    /// Returns the reason in words.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Collision => "collision",
            Self::Transmitting => "its receiver was sending",
            Self::BelowSensitivity => "too weak to be understood",
            Self::Errors => "damaged by bit errors",
            Self::Outage => "link outage",
        }
    }
}

/// A transmission over a radio, by what tells it from all others of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Node that sends.
    pub node: NodeId,
    /// Time at which it began.
    pub since: Instant,
}

/// Place in a node at which a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropLocation {
    /// At its radio: MAC or interface queue.
    Radio,
    /// At a wired link or the queue before it.
    Wire,
    /// At the network layer.
    Network,
}

/// Event at a transport endpoint of a flow.
#[derive(Clone, Copy, Debug)]
pub enum TransportEvent<'a> {
    /// It sends a segment.
    Sent {
        /// Number of the packet among those that the end sends, from 0. Packets that a middlebox makes in its name have
        /// numbers too.
        number: u64,
        /// The segment.
        segment: &'a Segment<Length>,
    },
    /// It has processed a segment.
    Received {
        /// Number of the packet among those that the other end sends. A copy has the number of the original.
        number: u64,
        /// The segment.
        segment: &'a Segment<Length>,
    },
    /// It has nothing more to send now, after a segment, a timer, a signal or a call of the application.
    Drained,
}

/// Event at a node.
#[derive(Clone, Copy, Debug)]
pub enum TraceEvent<'a> {
    /// It starts to send a frame over a radio.
    FrameSent {
        /// The number of the radio's interface.
        link: LinkId,
        /// The frame.
        frame: &'a Frame<PacketView<'a>>,
        /// Airtime of the frame.
        airtime: Duration,
    },
    /// It received a frame over a radio intact, for any destination.
    FrameReceived {
        /// The number of the radio's interface.
        link: LinkId,
        /// The frame.
        frame: &'a Frame<PacketView<'a>>,
    },
    /// A frame sent over a radio to it, or to all nodes, was not received.
    FrameLost {
        /// The number of the radio's interface.
        link: LinkId,
        /// The frame.
        frame: &'a Frame<PacketView<'a>>,
        /// Signal of the frame, with its sender and its time.
        signal: Signal,
        /// Reason for the loss.
        reason: FrameLossReason,
        /// Other signals in the air here meanwhile, including its own frames.
        others: &'a [Signal],
    },
    /// One of its queues had so many packets, and has another number of them.
    Queued {
        /// Number before.
        before: usize,
        /// Number after.
        after: usize,
    },
    /// It starts to send a packet over a wired link.
    PacketSent {
        /// The packet.
        packet: PacketView<'a>,
        /// Node at the other end.
        to: NodeId,
        /// Time of arrival there.
        arrives: Instant,
    },
    /// It received a packet over a wired link.
    PacketReceived(PacketView<'a>),
    /// An application or transport endpoint hands a packet of a flow to the network layer.
    Originated(PacketView<'a>),
    /// A packet that is to be passed on, or a routing message, has come up from an interface.
    Arrived(PacketView<'a>),
    /// The network layer hands a packet to an interface.
    Routed {
        /// The packet.
        packet: PacketView<'a>,
        /// Receiver of the frame; `None`: broadcast.
        next_hop: Option<NodeId>,
    },
    /// A packet of a flow has reached the node that it is for. A copy that comes again is reported again.
    Delivered(PacketView<'a>),
    /// The network layer notifies the end of a flow there about its route.
    Signalled {
        /// The flow.
        flow: FlowId,
        /// Signal that it receives.
        signal: hopline_transport::Signal,
    },
    /// A transport endpoint of a flow sends, receives, or has changed.
    Transport {
        /// The flow.
        flow: FlowId,
        /// Its end here.
        side: Side,
        /// The endpoint, after the event.
        endpoint: &'a Endpoint<Length>,
        /// The event.
        event: TransportEvent<'a>,
    },
    /// It dropped a packet.
    Dropped {
        /// The packet.
        packet: PacketView<'a>,
        /// Reason for the drop.
        reason: DropReason,
        /// Place of the drop.
        location: DropLocation,
    },
}

/// Receives what happens.
pub trait Tracer: 'static {
    /// `true` if tracing is enabled. A constant, so that with [`NoTrace`] the preparation of a trace
    /// vanishes.
    const ENABLED: bool = true;

    /// Records that `event` happens at `node`.
    fn trace(&mut self, now: Instant, node: NodeId, event: TraceEvent<'_>);
}

/// Tracer that records nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTrace;

impl Tracer for NoTrace {
    const ENABLED: bool = false;

    fn trace(&mut self, _now: Instant, _node: NodeId, _event: TraceEvent<'_>) {}
}

/// A tracer behind a pointer.
pub(crate) struct ErasedTracer(Box<dyn AnyTracer>);

impl ErasedTracer {
    pub(crate) fn new(tracer: impl Tracer) -> Self {
        Self(Box::new(tracer))
    }

    /// Returns the tracer.
    ///
    /// # Panics
    /// If it is no `T`.
    pub(crate) fn into_inner<T: 'static>(self) -> T {
        *self.0.into_any().downcast().expect("the tracer is asked for by the type that was given")
    }
}

impl fmt::Debug for ErasedTracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Erased")
    }
}

impl Tracer for ErasedTracer {
    fn trace(&mut self, now: Instant, node: NodeId, event: TraceEvent<'_>) {
        self.0.trace(now, node, event);
    }
}

/// Object-safe form of [`Tracer`].
trait AnyTracer {
    fn trace(&mut self, now: Instant, node: NodeId, event: TraceEvent<'_>);

    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

impl<T: Tracer> AnyTracer for T {
    fn trace(&mut self, now: Instant, node: NodeId, event: TraceEvent<'_>) {
        Tracer::trace(self, now, node, event);
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// A tracer that may be missing.
impl<T: Tracer> Tracer for Option<T> {
    fn trace(&mut self, now: Instant, node: NodeId, event: TraceEvent<'_>) {
        if let Some(tracer) = self {
            tracer.trace(now, node, event);
        }
    }
}

/// Two tracers at once.
impl<A: Tracer, B: Tracer> Tracer for (A, B) {
    const ENABLED: bool = A::ENABLED || B::ENABLED;

    fn trace(&mut self, now: Instant, node: NodeId, event: TraceEvent<'_>) {
        self.0.trace(now, node, event);
        self.1.trace(now, node, event);
    }
}
