//! Disk quota of a directory.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Minimum cost of a file or directory, in bytes: a block of common file systems, as an allowance for the inode.
const BLOCK: u64 = 4096;
/// Cost of a directory.
pub(super) const DIRECTORY: u64 = BLOCK;

/// Returns the cost of a file of `bytes`.
pub(super) const fn cost(bytes: u64) -> u64 {
    if bytes < BLOCK { BLOCK } else { bytes }
}

/// Bytes left, over all conversations.
#[derive(Debug)]
pub(super) struct Quota(AtomicU64);

impl Quota {
    pub(super) fn new(bytes: u64) -> Self {
        Self(AtomicU64::new(bytes))
    }

    pub(super) fn left(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Takes `bytes`, if that many are left. Returns whether it did.
    pub(super) fn try_take(&self, bytes: u64) -> bool {
        self.0.try_update(Relaxed, Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }

    pub(super) fn take_up_to(&self, bytes: u64) {
        self.0.update(Relaxed, Relaxed, |left| left.saturating_sub(bytes));
    }

    pub(super) fn refund(&self, bytes: u64) {
        self.0.update(Relaxed, Relaxed, |left| left.saturating_add(bytes));
    }
}
