//! Receiving side of a flow: holes in the sequence space, and packets that wait for them.

use super::config::{Config, HoleDelivery, RequestExpansion};
use super::holes::{FilledBy, HoleList, Missing, Remainder, RequestScheduler};
use super::types::{DProxyAction, Stats, Verdict};
use hopline_core::{Instant, Seq32};
use hopline_wire::dproxy::Range;
use std::collections::VecDeque;

/// Maximum number of holes of a flow. Larger losses are left to TCP.
const MAX_HOLES: usize = 64;
/// Minimum distance of sequence numbers that belong to different windows: beyond it, a new connection reuses
/// the ports.
const MAX_SEQ_DISTANCE: i32 = 1 << 30;
/// Maximum distance, bytes, from the data received to the end of the last packet of a flow that the other end
/// names differently. It is small enough that another flow is rarely that near, and covers a burst at the end
/// of most transfers.
const MAX_TAIL_DISTANCE: i32 = 1 << 18;

/// Range of sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SequenceRange {
    pub(super) from: Seq32,
    pub(super) to: Seq32,
}

impl SequenceRange {
    pub(super) fn of(range: Range) -> Self {
        Self { from: range.seq, to: range.end() }
    }
}

impl Missing for SequenceRange {
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
pub(super) struct Context<'a, K> {
    pub(super) now: Instant,
    pub(super) config: &'a Config,
    pub(super) requests: &'a mut RequestScheduler<SequenceRange>,
    /// Waiting packets of all flows.
    pub(super) waiting_packets: &'a mut u32,
    pub(super) actions: &'a mut VecDeque<DProxyAction<K>>,
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
pub(super) struct LossDetector<K> {
    /// Initial sequence number, if the SYN passed.
    initial_seq: Option<Seq32>,
    /// End of the highest sequence number received.
    highest_received: Seq32,
    lengths: RecentLengths,
    holes: HoleList<SequenceRange>,
    /// Waiting packets, in sequence order.
    waiting: VecDeque<WaitingPacket<K>>,
}

#[derive(Debug)]
struct WaitingPacket<K> {
    seq: Seq32,
    packet: K,
}

impl<K> LossDetector<K> {
    /// Creates a flow with this initial sequence number; `edge` is the next one expected.
    pub(super) fn new(initial: Seq32, edge: Seq32) -> Self {
        let (lengths, holes, held) = (RecentLengths::new(), HoleList::new(), VecDeque::new());
        Self { initial_seq: Some(initial), highest_received: edge, lengths, holes, waiting: held }
    }

    /// Creates a flow from a packet in its midst, with this range.
    pub(super) fn from_mid_flow(first: SequenceRange) -> Self {
        let mut midway = Self { initial_seq: None, ..Self::new(first.from, first.to) };
        midway.lengths.record(first.to - first.from);
        midway
    }

    /// Returns whether the flow began with this SYN.
    pub(super) fn started_with(&self, seq: Seq32) -> bool {
        self.initial_seq == Some(seq)
    }

    /// Returns whether a sequence number can belong to the flow.
    pub(super) fn is_near(&self, seq: Seq32) -> bool {
        (-MAX_SEQ_DISTANCE..MAX_SEQ_DISTANCE).contains(&seq.distance_from(self.highest_received))
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.holes.next_timeout()
    }

    /// Handles a packet with this range.
    pub(super) fn handle_data(
        &mut self,
        hand: &mut Context<'_, K>,
        span: SequenceRange,
        keep: impl FnOnce() -> K,
    ) -> Verdict {
        self.lengths.record(span.to - span.from);
        if span.from == self.highest_received && self.holes.is_empty() {
            self.highest_received = span.to;
            return Verdict::Forward;
        }
        let is_beyond = span.to.after(self.highest_received);
        let mut released = Released::Nothing;
        if is_beyond {
            self.holes.handle_beyond(hand.now, hand.requests);
            released = self.record_missing(hand, span.from);
            self.highest_received = span.to;
        }
        let rest = if hand.config.request_expansion == RequestExpansion::On {
            Remainder::AlreadyRequested
        } else {
            Remainder::RequestAgain
        };
        let fills = self.holes.handle_arrival(hand.now, span, (FilledBy::Replay, rest), hand.requests);
        if !fills && !is_beyond {
            self.holes.handle_duplicate(hand.now, span, hand.requests);
        }
        let waits = self.holes.first().is_some_and(|hole| hole.from.before(span.from));
        // A packet without new data is the sender's retransmission, or a duplicate: it never waits.
        let passes = !waits || !(fills || is_beyond) || hand.config.hole_delivery == HoleDelivery::OutOfOrder;
        match (passes, released) {
            (true, Released::Nothing) => {
                self.deliver_in_order(hand);
                return Verdict::Forward;
            }
            (true, Released::Some) => hand.actions.push_back(DProxyAction::Forward(keep())),
            (false, _) => self.queue_packet(hand, span.from, keep()),
        }
        Verdict::Delayed
    }

    /// Returns whether the data received end shortly before this packet's end, so that it may be the last
    /// packet of this flow.
    pub(super) fn has_tail(&self, last: SequenceRange) -> bool {
        (0..MAX_TAIL_DISTANCE).contains(&last.to.distance_from(self.highest_received))
    }

