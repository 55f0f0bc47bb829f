//! Cache of transmitted packets: one ring for all flows, oldest first, and an index for each flow.

use super::config::CacheConfig;
use hopline_core::{Instant, Seq32};
use hopline_wire::dproxy::Range;
use std::collections::VecDeque;

/// Cached packets of all flows. `O`: the owner of a packet.
#[derive(Debug)]
pub(super) struct PacketCache<K, O> {
    config: CacheConfig,
    /// Number of the first slot.
    first: u64,
    slots: VecDeque<Option<Slot<K, O>>>,
    /// Slots in use.
    occupied: usize,
}

#[derive(Debug)]
struct Slot<K, O> {
    packet: K,
    stored_at: Instant,
    owner: O,
    replays: u8,
    last_replay: Instant,
}

/// Result of a request for a packet.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Replay<K> {
    /// The packet, and the number of its replays so far.
    Packet(K, u8),
    /// The packet was replayed a moment ago.
    RecentlyReplayed,
    /// The packet was replayed too often.
    Exhausted,
}

/// Packet removed from the ring.
#[derive(Debug)]
pub(super) struct Evicted<K, O> {
    pub(super) number: u64,
    pub(super) owner: O,
    pub(super) packet: K,
}

impl<K: Clone, O> PacketCache<K, O> {
    pub(super) const fn new(config: CacheConfig) -> Self {
        Self { config, first: 0, slots: VecDeque::new(), occupied: 0 }
    }

    /// Stores a packet. Returns its number. The caller has made room before.
    pub(super) fn push(&mut self, now: Instant, owner: O, kept: K) -> u64 {
        self.occupied += 1;
        self.slots.push_back(Some(Slot {
            packet: kept,
            stored_at: now,
            owner,
            replays: 0,
            last_replay: now,
        }));
        self.first + self.slots.len() as u64 - 1
    }

    /// Returns the number of cached packets.
    pub(super) const fn occupied_slots(&self) -> usize {
        self.occupied
    }

    /// Returns whether the ring is full.
    pub(super) fn is_full(&self) -> bool {
        self.slots.len() >= self.config.packets.max(1) as usize
    }

    /// Removes the oldest packet.
    pub(super) fn pop(&mut self) -> Option<Evicted<K, O>> {
        self.remove(self.first)
    }

    /// Removes the oldest packet if it has expired.
    pub(super) fn pop_expired(&mut self, now: Instant) -> Option<Evicted<K, O>> {
        if self.next_expiry()? <= now { self.pop() } else { None }
    }

    /// Returns the number of the oldest packet, or of the next one if the ring is empty.
    pub(super) const fn first(&self) -> u64 {
        self.first
    }

    /// Returns a packet.
    pub(super) fn get(&self, number: u64) -> Option<&K> {
        self.slots.get(self.index(number)?)?.as_ref().map(|slot| &slot.packet)
    }

    /// Returns whether a packet was replayed.
    pub(super) fn is_replayed(&self, number: u64) -> bool {
        let slot = self.index(number).and_then(|at| self.slots.get(at)?.as_ref());
        slot.is_some_and(|slot| slot.replays > 0)
    }

    /// Returns the number of the next packet.
    pub(super) fn next(&self) -> u64 {
        self.first + self.slots.len() as u64
    }

    /// Takes back the newest packet and its number.
    pub(super) fn pop_newest(&mut self) -> Option<K> {
        if let Some(None) | None = self.slots.back() {
            return None;
        }
        let newest = self.slots.pop_back()??;
        self.occupied -= 1;
        Some(newest.packet)
    }

    /// Returns when the oldest packet expires.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        self.slots.front()?.as_ref().map(|oldest| oldest.stored_at + self.config.lifetime)
    }

    /// Removes a packet.
    pub(super) fn remove(&mut self, number: u64) -> Option<Evicted<K, O>> {
        let at = self.index(number)?;
        let slot = self.slots.get_mut(at)?.take()?;
        self.occupied -= 1;
        self.trim_front();
        Some(Evicted { number, owner: slot.owner, packet: slot.packet })
    }

    /// Returns a packet for a replay, if its limits allow it.
    pub(super) fn replay(&mut self, now: Instant, number: u64) -> Option<Replay<K>> {
        let CacheConfig { max_replays: replays, replay_interval, .. } = self.config;
        let at = self.index(number)?;
        let slot = self.slots.get_mut(at)?.as_mut()?;
        if slot.replays > 0 && now.since(slot.last_replay) < replay_interval {
            return Some(Replay::RecentlyReplayed);
        }
        if slot.replays >= replays {
            return Some(Replay::Exhausted);
        }
        (slot.replays, slot.last_replay) = (slot.replays + 1, now);
        Some(Replay::Packet(slot.packet.clone(), slot.replays))
    }

    /// Returns the number of cached packets.
    pub(super) const fn len(&self) -> usize {
        self.occupied
    }

    fn index(&self, number: u64) -> Option<usize> {
        number.checked_sub(self.first).map(|at| at as usize)
    }

    /// Removes empty slots at the front.
    fn trim_front(&mut self) {
        while let Some(None) = self.slots.front() {
            self.slots.pop_front();
            self.first += 1;
        }
    }
}

