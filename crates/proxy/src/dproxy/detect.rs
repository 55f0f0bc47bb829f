//! Receiving side of a flow: holes in the sequence space, and packets that wait for them.

use super::config::{Config, Expansion, Holding};
use super::holes::{By, Holes, Missing, Requests, Rest};
use super::types::{Does, Stats, Verdict};
use hopline_core::{Instant, Seq32};
use hopline_wire::dproxy::Range;
use std::collections::VecDeque;

/// Maximum number of holes of a flow. Larger losses are left to TCP.
const HOLES: usize = 64;
/// Minimum distance of sequence numbers that belong to different windows: beyond it, a new connection reuses
/// the ports.
const FAR: i32 = 1 << 30;
/// Maximum distance, bytes, from the data received to the end of the last packet of a flow that the other end
/// names differently. It is small enough that another flow is rarely that near, and covers a burst at the end
/// of most transfers.
const TAIL: i32 = 1 << 18;

/// Range of sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) from: Seq32,
    pub(super) to: Seq32,
}

impl Span {
    pub(super) fn of(range: Range) -> Self {
        Self { from: range.seq, to: range.end() }
    }
}

impl Missing for Span {
    fn without(self, arrived: Self) -> [Option<Self>; 2] {
        let (from, to) = (self.from.max(arrived.from), self.to.min(arrived.to));
        if !to.after(from) {
            return [Some(self), None];
        }
        let parts = [Self { from: self.from, to: from }, Self { from: to, to: self.to }];
        match parts.map(|part| part.to.after(part.from).then_some(part)) {
            [None, second] => [second, None],
            both => both,
        }
    }
}

/// State that a flow shares with other flows of its link.
pub(super) struct Hand<'a, K> {
    pub(super) now: Instant,
    pub(super) config: &'a Config,
    pub(super) requests: &'a mut Requests<Span>,
    /// Waiting packets of all flows.
    pub(super) held: &'a mut u32,
    pub(super) out: &'a mut VecDeque<Does<K>>,
    pub(super) stats: &'a mut Stats,
}

/// Result of an arrival: `Some` if waiting packets are forwarded first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Released {
    Nothing,
    Some,
}

/// Receiving half of a flow.
#[derive(Debug)]
pub(super) struct Detect<K> {
    /// Initial sequence number, if the SYN passed.
    initial: Option<Seq32>,
    /// End of the highest sequence number received.
    edge: Seq32,
    lengths: Lengths,
    holes: Holes<Span>,
    /// Waiting packets, in sequence order.
    held: VecDeque<Held<K>>,
}

#[derive(Debug)]
struct Held<K> {
    seq: Seq32,
    kept: K,
}

impl<K> Detect<K> {
    /// Creates a flow with this initial sequence number; `edge` is the next one expected.
    pub(super) fn new(initial: Seq32, edge: Seq32) -> Self {
        let (lengths, holes, held) = (Lengths::new(), Holes::new(), VecDeque::new());
        Self { initial: Some(initial), edge, lengths, holes, held }
    }

    /// Creates a flow from a packet in its midst, with this range.
    pub(super) fn midway(first: Span) -> Self {
        let mut midway = Self { initial: None, ..Self::new(first.from, first.to) };
        midway.lengths.note(first.to - first.from);
        midway
    }

    /// Returns whether the flow began with this SYN.
    pub(super) fn began_with(&self, seq: Seq32) -> bool {
        self.initial == Some(seq)
    }

    /// Returns whether a sequence number can belong to the flow.
    pub(super) fn is_near(&self, seq: Seq32) -> bool {
        (-FAR..FAR).contains(&seq.distance_from(self.edge))
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.holes.due()
    }

    /// Handles a packet with this range.
    pub(super) fn take(&mut self, hand: &mut Hand<'_, K>, span: Span, keep: impl FnOnce() -> K) -> Verdict {
        self.lengths.note(span.to - span.from);
        if span.from == self.edge && self.holes.is_empty() {
            self.edge = span.to;
            return Verdict::Forward;
        }
        let is_beyond = span.to.after(self.edge);
        let mut released = Released::Nothing;
        if is_beyond {
            self.holes.overtake(hand.now, hand.requests);
            released = self.miss(hand, span.from);
            self.edge = span.to;
        }
        let rest = if hand.config.expansion == Expansion::On { Rest::Asked } else { Rest::AsksAnew };
        let fills = self.holes.arrive(hand.now, span, (By::Replay, rest), hand.requests);
        if !fills && !is_beyond {
            self.holes.note_copy(hand.now, span, hand.requests);
        }
        let waits = self.holes.first().is_some_and(|hole| hole.from.before(span.from));
        // A packet without new data is the sender's retransmission, or a duplicate: it never waits.
        let passes = !waits || !(fills || is_beyond) || hand.config.holding == Holding::AsTheyCome;
        match (passes, released) {
            (true, Released::Nothing) => {
                self.release(hand);
                return Verdict::Forward;
            }
            (true, Released::Some) => hand.out.push_back(Does::Releases(keep())),
            (false, _) => self.hold(hand, span.from, keep()),
        }
        Verdict::Held
    }

