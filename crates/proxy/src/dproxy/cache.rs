//! What is kept of packets that have gone out: one ring for all flows, oldest first, and for each flow where its packets are.

use super::config::Caching;
use hopline_core::{Instant, Seq32};
use hopline_wire::dproxy::Range;
use std::collections::VecDeque;

/// The packets of all flows. `O`: whose a packet is.
#[derive(Debug)]
pub(super) struct Ring<K, O> {
    config: Caching,
    /// The number of the first slot.
    first: u64,
    slots: VecDeque<Option<Slot<K, O>>>,
    /// Slots in use.
    kept: usize,
}

#[derive(Debug)]
struct Slot<K, O> {
    kept: K,
    since: Instant,
    owner: O,
    replays: u8,
    replayed: Instant,
}

/// What comes of a wish for a packet.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Replay<K> {
    /// Here it is, for the so-manieth time.
    Packet(K, u8),
    /// It was sent again just now.
    UnderWay,
    /// It was sent again too often.
    Exhausted,
}

/// A packet that leaves the ring.
#[derive(Debug)]
pub(super) struct Left<K, O> {
    pub(super) number: u64,
    pub(super) owner: O,
    pub(super) kept: K,
}

impl<K: Clone, O> Ring<K, O> {
    pub(super) const fn new(config: Caching) -> Self {
        Self { config, first: 0, slots: VecDeque::new(), kept: 0 }
    }

    /// Keeps a packet. Its number. Room is made before.
    pub(super) fn push(&mut self, now: Instant, owner: O, kept: K) -> u64 {
        self.kept += 1;
        self.slots.push_back(Some(Slot { kept, since: now, owner, replays: 0, replayed: now }));
        self.first + self.slots.len() as u64 - 1
    }

    /// Number of packets that are kept.
    pub(super) const fn kept(&self) -> usize {
        self.kept
    }

    /// Whether one more packet would be one too many.
    pub(super) fn is_full(&self) -> bool {
        self.slots.len() >= self.config.packets.max(1) as usize
    }

    /// The oldest leaves.
    pub(super) fn pop(&mut self) -> Option<Left<K, O>> {
        self.free(self.first)
    }

    /// The oldest leaves if it is too old.
    pub(super) fn pop_old(&mut self, now: Instant) -> Option<Left<K, O>> {
        if self.next_end()? <= now { self.pop() } else { None }
    }

    /// Where the oldest is, or the next one will be.
    pub(super) const fn first(&self) -> u64 {
        self.first
    }

    /// A packet.
    pub(super) fn get(&self, number: u64) -> Option<&K> {
        self.slots.get(self.index(number)?)?.as_ref().map(|slot| &slot.kept)
    }

    /// Whether a packet was sent again.
    pub(super) fn was_replayed(&self, number: u64) -> bool {
        let slot = self.index(number).and_then(|at| self.slots.get(at)?.as_ref());
        slot.is_some_and(|slot| slot.replays > 0)
    }

    /// The number of the next packet.
    pub(super) fn next(&self) -> u64 {
        self.first + self.slots.len() as u64
    }

    /// The newest is taken back, and with it its number.
    pub(super) fn take_back(&mut self) -> Option<K> {
        if let Some(None) | None = self.slots.back() {
            return None;
        }
        let newest = self.slots.pop_back()??;
        self.kept -= 1;
        Some(newest.kept)
    }

    /// When the oldest is too old.
    pub(super) fn next_end(&self) -> Option<Instant> {
        self.slots.front()?.as_ref().map(|oldest| oldest.since + self.config.age)
    }

    /// A packet leaves.
    pub(super) fn free(&mut self, number: u64) -> Option<Left<K, O>> {
        let at = self.index(number)?;
        let slot = self.slots.get_mut(at)?.take()?;
        self.kept -= 1;
        self.settle();
        Some(Left { number, owner: slot.owner, kept: slot.kept })
    }

    /// A packet again, if its limits allow it.
    pub(super) fn replay(&mut self, now: Instant, number: u64) -> Option<Replay<K>> {
        let Caching { replays, replay_interval, .. } = self.config;
        let at = self.index(number)?;
        let slot = self.slots.get_mut(at)?.as_mut()?;
        if slot.replays > 0 && now.since(slot.replayed) < replay_interval {
            return Some(Replay::UnderWay);
        }
        if slot.replays >= replays {
            return Some(Replay::Exhausted);
        }
        (slot.replays, slot.replayed) = (slot.replays + 1, now);
        Some(Replay::Packet(slot.kept.clone(), slot.replays))
    }

