//! Route discovery: requests of this node, retries, success and failure (RFC 3561 §6.3, §6.4).

use super::agent::Aodv;
use super::config::{DiscoverySchedule as Method, ExpiryGranularity, ReplyPolicy};
use super::discoveries::{DiscoveryPurpose, DiscoveryState, FoundBy, NextAttempt};
use super::stats::IgnoredReason;
use super::table::RouteRole;
use super::types::Event;
use crate::DropReason;
use hopline_core::{Duration, Instant};
use hopline_wire::aodv::{Message, Rreq};
use std::net::Ipv4Addr;

impl<M: Copy> Aodv<M> {
    /// Ensures that a discovery for `destination` is in progress.
    pub(super) fn start_discovery(&mut self, now: Instant, destination: Ipv4Addr) {
        let ageing = self.config.expiry_granularity;
        let Some(search) = self.discoveries.get_or_create(destination) else {
            self.drop_buffered(destination, DropReason::DiscoveryFailed);
            return;
        };
        // With exact ageing an overdue attempt has its own timer.
        let waits = search.state == DiscoveryState::Waiting
            && (ageing == ExpiryGranularity::Exact || search.deadline > now);
        if waits {
            return;
        }
        if search.deadline > now {
            let deadline = search.deadline;
            search.wait_until(deadline);
            return;
        }
        self.next_attempt(now, destination);
    }

    /// Ensures that the discovery of a route under repair continues when its next attempt is due.
    pub(super) fn continue_discovery(&mut self, now: Instant, destination: Ipv4Addr) {
        if let Some(search) = self.discoveries.get_or_create(destination)
            && search.state == DiscoveryState::Idle
        {
            let deadline = search.deadline.max(now);
            search.wait_until(deadline);
        }
    }

    /// Makes the next attempt to find `destination`, or gives up.
    pub(super) fn next_attempt(&mut self, now: Instant, destination: Ipv4Addr) {
        // ns-2 goes by the distance when the route was last given up, also while it repairs. The RFC's repair does not
        // come here.
        let last_hops = self.routes.get(now, destination).map(|route| route.last_hops);
        let Some(search) = self.discoveries.get(destination) else { return };
        match search.next_attempt(&self.config, last_hops) {
            NextAttempt::Request { ttl, wait } => self.send_rreq(now, destination, ttl, wait),
            NextAttempt::GiveUp => self.fail_discovery(now, destination),
        }
    }

    /// Broadcasts a request. Above the rate limit, the attempt is postponed.
    pub(super) fn send_rreq(&mut self, now: Instant, destination: Ipv4Addr, ttl: u8, wait: Duration) {
        let permitted = self.request_rate.take(now);
        let due = self.departure_time(now, self.config.originated_jitter);
        let Some(search) = self.discoveries.get(destination) else { return };
        if let Err(next) = permitted {
            search.wait_until(next);
            self.stats.ignore(IgnoredReason::RateLimited);
            return;
        }
        search.on_request_sent(due, ttl, wait, &self.config);
        self.seq += 1; // §6.1: before each discovery
        self.request_id = self.request_id.wrapping_add(1);
        let request = Rreq {
            join: false,
            repair: false,
            gratuitous: self.config.reply_policy == ReplyPolicy::IntermediateGratuitous,
            destination_only: self.config.reply_policy == ReplyPolicy::DestinationOnly,
            hop_count: 0,
            id: self.request_id,
            destination,
            destination_seq: self.routes.get(now, destination).and_then(|route| route.seq()),
            originator: self.address,
            originator_seq: self.seq,
        };
        self.stats.requests_originated += 1;
        // Without room, the search continues as after a lost request.
        self.broadcast(now, due, Message::Rreq(request), ttl);
    }

    pub(super) fn retry_discoveries(&mut self, now: Instant) {
        while let Some(destination) = self.discoveries.due(now) {
            let goal = self.discoveries.get(destination).map(|search| search.purpose);
            match goal {
                // §6.12: a repair has one attempt. ns-2 repairs by an ordinary discovery.
                Some(DiscoveryPurpose::Repair { .. }) if self.config.discovery_schedule == Method::Rfc => {
                    self.fail_discovery(now, destination)
                }
                _ if self.buffer.has_packets_for(destination) => self.next_attempt(now, destination),
                _ => self.end_discovery(now, destination),
            }
        }
    }

    /// Ends the search; no packet waits for the route any more.
    fn end_discovery(&mut self, now: Instant, destination: Ipv4Addr) {
        match self.config.discovery_schedule {
            Method::Rfc => self.discoveries.remove(destination),
            Method::Ns2 { .. } => {
                if let Some(search) = self.discoveries.get(destination) {
                    search.state = DiscoveryState::Idle;
                }
            }
        }
        self.on_repair_failure(now, destination);
    }

    fn fail_discovery(&mut self, now: Instant, destination: Ipv4Addr) {
        self.stats.searches_failed += 1;
        let goal = self.discoveries.get(destination).map(|search| search.purpose);
        match self.config.discovery_schedule {
            Method::Rfc => self.discoveries.remove(destination),
            Method::Ns2 { longest_wait } => {
                if let Some(search) = self.discoveries.get(destination) {
                    search.on_failure(now + longest_wait);
                }
            }
        }
        let reason = match goal {
            Some(DiscoveryPurpose::Repair { .. }) => DropReason::RepairFailed,
            _ => DropReason::DiscoveryFailed,
        };
        self.drop_buffered(destination, reason);
        self.on_repair_failure(now, destination);
    }

    /// Ends the search after a valid route to `destination` was learnt, and releases the packets.
    pub(super) fn complete_discovery(&mut self, now: Instant, destination: Ipv4Addr, answered: FoundBy) {
        if self.discoveries.is_empty() {
            return; // the common case in a flood
        }
        let Some(search) = self.discoveries.get(destination) else { return };
        let Some(route) = self.routes.valid(now, destination) else { return };
        let (hops, next_hop) = (route.hops, route.next_hop);
        let (goal, was_waiting) = (search.purpose, search.state == DiscoveryState::Waiting);
        search.on_route_found(now, hops, answered);
        if was_waiting {
            route.role = RouteRole::Path;
            if answered != FoundBy::OwnReply {
                route.renew(now + self.config.active_route_timeout);
            }
            self.stats.searches_succeeded += 1;
            self.outbox.events.push_back(Event::RouteFound { destination, hops });
        }
        if self.config.discovery_schedule == Method::Rfc {
            self.discoveries.remove(destination);
        }
        if let DiscoveryPurpose::Repair { hops: before } = goal {
            self.announce_repair(now, destination, before);
        }
        self.release_packets(now, destination, next_hop, answered);
    }

    /// Releases the packets for `destination`. ns-2 spaces them out if a reply caused the route.
    fn release_packets(
        &mut self,
        now: Instant,
        destination: Ipv4Addr,
        next_hop: Ipv4Addr,
        answered: FoundBy,
    ) {
        let spacing = match answered {
            FoundBy::OwnReply | FoundBy::ForwardedReply => self.config.release_spacing,
            FoundBy::OtherMessage => Duration::ZERO,
        };
        let outbox = &mut self.outbox;
        let mut due = now;
        self.buffer.take_all(destination, |packet| {
            let event = Event::Release { packet, next_hop };
            if due <= now {
                outbox.events.push_back(event);
            } else {
                outbox.report_at(due, event);
            }
            due += spacing;
        });
        self.extend_route(now, destination, now + self.config.active_route_timeout);
    }
}
