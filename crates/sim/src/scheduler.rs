//! The event queue, ordered by time and then by insertion: a binary heap, and two rings of buckets for what is due soon.
//!
//! Most events are due within microseconds, as the first bit of a frame at the next receiver or the end of SIFS, or within
//! milliseconds, as the end of a frame or of a backoff. In a large network there are millions of them per simulated second,
//! and tens of thousands pending. They go into the rings, where insertion and removal cost the same however many there
//! are, and never meet the heap.

mod entry;
mod ring;

use entry::Entry;
use hopline_core::Instant;
use ring::{BucketPosition, BucketRing};
use std::collections::BinaryHeap;

/// Slots of the first ring are two to this power long, in ns: 256 ns.
const SLOT_LOG2: u32 = 8;
/// Slots of the second ring, blocks: 33 µs. The first ring holds this block and the next one.
const BLOCK_LOG2: u32 = 15;
/// Slots of the first ring: two blocks.
const SLOTS: u64 = 2 << (BLOCK_LOG2 - SLOT_LOG2);
/// Slots of the second ring, which spans 17 ms: longer than any frame, backoff and jitter together.
const BLOCKS: u64 = 512;
/// Most events of a slot. The first of them is sought by looking at each, so that many at one instant are the heap's.
const MAX_SLOT_EVENTS: usize = 64;
/// Most events of a block, of which the first is sought only if the next two blocks are empty.
const MAX_BLOCK_EVENTS: usize = 1024;

/// Pending events.
#[derive(Clone, Debug)]
pub(crate) struct Scheduler<E> {
    /// Events due in this block or the next, except those that found their slot crowded.
    slot_ring: BucketRing<E, SLOT_LOG2>,
    /// Events that were due later, but within [`BLOCKS`], when they were added.
    block_ring: BucketRing<E, BLOCK_LOG2>,
    heap: BinaryHeap<Entry<E>>,
    inserted: u64,
    /// Time of the last event that was taken out.
    start: Instant,
    next: NextEvent,
}

/// The next event: when it is due, and where it is.
#[derive(Clone, Copy, Debug)]
struct NextEvent {
    at: Instant,
    number: u64,
    part: EventLocation,
}

/// Part of the scheduler in which an event waits.
#[derive(Clone, Copy, Debug)]
enum EventLocation {
    Slot(BucketPosition),
    Block(BucketPosition),
    /// On top of the heap, or nowhere.
    Heap,
}

impl NextEvent {
    const NONE: Self = Self { at: Instant::FAR_FUTURE, number: u64::MAX, part: EventLocation::Heap };

    const fn of<E>(entry: &Entry<E>, part: EventLocation) -> Self {
        Self { at: entry.at, number: entry.number, part }
    }
}

impl<E: Copy> Scheduler<E> {
    pub(crate) fn new() -> Self {
        Self {
            slot_ring: BucketRing::new(SLOTS, MAX_SLOT_EVENTS),
            block_ring: BucketRing::new(BLOCKS, MAX_BLOCK_EVENTS),
            heap: BinaryHeap::with_capacity(1024),
            inserted: 0,
            start: Instant::ZERO,
            next: NextEvent::NONE,
        }
    }

    /// Adds `event` at `at`, behind every event already there for that instant. `at` is not before the last event
    /// taken out.
    pub(crate) fn schedule(&mut self, at: Instant, event: E) {
        let number = self.reserve();
        self.schedule_as(number, at, event);
    }

    /// Adds `event` at `at`, behind every other event of that instant, those that are added later too. There
    /// is one such event at a time.
    pub(crate) fn schedule_last(&mut self, at: Instant, event: E) {
        self.schedule_as(u64::MAX, at, event);
    }

    /// Returns the place that an event added now would have among others for the same instant.
    pub(crate) fn reserve(&mut self) -> u64 {
        self.inserted += 1;
        self.inserted - 1
    }

    /// Adds `event` at `at`, in the place reserved as `number` among the events for that instant.
    pub(crate) fn schedule_as(&mut self, number: u64, at: Instant, event: E) {
        debug_assert!(at >= self.start, "an event in the past");
        let entry = Entry { at, number, event };
        let part = match block(at) - block(self.start) {
            0 | 1 => self.add_to_slot_ring(entry),
            2..BLOCKS => {
                self.block_ring.push(entry).map_or_else(|entry| self.add_to_heap(entry), EventLocation::Block)
            }
            _ => self.add_to_heap(entry),
        };
        if (at, number) < (self.next.at, self.next.number) {
            self.next = NextEvent { at, number, part };
        }
    }

    /// Returns the time of the next event; [`Instant::FAR_FUTURE`] if there is none.
    pub(crate) const fn next_at(&self) -> Instant {
        self.next.at
    }