    /// Handles a tail probe: the other end has sent up to the end of `last`, its last packet (C9).
    pub(super) fn handle_tail_probe(&mut self, hand: &mut Context<'_, K>, last: SequenceRange) {
        if last.to.after(self.highest_received) {
            self.lengths.record(last.to - last.from);
            self.record_missing(hand, last.to);
            self.highest_received = last.to;
        }
    }

    /// Records that the other end has not cached this range (C8). Returns whether it was requested.
    pub(super) fn handle_not_cached(&mut self, hand: &mut Context<'_, K>, span: SequenceRange) -> bool {
        let was_missing = self.holes.give_up_range(span, hand.requests);
        self.deliver_in_order(hand);
        was_missing
    }

    /// Repeats requests that are due, or gives up.
    pub(super) fn handle_timeout(&mut self, hand: &mut Context<'_, K>) {
        self.holes.handle_timeout(hand.now, hand.requests);
        self.deliver_in_order(hand);
    }

    /// Gives up all holes, and forwards the packets that waited.
    pub(super) fn give_up_all(&mut self, hand: &mut Context<'_, K>) -> Released {
        let released = if self.waiting.is_empty() { Released::Nothing } else { Released::Some };
        self.holes.give_up_all(hand.requests);
        self.deliver_in_order(hand);
        released
    }

    /// Records everything from the edge up to `to` as missing.
    fn record_missing(&mut self, hand: &mut Context<'_, K>, to: Seq32) -> Released {
        if !to.after(self.highest_received) {
            return Released::Nothing;
        }
        let step = match hand.config.request_expansion {
            RequestExpansion::On => self.lengths.most_frequent(),
            RequestExpansion::Off => u32::MAX,
        };
        let pieces = (to - self.highest_received).div_ceil(step) as usize;
        if pieces + self.holes.len() > MAX_HOLES {
            hand.stats.excess_losses += 1;
            return self.give_up_all(hand);
        }
        let mut from = self.highest_received;
        while from.before(to) {
            let end = from + step.min(to - from);
            self.holes.open(hand.now, SequenceRange { from, to: end }, hand.requests);
            from = end;
        }
        Released::Nothing
    }

    /// Returns the range named in a request for a hole (§III-C.1).
    pub(super) fn requested_range(&self, hole: SequenceRange, expansion: RequestExpansion) -> Range {
        let most = if expansion == RequestExpansion::On {
            u32::from(u16::MAX)
        } else {
            self.lengths.most_frequent()
        };
        let len = (hole.to - hole.from).min(most);
        Range { seq: hole.from, len: u16::try_from(len).unwrap_or(u16::MAX) }
    }

    fn queue_packet(&mut self, hand: &mut Context<'_, K>, seq: Seq32, kept: K) {
        hand.stats.delayed += 1;
        *hand.waiting_packets += 1;
        let at = self.waiting.iter().rposition(|held| !held.seq.after(seq)).map_or(0, |at| at + 1);
        self.waiting.insert(at, WaitingPacket { seq, packet: kept });
        while self.waiting.len() > usize::from(hand.config.max_waiting_per_flow) {
            hand.stats.overflowed += 1;
            self.holes.give_up_first(hand.requests);
            self.deliver_in_order(hand);
        }
        if *hand.waiting_packets > hand.config.max_waiting {
            hand.stats.overflowed += 1;
            self.give_up_all(hand);
        }
    }

    /// Forwards packets that wait for nothing more, in order.
    fn deliver_in_order(&mut self, hand: &mut Context<'_, K>) {
        let waits_for = self.holes.first();
        let is_free = |held: &WaitingPacket<K>| waits_for.is_none_or(|hole| held.seq.before(hole.from));
        while self.waiting.front().is_some_and(is_free)
            && let Some(held) = self.waiting.pop_front()
        {
            *hand.waiting_packets -= 1;
            hand.actions.push_back(DProxyAction::Forward(held.packet));
        }
        if self.waiting.is_empty() && self.waiting.capacity() > 16 {
            self.waiting = VecDeque::new();
        }
    }
}

/// Lengths of recent packets.
#[derive(Debug)]
struct RecentLengths {
    samples: [u16; RecentLengths::SAMPLES],
    next: u8,
}

impl RecentLengths {
    const SAMPLES: usize = 8;

    const fn new() -> Self {
        Self { samples: [0; Self::SAMPLES], next: 0 }
    }

    fn record(&mut self, len: u32) {
        self.samples[usize::from(self.next) % Self::SAMPLES] = u16::try_from(len).unwrap_or(u16::MAX);
        self.next = self.next.wrapping_add(1);
    }

    /// Returns the most frequent length (C14); of several, the longest.
    fn most_frequent(&self) -> u32 {
        let times = |len: u16| self.samples.iter().filter(|other| **other == len).count();
        let noted = self.samples.iter().copied().filter(|len| *len > 0);
        noted.max_by_key(|len| (times(*len), *len)).map_or(u32::MAX, u32::from)
    }
}
