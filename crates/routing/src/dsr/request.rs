//! Handling of requests from other nodes (RFC 4728 §8.2.2, §8.2.3).

use super::agent::Dsr;
use super::config::{CachedReplies, RouteCache, TargetReplies};
use super::forwarding::{forbids_forwarding, options_for_next_hop};
use super::source_path::are_distinct_hosts;
use super::stats::IgnoredReason;
use super::types::{Event, Packet, Received, Transmit};
use crate::{DropReason, DuplicateCheck, TimerEffect, is_host};
use hopline_core::Instant;
use hopline_wire::dsr::{DsrOption, Header, RouteRequest};
use std::net::Ipv4Addr;
use std::sync::Arc;

impl<M: Copy> Dsr<M> {
    /// Handles a broadcast packet: a request, or else a malformed packet.
    pub(super) fn handle_broadcast(&mut self, now: Instant, received: &Received<M>) -> TimerEffect {
        let packet = &received.packet;
        let request = only_request(&packet.header);
        let taken = match request {
            Some(request) => self.handle_request(now, packet, request, received.from),
            None => Err(IgnoredReason::Malformed),
        };
        if let Err(reason) = taken {
            self.stats.ignore(reason);
        }
        // Nine of ten requests of a flood are duplicates, from which at most the cache learns.
        let effect = if taken.is_err() && self.route_cache.is_none() {
            TimerEffect::None
        } else {
            TimerEffect::Possible
        };
        let Some(carried) = packet.payload else { return effect };
        // Requests of this machine carry no data. Requests of other nodes end at their target, which is not asked twice.
        if taken.is_ok() && request.is_some_and(|request| request.target == self.address) {
            self.outbox.events.push_back(Event::Deliver { packet: carried, ttl: packet.ttl });
        } else {
            self.drop_packet(carried, DropReason::BadRoute);
        }
        effect
    }

    fn handle_request(
        &mut self,
        now: Instant,
        packet: &Packet<M>,
        request: &RouteRequest,
        from: Ipv4Addr,
    ) -> Result<(), IgnoredReason> {
        let initiator = packet.source;
        if initiator == self.address || request.path.contains(&self.address) {
            return Err(IgnoredReason::OwnRequest);
        }
        if !is_valid_record(initiator, request, from) {
            return Err(IgnoredReason::Malformed);
        }
        if request.path.len() > usize::from(self.max_path()) {
            return Err(IgnoredReason::RecordFull);
        }
        if forbids_forwarding(&packet.header) {
            return Err(IgnoredReason::UnknownOption);
        }
        self.learn_record(now, initiator, request, from);
        let replies_to_all =
            request.target == self.address && self.config.target_replies == TargetReplies::All;
        if !replies_to_all {
            match self.request_table.record(initiator, request.id, request.target) {
                DuplicateCheck::New => {}
                DuplicateCheck::Duplicate => return Err(IgnoredReason::DuplicateRequest),
                DuplicateCheck::TableFull => return Err(IgnoredReason::TableFull),
            }
        }
        for option in &packet.header.options {
            if let DsrOption::Error(error) = option {
                self.handle_error(now, error);
            }
        }
        if request.target == self.address {
            self.reply_as_target(now, initiator, request);
        } else if !self.reply_from_cache(now, initiator, request) {
            return self.relay_request(now, packet, request);
        }
        Ok(())
    }

    /// Replies from the cache (§8.2.3). Returns whether this node could answer.
    fn reply_from_cache(&mut self, now: Instant, initiator: Ipv4Addr, request: &RouteRequest) -> bool {
        let RouteCache::Paths(cache) = &self.config.cache else { return false };
        let CachedReplies::After { per_hop } = cache.cached_replies else { return false };
        let Some(path) = self.route_cache.as_ref().and_then(|paths| paths.find(now, request.target)) else {
            return false;
        };
        let mut nodes = request.path.clone();
        nodes.push(self.address);
        nodes.extend_from_slice(path);
        // §8.2.3: no node twice. A route that leads back would get no errors.
        if nodes.len() > self.max_hops() || nodes.contains(&initiator) || !are_distinct_hosts(&nodes) {
            return false;
        }
        self.delay_reply(now, per_hop, initiator, request, nodes);
        true
    }

    /// Relays a request (§8.2.2, last part).
    fn relay_request(
        &mut self,
        now: Instant,
        packet: &Packet<M>,
        request: &RouteRequest,
    ) -> Result<(), IgnoredReason> {
        if packet.ttl <= 1 {
            return Err(IgnoredReason::TtlExpired);
        }
        if request.path.len() >= usize::from(self.max_path()) {
            return Err(IgnoredReason::RecordFull);
        }
        let mut options = options_for_next_hop(&packet.header);
        for option in &mut options {
            if let DsrOption::Request(request) = option {
                request.path.push(self.address);
            }
        }
        let header = Arc::new(Header { next: None, options });
        let packet = Packet { ttl: packet.ttl - 1, header, payload: None, ..packet.clone() };
        let delay = self.jitter.below(now, self.config.broadcast_jitter);
        if self.transmit_after(now, delay, Transmit { packet, next_hop: Ipv4Addr::BROADCAST }) {
            self.stats.requests_relayed += 1;
        }
        Ok(())
    }
}

/// Returns the request in a header without a source route: the meaning of both together is unspecified (§8.2.1).
fn only_request(header: &Header) -> Option<&RouteRequest> {
    let mut found = None;
    for option in &header.options {
        match option {
            DsrOption::Request(request) if found.is_none() => found = Some(request),
            DsrOption::Request(_) | DsrOption::SourceRoute(_) => return None,
            _ => {}
        }
    }
    found
}

/// Returns whether the record can be that of a request transmitted by `from`.
fn is_valid_record(initiator: Ipv4Addr, request: &RouteRequest, from: Ipv4Addr) -> bool {
    let path = &request.path;
    is_host(initiator)
        && is_host(request.target)
        && initiator != request.target
        && path.last().copied().unwrap_or(initiator) == from
        && !path.contains(&initiator)
        && !path.contains(&request.target)
        && are_distinct_hosts(path)
}
