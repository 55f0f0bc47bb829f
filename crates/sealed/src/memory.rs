//! Memory that received data of all connections take.
//!
//! A receiver must keep what arrives behind a hole, and what its user has not read. A peer that leaves a hole
//! on purpose fills its window at no cost, and many such peers fill many windows. As long as all connections
//! together hold less than the budget, each may fill its window: most never hold much. Beyond it each may
//! hold its share of half the budget, so that all together hold no more than one and a half times as much;
//! and 16 KiB in any case, which is more than that where connections are many.

/// Least share of a connection, bytes: ten full packets.
const MIN_SHARE: u64 = 16 << 10;

/// Memory of received data, in all.
#[derive(Debug)]
pub(crate) struct ReceiveMemory {
    budget: u64,
    used: u64,
}

impl ReceiveMemory {
    pub(crate) const fn new(budget: u64) -> Self {
        Self { budget, used: 0 }
    }

    /// Returns the number of bytes held.
    pub(crate) const fn used(&self) -> u64 {
        self.used
    }

    /// Records that a connection that held `noted` bytes holds `now` bytes.
    pub(crate) const fn update(&mut self, noted: &mut u64, now: u64) {
        self.used = self.used - *noted + now;
        *noted = now;
    }

    /// Returns the bytes that each of `connections` may hold now.
    pub(crate) fn share(&self, connections: usize) -> u64 {
        if self.used < self.budget {
            u64::MAX
        } else {
            (self.budget / 2 / connections.max(1) as u64).max(MIN_SHARE)
        }
    }
}