    /// Takes the next event out.
    // Where a program has one event loop, a linker that sees all of it would put this, and the loop, into
    // whatever calls the loop. There they run out of registers: a run took 28 % longer.
    #[inline(never)]
    pub(crate) fn pop(&mut self) -> Option<(Instant, E)> {
        let entry = match self.next.part {
            EventLocation::Slot(place) => self.slot_ring.take(place),
            EventLocation::Block(place) => self.block_ring.take(place),
            EventLocation::Heap => self.heap.pop()?,
        };
        let before = core::mem::replace(&mut self.start, entry.at);
        if block(before) != block(entry.at) {
            self.refill_slot_ring();
        }
        self.next = self.find_next();
        Some((entry.at, entry.event))
    }

    /// Moves the block of the present time and the next one to the first ring. Whatever came before has been
    /// taken out.
    fn refill_slot_ring(&mut self) {
        let next = Instant::from_nanos(self.start.as_nanos().saturating_add(1 << BLOCK_LOG2));
        for block in [self.start, next] {
            while let Some(entry) = self.block_ring.take_any(block) {
                self.add_to_slot_ring(entry);
            }
        }
    }

    /// A crowded slot, where the first would be sought among many, sends what comes to the heap.
    fn add_to_slot_ring(&mut self, entry: Entry<E>) -> EventLocation {
        self.slot_ring.push(entry).map_or_else(|entry| self.add_to_heap(entry), EventLocation::Slot)
    }

    fn add_to_heap(&mut self, entry: Entry<E>) -> EventLocation {
        self.heap.push(entry);
        EventLocation::Heap
    }

    /// The rings follow each other in time; the heap may hold anything.
    fn find_next(&self) -> NextEvent {
        let in_rings = match self.slot_ring.first(self.start) {
            Some(place) => Some(NextEvent::of(self.slot_ring.at(place), EventLocation::Slot(place))),
            None => self
                .block_ring
                .first(self.start)
                .map(|place| NextEvent::of(self.block_ring.at(place), EventLocation::Block(place))),
        };
        match (in_rings, self.heap.peek()) {
            (Some(next), Some(top)) if (next.at, next.number) > (top.at, top.number) => {
                NextEvent::of(top, EventLocation::Heap)
            }
            (Some(next), _) => next,
            (None, Some(top)) => NextEvent::of(top, EventLocation::Heap),
            (None, None) => NextEvent::NONE,
        }
    }
}

const fn block(at: Instant) -> u64 {
    at.as_nanos() >> BLOCK_LOG2
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopline_core::{Duration, Purpose, RandomStream};
    use std::collections::BTreeMap;

    #[test]
    fn events_come_by_time_and_then_by_insertion() {
        let mut s = Scheduler::new();
        for (at, name) in [(9, 'f'), (5, 'a'), (3, 'b'), (5, 'c'), (3, 'd'), (4, 'e')] {
            s.schedule(Instant::from_nanos(at), name);
        }
        let order: String = core::iter::from_fn(|| s.pop()).map(|(_, name)| name).collect();
        assert_eq!(order, "bdeacf");
        assert_eq!(s.next_at(), Instant::FAR_FUTURE);
    }

    #[test]
    fn a_reserved_position_is_kept() {
        for far in [3, 3_000_000] {
            let (mut s, at) = (Scheduler::new(), Instant::from_nanos(far));
            s.schedule(at, 'a');
            let place = s.reserve();
            s.schedule(at, 'c');
            assert_eq!(s.pop(), Some((at, 'a')));
            s.schedule_as(place, at, 'b');
            let order: String = core::iter::from_fn(|| s.pop()).map(|(_, name)| name).collect();
            assert_eq!(order, "bc");
        }
    }

    #[test]
    fn many_events_at_one_instant_keep_their_order() {
        for far in [3, 300_000, 30_000_000] {
            let (mut s, at) = (Scheduler::new(), Instant::from_nanos(far));
            let all = 2 * MAX_BLOCK_EVENTS as u32;
            (0..all).for_each(|number| s.schedule(at, number));
            for number in 0..all {
                assert_eq!(s.pop(), Some((at, number)));
            }
            assert_eq!(s.pop(), None);
        }
    }

    #[test]
    fn near_and_far_events_interleave_as_in_one_ordered_map() {
        let mut stream = RandomStream::global(1, 1, Purpose::Traffic);
        let (mut s, mut model) = (Scheduler::new(), BTreeMap::new());
        let mut now = Instant::ZERO;
        for number in 0..50_000u32 {
            // Some due at once, some within either ring, some just beyond, some far away.
            let scales = [1, 200, 20_000, 200_000, 5_000_000, 50_000_000];
            let limit = Duration::from_nanos(scales[stream.below(6) as usize]);
            let at = now + stream.duration_below(limit);
            s.schedule(at, number);
            model.insert((at, number), ());
            assert_eq!(s.next_at(), model.first_key_value().map_or(Instant::FAR_FUTURE, |((at, _), ())| *at));
            if stream.bernoulli(0.55) {
                let expected = model.pop_first().map(|((at, number), ())| (at, number));
                assert_eq!(s.pop(), expected);
                now = expected.map_or(now, |(at, _)| at);
            }
        }
        while let Some(((at, number), ())) = model.pop_first() {
            assert_eq!(s.pop(), Some((at, number)));
        }
        assert_eq!(s.pop(), None);
    }
}
