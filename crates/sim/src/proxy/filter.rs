//! Machines that packets pass, seated: Snoop, M-TCP's supervisor host.

use super::border::{Border, class_of};
use crate::in_path::{InPath, Passage, Passing, Wish};
use crate::outcome::ProxyCounts;
use crate::packet::{Body, Original, Packet};
use hopline_core::{Instant, Length};
use hopline_proxy::{self as proxy, Connection, Filter, OnTheWay, Side, Transmit, Verdict};
use hopline_queue::Class;
use hopline_transport::any::Segment;
use hopline_wire::ipv4::Header;
use hopline_wire::tcp;
use std::net::Ipv4Addr;

/// A machine that packets pass, at a node.
#[derive(Debug)]
pub(crate) struct FilterSeat<M> {
    machine: M,
    border: Border,
}

/// A packet that can be sent again.
pub(crate) type Kept = (Header, tcp::Segment<Length>, Original);

impl<M> FilterSeat<M> {
    pub(super) const fn new(machine: M, border: Border) -> Self {
        Self { machine, border }
    }
}

impl<M> InPath for FilterSeat<M>
where
    M: Filter<Kept> + core::fmt::Debug,
    ProxyCounts: From<M::Stats>,
{
    fn ingress(&mut self, now: Instant, packet: Passing<'_>) -> Passage {
        let Some((_, Side::Mobile, Segment::Tcp(segment))) = self.border.crossing(packet) else {
            return Passage::Pass;
        };
        match self.machine.pass_from_mobile(now, proxy::Packet::new(&packet.packet().ip, segment)) {
            Verdict::Forward => Passage::Pass,
            Verdict::ForwardWith(says) => Passage::Rewritten(Segment::Tcp(says.put_into(segment))),
            Verdict::Absorb => self.border.absorb(packet.handle),
        }
    }

    fn egress(&mut self, now: Instant, packet: Passing<'_>, _next_hop: Ipv4Addr) -> Passage {
        let Some((_, Side::Fixed, Segment::Tcp(segment))) = self.border.crossing(packet) else {
            return Passage::Pass;
        };
        let &Packet { ip, original, .. } = packet.packet();
        // It goes out again as it went out first, with the mark that it had.
        let keep = || (Header { ecn: packet.view.ecn, ttl: packet.view.ttl, ..ip }, *segment, original);
        match self.machine.pass_to_mobile(now, proxy::Packet::new(&ip, segment), keep) {
            Verdict::Forward | Verdict::ForwardWith(_) => Passage::Pass,
            Verdict::Absorb => self.border.absorb(packet.handle),
        }
    }

    fn refused(&mut self, now: Instant, packet: &Packet) {
        if let Body::Segment(Segment::Tcp(segment)) = &packet.body {
            let connection = Connection::to_mobile(proxy::Packet::new(&packet.ip, segment));
            self.machine.note(now, connection, segment.seq, OnTheWay::Refused);
        }
    }

    fn parted(&mut self, _now: Instant, mobile: Ipv4Addr) {
        self.machine.forget_mobile(mobile.into());
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
        Some(match self.machine.poll_transmit()? {
            Transmit::Again { turn, connection, kept: (ip, mut segment, original), clock } => {
                if let (Some(clock), Some(timestamps)) = (clock, &mut segment.options.timestamps) {
                    timestamps.value = clock;
                }
                let header = (ip, Some(original));
                self.border.sending_as(
                    connection,
                    Side::Mobile,
                    header,
                    Segment::Tcp(segment),
                    class_of(turn),
                )
            }
            Transmit::Nack(nack) => self.border.sending(
                nack.connection,
                Side::Mobile,
                Segment::Tcp(nack.segment()),
                Class::Urgent,
            ),
            Transmit::Ack(ack) => {
                self.border.sending(ack.connection, Side::Fixed, Segment::Tcp(ack.segment()), Class::Data)
            }
        })
    }
}

#[cfg(test)]
mod tests;
