//! Several tracers at once, each of which may be missing.

use super::{DropReason, PacketView, Place, Tracer};
use hopline_core::{FlowId, Instant, NodeId};
use hopline_transport::Signal;
use hopline_wire::dot11::Frame;

/// A tracer that may be missing.
impl<T: Tracer> Tracer for Option<T> {
    fn frame_sent(&mut self, now: Instant, node: NodeId, frame: &Frame<PacketView<'_>>) {
        self.iter_mut().for_each(|t| t.frame_sent(now, node, frame));
    }

    fn frame_received(&mut self, now: Instant, node: NodeId, frame: &Frame<PacketView<'_>>) {
        self.iter_mut().for_each(|t| t.frame_received(now, node, frame));
    }

    fn packet_sent(&mut self, now: Instant, node: NodeId, packet: PacketView<'_>) {
        self.iter_mut().for_each(|t| t.packet_sent(now, node, packet));
    }

    fn packet_received(&mut self, now: Instant, node: NodeId, packet: PacketView<'_>) {
        self.iter_mut().for_each(|t| t.packet_received(now, node, packet));
    }

    fn originated(&mut self, now: Instant, node: NodeId, packet: PacketView<'_>) {
        self.iter_mut().for_each(|t| t.originated(now, node, packet));
    }

    fn arrived(&mut self, now: Instant, node: NodeId, packet: PacketView<'_>) {
        self.iter_mut().for_each(|t| t.arrived(now, node, packet));
    }

    fn routed(&mut self, now: Instant, node: NodeId, packet: PacketView<'_>, next_hop: Option<NodeId>) {
        self.iter_mut().for_each(|t| t.routed(now, node, packet, next_hop));
    }

    fn delivered(&mut self, now: Instant, node: NodeId, packet: PacketView<'_>) {
        self.iter_mut().for_each(|t| t.delivered(now, node, packet));
    }

    fn signalled(&mut self, now: Instant, node: NodeId, flow: FlowId, signal: Signal) {
        self.iter_mut().for_each(|t| t.signalled(now, node, flow, signal));
    }

    fn dropped(
        &mut self,
        now: Instant,
        node: NodeId,
        packet: PacketView<'_>,
        reason: DropReason,
        place: Place,
    ) {
        self.iter_mut().for_each(|t| t.dropped(now, node, packet, reason, place));
    }
}

/// Two tracers at once.
impl<A: Tracer, B: Tracer> Tracer for (A, B) {
    const ENABLED: bool = A::ENABLED || B::ENABLED;

    fn frame_sent(&mut self, now: Instant, node: NodeId, frame: &Frame<PacketView<'_>>) {
        self.0.frame_sent(now, node, frame);
        self.1.frame_sent(now, node, frame);
    }

    fn frame_received(&mut self, now: Instant, node: NodeId, frame: &Frame<PacketView<'_>>) {
        self.0.frame_received(now, node, frame);
        self.1.frame_received(now, node, frame);
    }

    fn packet_sent(&mut self, now: Instant, node: NodeId, packet: PacketView<'_>) {
        self.0.packet_sent(now, node, packet);
        self.1.packet_sent(now, node, packet);
    }

    fn packet_received(&mut self, now: Instant, node: NodeId, packet: PacketView<'_>) {
        self.0.packet_received(now, node, packet);
        self.1.packet_received(now, node, packet);
    }

    fn originated(&mut self, now: Instant, node: NodeId, packet: PacketView<'_>) {
        self.0.originated(now, node, packet);
        self.1.originated(now, node, packet);
    }

    fn arrived(&mut self, now: Instant, node: NodeId, packet: PacketView<'_>) {
        self.0.arrived(now, node, packet);
        self.1.arrived(now, node, packet);
    }

    fn routed(&mut self, now: Instant, node: NodeId, packet: PacketView<'_>, next_hop: Option<NodeId>) {
        self.0.routed(now, node, packet, next_hop);
        self.1.routed(now, node, packet, next_hop);
    }

    fn delivered(&mut self, now: Instant, node: NodeId, packet: PacketView<'_>) {
        self.0.delivered(now, node, packet);
        self.1.delivered(now, node, packet);
    }

    fn signalled(&mut self, now: Instant, node: NodeId, flow: FlowId, signal: Signal) {
        self.0.signalled(now, node, flow, signal);
        self.1.signalled(now, node, flow, signal);
    }

    fn dropped(
        &mut self,
        now: Instant,
        node: NodeId,
        packet: PacketView<'_>,
        reason: DropReason,
        place: Place,
    ) {
        self.0.dropped(now, node, packet, reason, place);
        self.1.dropped(now, node, packet, reason, place);
    }
}
