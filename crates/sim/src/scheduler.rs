//! The event queue: one binary heap, ordered by time and then by insertion, and a slot in front of it.
//!
//! Most events are due before anything that is already pending: the first bit of a frame at its receivers, the end of
//! SIFS. They go into the slot and come out of it, and never meet the heap.

use core::cmp::Ordering;
use hopline_core::Instant;
use std::collections::BinaryHeap;

/// Pending events.
#[derive(Clone, Debug)]
pub(crate) struct Scheduler<E> {
    /// Due before everything in the heap.
    front: Option<Entry<E>>,
    heap: BinaryHeap<Entry<E>>,
    inserted: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    at: Instant,
    number: u64,
    event: E,
}

impl<E: Copy> Scheduler<E> {
    pub(crate) fn new() -> Self {
        Self { front: None, heap: BinaryHeap::with_capacity(1024), inserted: 0 }
    }

    /// Adds `event` at `at`, behind every event already there for that instant.
    pub(crate) fn schedule(&mut self, at: Instant, event: E) {
        let entry = Entry { at, number: self.inserted, event };
        self.inserted += 1;
        // A new entry has the highest number, so it goes first only if it is due strictly earlier.
        if at < self.next_at() {
            if let Some(second) = self.front.replace(entry) {
                self.heap.push(second);
            }
        } else {
            self.heap.push(entry);
        }
    }

    /// When the next event is due; [`Instant::FAR_FUTURE`] if there is none.
    pub(crate) fn next_at(&self) -> Instant {
        match &self.front {
            Some(entry) => entry.at,
            None => self.heap.peek().map_or(Instant::FAR_FUTURE, |entry| entry.at),
        }
    }

    /// Takes the next event out.
    pub(crate) fn pop(&mut self) -> Option<(Instant, E)> {
        self.front.take().or_else(|| self.heap.pop()).map(|entry| (entry.at, entry.event))
    }
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

    #[test]
    fn events_come_by_time_and_then_by_insertion() {
        let mut s = Scheduler::new();
        s.schedule(Instant::from_nanos(9), 'f');
        for (at, name) in [(5, 'a'), (3, 'b'), (5, 'c'), (3, 'd'), (4, 'e')] {
            s.schedule(Instant::from_nanos(at), name);
        }
        let order: String = core::iter::from_fn(|| s.pop()).map(|(_, name)| name).collect();
        assert_eq!(order, "bdeacf");
        assert_eq!(s.next_at(), Instant::FAR_FUTURE);
    }
}
