//! What is kept of packets that have gone out: one ring for all flows, oldest first, and for each flow where its packets are.

use super::config::Caching;
use crate::table::Place;
use hopline_core::{Instant, Seq32};
use hopline_wire::dproxy::Range;
use std::collections::VecDeque;

/// The packets of all flows.
#[derive(Debug)]
pub(super) struct Ring<K> {
    config: Caching,
    /// The number of the first slot.
    first: u64,
    slots: VecDeque<Option<Slot<K>>>,
    /// Slots in use.
    kept: usize,
}

#[derive(Debug)]
struct Slot<K> {
    kept: K,
    since: Instant,
    /// Whose it is.
    place: Place,
    replays: u8,
    replayed: Instant,
}

/// What comes of a wish for a packet.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Replay<K> {
    /// Here it is.
    Packet(K),
    /// It was sent again just now.
    UnderWay,
    /// It was sent again too often.
    Exhausted,
}

/// A packet that left the ring because others need its room, or because it is too old: its number, and whose it is.
pub(super) type Evicted = (u64, Place);

impl<K: Clone> Ring<K> {
    pub(super) const fn new(config: Caching) -> Self {
        Self { config, first: 0, slots: VecDeque::new(), kept: 0 }
    }

    /// Keeps a packet. Its number. Room is made before, by [`Ring::pop`].
    pub(super) fn push(&mut self, now: Instant, place: Place, kept: K) -> u64 {
        self.kept += 1;
        self.slots.push_back(Some(Slot { kept, since: now, place, replays: 0, replayed: now }));
        self.first + self.slots.len() as u64 - 1
    }

    /// Whether one more packet would be one too many.
    pub(super) fn is_full(&self) -> bool {
        self.slots.len() >= self.config.packets.max(1) as usize
    }

    /// Lets go of the oldest.
    pub(super) fn pop(&mut self) -> Option<Evicted> {
        let place = self.slots.front()?.as_ref()?.place;
        let number = self.first;
        self.free(number);
        Some((number, place))
    }

    /// When the oldest is too old.
    pub(super) fn next_end(&self) -> Option<Instant> {
        self.slots.front()?.as_ref().map(|oldest| oldest.since + self.config.age)
    }

    /// Lets go of a packet.
    pub(super) fn free(&mut self, number: u64) {
        if let Some(slot) = self.index(number).and_then(|at| self.slots.get_mut(at)) {
            self.kept -= usize::from(slot.take().is_some());
        }
        self.settle();
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
        Some(Replay::Packet(slot.kept.clone()))
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
    pub(super) fn acknowledge<K: Clone>(&mut self, ack: Seq32, ring: &mut Ring<K>) -> bool {
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
    pub(super) fn clear<K: Clone>(&mut self, ring: &mut Ring<K>) {
        self.packets.drain(..).for_each(|entry| ring.free(entry.number));
        *self = Self::new();
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
