//! The event queue, ordered by time and then by insertion: a binary heap, and a ring of buckets for what is due soon.
//!
//! Most events are due within microseconds: the first bit of a frame at the next receiver, the end of SIFS. In a large
//! network there are millions of them per simulated second. They go into the ring, where insertion and removal cost the
//! same however many events are pending, and never meet the heap.

use core::cmp::Ordering;
use hopline_core::Instant;
use std::collections::BinaryHeap;

/// Buckets of the ring: one for each bit of a word.
const BUCKETS: u64 = 128;
/// Width of a bucket is two to this power, in ns: 256 ns, so that the ring spans 32 µs: more than SIFS and
/// ns-2's link-layer delay.
const WIDTH_LOG2: u32 = 8;

/// Pending events.
#[derive(Clone, Debug)]
pub(crate) struct Scheduler<E> {
    ring: Ring<E>,
    heap: BinaryHeap<Entry<E>>,
    inserted: u64,
    next: Next,
}

/// The next event: when it is due, and where it is.
#[derive(Clone, Copy, Debug)]
struct Next {
    at: Instant,
    number: u64,
    /// `None`: on top of the heap, or nowhere.
    place: Option<Place>,
}

impl Next {
    const NONE: Self = Self { at: Instant::FAR_FUTURE, number: u64::MAX, place: None };

    const fn of<E>(entry: &Entry<E>, place: Option<Place>) -> Self {
        Self { at: entry.at, number: entry.number, place }
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    at: Instant,
    number: u64,
    event: E,
}

impl<E: Copy> Scheduler<E> {
    pub(crate) fn new() -> Self {
        Self { ring: Ring::new(), heap: BinaryHeap::with_capacity(1024), inserted: 0, next: Next::NONE }
    }

    /// Adds `event` at `at`, behind every event already there for that instant. `at` is not before the last event
    /// taken out.
    pub(crate) fn schedule(&mut self, at: Instant, event: E) {
        let number = self.reserve();
        self.schedule_as(number, at, event);
    }

    /// Adds `event` at `at`, behind every other event of that instant, those that are added later too. There is one such event
    /// at a time.
    pub(crate) fn schedule_last(&mut self, at: Instant, event: E) {
        self.schedule_as(u64::MAX, at, event);
    }

    /// The place that an event added now would have among others for the same instant.
    pub(crate) fn reserve(&mut self) -> u64 {
        self.inserted += 1;
        self.inserted - 1
    }

    /// Adds `event` at `at`, in the place reserved as `number` among the events for that instant.
    pub(crate) fn schedule_as(&mut self, number: u64, at: Instant, event: E) {
        let entry = Entry { at, number, event };
        let place = if self.ring.spans(at) {
            Some(self.ring.push(entry))
        } else {
            self.heap.push(entry);
            None
        };
        if (at, number) < (self.next.at, self.next.number) {
            self.next = Next { at, number, place };
        }
    }

    /// When the next event is due; [`Instant::FAR_FUTURE`] if there is none.
    pub(crate) const fn next_at(&self) -> Instant {
        self.next.at
    }

    /// Takes the next event out.
    pub(crate) fn pop(&mut self) -> Option<(Instant, E)> {
        let entry = match self.next.place {
            Some(place) => self.ring.take(place),
            None => self.heap.pop()?,
        };
        self.ring.start = slot(entry.at);
        self.next = self.find_next();
        Some((entry.at, entry.event))
    }

    fn find_next(&self) -> Next {
        match (self.ring.first(), self.heap.peek()) {
            (Some(place), Some(top)) if *top > *self.ring.at(place) => Next::of(top, None),
            (Some(place), _) => Next::of(self.ring.at(place), Some(place)),
            (None, Some(top)) => Next::of(top, None),
            (None, None) => Next::NONE,
        }
    }
}

/// What is due within [`BUCKETS`] slots from `start` on. The entries of one bucket belong to one slot, in no order.
#[derive(Clone, Debug)]
struct Ring<E> {
    buckets: Vec<Vec<Entry<E>>>,
    /// Bit n is set if bucket n holds anything.
    occupied: u128,
    start: u64,
}

/// Where an entry stands in the ring.
#[derive(Clone, Copy, Debug)]
struct Place {
    bucket: usize,
    index: usize,
}

impl<E: Copy> Ring<E> {
    fn new() -> Self {
        Self { buckets: vec![Vec::new(); BUCKETS as usize], occupied: 0, start: 0 }
    }

    fn spans(&self, at: Instant) -> bool {
        debug_assert!(slot(at) >= self.start, "an event in the past");
        slot(at) - self.start < BUCKETS
    }

    fn push(&mut self, entry: Entry<E>) -> Place {
        let bucket = (slot(entry.at) % BUCKETS) as usize;
        self.occupied |= 1 << bucket;
        self.buckets[bucket].push(entry);
        Place { bucket, index: self.buckets[bucket].len() - 1 }
    }

    /// The entry that is due first.
    fn first(&self) -> Option<Place> {
        if self.occupied == 0 {
            return None;
        }
        let start = self.start % BUCKETS;
        let ahead = u64::from(self.occupied.rotate_right(start as u32).trailing_zeros());
        let bucket = ((start + ahead) % BUCKETS) as usize;
        let entries = &self.buckets[bucket];
        let mut index = 0;
        for (candidate, entry) in entries.iter().enumerate().skip(1) {
            if *entry > entries[index] {
                index = candidate;
            }
        }
        Some(Place { bucket, index })
    }

    fn at(&self, place: Place) -> &Entry<E> {
        &self.buckets[place.bucket][place.index]
    }

    fn take(&mut self, place: Place) -> Entry<E> {
        let bucket = &mut self.buckets[place.bucket];
        let entry = bucket.swap_remove(place.index);
        if bucket.is_empty() {
            self.occupied &= !(1 << place.bucket);
        }
        entry
    }
}

const fn slot(at: Instant) -> u64 {
    at.as_nanos() >> WIDTH_LOG2
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    /// The heap keeps its greatest on top, so the earliest is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopline_core::{Duration, Purpose, Stream};
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
    fn a_reserved_place_is_kept_however_late_it_is_taken() {
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
    fn near_and_far_events_interleave_as_in_one_ordered_map() {
        let mut stream = Stream::global(1, 1, Purpose::Traffic);
        let (mut s, mut model) = (Scheduler::new(), BTreeMap::new());
        let mut now = Instant::ZERO;
        for number in 0..50_000u32 {
            // Some due at once, some within the ring, some just beyond, some far away.
            let scales = [1, 200, 20_000, 5_000_000];
            let limit = Duration::from_nanos(scales[stream.below(4) as usize]);
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
