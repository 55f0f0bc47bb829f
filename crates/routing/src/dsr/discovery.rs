//! Route discovery as the initiator: requests of this node, retries, success and failure (RFC 4728 §8.2.1).

use super::config::NeighboursAsked;
use super::machine::{Dsr, Waiting};
use super::search::{Attempt, Begun, Phase, Reach, Search};
use super::stats::Ignored;
use super::types::{Event, Transmit};
use crate::DropReason;
use hopline_core::{Duration, Instant};
use hopline_wire::dsr::{Addresses, DsrOption, RouteRequest};
use std::net::Ipv4Addr;

impl<M: Copy> Dsr<M> {
    /// Sends a packet along the best path in the cache. Without one, the packet waits.
    pub(super) fn route(&mut self, now: Instant, destination: Ipv4Addr, waiting: Waiting<M>) {
        let Some(path) = self.paths.as_mut().and_then(|paths| paths.take(now, destination)) else {
            return self.wait(now, destination, waiting);
        };
        if let Some(search) = self.searches.get_mut(destination)
            && search.reach != Reach::NotOurs
        {
            search.reach = Reach::Found;
        }
        self.send_along(now, &path, waiting);
    }

    /// Puts a packet into the send buffer (§4.2) and ensures that a search is in progress.
    pub(super) fn wait(&mut self, now: Instant, destination: Ipv4Addr, waiting: Waiting<M>) {
        if let Some(oldest) = self.buffer.push(now, destination, waiting) {
            self.drop_packet(oldest.packet, DropReason::BufferFull);
        }
        self.look_for(now, destination);
    }

    /// Requests a route to `destination`, unless a request is outstanding or not permitted yet.
    pub(super) fn look_for(&mut self, now: Instant, destination: Ipv4Addr) {
        match self.searches.begin(now, destination) {
            Begun::Waits => self.hasten(destination),
            Begun::Due => self.request(now, destination),
            Begun::Refused => {
                self.stats.ignore(Ignored::TableFull);
                self.drop_waiting(destination, DropReason::DiscoveryFailed);
            }
        }
    }

    /// Shortens the wait for a request that went to neighbours alone for packets of other nodes: this node's own packets
    /// need not wait as long.
    fn hasten(&mut self, destination: Ipv4Addr) {
        let is_ours = self.buffer.any_for(destination, |waiting| waiting.source == self.address);
        if let (true, Some(search)) = (is_ours, self.searches.get_mut(destination)) {
            search.hasten(&self.config);
        }
    }

    pub(super) fn retry_searches(&mut self, now: Instant) {
        while let Some(destination) = self.searches.due(now) {
            if self.buffer.holds_for(destination) {
                self.request(now, destination);
            } else if let Some(search) = self.searches.get_mut(destination) {
                search.pause();
            }
        }
    }

    /// Makes the next attempt to find `destination`, or gives up.
    fn request(&mut self, now: Instant, destination: Ipv4Addr) {
        if self.paths.is_none() && self.searches.get(destination).is_some_and(Search::was_flooded) {
            self.lose(destination); // nobody else would say so
        }
        let is_ours = self.buffer.any_for(destination, |waiting| waiting.source == self.address);
        let delay = self.originated_delay(now);
        let Some(search) = self.searches.get_mut(destination) else { return };
        let attempt = match (is_ours, self.paths.is_some()) {
            (false, true) => search.attempt_for_others(now + delay, &self.config),
            _ => search.attempt(now + delay, &self.config),
        };
        let ttl = match attempt {
            Attempt::Request { ttl } => ttl,
            Attempt::DropOne => return self.drop_first(destination),
            Attempt::GiveUp => return self.give_up(destination),
        };
        self.request_id = self.request_id.wrapping_add(1);
        let request = RouteRequest { id: self.request_id, target: destination, path: Addresses::new() };
        // §3.4.4: caches of neighbours must not answer with the link that was just reported as broken.
        let repeats = ttl == 1 && self.config.neighbours_asked == NeighboursAsked::EachTime;
        let error = if repeats { self.held_error.clone() } else { self.held_error.take() };
        let error = error.map(DsrOption::Error);
        let options = core::iter::once(DsrOption::Request(request)).chain(error);
        let packet = self.control(Ipv4Addr::BROADCAST, ttl, options);
        self.stats.requests_originated += 1;
        // Without room, the search continues as after a lost request.
        self.transmit_after(now, delay, Transmit { packet, next_hop: Ipv4Addr::BROADCAST });
    }

    /// Returns the delay of a request that this node originates.
    fn originated_delay(&mut self, now: Instant) -> Duration {
        match self.config.originated_jitter {
            // Presets without jitter draw nothing, so that their other random delays are unchanged.
            none if none.is_zero() => none,
            limit => self.jitter.below(now, limit),
        }
    }

    fn give_up(&mut self, destination: Ipv4Addr) {
        self.stats.searches_failed += 1;
        if let Some(search) = self.searches.get_mut(destination) {
            search.fail();
        }
        self.lose(destination);
        self.drop_waiting(destination, DropReason::DiscoveryFailed);
    }

    /// Handles a path to `destination` for which packets wait, or after the last one was lost.
    pub(super) fn found(&mut self, now: Instant, destination: Ipv4Addr, hops: usize) {
        let Some(search) = self.searches.get_mut(destination) else { return };
        if search.phase == Phase::Waiting {
            self.stats.searches_succeeded += 1;
        }
        search.succeed(now);
        if search.reach != Reach::NotOurs {
            search.reach = Reach::Found;
            let hops = u8::try_from(hops).unwrap_or(u8::MAX);
            self.outbox.events.push_back(Event::RouteFound { destination, hops });
        }
    }

    /// Handles the loss of the route of this node's own packets to `destination`.
    pub(super) fn lose(&mut self, destination: Ipv4Addr) {
        if let Some(search) = self.searches.get_mut(destination)
            && matches!(search.reach, Reach::Unknown | Reach::Found)
        {
            search.reach = Reach::Lost;
            self.outbox.events.push_back(Event::RouteLost { destination });
        }
    }

    /// Removes the packets for `destination` from the send buffer and sends each along `path`, the first at once.
    pub(super) fn release(&mut self, now: Instant, destination: Ipv4Addr, path: &[Ipv4Addr]) {
        let mut packets = Vec::new();
        self.buffer.take(destination, |waiting| packets.push(waiting));
        let mut delay = Duration::ZERO;
        for waiting in packets {
            self.send_along_after(now, delay, path, waiting);
            delay += self.config.release_spacing;
        }
    }

    pub(super) fn drop_overdue_packets(&mut self, now: Instant) {
        while let Some(waiting) = self.buffer.pop_expired(now) {
            self.drop_packet(waiting.packet, DropReason::BufferTimeout);
        }
    }

    fn drop_first(&mut self, destination: Ipv4Addr) {
        if let Some(waiting) = self.buffer.take_first(destination) {
            self.drop_packet(waiting.packet, DropReason::NoRoute);
        }
    }

    fn drop_waiting(&mut self, destination: Ipv4Addr, reason: DropReason) {
        let events = &mut self.outbox.events;
        self.buffer
            .take(destination, |waiting| events.push_back(Event::Drop { packet: waiting.packet, reason }));
    }
}