    /// Returns whether the data received end shortly before this packet's end, so that it may be the last
    /// packet of this flow.
    pub(super) fn has_tail(&self, last: Span) -> bool {
        (0..TAIL).contains(&last.to.distance_from(self.edge))
    }

    /// Handles a tail probe: the other end has sent up to the end of `last`, its last packet (C9).
    pub(super) fn hear_tail(&mut self, hand: &mut Hand<'_, K>, last: Span) {
        if last.to.after(self.edge) {
            self.lengths.note(last.to - last.from);
            self.miss(hand, last.to);
            self.edge = last.to;
        }
    }

    /// Records that the other end has not cached this range (C8). Returns whether it was requested.
    pub(super) fn hear_not_cached(&mut self, hand: &mut Hand<'_, K>, span: Span) -> bool {
        let was_missing = self.holes.forget(span, hand.requests);
        self.release(hand);
        was_missing
    }

    /// Repeats requests that are due, or gives up.
    pub(super) fn expire(&mut self, hand: &mut Hand<'_, K>) {
        self.holes.expire(hand.now, hand.requests);
        self.release(hand);
    }

    /// Gives up all holes, and forwards the packets that waited.
    pub(super) fn release_all(&mut self, hand: &mut Hand<'_, K>) -> Released {
        let released = if self.held.is_empty() { Released::Nothing } else { Released::Some };
        self.holes.give_up(hand.requests);
        self.release(hand);
        released
    }

    /// Records everything from the edge up to `to` as missing.
    fn miss(&mut self, hand: &mut Hand<'_, K>, to: Seq32) -> Released {
        if !to.after(self.edge) {
            return Released::Nothing;
        }
        let step = match hand.config.expansion {
            Expansion::On => self.lengths.usual(),
            Expansion::Off => u32::MAX,
        };
        let pieces = (to - self.edge).div_ceil(step) as usize;
        if pieces + self.holes.len() > HOLES {
            hand.stats.too_many += 1;
            return self.release_all(hand);
        }
        let mut from = self.edge;
        while from.before(to) {
            let end = from + step.min(to - from);
            self.holes.open(hand.now, Span { from, to: end }, hand.requests);
            from = end;
        }
        Released::Nothing
    }

    /// Returns the range named in a request for a hole (§III-C.1).
    pub(super) fn asks_for(&self, hole: Span, expansion: Expansion) -> Range {
        let most = if expansion == Expansion::On { u32::from(u16::MAX) } else { self.lengths.usual() };
        let len = (hole.to - hole.from).min(most);
        Range { seq: hole.from, len: u16::try_from(len).unwrap_or(u16::MAX) }
    }

    fn hold(&mut self, hand: &mut Hand<'_, K>, seq: Seq32, kept: K) {
        hand.stats.held += 1;
        *hand.held += 1;
        let at = self.held.iter().rposition(|held| !held.seq.after(seq)).map_or(0, |at| at + 1);
        self.held.insert(at, Held { seq, kept });
        while self.held.len() > usize::from(hand.config.held_packets) {
            hand.stats.overflowed += 1;
            self.holes.give_up_first(hand.requests);
            self.release(hand);
        }
        if *hand.held > hand.config.held_in_all {
            hand.stats.overflowed += 1;
            self.release_all(hand);
        }
    }

    /// Forwards packets that wait for nothing more, in order.
    fn release(&mut self, hand: &mut Hand<'_, K>) {
        let waits_for = self.holes.first();
        let is_free = |held: &Held<K>| waits_for.is_none_or(|hole| held.seq.before(hole.from));
        while self.held.front().is_some_and(is_free)
            && let Some(held) = self.held.pop_front()
        {
            *hand.held -= 1;
            hand.out.push_back(Does::Releases(held.kept));
        }
        if self.held.is_empty() && self.held.capacity() > 16 {
            self.held = VecDeque::new();
        }
    }
}

/// Lengths of recent packets.
#[derive(Debug)]
struct Lengths {
    last: [u16; Lengths::REMEMBERED],
    next: u8,
}

impl Lengths {
    const REMEMBERED: usize = 8;

    const fn new() -> Self {
        Self { last: [0; Self::REMEMBERED], next: 0 }
    }

    fn note(&mut self, len: u32) {
        self.last[usize::from(self.next) % Self::REMEMBERED] = u16::try_from(len).unwrap_or(u16::MAX);
        self.next = self.next.wrapping_add(1);
    }

    /// Returns the most frequent length (C14); of several, the longest.
    fn usual(&self) -> u32 {
        let times = |len: u16| self.last.iter().filter(|other| **other == len).count();
        let noted = self.last.iter().copied().filter(|len| *len > 0);
        noted.max_by_key(|len| (times(*len), *len)).map_or(u32::MAX, u32::from)
    }
}
