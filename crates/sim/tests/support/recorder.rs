//! A tracer that notes everything.

use hopline_core::{Instant, NodeId};
use hopline_sim::trace::{DropReason, PacketView, TraceEvent};
use hopline_sim::{Outcome, Spec, Tracer, World};
use hopline_transport::Signal;
use hopline_wire::dot11::Frame;

/// Kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordedKind {
    RtsSent,
    CtsSent,
    AckSent,
    BlockAckReqSent,
    BlockAckSent,
    ActionSent,
    DataSent { retry: bool },
    DataReceived,
    ControlReceived,
    WireSent,
    WireReceived,
    Dropped(DropReason),
    Signalled(Signal),
}

/// One thing that happened. Of frames without a packet the length is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordedEvent {
    pub(crate) at: Instant,
    pub(crate) node: NodeId,
    pub(crate) kind: RecordedKind,
    pub(crate) len_bytes: u32,
}

/// Everything that happened, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder(pub(crate) Vec<RecordedEvent>);

impl Recorder {
    /// The times at which `what` happened at `node`.
    pub(crate) fn times(&self, node: u32, what: RecordedKind) -> Vec<Instant> {
        let matching = self.0.iter().filter(|note| note.node == NodeId(node) && note.kind == what);
        matching.map(|note| note.at).collect()
    }

    /// Returns the number of events of kind `what`, at any node.
    pub(crate) fn count(&self, what: RecordedKind) -> usize {
        self.0.iter().filter(|note| note.kind == what).count()
    }
}

/// Runs `spec` to its end and notes everything.
pub(crate) fn record(spec: &Spec, run: u64) -> (Outcome, Recorder) {
    let mut world = World::new(spec, run, Recorder::default());
    world.run_until(Instant::ZERO + spec.duration);
    world.finish()
}

impl Tracer for Recorder {
    fn trace(&mut self, now: Instant, node: NodeId, event: TraceEvent<'_>) {
        let (what, packet) = match event {
            TraceEvent::FrameSent { frame, .. } => (RecordedKind::of_sent(frame), frame.body().copied()),
            TraceEvent::FrameReceived { frame, .. } => match frame.body() {
                Some(body) => (RecordedKind::DataReceived, Some(*body)),
                None => (RecordedKind::ControlReceived, None),
            },
            TraceEvent::PacketSent { packet, .. } => (RecordedKind::WireSent, Some(packet)),
            TraceEvent::PacketReceived(packet) => (RecordedKind::WireReceived, Some(packet)),
            TraceEvent::Signalled { signal, .. } => (RecordedKind::Signalled(signal), None),
            TraceEvent::Dropped { packet, reason, .. } => (RecordedKind::Dropped(reason), Some(packet)),
            TraceEvent::Originated(_)
            | TraceEvent::Arrived(_)
            | TraceEvent::FrameLost { .. }
            | TraceEvent::Queued { .. }
            | TraceEvent::Routed { .. }
            | TraceEvent::Transport { .. }
            | TraceEvent::Delivered(_) => return,
        };
        let len_bytes = packet.map_or(0, |view| view.packet.len_bytes);
        self.0.push(RecordedEvent { at: now, node, kind: what, len_bytes });
    }
}

impl RecordedKind {
    fn of_sent(frame: &Frame<PacketView<'_>>) -> Self {
        match *frame {
            Frame::Rts { .. } => Self::RtsSent,
            Frame::Cts { .. } => Self::CtsSent,
            Frame::Ack { .. } => Self::AckSent,
            Frame::BlockAckReq { .. } => Self::BlockAckReqSent,
            Frame::BlockAck { .. } => Self::BlockAckSent,
            Frame::Action { .. } => Self::ActionSent,
            Frame::Data { retry, .. } | Frame::QosData { retry, .. } => Self::DataSent { retry },
        }
    }
}
