//! A tracer that notes everything.

use hopline_core::{FlowId, Instant, NodeId};
use hopline_sim::trace::{DropReason, PacketView, Place};
use hopline_sim::{Outcome, Spec, Tracer, World};
use hopline_transport::Signal;
use hopline_wire::dot11::Frame;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    RtsSent,
    CtsSent,
    AckSent,
    BlockAckReqSent,
    BlockAckSent,
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
pub(crate) struct Note {
    pub(crate) at: Instant,
    pub(crate) node: NodeId,
    pub(crate) what: What,
    pub(crate) len_bytes: u32,
}

/// Everything that happened, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder(pub(crate) Vec<Note>);

impl Recorder {
    /// The times at which `what` happened at `node`.
    pub(crate) fn times(&self, node: u32, what: What) -> Vec<Instant> {
        let matching = self.0.iter().filter(|note| note.node == NodeId(node) && note.what == what);
        matching.map(|note| note.at).collect()
    }

    /// How often `what` happened, anywhere.
    pub(crate) fn count(&self, what: What) -> usize {
        self.0.iter().filter(|note| note.what == what).count()
    }

    fn note(&mut self, at: Instant, node: NodeId, what: What, packet: Option<PacketView<'_>>) {
        let len_bytes = packet.map_or(0, |view| view.packet.len_bytes);
        self.0.push(Note { at, node, what, len_bytes });
    }
}

/// Runs `spec` to its end and notes everything.
pub(crate) fn record(spec: &Spec, run: u64) -> (Outcome, Recorder) {
    let mut world = World::new(spec, run, Recorder::default());
    world.run_until(Instant::ZERO + spec.duration);
    world.finish()
}

impl Tracer for Recorder {
    fn frame_sent(&mut self, now: Instant, node: NodeId, frame: &Frame<PacketView<'_>>) {
        match frame {
            Frame::Rts { .. } => self.note(now, node, What::RtsSent, None),
            Frame::Cts { .. } => self.note(now, node, What::CtsSent, None),
            Frame::Ack { .. } => self.note(now, node, What::AckSent, None),
            Frame::BlockAckReq { .. } => self.note(now, node, What::BlockAckReqSent, None),
            Frame::BlockAck { .. } => self.note(now, node, What::BlockAckSent, None),
            Frame::Data { retry, body, .. } | Frame::QosData { retry, body, .. } => {
                self.note(now, node, What::DataSent { retry: *retry }, Some(*body));
            }
        }
    }

    fn frame_received(&mut self, now: Instant, node: NodeId, frame: &Frame<PacketView<'_>>) {
        match frame.body() {
            Some(body) => self.note(now, node, What::DataReceived, Some(*body)),
            None => self.note(now, node, What::ControlReceived, None),
        }
    }

    fn packet_sent(&mut self, now: Instant, node: NodeId, packet: PacketView<'_>) {
        self.note(now, node, What::WireSent, Some(packet));
    }

    fn packet_received(&mut self, now: Instant, node: NodeId, packet: PacketView<'_>) {
        self.note(now, node, What::WireReceived, Some(packet));
    }

    fn signalled(&mut self, now: Instant, node: NodeId, _flow: FlowId, signal: Signal) {
        self.note(now, node, What::Signalled(signal), None);
    }

    fn dropped(
        &mut self,
        now: Instant,
        node: NodeId,
        packet: PacketView<'_>,
        reason: DropReason,
        _place: Place,
    ) {
        self.note(now, node, What::Dropped(reason), Some(packet));
    }
}
