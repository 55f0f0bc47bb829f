//! A ring of buckets, one for each of the next slots of time.
//!
//! The scheduler has two: 256 slots of 256 ns, and 512 blocks of 33 µs for what is due within 17 ms, from which each block
//! moves into the first ring in time. Everything later goes into a binary heap. The order is that of one queue.

use super::entry::Entry;
use hopline_core::Instant;

/// Entries due within as many slots as there are buckets. Those of one bucket belong to one slot, in no order. A slot is
/// two to the power of `WIDTH_LOG2` long, in ns.
#[derive(Clone, Debug)]
pub(super) struct BucketRing<E, const WIDTH_LOG2: u32> {
    buckets: Vec<Vec<Entry<E>>>,
    /// Bit n of all words together is set if bucket n holds anything.
    occupied: Vec<u64>,
    len: usize,
    /// Most entries of a bucket.
    max_bucket_len: usize,
}

/// Position of an entry in the ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct BucketPosition {
    bucket: u32,
    index: u32,
}

impl<E: Copy, const WIDTH_LOG2: u32> BucketRing<E, WIDTH_LOG2> {
    /// Creates a ring of `slots`, a multiple of 64 and a power of two.
    pub(super) fn new(slots: u64, crowd: usize) -> Self {
        let buckets = vec![Vec::new(); slots as usize];
        Self { occupied: vec![0; buckets.len() / 64], buckets, len: 0, max_bucket_len: crowd }
    }

    /// Puts in an entry that is due within the ring's slots. Gives it back if its slot is crowded.
    pub(super) fn push(&mut self, entry: Entry<E>) -> Result<BucketPosition, Entry<E>> {
        let bucket = self.bucket(entry.at);
        let entries = &mut self.buckets[bucket];
        if entries.len() >= self.max_bucket_len {
            return Err(entry);
        }
        entries.push(entry);
        self.occupied[bucket / 64] |= 1 << (bucket % 64);
        self.len += 1;
        Ok(BucketPosition { bucket: bucket as u32, index: entries.len() as u32 - 1 })
    }

    /// Returns the entry that is due first, if none is due before the slot of `start`.
    pub(super) fn first(&self, start: Instant) -> Option<BucketPosition> {
        if self.len == 0 {
            return None;
        }
        let bucket = self.first_occupied(self.bucket(start));
        let entries = &self.buckets[bucket];
        let mut index = 0;
        for (candidate, entry) in entries.iter().enumerate().skip(1) {
            if *entry > entries[index] {
                index = candidate;
            }
        }
        Some(BucketPosition { bucket: bucket as u32, index: index as u32 })
    }

    pub(super) fn at(&self, place: BucketPosition) -> &Entry<E> {
        &self.buckets[place.bucket as usize][place.index as usize]
    }

    pub(super) fn take(&mut self, place: BucketPosition) -> Entry<E> {
        let bucket = place.bucket as usize;
        let entry = self.buckets[bucket].swap_remove(place.index as usize);
        self.on_removed(bucket);
        entry
    }

    /// Takes any entry out of the slot of `at`.
    pub(super) fn take_any(&mut self, at: Instant) -> Option<Entry<E>> {
        let bucket = self.bucket(at);
        let entry = self.buckets[bucket].pop()?;
        self.on_removed(bucket);
        Some(entry)
    }

    fn on_removed(&mut self, bucket: usize) {
        self.len -= 1;
        if self.buckets[bucket].is_empty() {
            self.occupied[bucket / 64] &= !(1 << (bucket % 64));
        }
    }

    /// Returns the first bucket from `start` on, and round, that holds anything. There is one.
    fn first_occupied(&self, start: usize) -> usize {
        let mut word = start / 64;
        let mut bits = self.occupied[word] & (u64::MAX << (start % 64));
        while bits == 0 {
            word = (word + 1) % self.occupied.len();
            bits = self.occupied[word];
        }
        word * 64 + bits.trailing_zeros() as usize
    }

    fn bucket(&self, at: Instant) -> usize {
        (at.as_nanos() >> WIDTH_LOG2) as usize & (self.buckets.len() - 1)
    }
}
