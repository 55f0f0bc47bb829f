//! First messages from proven addresses that the rate limit defers.
//!
//! An initiator sends again after 0.4 s, then 0.8 s. Without a queue, a party that opens connections one
//! after the other behind the same address takes each part of the limit as it comes free, and an initiator
//! that asks less often loses every time.

use crate::cookie::Digest;
use core::net::SocketAddr;
use hopline_core::pre_auth::{AddressClass, PreAuthLimit};
use hopline_core::{Duration, Instant};
use std::collections::BTreeMap;

/// First messages that wait at most. Each is 1,200 bytes.
const MAX_DEFERRED: usize = 32;
/// The longest wait: an initiator sends its first message again after as long.
const MAX_WAIT: Duration = Duration::from_millis(400);

/// A first message that waits.
#[derive(Debug)]
pub(crate) struct DeferredMessage<M> {
    pub(crate) message: M,
    pub(crate) from: SocketAddr,
    pub(crate) digest: Digest,
    arrived_at: Instant,
}

/// First messages that wait, the oldest first. When there is no room, one of the heaviest prefix gives way.
#[derive(Debug)]
pub(crate) struct DeferredMessages<M> {
    all: BTreeMap<u64, DeferredMessage<M>>,
    limit: PreAuthLimit,
}

impl<M> DeferredMessages<M> {
    pub(crate) fn new() -> Self {
        Self { all: BTreeMap::new(), limit: PreAuthLimit::new(MAX_DEFERRED) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns whether a message from `address` waits.
    pub(crate) fn contains(&self, address: SocketAddr) -> bool {
        self.all.values().any(|waits| waits.from == address)
    }

    /// Adds a message, unless the same one waits already. Returns whether another one gave way to it.
    pub(crate) fn add(&mut self, now: Instant, from: SocketAddr, digest: Digest, message: M) -> bool {
        if self.all.values().any(|waits| waits.digest == digest) {
            return false;
        }
        let gone = self.limit.is_full().then(|| self.limit.eviction_candidate()).flatten();
        let evicted = gone.is_some_and(|gone| self.remove(gone).is_some());
        let number = self.limit.insert(from.ip(), AddressClass::Unknown);
        self.all.insert(number, DeferredMessage { message, from, digest, arrived_at: now });
        evicted
    }

    /// Removes the oldest message that `is_due`.
    pub(crate) fn pop(
        &mut self,
        mut is_due: impl FnMut(&DeferredMessage<M>) -> bool,
    ) -> Option<DeferredMessage<M>> {
        let number = self.all.iter().find(|(_, waits)| is_due(waits)).map(|(&number, _)| number)?;
        self.remove(number)
    }

    /// Removes messages that have waited too long. Returns their number.
    pub(crate) fn expire(&mut self, now: Instant) -> usize {
        let before = self.all.len();
        while self.next_expiry().is_some_and(|expiry| expiry <= now) {
            let oldest = *self.all.keys().next().expect("one has expired");
            self.remove(oldest);
        }
        before - self.all.len()
    }

    /// Returns the time at which the oldest message has waited too long.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.all.values().next().map(|waits| waits.arrived_at + MAX_WAIT)
    }

    fn remove(&mut self, number: u64) -> Option<DeferredMessage<M>> {
        self.limit.remove(number);
        self.all.remove(&number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_secs(5);

    fn host(network: u8, host: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, network, host], 1000))
    }

    #[test]
    fn a_flood_of_one_host_displaces_only_its_own_messages() {
        let mut waiting = DeferredMessages::new();
        assert!(!waiting.add(NOW, host(9, 1), 1000, ()));
        let evicted = (0..100).filter(|&number| waiting.add(NOW, host(1, 1), number, ())).count();
        assert_eq!(evicted, 100 - (MAX_DEFERRED - 1));
        assert_eq!(waiting.pop(|_| true).map(|waits| waits.digest), Some(1000));
    }

    #[test]
    fn a_repeated_message_waits_once_and_no_longer_than_its_initiator() {
        let mut waiting = DeferredMessages::new();
        waiting.add(NOW, host(1, 1), 7, "first");
        waiting.add(NOW + MAX_WAIT / 2, host(1, 1), 7, "again");
        assert_eq!(waiting.next_expiry(), Some(NOW + MAX_WAIT));
        assert_eq!((waiting.expire(NOW + MAX_WAIT), waiting.is_empty()), (1, true));
        assert_eq!(waiting.next_expiry(), None);
    }

    #[test]
    fn a_message_that_is_not_due_does_not_block_the_next() {
        let mut waiting = DeferredMessages::new();
        waiting.add(NOW, host(1, 1), 1, ());
        waiting.add(NOW, host(2, 1), 2, ());
        assert_eq!(waiting.pop(|waits| waits.from == host(2, 1)).map(|waits| waits.digest), Some(2));
        assert_eq!(waiting.pop(|waits| waits.from == host(2, 1)).map(|waits| waits.digest), None);
        assert!(!waiting.is_empty());
    }
}
