//! ACK pacing, seated: where a link ends on the side of the sender.

use super::border::Border;
use crate::in_path::{InPath, Onward, Passage, Passing, Wish};
use crate::outcome::ProxyCounts;
use crate::packet::Handle;
use hopline_core::Instant;
use hopline_proxy::ack_pacing::{AckPacing, Verdict};
use hopline_proxy::{Packet, Side};
use hopline_transport::any::Segment;
use std::net::Ipv4Addr;

/// The machine at a node.
#[derive(Debug)]
pub(crate) struct AckPacingSeat {
    machine: AckPacing<(Handle, Onward)>,
    border: Border,
}

impl AckPacingSeat {
    pub(super) const fn new(machine: AckPacing<(Handle, Onward)>, border: Border) -> Self {
        Self { machine, border }
    }
}

impl InPath for AckPacingSeat {
    fn ingress(&mut self, now: Instant, packet: Passing<'_>) -> Passage {
        let Some((_, Side::Mobile, Segment::Tcp(segment))) = self.border.crossing(packet) else {
            return Passage::Pass;
        };
        let seen = Packet::new(&packet.packet().ip, segment);
        match self.machine.pass_from_mobile(now, seen, || (packet.handle, packet.onward)) {
            Verdict::Forward => Passage::Pass,
            Verdict::Taken => Passage::Taken,
        }
    }

    fn egress(&mut self, _now: Instant, packet: Passing<'_>, _next_hop: Ipv4Addr) -> Passage {
        if let Some((_, Side::Fixed, Segment::Tcp(segment))) = self.border.crossing(packet) {
            self.machine.pass_to_mobile(Packet::new(&packet.packet().ip, segment));
        }
        Passage::Pass
    }

    fn parted(&mut self, _now: Instant, mobile: Ipv4Addr) {
        self.machine.forget_mobile(mobile.into());
    }

    fn held(&self) -> usize {
        self.machine.held() as usize
    }

    fn counts(&self) -> ProxyCounts {
        self.machine.stats().into()
    }

    fn wake(&mut self, now: Instant) {
        self.machine.handle_timeout(now);
    }

    fn next_wake(&self) -> Option<Instant> {
        self.machine.poll_timeout()
    }

    fn poll(&mut self, _now: Instant) -> Option<Wish> {
        self.machine.poll().map(|(handle, onward)| Wish::GoOn(handle, onward))
    }
}
