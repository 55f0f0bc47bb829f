//! Route discovery: requests of this node, retries, success and failure (RFC 3561 §6.3, §6.4).

use super::config::{Ageing, Answering, Search as Method};
use super::machine::Aodv;
use super::search::{Answered, Attempt, Goal, Phase};
use super::stats::Ignored;
use super::table::Role;
use super::types::Event;
use crate::DropReason;
use hopline_core::{Duration, Instant};
use hopline_wire::aodv::{Message, Rreq};
use std::net::Ipv4Addr;

impl<M: Copy> Aodv<M> {
    /// Ensures that a discovery for `destination` is in progress.
    pub(super) fn seek(&mut self, now: Instant, destination: Ipv4Addr) {
        let ageing = self.config.ageing;
        let Some(search) = self.searches.begin(destination) else {
            self.drop_waiting(destination, DropReason::DiscoveryFailed);
            return;
        };
        // With exact ageing an overdue attempt has its own timer.
        let waits = search.phase == Phase::Waiting && (ageing == Ageing::Exact || search.deadline > now);
        if waits {
            return;
        }
        if search.deadline > now {
            let deadline = search.deadline;
            search.wait_until(deadline);
            return;
        }
        self.attempt(now, destination);
    }

    /// Ensures that the discovery of a route under repair continues when its next attempt is due.
    pub(super) fn keep_seeking(&mut self, now: Instant, destination: Ipv4Addr) {
        if let Some(search) = self.searches.begin(destination)
            && search.phase == Phase::Idle
        {
            let deadline = search.deadline.max(now);
            search.wait_until(deadline);
        }
    }

    /// Makes the next attempt to find `destination`, or gives up.
    pub(super) fn attempt(&mut self, now: Instant, destination: Ipv4Addr) {
        // ns-2 goes by the distance when the route was last given up, also while it repairs. The RFC's repair does not
        // come here.
        let last_hops = self.routes.get(now, destination).map(|route| route.last_hops);
        let Some(search) = self.searches.get(destination) else { return };
        match search.next(&self.config, last_hops) {
            Attempt::Request { ttl, wait } => self.request(now, destination, ttl, wait),
            Attempt::GiveUp => self.give_up(now, destination),
        }
    }

    /// Broadcasts a request. Above the rate limit, the attempt is postponed.
    pub(super) fn request(&mut self, now: Instant, destination: Ipv4Addr, ttl: u8, wait: Duration) {
        let permitted = self.request_rate.take(now);
        let due = self.departure(now, self.config.originated_jitter);
        let Some(search) = self.searches.get(destination) else { return };
        if let Err(next) = permitted {
            search.wait_until(next);
            self.stats.ignore(Ignored::RateLimited);
            return;
        }
        search.sent(due, ttl, wait, &self.config);
        self.seq += 1; // §6.1: before each discovery
        self.request_id = self.request_id.wrapping_add(1);
        let request = Rreq {
            join: false,
            repair: false,
            gratuitous: self.config.answering == Answering::RelaysGratuitous,
            destination_only: self.config.answering == Answering::DestinationOnly,
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

    pub(super) fn retry_searches(&mut self, now: Instant) {
        while let Some(destination) = self.searches.due(now) {
            let goal = self.searches.get(destination).map(|search| search.goal);
            match goal {
                // §6.12: a repair has one attempt. ns-2 repairs by an ordinary discovery.
                Some(Goal::Repair { .. }) if self.config.search == Method::Rfc => {
                    self.give_up(now, destination)
                }
                _ if self.buffer.holds_for(destination) => self.attempt(now, destination),
                _ => self.end_search(now, destination),
            }
        }
    }

    /// Ends the search; no packet waits for the route any more.
    fn end_search(&mut self, now: Instant, destination: Ipv4Addr) {
        match self.config.search {
            Method::Rfc => self.searches.remove(destination),
            Method::Ns2 { .. } => {
                if let Some(search) = self.searches.get(destination) {
                    search.phase = Phase::Idle;
                }
            }
        }
        self.repair_failed(now, destination);
    }

    fn give_up(&mut self, now: Instant, destination: Ipv4Addr) {
        self.stats.searches_failed += 1;
        let goal = self.searches.get(destination).map(|search| search.goal);
        match self.config.search {
            Method::Rfc => self.searches.remove(destination),
            Method::Ns2 { longest_wait } => {
                if let Some(search) = self.searches.get(destination) {
                    search.failed(now + longest_wait);
                }
            }
        }
        let reason = match goal {
            Some(Goal::Repair { .. }) => DropReason::RepairFailed,
            _ => DropReason::DiscoveryFailed,
        };
        self.drop_waiting(destination, reason);
        self.repair_failed(now, destination);
    }

    /// Ends the search after a valid route to `destination` was learnt, and releases the packets.
    pub(super) fn found(&mut self, now: Instant, destination: Ipv4Addr, answered: Answered) {
        if self.searches.is_empty() {
            return; // the common case in a flood
        }
        let Some(search) = self.searches.get(destination) else { return };
        let Some(route) = self.routes.valid(now, destination) else { return };
        let (hops, next_hop) = (route.hops, route.next_hop);
        let (goal, was_waiting) = (search.goal, search.phase == Phase::Waiting);
        search.found(now, hops, answered);
        if was_waiting {
            route.role = Role::Path;
            if answered != Answered::ByReply {
                route.renew(now + self.config.active_route_timeout);
            }
            self.stats.searches_succeeded += 1;
            self.outbox.events.push_back(Event::RouteFound { destination, hops });
        }
        if self.config.search == Method::Rfc {
            self.searches.remove(destination);
        }
        if let Goal::Repair { hops: before } = goal {
            self.tell_of_repair(now, destination, before);
        }
        self.release(now, destination, next_hop, answered);
    }

    /// Releases the packets for `destination`. ns-2 spaces them out if a reply caused the route.
    fn release(&mut self, now: Instant, destination: Ipv4Addr, next_hop: Ipv4Addr, answered: Answered) {
        let spacing = match answered {
            Answered::ByReply | Answered::ByReplyToOther => self.config.release_spacing,
            Answered::Otherwise => Duration::ZERO,
        };
        let outbox = &mut self.outbox;
        let mut due = now;
        self.buffer.take(destination, |packet| {
            let event = Event::Release { packet, next_hop };
            if due <= now {
                outbox.events.push_back(event);
            } else {
                outbox.report_at(due, event);
            }
            due += spacing;
        });
        self.renew(now, destination, now + self.config.active_route_timeout);
    }
}