/// Index of the cached packets of a flow.
#[derive(Debug)]
pub(super) struct FlowIndex {
    /// Packets in the order of transmission.
    packets: VecDeque<IndexEntry>,
    /// End of the highest sequence number transmitted, if any.
    highest_sent: Option<Seq32>,
}

#[derive(Clone, Copy, Debug)]
struct IndexEntry {
    seq: Seq32,
    end: Seq32,
    number: u64,
}

impl FlowIndex {
    pub(super) const fn new() -> Self {
        Self { packets: VecDeque::new(), highest_sent: None }
    }

    /// Returns the end of the highest sequence number transmitted.
    pub(super) const fn highest_sent(&self) -> Option<Seq32> {
        self.highest_sent
    }

    /// Returns the packet with the highest sequence number transmitted, if it is cached.
    pub(super) fn last(&self) -> Option<Range> {
        let last = self.packets.iter().rev().find(|entry| Some(entry.end) == self.highest_sent)?;
        Some(Range { seq: last.seq, len: u16::try_from(last.end - last.seq).unwrap_or(u16::MAX) })
    }

    /// Records packet `number` of the ring. Returns the packet that it replaces: an earlier copy, or the
    /// oldest one beyond the limit.
    pub(super) fn push(&mut self, (seq, end): (Seq32, Seq32), number: u64, most: u16) -> Option<u64> {
        let is_new = self.highest_sent.is_none_or(|edge| !seq.before(edge));
        let replaced = if is_new { None } else { self.remove(seq) };
        let evicted =
            (self.packets.len() >= usize::from(most.max(1))).then(|| self.packets.pop_front()).flatten();
        self.packets.push_back(IndexEntry { seq, end, number });
        self.highest_sent = Some(self.highest_sent.map_or(end, |edge| edge.max(end)));
        replaced.or(evicted.map(|entry| entry.number))
    }

    /// Removes the packet that begins at `seq`.
    pub(super) fn remove(&mut self, seq: Seq32) -> Option<u64> {
        let at = self.packets.iter().position(|entry| entry.seq == seq)?;
        self.packets.remove(at).map(|entry| entry.number)
    }

    /// Handles the eviction of a packet from the ring.
    pub(super) fn on_evicted(&mut self, number: u64) {
        if self.packets.front().is_some_and(|entry| entry.number == number) {
            self.packets.pop_front();
            self.release_memory();
        }
    }

    /// Removes acknowledged packets. Returns whether the ACK number is plausible; if not, nothing is removed.
    pub(super) fn acknowledge<K: Clone, O>(&mut self, ack: Seq32, ring: &mut PacketCache<K, O>) -> bool {
        if self.highest_sent.is_none_or(|edge| ack.after(edge)) {
            return false;
        }
        while let Some(entry) = self.packets.front().filter(|entry| !entry.end.after(ack)) {
            ring.remove(entry.number);
            self.packets.pop_front();
        }
        self.release_memory();
        true
    }

    /// Removes everything.
    pub(super) fn clear<K: Clone, O>(&mut self, ring: &mut PacketCache<K, O>) {
        self.packets.drain(..).for_each(|entry| drop(ring.remove(entry.number)));
        *self = Self::new();
    }

    /// Returns whether a packet is kept that begins in a range, or covers its beginning.
    pub(super) fn contains(&self, range: Range) -> bool {
        self.packets.iter().any(|entry| entry.seq.before(range.end()) && entry.end.after(range.seq))
    }

    /// The packets that begin in a range, in sequence order; if there is none, the one that covers its beginning.
    pub(super) fn in_range(&self, range: Range) -> Vec<u64> {
        let begins = |entry: &&IndexEntry| !entry.seq.before(range.seq) && entry.seq.before(range.end());
        let mut found: Vec<_> = self.packets.iter().filter(begins).collect();
        found.sort_by_key(|entry| entry.seq - range.seq);
        if found.is_empty() {
            let covers = |entry: &&IndexEntry| entry.seq.before(range.seq) && entry.end.after(range.seq);
            found.extend(self.packets.iter().find(covers));
        }
        found.into_iter().map(|entry| entry.number).collect()
    }

    /// Releases memory after a large number of packets.
    fn release_memory(&mut self) {
        const SMALL: usize = 32;
        if self.packets.is_empty() && self.packets.capacity() > SMALL {
            self.packets = VecDeque::new();
        }
    }
}
