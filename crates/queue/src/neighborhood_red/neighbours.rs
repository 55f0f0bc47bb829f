//! Neighbours heard recently.

use hopline_core::{Duration, Instant, RandomStream};
use std::net::Ipv4Addr;

/// Neighbours, and the times of the last events of each.
#[derive(Clone, Debug)]
pub(super) struct NeighbourTable {
    /// Sorted by the time at which they were first heard.
    entries: Vec<Neighbour>,
    /// Index of the neighbour looked up last: frames of one neighbour come in succession.
    last_lookup: usize,
    limit: usize,
    memory: Duration,
}

#[derive(Clone, Debug)]
struct Neighbour {
    address: Ipv4Addr,
    last_frame: Instant,
    /// Time of its last accepted notice.
    last_notice: Option<Instant>,
    /// Time of its last relayed notice.
    last_relay: Option<Instant>,
}

impl NeighbourTable {
    pub(super) fn new(limit: usize, memory: Duration) -> Self {
        Self { entries: Vec::new(), last_lookup: 0, limit, memory }
    }

    /// Records a frame of `address`. If the table is full, the neighbour that was silent for longest is removed, but only if
    /// it is not active any more. An attacker with many addresses therefore displaces no active neighbour.
    pub(super) fn record_frame(&mut self, now: Instant, address: Ipv4Addr) {
        if let Some(neighbour) = self.get(address) {
            neighbour.last_frame = now;
            return;
        }
        if self.entries.len() >= self.limit {
            let oldest = self.entries.iter().enumerate().min_by_key(|(_, entry)| entry.last_frame);
            let (at, oldest) = oldest.expect("the limit is not zero");
            if now.since(oldest.last_frame) <= self.memory {
                return;
            }
            self.entries.remove(at);
        }
        self.entries.push(Neighbour { address, last_frame: now, last_notice: None, last_relay: None });
    }

    /// Returns the number of known neighbours.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether `address` is a known neighbour.
    pub(super) fn contains(&self, address: Ipv4Addr) -> bool {
        self.entries.iter().any(|entry| entry.address == address)
    }

    /// Returns the active neighbours: those heard within the memory.
    pub(super) fn active(&self, now: Instant) -> impl Iterator<Item = Ipv4Addr> {
        let memory = self.memory;
        let active = move |entry: &&Neighbour| now.since(entry.last_frame) <= memory;
        self.entries.iter().filter(active).map(|entry| entry.address)
    }

    pub(super) fn is_active(&self, now: Instant, address: Ipv4Addr) -> bool {
        self.active(now).any(|active| active == address)
    }

    /// Returns a random active neighbour.
    pub(super) fn draw(&self, now: Instant, random: &mut RandomStream) -> Option<Ipv4Addr> {
        let count = self.active(now).count() as u32;
        if count == 0 { None } else { self.active(now).nth(random.below(count) as usize) }
    }

    /// Returns whether a notice of `address` arrives no sooner than `spacing` after its last accepted one, and accepts it if
    /// so. No notice of an unknown neighbour is accepted.
    pub(super) fn admit_notice(&mut self, now: Instant, address: Ipv4Addr, spacing: Duration) -> bool {
        self.admit(now, address, spacing, |neighbour| &mut neighbour.last_notice)
    }

    /// Does the same for relayed notices.
    pub(super) fn admit_relay(&mut self, now: Instant, address: Ipv4Addr, spacing: Duration) -> bool {
        self.admit(now, address, spacing, |neighbour| &mut neighbour.last_relay)
    }

    fn admit(
        &mut self,
        now: Instant,
        address: Ipv4Addr,
        spacing: Duration,
        of: fn(&mut Neighbour) -> &mut Option<Instant>,
    ) -> bool {
        let Some(last) = self.get(address).map(of) else { return false };
        let due = last.is_none_or(|last| now.since(last) >= spacing);
        if due {
            *last = Some(now);
        }
        due
    }

    fn get(&mut self, address: Ipv4Addr) -> Option<&mut Neighbour> {
        if self.entries.get(self.last_lookup).is_none_or(|entry| entry.address != address) {
            self.last_lookup = self.entries.iter().position(|entry| entry.address == address)?;
        }
        self.entries.get_mut(self.last_lookup)
    }
}
