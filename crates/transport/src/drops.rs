//! Counters of dropped segments, by reason.

use core::marker::PhantomData;

/// Why a segment was dropped: a field-less enum, numbered from 0.
pub trait Reason: Copy {
    /// Position among the reasons.
    fn index(self) -> usize;
}

/// Dropped segments by one of `N` reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drops<R, const N: usize> {
    counts: [u64; N],
    reason: PhantomData<R>,
}

impl<R, const N: usize> Default for Drops<R, N> {
    fn default() -> Self {
        Self { counts: [0; N], reason: PhantomData }
    }
}

impl<R: Reason, const N: usize> Drops<R, N> {
    /// Segments dropped for `reason`.
    #[must_use]
    pub fn count(&self, reason: R) -> u64 {
        self.counts[reason.index()]
    }

    /// Segments dropped for any reason.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub(crate) fn add(&mut self, reason: R) {
        self.counts[reason.index()] += 1;
    }
}
