//! Outstanding transmissions.

use hopline_core::{Duration, Instant};
use hopline_wire::wide::{End, Span};
use std::collections::BTreeMap;

/// Transmission that requests an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// Time of sending.
    pub(super) at: Instant,
    /// Data in it.
    pub(super) chunk: Chunk,
    /// Total of sent bytes by then, its own included, with the network layer's headers.
    pub(super) upto: u64,
    /// Length, bytes.
    pub(super) len: u32,
    pub(super) fate: Fate,
}

/// Range of data of the stream, possibly empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) offset: u64,
    pub(super) len: u32,
    pub(super) end: End,
}

impl Chunk {
    pub(super) const NOTHING: Self = Self { offset: 0, len: 0, end: End::No };

    pub(super) fn is_nothing(self) -> bool {
        self.len == 0 && self.end == End::No
    }

    pub(super) fn range(self) -> core::ops::Range<u64> {
        self.offset..self.offset + u64::from(self.len)
    }
}

/// Presumed state of a transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// In flight.
    InFlight,
    /// Declared lost at this time. An acknowledgment would show that it was not.
    Lost(Instant),
}

/// All transmissions that are neither acknowledged nor removed, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Outstanding {
    sent: BTreeMap<u64, Sent>,
    bytes: u64,
    packets: u64,
    /// Number of the next packet. Acknowledgments of lower numbers without a record are ignored: those packets requested
    /// no answer, or are settled. An acknowledgment of this number or a higher one is invalid.
    next: u64,
}

impl Outstanding {
    /// Returns the bytes in flight.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of packets in flight.
    pub(super) fn packets(&self) -> u64 {
        self.packets
    }

    /// Takes and returns the number of the next packet.
    pub(super) fn next_number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Returns the number of the next packet without taking it.
    pub(super) fn upcoming(&self) -> u64 {
        self.next
    }

    /// Skips all numbers below `number`.
    pub(super) fn skip_to(&mut self, number: u64) {
        self.next = self.next.max(number);
    }

    /// Returns whether all of `spans`, which are in descending order, were sent.
    pub(super) fn knows(&self, spans: &[Span]) -> bool {
        spans.first().is_some_and(|span| span.last < self.next)
    }

    /// Records the transmission of `number`.
    pub(super) fn add(&mut self, number: u64, sent: Sent) {
        self.bytes += u64::from(sent.len);
        self.packets += 1;
        self.sent.insert(number, sent);
    }

    /// Removes the transmissions that `spans` acknowledge, the highest first.
    pub(super) fn acknowledge(&mut self, spans: &[Span], mut take: impl FnMut(u64, &Sent)) {
        for span in spans {
            while let Some((&number, _)) = self.sent.range(span.first..=span.last).next_back() {
                let sent = self.remove(number);
                take(number, &sent);
            }
        }
    }

    fn remove(&mut self, number: u64) -> Sent {
        let sent = self.sent.remove(&number).expect("it was found there");
        if sent.fate == Fate::InFlight {
            self.leave(&sent);
        }
        sent
    }

    fn leave(&mut self, sent: &Sent) {
        self.bytes -= u64::from(sent.len);
        self.packets -= 1;
    }

    /// Marks transmissions in flight below `below` that were sent at or before `before` as lost. Calls `take` for each,
    /// the lowest first. Returns the time of sending of the first remaining one below `below`.
    pub(super) fn lose(
        &mut self,
        now: Instant,
        below: u64,
        before: Instant,
        mut take: impl FnMut(u64, &Sent),
    ) -> Option<Instant> {
        let mut waits = None;
        let (mut bytes, mut packets) = (0, 0);
        for (&number, sent) in self.sent.range_mut(..below) {
            if sent.fate != Fate::InFlight {
                continue;
            }
            if sent.at > before {
                waits = Some(sent.at);
                break;
            }
            sent.fate = Fate::Lost(now);
            (bytes, packets) = (bytes + u64::from(sent.len), packets + 1);
            take(number, sent);
        }
        self.bytes -= bytes;
        self.packets -= packets;
        waits
    }

    /// Removes transmissions that were declared lost longer than `after` ago.
    pub(super) fn forget(&mut self, now: Instant, after: Duration) {
        while let Some(entry) = self.sent.first_entry() {
            match entry.get().fate {
                Fate::Lost(since) if now.since(since) > after => entry.remove(),
                _ => break,
            };
        }
    }

    /// Returns the data in flight, the oldest first.
    pub(super) fn under_way(&self) -> impl Iterator<Item = Chunk> {
        let under_way = self.sent.values().filter(|sent| sent.fate == Fate::InFlight);
        under_way.map(|sent| sent.chunk).filter(|chunk| !chunk.is_nothing())
    }

    pub(super) fn clear(&mut self) {
        self.sent.clear();
        (self.bytes, self.packets) = (0, 0);
    }
}
