//! Route discovery as the initiator: requests of this node, retries, success and failure (RFC 4728 §8.2.1).

use super::agent::{Dsr, UnroutedPacket};
use super::config::NeighbourQueries;
use super::search::{NextAttempt, Phase, Reachability, Search, SearchStart};
use super::stats::IgnoredReason;
use super::types::{Event, Transmit};
use crate::DropReason;
use hopline_core::{Duration, Instant};
use hopline_wire::dsr::{Addresses, DsrOption, RouteRequest};
use std::net::Ipv4Addr;

impl<M: Copy> Dsr<M> {
    /// Sends a packet along the best path in the cache. Without one, the packet waits.
    pub(super) fn route(&mut self, now: Instant, destination: Ipv4Addr, waiting: UnroutedPacket<M>) {
        let Some(path) = self.route_cache.as_mut().and_then(|paths| paths.find_and_use(now, destination))
        else {
            return self.buffer_packet(now, destination, waiting);
        };
        if let Some(search) = self.searches.get_mut(destination)
            && search.reachability != Reachability::Unused
        {
            search.reachability = Reachability::Found;
        }
        self.send_along(now, &path, waiting);
    }

    /// Puts a packet into the send buffer (§4.2) and ensures that a search is in progress.
    pub(super) fn buffer_packet(&mut self, now: Instant, destination: Ipv4Addr, waiting: UnroutedPacket<M>) {
        if let Some(oldest) = self.buffer.push(now, destination, waiting) {
            self.drop_packet(oldest.packet, DropReason::BufferFull);
        }
        self.start_search(now, destination);
    }

    /// Requests a route to `destination`, unless a request is outstanding or not permitted yet.
    pub(super) fn start_search(&mut self, now: Instant, destination: Ipv4Addr) {
        match self.searches.start(now, destination) {
            SearchStart::Waiting => self.shorten_neighbour_query(destination),
            SearchStart::Due => self.send_request(now, destination),
            SearchStart::Refused => {
                self.stats.ignore(IgnoredReason::TableFull);
                self.drop_buffered(destination, DropReason::DiscoveryFailed);
            }
        }
    }

    /// Shortens the wait for a request that went to neighbours alone for packets of other nodes: this node's own packets
    /// need not wait as long.
    fn shorten_neighbour_query(&mut self, destination: Ipv4Addr) {
        let is_ours = self.buffer.any_for(destination, |waiting| waiting.source == self.address);
        if let (true, Some(search)) = (is_ours, self.searches.get_mut(destination)) {
            search.shorten_neighbour_query(&self.config);
        }
    }

    pub(super) fn retry_searches(&mut self, now: Instant) {
        while let Some(destination) = self.searches.due(now) {
            if self.buffer.has_packets_for(destination) {
                self.send_request(now, destination);
            } else if let Some(search) = self.searches.get_mut(destination) {
                search.pause();
            }
        }
    }

    /// Makes the next attempt to find `destination`, or gives up.
    fn send_request(&mut self, now: Instant, destination: Ipv4Addr) {
        if self.route_cache.is_none() && self.searches.get(destination).is_some_and(Search::was_flooded) {
            self.on_route_lost(destination); // nobody else would say so
        }
        let is_ours = self.buffer.any_for(destination, |waiting| waiting.source == self.address);
        let delay = self.originated_delay(now);
        let Some(search) = self.searches.get_mut(destination) else { return };
        let attempt = match (is_ours, self.route_cache.is_some()) {
            (false, true) => search.attempt_for_forwarded(now + delay, &self.config),
            _ => search.attempt(now + delay, &self.config),
        };
        let ttl = match attempt {
            NextAttempt::Request { ttl } => ttl,
            NextAttempt::DropOne => return self.drop_oldest_buffered(destination),
            NextAttempt::GiveUp => return self.give_up(destination),
        };
        self.request_id = self.request_id.wrapping_add(1);
        let request = RouteRequest { id: self.request_id, target: destination, path: Addresses::new() };
        // §3.4.4: caches of neighbours must not answer with the link that was just reported as broken.
        let repeats = ttl == 1 && self.config.neighbour_queries == NeighbourQueries::EachTime;
        let error = if repeats { self.pending_error.clone() } else { self.pending_error.take() };
        let error = error.map(DsrOption::Error);
        let options = core::iter::once(DsrOption::Request(request)).chain(error);
        let packet = self.control_packet(Ipv4Addr::BROADCAST, ttl, options);
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
            search.on_failure();
        }
        self.on_route_lost(destination);
        self.drop_buffered(destination, DropReason::DiscoveryFailed);
    }

    /// Handles a path to `destination` for which packets wait, or after the last one was lost.
    pub(super) fn on_route_found(&mut self, now: Instant, destination: Ipv4Addr, hops: usize) {
        let Some(search) = self.searches.get_mut(destination) else { return };
        if search.phase == Phase::Waiting {
            self.stats.searches_succeeded += 1;
        }
        search.on_success(now);
        if search.reachability != Reachability::Unused {
            search.reachability = Reachability::Found;
            let hops = u8::try_from(hops).unwrap_or(u8::MAX);
            self.outbox.events.push_back(Event::RouteFound { destination, hops });
        }
    }

    /// Handles the loss of the route of this node's own packets to `destination`.
    pub(super) fn on_route_lost(&mut self, destination: Ipv4Addr) {
        if let Some(search) = self.searches.get_mut(destination)
            && matches!(search.reachability, Reachability::Unknown | Reachability::Found)
        {
            search.reachability = Reachability::Lost;
            self.outbox.events.push_back(Event::RouteLost { destination });
        }
    }

    /// Removes the packets for `destination` from the send buffer and sends each along `path`, the first at once.
    pub(super) fn send_buffered(&mut self, now: Instant, destination: Ipv4Addr, path: &[Ipv4Addr]) {
        let mut packets = Vec::new();
        self.buffer.take_all(destination, |waiting| packets.push(waiting));
        let mut delay = Duration::ZERO;
        for waiting in packets {
            self.send_along_after(now, delay, path, waiting);
            delay += self.config.release_spacing;
        }
    }

    pub(super) fn drop_expired_packets(&mut self, now: Instant) {
        while let Some(waiting) = self.buffer.pop_expired(now) {
            self.drop_packet(waiting.packet, DropReason::BufferTimeout);
        }
    }

    fn drop_oldest_buffered(&mut self, destination: Ipv4Addr) {
        if let Some(waiting) = self.buffer.take_first(destination) {
            self.drop_packet(waiting.packet, DropReason::NoRoute);
        }
    }

    fn drop_buffered(&mut self, destination: Ipv4Addr, reason: DropReason) {
        let events = &mut self.outbox.events;
        self.buffer.take_all(destination, |waiting| {
            events.push_back(Event::Drop { packet: waiting.packet, reason })
        });
    }
}
