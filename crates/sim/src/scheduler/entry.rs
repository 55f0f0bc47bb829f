//! Entry of the event queue, ordered by time and then by insertion.

use core::cmp::Ordering;
use hopline_core::Instant;

#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<E> {
    pub(super) at: Instant,
    pub(super) number: u64,
    pub(super) event: E,
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