    /// Packets in it.
    pub(super) const fn len(&self) -> usize {
        self.kept
    }

    fn index(&self, number: u64) -> Option<usize> {
        number.checked_sub(self.first).map(|at| at as usize)
    }

    /// The first slot is in use, or there is none.
    fn settle(&mut self) {
        while let Some(None) = self.slots.front() {
            self.slots.pop_front();
            self.first += 1;
        }
    }
}

/// Where the packets of a flow are.
#[derive(Debug)]
pub(super) struct Kept {
    /// In the order in which they went out.
    packets: VecDeque<Entry>,
    /// The number after the last that went out, if anything has.
    edge: Option<Seq32>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    seq: Seq32,
    end: Seq32,
    number: u64,
}

impl Kept {
    pub(super) const fn new() -> Self {
        Self { packets: VecDeque::new(), edge: None }
    }

    /// The number after the last that went out.
    pub(super) const fn edge(&self) -> Option<Seq32> {
        self.edge
    }

    /// The packet with the last number that went out, if it is kept.
    pub(super) fn last(&self) -> Option<Range> {
        let last = self.packets.iter().rev().find(|entry| Some(entry.end) == self.edge)?;
        Some(Range { seq: last.seq, len: u16::try_from(last.end - last.seq).unwrap_or(u16::MAX) })
    }

    /// Packet `number` of the ring goes out. Returns what it takes the place of: an earlier copy, or the oldest of too many.
    pub(super) fn push(&mut self, (seq, end): (Seq32, Seq32), number: u64, most: u16) -> Option<u64> {
        let is_new = self.edge.is_none_or(|edge| !seq.before(edge));
        let replaced = if is_new { None } else { self.remove(seq) };
        let evicted =
            (self.packets.len() >= usize::from(most.max(1))).then(|| self.packets.pop_front()).flatten();
        self.packets.push_back(Entry { seq, end, number });
        self.edge = Some(self.edge.map_or(end, |edge| edge.max(end)));
        replaced.or(evicted.map(|entry| entry.number))
    }

    /// Lets go of the packet that begins at `seq`.
    pub(super) fn remove(&mut self, seq: Seq32) -> Option<u64> {
        let at = self.packets.iter().position(|entry| entry.seq == seq)?;
        self.packets.remove(at).map(|entry| entry.number)
    }

    /// The ring has let go of a packet.
    pub(super) fn evicted(&mut self, number: u64) {
        if self.packets.front().is_some_and(|entry| entry.number == number) {
            self.packets.pop_front();
            self.shrink();
        }
    }

    /// Lets go of what is acknowledged, if this number can be that of an ACK. Whether it can.
    pub(super) fn acknowledge<K: Clone, O>(&mut self, ack: Seq32, ring: &mut Ring<K, O>) -> bool {
        if self.edge.is_none_or(|edge| ack.after(edge)) {
            return false;
        }
        while let Some(entry) = self.packets.front().filter(|entry| !entry.end.after(ack)) {
            ring.free(entry.number);
            self.packets.pop_front();
        }
        self.shrink();
        true
    }

    /// Lets go of everything.
    pub(super) fn clear<K: Clone, O>(&mut self, ring: &mut Ring<K, O>) {
        self.packets.drain(..).for_each(|entry| drop(ring.free(entry.number)));
        *self = Self::new();
    }

    /// Returns whether a packet is kept that begins in a range, or covers its beginning.
    pub(super) fn has(&self, range: Range) -> bool {
        self.packets.iter().any(|entry| entry.seq.before(range.end()) && entry.end.after(range.seq))
    }

    /// The packets that begin in a range, in sequence order; if there is none, the one that covers its beginning.
    pub(super) fn in_range(&self, range: Range) -> Vec<u64> {
        let begins = |entry: &&Entry| !entry.seq.before(range.seq) && entry.seq.before(range.end());
        let mut found: Vec<_> = self.packets.iter().filter(begins).collect();
        found.sort_by_key(|entry| entry.seq - range.seq);
        if found.is_empty() {
            let covers = |entry: &&Entry| entry.seq.before(range.seq) && entry.end.after(range.seq);
            found.extend(self.packets.iter().find(covers));
        }
        found.into_iter().map(|entry| entry.number).collect()
    }

    /// What many packets needed is given back when they are gone.
    fn shrink(&mut self) {
        const SMALL: usize = 32;
        if self.packets.is_empty() && self.packets.capacity() > SMALL {
            self.packets = VecDeque::new();
        }
    }
}
