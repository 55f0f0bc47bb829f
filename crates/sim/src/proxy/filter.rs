//! Machines that packets pass, seated: Snoop, M-TCP's supervisor host.

use super::border::{NetworkBorder, class_of};
use crate::middlebox::{Action, Middlebox, PassingPacket, PathVerdict};
use crate::outcome::MiddleboxCounts;
use crate::packet::{Body, FlowPacketId, Packet};
use hopline_core::{Instant, Length};
use hopline_proxy::{self as proxy, Connection, LastHopProgress, Pep, Side, Transmit, Verdict};
use hopline_queue::Class;
use hopline_transport::any::Segment;
use hopline_wire::ipv4::Header;
use hopline_wire::tcp;
use std::net::Ipv4Addr;

/// A machine that packets pass, at a node.
#[derive(Debug)]
pub(crate) struct FilterMiddlebox<M> {
    machine: M,
    border: NetworkBorder,
}

/// A packet that can be sent again.
pub(crate) type CachedSegment = (Header, tcp::Segment<Length>, FlowPacketId);

impl<M> FilterMiddlebox<M> {
    pub(super) const fn new(machine: M, border: NetworkBorder) -> Self {
        Self { machine, border }
    }
}

impl<M> Middlebox for FilterMiddlebox<M>
where
    M: Pep<CachedSegment> + core::fmt::Debug,
    MiddleboxCounts: From<M::Stats>,
{
    fn handle_ingress(&mut self, now: Instant, packet: PassingPacket<'_>) -> PathVerdict {
        let Some((_, Side::Mobile, Segment::Tcp(segment))) = self.border.crossing_segment(packet) else {
            return PathVerdict::Pass;
        };
        match self.machine.handle_packet_from_mobile(now, proxy::Packet::new(&packet.packet().ip, segment)) {
            Verdict::Forward => PathVerdict::Pass,
            Verdict::ForwardWith(says) => PathVerdict::Rewritten(Segment::Tcp(says.apply_to(segment))),
            Verdict::Absorb => self.border.absorb(packet.handle),
        }
    }

    fn handle_egress(&mut self, now: Instant, packet: PassingPacket<'_>, _next_hop: Ipv4Addr) -> PathVerdict {
        let Some((_, Side::Fixed, Segment::Tcp(segment))) = self.border.crossing_segment(packet) else {
            return PathVerdict::Pass;
        };
        let &Packet { ip, original, .. } = packet.packet();
        // It goes out again as it went out first, with the mark that it had.
        let keep = || (Header { ecn: packet.view.ecn, ttl: packet.view.ttl, ..ip }, *segment, original);
        match self.machine.handle_packet_to_mobile(now, proxy::Packet::new(&ip, segment), keep) {
            Verdict::Forward | Verdict::ForwardWith(_) => PathVerdict::Pass,
            Verdict::Absorb => self.border.absorb(packet.handle),
        }
    }

    fn handle_queue_drop(&mut self, now: Instant, packet: &Packet) {
        if let Body::Segment(Segment::Tcp(segment)) = &packet.body {
            let connection = Connection::to_mobile(proxy::Packet::new(&packet.ip, segment));
            self.machine.handle_progress(now, connection, segment.seq, LastHopProgress::Dropped);
        }
    }

    fn handle_departure(&mut self, _now: Instant, mobile: Ipv4Addr) {
        self.machine.handle_departure(mobile.into());
    }

    fn counts(&self) -> MiddleboxCounts {
        self.machine.stats().into()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.machine.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.machine.poll_timeout()
    }

    fn poll_action(&mut self, _now: Instant) -> Option<Action> {
        if let Some(wish) = self.border.wishes.pop_front() {
            return Some(wish);
        }
        Some(match self.machine.poll_transmit()? {
            Transmit::Retransmission {
                queue_position: turn,
                connection,
                packet: (ip, mut segment, original),
                tsval: clock,
            } => {
                if let (Some(clock), Some(timestamps)) = (clock, &mut segment.options.timestamps) {
                    timestamps.value = clock;
                }
                let header = (ip, Some(original));
                self.border.send_copy_action(
                    connection,
                    Side::Mobile,
                    header,
                    Segment::Tcp(segment),
                    class_of(turn),
                )
            }
            Transmit::Nack(nack) => self.border.send_action(
                nack.connection,
                Side::Mobile,
                Segment::Tcp(nack.segment()),
                Class::Urgent,
            ),
            Transmit::Ack(ack) => {
                self.border.send_action(ack.connection, Side::Fixed, Segment::Tcp(ack.segment()), Class::Data)
            }
        })
    }
}

#[cfg(test)]
mod tests;
