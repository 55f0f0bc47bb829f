//! End times of local repairs.

use hopline_core::Instant;
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// End times of repairs. Each packet that starts or joins a repair sets a timer of its own, which nothing stops
/// ([`RepairEnd::Ns2AbsoluteTimer`](super::config::RepairEnd::Ns2AbsoluteTimer)).
#[derive(Clone, Debug)]
pub(super) struct RepairTimers {
    /// Sorted by time.
    due: VecDeque<(Instant, Ipv4Addr)>,
    limit: usize,
}

impl RepairTimers {
    pub(super) fn new(limit: u32) -> Self {
        Self { due: VecDeque::new(), limit: limit as usize }
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.due.front().map(|(at, _)| *at)
    }

    /// Sets a timer. Above the limit, it replaces the last one.
    pub(super) fn add(&mut self, at: Instant, destination: Ipv4Addr) {
        if self.due.len() >= self.limit {
            self.due.pop_back();
        }
        let position = self.due.partition_point(|(other, _)| *other <= at);
        self.due.insert(position, (at, destination));
    }

    pub(super) fn take_expired(&mut self, now: Instant) -> Option<Ipv4Addr> {
        self.due.pop_front_if(|(at, _)| *at <= now).map(|(_, destination)| destination)
    }
}
