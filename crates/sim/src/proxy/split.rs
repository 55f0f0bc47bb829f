//! Split connections, seated.

use super::Border;
use crate::outcome::ProxyCounts;
use crate::seat::{InPath, Passage, Passing, Wish};
use hopline_core::{Instant, Length};
use hopline_proxy::split::{Split, Transmit};
use hopline_queue::Class;
use std::net::Ipv4Addr;

/// What splits connections at a node.
#[derive(Debug)]
pub(crate) struct SplitSeat {
    machine: Split<Length>,
    border: Border,
}

impl SplitSeat {
    pub(super) const fn new(machine: Split<Length>, border: Border) -> Self {
        Self { machine, border }
    }

    fn take(&mut self, now: Instant, packet: Passing<'_>) -> Passage {
        let Some((connection, from, segment)) = self.border.crossing(packet) else { return Passage::Pass };
        if !self.machine.speaks(from, segment) {
            return Passage::Pass;
        }
        self.machine.handle_packet(now, connection, from, segment.with_ecn(packet.view.ecn));
        self.border.absorb(packet.handle)
    }
}

impl InPath for SplitSeat {
    fn ingress(&mut self, now: Instant, packet: Passing<'_>) -> Passage {
        self.take(now, packet)
    }

    fn egress(&mut self, now: Instant, packet: Passing<'_>, _next_hop: Ipv4Addr) -> Passage {
        self.take(now, packet)
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
        if let Some(wish) = self.border.wishes.pop_front() {
            return Some(wish);
        }
        let Transmit { connection, to, segment } = self.machine.poll_transmit()?;
        Some(self.border.sending(connection, to, segment, Class::Data))
    }
}
