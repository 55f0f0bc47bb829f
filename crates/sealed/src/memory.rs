//! Memory for received data of all connections.
//!
//! A receiver must store data that arrives out of order, and data that its user has not read. An attacker that leaves a gap
//! on purpose can fill the receive window of its connection, and do this on many connections.
//!
//! - While all connections together hold less than the budget, each may fill its window. Most connections never hold much.
//! - Otherwise each connection may hold its share: half of the budget divided by the number of connections. So all together
//!   hold at most one and a half times the budget.
//! - The share is at least 16 KiB. With very many connections the total may therefore be larger.

/// Minimum share of a connection, bytes: about ten full packets.
const MIN_SHARE: u64 = 16 << 10;

/// Memory for received data of all connections, bytes.
#[derive(Debug)]
pub(crate) struct ReceiveMemory {
    budget: u64,
    used: u64,
}

impl ReceiveMemory {
    pub(crate) const fn new(budget: u64) -> Self {
        Self { budget, used: 0 }
    }

    /// Returns the number of bytes in use.
    pub(crate) const fn used(&self) -> u64 {
        self.used
    }

    /// Records that a connection holds `now` bytes. `noted`: the number of its last record, which is updated.
    pub(crate) const fn update(&mut self, noted: &mut u64, now: u64) {
        self.used = self.used - *noted + now;
        *noted = now;
    }

    /// Returns the number of bytes that each of `connections` connections may hold now.
    pub(crate) fn share(&self, connections: usize) -> u64 {
        if self.used < self.budget {
            u64::MAX
        } else {
            (self.budget / 2 / connections.max(1) as u64).max(MIN_SHARE)
        }
    }
}
