//! Replies from the cache that wait.

use super::types::Transmit;
use hopline_core::Instant;
use std::net::Ipv4Addr;

/// Delayed replies from the cache, which better overheard routes cancel (§8.2.5).
#[derive(Clone, Debug)]
pub(super) struct DelayedReplies<M> {
    pub(super) waiting: Vec<DelayedReply<M>>,
    pub(super) limit: usize,
}

#[derive(Clone, Debug)]
pub(super) struct DelayedReply<M> {
    pub(super) due: Instant,
    pub(super) initiator: Ipv4Addr,
    pub(super) target: Ipv4Addr,
    /// Length of the route.
    pub(super) hops: usize,
    pub(super) transmit: Transmit<M>,
}

impl<M> DelayedReplies<M> {
    pub(super) fn new(limit: u32) -> Self {
        Self { waiting: Vec::new(), limit: limit as usize }
    }

    pub(super) fn next_departure(&self) -> Option<Instant> {
        self.waiting.iter().map(|reply| reply.due).min()
    }

    /// Removes and returns the next reply that is due.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Transmit<M>> {
        let (at, first) = self.waiting.iter().enumerate().min_by_key(|(_, reply)| reply.due)?;
        (first.due <= now).then(|| self.waiting.remove(at).transmit)
    }
}
