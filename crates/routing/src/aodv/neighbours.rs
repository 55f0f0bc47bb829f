//! State kept for each neighbour: time last heard, blacklist of unidirectional links, RREP-ACKs that are outstanding.

use hopline_core::{Duration, Instant};
use std::net::Ipv4Addr;

/// Neighbours that sent HELLO messages, and the time each was last heard (RFC 3561 §6.9).
#[derive(Clone, Debug)]
pub(super) struct NeighbourLiveness {
    list: Vec<(Ipv4Addr, Instant)>,
    limit: usize,
    /// Earliest expiry of a neighbour, or an earlier time. A wake-up that turns out to be too early computes it again.
    deadline: Option<Instant>,
}

impl NeighbourLiveness {
    pub(super) fn new(limit: u32) -> Self {
        Self { list: Vec::new(), limit: limit as usize, deadline: None }
    }

    /// Records that `neighbour` was heard, if it is watched.
    pub(super) fn record_heard(&mut self, now: Instant, neighbour: Ipv4Addr) {
        if let Some((_, last)) = self.list.iter_mut().find(|(other, _)| *other == neighbour) {
            *last = now;
        }
    }

    /// Watches `neighbour` from now on.
    pub(super) fn start(&mut self, now: Instant, neighbour: Ipv4Addr, patience: Duration) {
        if self.list.iter().any(|(other, _)| *other == neighbour) || self.list.len() >= self.limit {
            return;
        }
        self.list.push((neighbour, now));
        self.deadline = Some(self.deadline.map_or(now + patience, |deadline| deadline.min(now + patience)));
    }

    pub(super) fn remove(&mut self, neighbour: Ipv4Addr) {
        self.list.retain(|(other, _)| *other != neighbour);
    }

    /// Removes a neighbour that has been silent for longer than `patience`.
    pub(super) fn take_lost(&mut self, now: Instant, patience: Duration) -> Option<Ipv4Addr> {
        let silent = self.list.iter().position(|(_, last)| *last + patience < now);
        let neighbour = silent.map(|at| self.list.remove(at).0);
        if neighbour.is_none() {
            // §6.9 requires a silence longer than the permitted one; wake just after it.
            let earliest = self.list.iter().map(|(_, last)| *last + patience).min();
            self.deadline = earliest.map(|at| at + Duration::from_nanos(1));
        }
        neighbour
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadline
    }
}

/// Neighbours from which requests are ignored, because replies do not reach them (§6.8).
#[derive(Clone, Debug)]
pub(super) struct Blacklist {
    list: Vec<(Ipv4Addr, Instant)>,
    limit: usize,
}

impl Blacklist {
    pub(super) fn new(limit: u32) -> Self {
        Self { list: Vec::new(), limit: limit as usize }
    }

    pub(super) fn add(&mut self, now: Instant, neighbour: Ipv4Addr, until: Instant) {
        self.list.retain(|(other, end)| *end > now && *other != neighbour);
        if self.list.len() < self.limit {
            self.list.push((neighbour, until));
        }
    }

    pub(super) fn contains(&self, now: Instant, neighbour: Ipv4Addr) -> bool {
        self.list.iter().any(|(other, end)| *other == neighbour && *end > now)
    }
}

/// Neighbours that were sent a reply and have not confirmed it (§6.8).
#[derive(Clone, Debug)]
pub(super) struct PendingRrepAcks {
    list: Vec<(Ipv4Addr, Instant)>,
    limit: usize,
}

impl PendingRrepAcks {
    pub(super) fn new(limit: u32) -> Self {
        Self { list: Vec::new(), limit: limit as usize }
    }

    pub(super) fn add(&mut self, neighbour: Ipv4Addr, deadline: Instant) {
        let known = self.list.iter().any(|(other, _)| *other == neighbour);
        if !known && self.list.len() < self.limit {
            self.list.push((neighbour, deadline));
        }
    }

    /// An RREP-ACK does not name the reply that it confirms, so any counts.
    pub(super) fn on_rrep_ack(&mut self, neighbour: Ipv4Addr) {
        self.list.retain(|(other, _)| *other != neighbour);
    }

    pub(super) fn take_expired(&mut self, now: Instant) -> Option<Ipv4Addr> {
        let at = self.list.iter().position(|(_, deadline)| *deadline <= now)?;
        Some(self.list.remove(at).0)
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.list.iter().map(|(_, deadline)| *deadline).min()
    }
}
