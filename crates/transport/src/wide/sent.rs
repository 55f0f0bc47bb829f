//! Transmissions that are not settled yet.

use hopline_core::{Duration, Instant};
use hopline_wire::wide::{End, Span};
use std::collections::BTreeMap;

/// A transmission that asks for an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// When it left.
    pub(super) at: Instant,
    /// The data in it.
    pub(super) chunk: Chunk,
    /// Bytes that had left when it had, its own included, from the network layer's header on.
    pub(super) upto: u64,
    /// Bytes of it.
    pub(super) len: u32,
    pub(super) fate: Fate,
}

/// Some data of the stream, or none.
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

/// What is believed of a transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is under way.
    InFlight,
    /// It is lost, since then. Its acknowledgment would prove that wrong.
    Lost(Instant),
}

/// All transmissions that were neither acknowledged nor forgotten, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Outstanding {
    sent: BTreeMap<u64, Sent>,
    bytes: u64,
    packets: u64,
    /// Numbers that were sent and asked for no answer, or are settled, have no meaning in an acknowledgment; what was never sent is a
    /// lie.
    next: u64,
}

impl Outstanding {
    /// Bytes under way.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Packets under way.
    pub(super) fn packets(&self) -> u64 {
        self.packets
    }

    /// The number of the next packet.
    pub(super) fn next_number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// The same, while it is not taken.
    pub(super) fn upcoming(&self) -> u64 {
        self.next
    }

    /// Leaves out all numbers below `number`.
    pub(super) fn skip_to(&mut self, number: u64) {
        self.next = self.next.max(number);
    }

    /// Whether all of `spans` was sent, in the order that they have.
    pub(super) fn knows(&self, spans: &[Span]) -> bool {
        spans.first().is_some_and(|span| span.last < self.next)
    }

    /// Notes that `number` left.
    pub(super) fn add(&mut self, number: u64, sent: Sent) {
        self.bytes += u64::from(sent.len);
        self.packets += 1;
        self.sent.insert(number, sent);
    }

    /// Takes out what `spans` acknowledge, the highest first.
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

    /// Takes for lost what is under way below `below` and left before `before`; tells `take` of each, the lowest first. Returns when the first
    /// of the others below `below` left.
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

    /// Forgets what has been taken for lost for so long, or whose data have arrived otherwise.
    pub(super) fn forget(&mut self, now: Instant, after: Duration) {
        while let Some(entry) = self.sent.first_entry() {
            match entry.get().fate {
                Fate::Lost(since) if now.since(since) > after => entry.remove(),
                _ => break,
            };
        }
    }

    /// The data under way, the oldest first.
    pub(super) fn under_way(&self) -> impl Iterator<Item = Chunk> {
        let under_way = self.sent.values().filter(|sent| sent.fate == Fate::InFlight);
        under_way.map(|sent| sent.chunk).filter(|chunk| !chunk.is_nothing())
    }

    pub(super) fn clear(&mut self) {
        self.sent.clear();
        (self.bytes, self.packets) = (0, 0);
    }
}
