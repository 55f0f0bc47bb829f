//! Counters of dropped segments, by reason.

use core::marker::PhantomData;

/// Reason for dropping a segment: a field-less enum, numbered from 0.
pub trait Reason: Copy {
    /// Returns the position among the reasons.
    fn index(self) -> usize;
}

/// Counters of dropped segments for `N` reasons.
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
    /// Returns the number of segments dropped for `reason`.
    #[must_use]
    pub fn count(&self, reason: R) -> u64 {
        self.counts[reason.index()]
    }

    /// Returns the number of segments dropped for any reason.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub(crate) fn add(&mut self, reason: R) {
        self.counts[reason.index()] += 1;
    }
}
