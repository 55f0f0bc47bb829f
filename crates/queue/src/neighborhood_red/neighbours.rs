//! Who was heard of late.

use hopline_core::{Duration, Instant, Stream};
use std::net::Ipv4Addr;

/// Neighbours, and what happened last with each.
#[derive(Clone, Debug)]
pub(super) struct Neighbours {
    /// In the order in which they were first heard.
    entries: Vec<Neighbour>,
    /// Where the one that was asked for last was found: frames of one neighbour come in rows.
    latest: usize,
    limit: usize,
    memory: Duration,
}

#[derive(Clone, Debug)]
struct Neighbour {
    address: Ipv4Addr,
    heard: Instant,
    /// When its last notice counted.
    noticed: Option<Instant>,
    /// When its last notice was passed on.
    relayed: Option<Instant>,
}

impl Neighbours {
    pub(super) fn new(limit: usize, memory: Duration) -> Self {
        Self { entries: Vec::new(), latest: 0, limit, memory }
    }

    /// A frame of `address` was heard. Where there is no room, the one that was not heard for the longest time is forgotten,
    /// if it is not active any more: who sends under many addresses drives nobody out.
    pub(super) fn hear(&mut self, now: Instant, address: Ipv4Addr) {
        if let Some(neighbour) = self.get(address) {
            neighbour.heard = now;
            return;
        }
        if self.entries.len() >= self.limit {
            let oldest = self.entries.iter().enumerate().min_by_key(|(_, entry)| entry.heard);
            let (at, oldest) = oldest.expect("the limit is not zero");
            if now.since(oldest.heard) <= self.memory {
                return;
            }
            self.entries.remove(at);
        }
        self.entries.push(Neighbour { address, heard: now, noticed: None, relayed: None });
    }

    /// How many are remembered.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether `address` is remembered.
    pub(super) fn knows(&self, address: Ipv4Addr) -> bool {
        self.entries.iter().any(|entry| entry.address == address)
    }

    /// Those that were heard within the memory.
    pub(super) fn active(&self, now: Instant) -> impl Iterator<Item = Ipv4Addr> {
        let memory = self.memory;
        let active = move |entry: &&Neighbour| now.since(entry.heard) <= memory;
        self.entries.iter().filter(active).map(|entry| entry.address)
    }

    pub(super) fn is_active(&self, now: Instant, address: Ipv4Addr) -> bool {
        self.active(now).any(|active| active == address)
    }

    /// One of the active ones.
    pub(super) fn draw(&self, now: Instant, random: &mut Stream) -> Option<Ipv4Addr> {
        let count = self.active(now).count() as u32;
        if count == 0 { None } else { self.active(now).nth(random.below(count) as usize) }
    }

    /// Whether a notice of `address` comes no sooner than `spacing` after the last one that counted. If so it counts; of
    /// who is not remembered none does.
    pub(super) fn count_notice(&mut self, now: Instant, address: Ipv4Addr, spacing: Duration) -> bool {
        self.once(now, address, spacing, |neighbour| &mut neighbour.noticed)
    }

    /// The same of notices that are passed on.
    pub(super) fn count_relayed(&mut self, now: Instant, address: Ipv4Addr, spacing: Duration) -> bool {
        self.once(now, address, spacing, |neighbour| &mut neighbour.relayed)
    }

    fn once(
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
        if self.entries.get(self.latest).is_none_or(|entry| entry.address != address) {
            self.latest = self.entries.iter().position(|entry| entry.address == address)?;
        }
        self.entries.get_mut(self.latest)
    }
}
