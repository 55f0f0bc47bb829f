//! Cache of transmitted packets: one ring for all flows, oldest first, and an index for each flow.

use super::config::Caching;
use hopline_core::{Instant, Seq32};
use hopline_wire::dproxy::Range;
use std::collections::VecDeque;

/// Cached packets of all flows. `O`: the owner of a packet.
#[derive(Debug)]
pub(super) struct Ring<K, O> {
    config: Caching,
    /// Number of the first slot.
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

/// Result of a request for a packet.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Replay<K> {
    /// The packet, and the number of its replays so far.
    Packet(K, u8),
    /// The packet was replayed a moment ago.
    UnderWay,
    /// The packet was replayed too often.
    Exhausted,
}

/// Packet removed from the ring.
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

    /// Stores a packet. Returns its number. The caller has made room before.
    pub(super) fn push(&mut self, now: Instant, owner: O, kept: K) -> u64 {
        self.kept += 1;
        self.slots.push_back(Some(Slot { kept, since: now, owner, replays: 0, replayed: now }));
        self.first + self.slots.len() as u64 - 1
    }

    /// Returns the number of cached packets.
    pub(super) const fn kept(&self) -> usize {
        self.kept
    }

    /// Returns whether the ring is full.
    pub(super) fn is_full(&self) -> bool {
        self.slots.len() >= self.config.packets.max(1) as usize
    }

    /// Removes the oldest packet.
    pub(super) fn pop(&mut self) -> Option<Left<K, O>> {
        self.free(self.first)
    }

    /// Removes the oldest packet if it has expired.
    pub(super) fn pop_old(&mut self, now: Instant) -> Option<Left<K, O>> {
        if self.next_end()? <= now { self.pop() } else { None }
    }

    /// Returns the number of the oldest packet, or of the next one if the ring is empty.
    pub(super) const fn first(&self) -> u64 {
        self.first
    }

    /// Returns a packet.
    pub(super) fn get(&self, number: u64) -> Option<&K> {
        self.slots.get(self.index(number)?)?.as_ref().map(|slot| &slot.kept)
    }

    /// Returns whether a packet was replayed.
    pub(super) fn was_replayed(&self, number: u64) -> bool {
        let slot = self.index(number).and_then(|at| self.slots.get(at)?.as_ref());
        slot.is_some_and(|slot| slot.replays > 0)
    }

    /// Returns the number of the next packet.
    pub(super) fn next(&self) -> u64 {
        self.first + self.slots.len() as u64
    }

    /// Takes back the newest packet and its number.
    pub(super) fn take_back(&mut self) -> Option<K> {
        if let Some(None) | None = self.slots.back() {
            return None;
        }
        let newest = self.slots.pop_back()??;
        self.kept -= 1;
        Some(newest.kept)
    }

    /// Returns when the oldest packet expires.
    pub(super) fn next_end(&self) -> Option<Instant> {
        self.slots.front()?.as_ref().map(|oldest| oldest.since + self.config.age)
    }

    /// Removes a packet.
    pub(super) fn free(&mut self, number: u64) -> Option<Left<K, O>> {
        let at = self.index(number)?;
        let slot = self.slots.get_mut(at)?.take()?;
        self.kept -= 1;
        self.settle();
        Some(Left { number, owner: slot.owner, kept: slot.kept })
    }

    /// Returns a packet for a replay, if its limits allow it.
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

    /// Returns the number of cached packets.
    pub(super) const fn len(&self) -> usize {
        self.kept
    }

    fn index(&self, number: u64) -> Option<usize> {
        number.checked_sub(self.first).map(|at| at as usize)
    }

    /// Removes empty slots at the front.
    fn settle(&mut self) {
        while let Some(None) = self.slots.front() {
            self.slots.pop_front();
            self.first += 1;
        }
    }
}

/// Index of the cached packets of a flow.
#[derive(Debug)]
pub(super) struct Kept {
    /// Packets in the order of transmission.
    packets: VecDeque<Entry>,
    /// End of the highest sequence number transmitted, if any.
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

    /// Returns the end of the highest sequence number transmitted.
    pub(super) const fn edge(&self) -> Option<Seq32> {
        self.edge
    }

    /// Returns the packet with the highest sequence number transmitted, if it is cached.
    pub(super) fn last(&self) -> Option<Range> {
        let last = self.packets.iter().rev().find(|entry| Some(entry.end) == self.edge)?;
        Some(Range { seq: last.seq, len: u16::try_from(last.end - last.seq).unwrap_or(u16::MAX) })
    }

    /// Records packet `number` of the ring. Returns the packet that it replaces: an earlier copy, or the
    /// oldest one beyond the limit.
    pub(super) fn push(&mut self, (seq, end): (Seq32, Seq32), number: u64, most: u16) -> Option<u64> {
        let is_new = self.edge.is_none_or(|edge| !seq.before(edge));
        let replaced = if is_new { None } else { self.remove(seq) };
        let evicted =
            (self.packets.len() >= usize::from(most.max(1))).then(|| self.packets.pop_front()).flatten();
        self.packets.push_back(Entry { seq, end, number });
        self.edge = Some(self.edge.map_or(end, |edge| edge.max(end)));
        replaced.or(evicted.map(|entry| entry.number))
    }

    /// Removes the packet that begins at `seq`.
    pub(super) fn remove(&mut self, seq: Seq32) -> Option<u64> {
        let at = self.packets.iter().position(|entry| entry.seq == seq)?;
        self.packets.remove(at).map(|entry| entry.number)
    }

    /// Handles the eviction of a packet from the ring.
    pub(super) fn evicted(&mut self, number: u64) {
        if self.packets.front().is_some_and(|entry| entry.number == number) {
            self.packets.pop_front();
            self.shrink();
        }
    }

    /// Removes acknowledged packets. Returns whether the ACK number is plausible; if not, nothing is removed.
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

    /// Removes everything.
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

    /// Releases memory after a large number of packets.
    fn shrink(&mut self) {
        const SMALL: usize = 32;
        if self.packets.is_empty() && self.packets.capacity() > SMALL {
            self.packets = VecDeque::new();
        }
    }
}
