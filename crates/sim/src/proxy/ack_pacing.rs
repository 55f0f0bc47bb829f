//! ACK pacing, seated: where a link ends on the side of the sender.

use super::border::NetworkBorder;
use crate::middlebox::{Action, Middlebox, PacketDirection, PassingPacket, PathVerdict};
use crate::outcome::MiddleboxCounts;
use crate::packet::Handle;
use hopline_core::Instant;
use hopline_proxy::ack_pacing::{AckPacing, Verdict};
use hopline_proxy::{Packet, Side};
use hopline_transport::any::Segment;
use std::net::Ipv4Addr;

/// The machine at a node.
#[derive(Debug)]
pub(crate) struct AckPacingMiddlebox {
    pacing: AckPacing<(Handle, PacketDirection)>,
    border: NetworkBorder,
}

impl AckPacingMiddlebox {
    pub(super) const fn new(machine: AckPacing<(Handle, PacketDirection)>, border: NetworkBorder) -> Self {
        Self { pacing: machine, border }
    }
}

impl Middlebox for AckPacingMiddlebox {
    fn handle_ingress(&mut self, now: Instant, packet: PassingPacket<'_>) -> PathVerdict {
        let Some((_, Side::Mobile, Segment::Tcp(segment))) = self.border.crossing_segment(packet) else {
            return PathVerdict::Pass;
        };
        let seen = Packet::new(&packet.packet().ip, segment);
        match self.pacing.pass_from_mobile(now, seen, || (packet.handle, packet.onward)) {
            Verdict::Forward => PathVerdict::Pass,
            Verdict::Kept => PathVerdict::Held,
        }
    }

    fn handle_egress(
        &mut self,
        _now: Instant,
        packet: PassingPacket<'_>,
        _next_hop: Ipv4Addr,
    ) -> PathVerdict {
        if let Some((_, Side::Fixed, Segment::Tcp(segment))) = self.border.crossing_segment(packet) {
            self.pacing.pass_to_mobile(Packet::new(&packet.packet().ip, segment));
        }
        PathVerdict::Pass
    }

    fn handle_departure(&mut self, _now: Instant, mobile: Ipv4Addr) {
        self.pacing.flush_mobile(mobile.into());
    }

    fn held(&self) -> usize {
        self.pacing.delayed() as usize
    }

    fn counts(&self) -> MiddleboxCounts {
        self.pacing.stats().into()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.pacing.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.pacing.poll_timeout()
    }

    fn poll_action(&mut self, _now: Instant) -> Option<Action> {
        self.pacing.poll_transmit().map(|(handle, onward)| Action::Resume(handle, onward))
    }
}
