//! Outstanding transmissions.

use hopline_core::{Duration, Instant};
use hopline_wire::wide::{AckRange, StreamEnd};
use std::collections::BTreeMap;

/// Transmission that requests an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutstandingPacket {
    /// Time of sending.
    pub(super) sent_at: Instant,
    /// Data in it.
    pub(super) chunk: Chunk,
    /// Total of sent bytes by then, its own included, with the network layer's headers.
    pub(super) sent_bytes: u64,
    /// Length, bytes.
    pub(super) len: u32,
    pub(super) state: TransmissionState,
}

/// Range of data of the stream, possibly empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) offset: u64,
    pub(super) len: u32,
    pub(super) end: StreamEnd,
}

impl Chunk {
    pub(super) const EMPTY: Self = Self { offset: 0, len: 0, end: StreamEnd::No };

    pub(super) fn is_empty(self) -> bool {
        self.len == 0 && self.end == StreamEnd::No
    }

    pub(super) fn range(self) -> core::ops::Range<u64> {
        self.offset..self.offset + u64::from(self.len)
    }
}

/// Presumed state of a transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransmissionState {
    /// In flight.
    InFlight,
    /// Declared lost at this time. An acknowledgment would show that it was not.
    Lost(Instant),
}

/// All transmissions that are neither acknowledged nor removed, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct OutstandingPackets {
    sent: BTreeMap<u64, OutstandingPacket>,
    bytes: u64,
    packets: u64,
    /// Number of the next packet. Acknowledgments of lower numbers without a record are ignored: those packets requested
    /// no answer, or are settled. An acknowledgment of this number or a higher one is invalid.
    next: u64,
}

impl OutstandingPackets {
    /// Returns the bytes in flight.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of packets in flight.
    pub(super) fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the numbers of the packets that were declared lost at `now`.
    pub(super) fn lost_at(&self, now: Instant) -> impl Iterator<Item = u64> {
        let lost = self.sent.iter().filter(move |(_, sent)| sent.state == TransmissionState::Lost(now));
        lost.map(|(&number, _)| number)
    }

    /// Takes and returns the number of the next packet.
    pub(super) fn take_number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Returns the number of the next packet without taking it.
    pub(super) fn peek_number(&self) -> u64 {
        self.next
    }

    /// Skips all numbers below `number`.
    pub(super) fn skip_to(&mut self, number: u64) {
        self.next = self.next.max(number);
    }

    /// Returns whether all of `spans`, which are in descending order, were sent.
    pub(super) fn were_sent(&self, spans: &[AckRange]) -> bool {
        spans.first().is_some_and(|span| span.last < self.next)
    }

    /// Records the transmission of `number`.
    pub(super) fn add(&mut self, number: u64, sent: OutstandingPacket) {
        self.bytes += u64::from(sent.len);
        self.packets += 1;
        self.sent.insert(number, sent);
    }

    /// Removes the transmissions that `spans` acknowledge, the highest first.
    pub(super) fn acknowledge(&mut self, spans: &[AckRange], mut take: impl FnMut(u64, &OutstandingPacket)) {
        for span in spans {
            while let Some((&number, _)) = self.sent.range(span.first..=span.last).next_back() {
                let sent = self.remove(number);
                take(number, &sent);
            }
        }
    }

    fn remove(&mut self, number: u64) -> OutstandingPacket {
        let sent = self.sent.remove(&number).expect("it was found there");
        if sent.state == TransmissionState::InFlight {
            self.subtract(&sent);
        }
        sent
    }

    fn subtract(&mut self, sent: &OutstandingPacket) {
        self.bytes -= u64::from(sent.len);
        self.packets -= 1;
    }

    /// Marks transmissions in flight below `below` that were sent at or before `before` as lost. Calls `take` for each,
    /// the lowest first. Returns the time of sending of the first remaining one below `below`.
    pub(super) fn mark_lost(
        &mut self,
        now: Instant,
        below: u64,
        before: Instant,
        mut take: impl FnMut(u64, &OutstandingPacket),
    ) -> Option<Instant> {
        let mut waits = None;
        let (mut bytes, mut packets) = (0, 0);
        for (&number, sent) in self.sent.range_mut(..below) {
            if sent.state != TransmissionState::InFlight {
                continue;
            }
            if sent.sent_at > before {
                waits = Some(sent.sent_at);
                break;
            }
            sent.state = TransmissionState::Lost(now);
            (bytes, packets) = (bytes + u64::from(sent.len), packets + 1);
            take(number, sent);
        }
        self.bytes -= bytes;
        self.packets -= packets;
        waits
    }

    /// Removes transmissions that were declared lost longer than `after` ago.
    pub(super) fn remove_lost(&mut self, now: Instant, after: Duration) {
        while let Some(entry) = self.sent.first_entry() {
            match entry.get().state {
                TransmissionState::Lost(since) if now.since(since) > after => entry.remove(),
                _ => break,
            };
        }
    }

    /// Returns the data in flight, the oldest first.
    pub(super) fn in_flight_chunks(&self) -> impl Iterator<Item = Chunk> {
        let under_way = self.sent.values().filter(|sent| sent.state == TransmissionState::InFlight);
        under_way.map(|sent| sent.chunk).filter(|chunk| !chunk.is_empty())
    }

    pub(super) fn clear(&mut self) {
        self.sent.clear();
        (self.bytes, self.packets) = (0, 0);
    }
}
