//! A network in the middle of a run.

use crate::custom::Failure;
use crate::engine::Engine;
use crate::ethernet::{EgressFrame, FrameError, Medium, TapCounts};
use crate::external::{Egress, InjectError};
use crate::outcome::Outcome;
use crate::spec::Spec;
use crate::trace::{ErasedTracer, NoTrace, Tracer};
use bytes::Bytes;
use hopline_core::{Instant, NodeId};

/// A network in the middle of a run, observed by a tracer.
///
/// The engine behind it is compiled twice, here: without a trace, and for tracers behind a pointer. Users of the
/// simulator compile none of it, whatever tracers they bring.
#[derive(Debug)]
pub struct World<T> {
    running: EngineKind,
    /// A tracer that is not enabled; the engine has the other kind.
    idle: Option<T>,
}

#[derive(Debug)]
enum EngineKind {
    Untraced(Box<Engine<NoTrace>>),
    Traced(Box<Engine<ErasedTracer>>),
}

impl<T: Tracer> World<T> {
    /// Builds the network of `spec` for run number `run`, at time zero.
    #[must_use]
    pub fn new(spec: &Spec, run: u64, tracer: T) -> Self {
        if T::ENABLED {
            Self { running: EngineKind::new(spec, run, Some(ErasedTracer::new(tracer))), idle: None }
        } else {
            Self { running: EngineKind::new(spec, run, None), idle: Some(tracer) }
        }
    }

    /// Returns the current virtual time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.running.now()
    }

    /// Events processed so far.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.running.events()
    }

    /// Returns the number of packets that exist now: queued, in service, in the air, on a wire, or waiting
    /// for a route. Copies of one packet count once.
    #[must_use]
    pub fn packets(&self) -> usize {
        self.running.packets()
    }

    /// Returns the failure of a user-defined algorithm, at which the run has ended.
    #[must_use]
    pub fn failure(&self) -> Option<&Failure> {
        self.running.failure()
    }

    /// Processes everything up to and including `until`, or up to the [failure](Self::failure) of a machine.
    pub fn run_until(&mut self, until: Instant) {
        self.running.run_until(until);
    }

    /// Ends the run, and returns the outcome and the tracer.
    #[must_use]
    pub fn finish(self) -> (Outcome, T) {
        let (outcome, tracer) = self.running.finish();
        let tracer = tracer.map(ErasedTracer::into_inner).or(self.idle);
        (outcome, tracer.expect("a world has one tracer, with the engine or idle"))
    }

    /// Returns the time of the next event; [`Instant::FAR_FUTURE`] if nothing ever happens by itself.
    #[must_use]
    pub fn next_due(&self) -> Instant {
        self.running.next_due()
    }

    /// Injects an IPv4 packet, from its header on, at `node` now, as one that the node itself made. It goes
    /// to the tap that has its destination address, and its fate on the route is counted with the nodes.
    ///
    /// # Errors
    /// Bytes that are no IPv4 packet, a time to live of zero, and a node that is no tap.
    pub fn inject(&mut self, node: NodeId, packet: &Bytes) -> Result<(), InjectError> {
        self.running.inject(node, packet)
    }

    /// Injects an Ethernet frame at the tap of `node` now, as one that a host behind the tap has sent. Counted, if it is
    /// refused, too ([`tap_counts`](Self::tap_counts)).
    ///
    /// # Errors
    /// A frame that no bridge would forward, one that is too long, and a node that is no Ethernet tap.
    pub fn inject_frame(&mut self, node: NodeId, frame: &Bytes) -> Result<(), FrameError> {
        self.running.inject_frame(node, None, frame)
    }

    /// Injects a frame as [`inject_frame`](Self::inject_frame) does, to be sent over one medium of the node alone.
    ///
    /// # Errors
    /// Those of [`inject_frame`](Self::inject_frame).
    pub fn inject_frame_over(
        &mut self,
        node: NodeId,
        medium: Medium,
        frame: &Bytes,
    ) -> Result<(), FrameError> {
        self.running.inject_frame(node, Some(medium), frame)
    }

    /// Returns the next frame that has left, in the order in which they came to their taps.
    pub fn poll_frame(&mut self) -> Option<EgressFrame> {
        self.running.poll_frame()
    }

    /// Returns the fate of the frames of a tap so far; zeros for a node that is no Ethernet tap.
    #[must_use]
    pub fn tap_counts(&self, node: NodeId) -> TapCounts {
        self.running.tap_counts(node)
    }

    /// Returns the next packet that has left, in the order in which they came to their nodes. A duplicate
    /// that the network made leaves too.
    pub fn poll_egress(&mut self) -> Option<Egress> {
        self.running.poll_egress()
    }
}

/// Calls the engine, whichever it is.
macro_rules! engine {
    ($running:expr, $engine:ident => $call:expr) => {
        match $running {
            EngineKind::Untraced($engine) => $call,
            EngineKind::Traced($engine) => $call,
        }
    };
}

// Not generic, so that the engines are compiled with this crate and nowhere else.
impl EngineKind {
    fn new(spec: &Spec, run: u64, tracer: Option<ErasedTracer>) -> Self {
        match tracer {
            None => Self::Untraced(Box::new(Engine::new(spec, run, NoTrace))),
            Some(tracer) => Self::Traced(Box::new(Engine::new(spec, run, tracer))),
        }
    }

    fn now(&self) -> Instant {
        engine!(self, engine => engine.now())
    }

    fn events(&self) -> u64 {
        engine!(self, engine => engine.events())
    }

    fn packets(&self) -> usize {
        engine!(self, engine => engine.packets())
    }

    fn failure(&self) -> Option<&Failure> {
        engine!(self, engine => engine.failure())
    }

    fn run_until(&mut self, until: Instant) {
        engine!(self, engine => engine.run_until(until));
    }

    fn finish(self) -> (Outcome, Option<ErasedTracer>) {
        match self {
            Self::Untraced(engine) => (engine.finish().0, None),
            Self::Traced(engine) => {
                let (outcome, tracer) = engine.finish();
                (outcome, Some(tracer))
            }
        }
    }

    fn next_due(&self) -> Instant {
        engine!(self, engine => engine.next_due())
    }

    fn inject(&mut self, node: NodeId, packet: &Bytes) -> Result<(), InjectError> {
        engine!(self, engine => engine.inject(node, packet))
    }

    fn inject_frame(&mut self, node: NodeId, over: Option<Medium>, frame: &Bytes) -> Result<(), FrameError> {
        engine!(self, engine => engine.inject_frame(node, over, frame))
    }

    fn poll_frame(&mut self) -> Option<EgressFrame> {
        engine!(self, engine => engine.poll_frame())
    }

    fn tap_counts(&self, node: NodeId) -> TapCounts {
        engine!(self, engine => engine.tap_counts(node))
    }

    fn poll_egress(&mut self) -> Option<Egress> {
        engine!(self, engine => engine.poll_egress())
    }
}
