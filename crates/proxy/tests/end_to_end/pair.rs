//! Two middleboxes at one station, in series.

use crate::end_to_end::support::{header, with_timestamp};
use bytes::Bytes;
use hopline_core::{Instant, Payload, Seq32};
use hopline_proxy::{BareAck, Connection, LastHopProgress, Packet, Pep, Transmit, Verdict};
use hopline_testkit::Side;
use hopline_wire::tcp::Segment;
use std::net::IpAddr;

/// A pair of middleboxes; `outer` is on the side of the wired network.
#[derive(Debug)]
pub(crate) struct Pair<A, B> {
    outer: A,
    inner: B,
    /// Time of the last event.
    now: Instant,
}

impl<A, B> Pair<A, B> {
    pub(crate) const fn new(outer: A, inner: B) -> Self {
        Self { outer, inner, now: Instant::ZERO }
    }
}

impl<A, B> Pep<Segment<Bytes>> for Pair<A, B>
where
    A: Pep<Segment<Bytes>>,
    B: Pep<Segment<Bytes>>,
{
    type Stats = B::Stats;

    fn handle_packet_to_mobile<P: Payload>(
        &mut self,
        now: Instant,
        packet: Packet<'_, P>,
        keep: impl FnOnce() -> Segment<Bytes>,
    ) -> Verdict {
        self.now = now;
        let kept = keep();
        match self.outer.handle_packet_to_mobile(now, packet, || kept.clone()) {
            Verdict::Absorb => Verdict::Absorb,
            _ => self.inner.handle_packet_to_mobile(now, packet, || kept),
        }
    }

    fn handle_packet_from_mobile<P: Payload>(&mut self, now: Instant, packet: Packet<'_, P>) -> Verdict {
        self.now = now;
        match self.inner.handle_packet_from_mobile(now, packet) {
            Verdict::Absorb => Verdict::Absorb,
            Verdict::Forward => self.outer.handle_packet_from_mobile(now, packet),
            Verdict::ForwardWith(says) => {
                let segment = says.apply_to(packet.segment);
                match self.outer.handle_packet_from_mobile(now, Packet { segment: &segment, ..packet }) {
                    Verdict::Forward => Verdict::ForwardWith(says),
                    other => other,
                }
            }
        }
    }

    fn handle_progress(&mut self, now: Instant, connection: Connection, seq: Seq32, way: LastHopProgress) {
        self.outer.handle_progress(now, connection, seq, way);
        self.inner.handle_progress(now, connection, seq, way);
    }

    fn handle_departure(&mut self, mobile: IpAddr) {
        self.outer.handle_departure(mobile);
        self.inner.handle_departure(mobile);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        self.outer.handle_timeout(now);
        self.inner.handle_timeout(now);
    }

    /// ACKs of the inner middlebox pass the outer one if they take its path.
    fn poll_transmit(&mut self) -> Option<Transmit<Segment<Bytes>>> {
        let now = self.now;
        loop {
            if let Some(transmit) = self.inner.poll_transmit() {
                let Transmit::Ack(ack) = transmit else { return Some(transmit) };
                let (ip, segment) = (header(Side::B), ack.segment::<Bytes>());
                match self.outer.handle_packet_from_mobile(now, Packet::new(&ip, &segment)) {
                    Verdict::Absorb => {}
                    Verdict::Forward => return Some(Transmit::Ack(ack)),
                    Verdict::ForwardWith(says) => {
                        return Some(Transmit::Ack(BareAck { ack: says.ack, ..ack }));
                    }
                }
            } else {
                match self.outer.poll_transmit()? {
                    Transmit::Retransmission {
                        queue_position: turn,
                        connection,
                        packet: kept,
                        tsval: clock,
                    } => {
                        let ip = header(Side::A);
                        let kept = with_timestamp(clock, kept);
                        let packet = Packet::new(&ip, &kept);
                        if self.inner.handle_packet_to_mobile(now, packet, || kept.clone()) != Verdict::Absorb
                        {
                            return Some(Transmit::Retransmission {
                                queue_position: turn,
                                connection,
                                packet: kept,
                                tsval: None,
                            });
                        }
                    }
                    other @ (Transmit::Ack(_) | Transmit::Nack(_)) => return Some(other),
                }
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.outer.poll_timeout().into_iter().chain(self.inner.poll_timeout()).min()
    }

    fn stats(&self) -> Self::Stats {
        self.inner.stats()
    }

    fn connections(&self) -> usize {
        self.outer.connections().max(self.inner.connections())
    }
}
