//! What is known of a flow on the side where it comes from the link: what is missing, and what waits for that.

use super::config::{Config, Expansion, Holding};
use super::holes::{By, Holes, Missing, Requests, Rest};
use super::{Does, Stats, Verdict};
use hopline_core::{Instant, Seq32};
use hopline_wire::dproxy::Range;
use std::collections::VecDeque;

/// Most holes of a flow. What lost more at once is left to TCP.
const HOLES: usize = 64;
/// Numbers farther apart than this are not of one window: the connection is another one, on the same ports.
const FAR: i32 = 1 << 30;
/// Most bytes between what has come and the end of the last packet of a flow that the other end names differently: little enough that
/// another flow is seldom so near, and a burst at the end of most transfers.
const TAIL: i32 = 1 << 18;

/// Sequence numbers from one up to another.
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

/// What a flow shares with others of its link.
pub(super) struct Hand<'a, K> {
    pub(super) now: Instant,
    pub(super) config: &'a Config,
    pub(super) requests: &'a mut Requests<Span>,
    /// Packets that wait in all flows.
    pub(super) held: &'a mut u32,
    pub(super) out: &'a mut VecDeque<Does<K>>,
    pub(super) stats: &'a mut Stats,
}

/// Whether packets that waited go on, ahead of whatever comes now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Released {
    Nothing,
    Some,
}

/// The detecting half of a flow.
#[derive(Debug)]
pub(super) struct Detect<K> {
    /// Of its SYN, if that passed.
    initial: Option<Seq32>,
    /// The number after the last that has come.
    edge: Seq32,
    lengths: Lengths,
    holes: Holes<Span>,
    /// What waits, by number.
    held: VecDeque<Held<K>>,
}

#[derive(Debug)]
struct Held<K> {
    seq: Seq32,
    kept: K,
}

impl<K> Detect<K> {
    /// A flow that begins with this number, and goes on with `edge`.
    pub(super) fn new(initial: Seq32, edge: Seq32) -> Self {
        let (lengths, holes, held) = (Lengths::new(), Holes::new(), VecDeque::new());
        Self { initial: Some(initial), edge, lengths, holes, held }
    }

    /// A flow that is seen first in its midst, with these numbers.
    pub(super) fn midway(first: Span) -> Self {
        let mut midway = Self { initial: None, ..Self::new(first.from, first.to) };
        midway.lengths.note(first.to - first.from);
        midway
    }

    /// Whether this is the SYN that began it.
    pub(super) fn began_with(&self, seq: Seq32) -> bool {
        self.initial == Some(seq)
    }

    /// Whether a number can belong to it.
    pub(super) fn is_near(&self, seq: Seq32) -> bool {
        (-FAR..FAR).contains(&seq.distance_from(self.edge))
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.holes.due()
    }

    /// A packet with these numbers has come.
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
        // What brings nothing new is the sender's retransmission, or a copy: it is never held.
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

    /// Returns whether what has come ends shortly before this packet ends, so that it may be the last of this flow.
    pub(super) fn has_tail(&self, last: Span) -> bool {
        (0..TAIL).contains(&last.to.distance_from(self.edge))
    }

    /// The other end has sent up to `to`, the last packet from `from` on (C9).
    pub(super) fn hear_tail(&mut self, hand: &mut Hand<'_, K>, last: Span) {
        if last.to.after(self.edge) {
            self.lengths.note(last.to - last.from);
            self.miss(hand, last.to);
            self.edge = last.to;
        }
    }

    /// The other end does not keep this (C8). Whether it was asked.
    pub(super) fn hear_not_cached(&mut self, hand: &mut Hand<'_, K>, span: Span) -> bool {
        let was_missing = self.holes.forget(span, hand.requests);
        self.release(hand);
        was_missing
    }

    /// Asks again, or gives up.
    pub(super) fn expire(&mut self, hand: &mut Hand<'_, K>) {
        self.holes.expire(hand.now, hand.requests);
        self.release(hand);
    }

    /// Nothing is waited for any longer.
    pub(super) fn release_all(&mut self, hand: &mut Hand<'_, K>) -> Released {
        let released = if self.held.is_empty() { Released::Nothing } else { Released::Some };
        self.holes.give_up(hand.requests);
        self.release(hand);
        released
    }

    /// Everything from the last number up to `to` is missing.
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

    /// What a request for a hole names (§III-C.1).
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

    /// What waits for nothing any more goes on, in order.
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

/// Lengths of the last packets.
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

    /// The most frequent of them (C14); of several, the longest.
    fn usual(&self) -> u32 {
        let times = |len: u16| self.last.iter().filter(|other| **other == len).count();
        let noted = self.last.iter().copied().filter(|len| *len > 0);
        noted.max_by_key(|len| (times(*len), *len)).map_or(u32::MAX, u32::from)
    }
}
