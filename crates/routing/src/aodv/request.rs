//! Handling of requests from other nodes (RFC 3561 §6.5, §6.6).

use super::agent::Aodv;
use super::config::{PreviousHopRoute, ReplyAck, ReplySequence, ReverseLifetime};
use super::discoveries::FoundBy;
use super::stats::IgnoredReason;
use super::table::{Expiry, OfferResult, RouteOffer};
use crate::{DuplicateCheck, TimerEffect};
use hopline_core::{Duration, Instant, Seq32};
use hopline_wire::aodv::{Message, Rrep, Rreq};
use std::net::Ipv4Addr;

impl<M: Copy> Aodv<M> {
    pub(super) fn handle_request(
        &mut self,
        now: Instant,
        from: Ipv4Addr,
        ttl: u8,
        mut request: Rreq,
    ) -> TimerEffect {
        if self.blacklist.contains(now, from) {
            self.stats.ignore(IgnoredReason::Blacklisted);
            return TimerEffect::None;
        }
        let effect = self.learn_previous_hop(now, from);
        if let Err(reason) = self.check_request(now, &request) {
            self.stats.ignore(reason);
            return effect;
        }
        request.hop_count += 1;
        self.learn_reverse_route(now, from, &request);
        if request.destination == self.address {
            self.reply_as_destination(now, &request);
        } else if !self.reply_as_intermediate(now, from, &request) {
            self.relay_request(now, ttl, request);
        }
        TimerEffect::Possible
    }

    fn check_request(&mut self, now: Instant, request: &Rreq) -> Result<(), IgnoredReason> {
        if request.originator == self.address {
            return Err(IgnoredReason::OwnRequest);
        }
        if !self.is_other_host(request.originator) || request.originator == request.destination {
            return Err(IgnoredReason::BadAddress);
        }
        if request.hop_count == u8::MAX {
            return Err(IgnoredReason::BadHopCount);
        }
        match self.rreq_cache.record(now, request.originator, request.id) {
            DuplicateCheck::New => Ok(()),
            DuplicateCheck::Duplicate => Err(IgnoredReason::DuplicateRequest),
            DuplicateCheck::TableFull => Err(IgnoredReason::TableFull),
        }
    }

    /// Learns a route to the transmitter of a message, which is a neighbour (§6.5, §6.7).
    pub(super) fn learn_previous_hop(&mut self, now: Instant, from: Ipv4Addr) -> TimerEffect {
        if self.config.previous_hop == PreviousHopRoute::Ignored {
            return TimerEffect::None;
        }
        let expires = now + self.config.active_route_timeout;
        if !self.routes.offer_neighbour(now, from, expires) {
            return TimerEffect::None;
        }
        self.complete_discovery(now, from, FoundBy::OtherMessage);
        TimerEffect::Possible
    }

    /// Learns the reverse route (§6.5).
    fn learn_reverse_route(&mut self, now: Instant, from: Ipv4Addr, request: &Rreq) {
        let lifetime = match self.config.reverse_lifetime {
            ReverseLifetime::Fixed(lifetime) => lifetime,
            ReverseLifetime::Rfc => {
                let spent = self.config.node_traversal_time.saturating_mul(u64::from(request.hop_count));
                self.config.net_traversal_time().saturating_sub(spent).saturating_mul(2)
            }
        };
        let offer = RouteOffer {
            next_hop: from,
            hops: request.hop_count,
            seq: request.originator_seq,
            expiry: Expiry::AtLeast(now + lifetime),
        };
        match self.routes.offer(now, request.originator, offer) {
            OfferResult::Better => self.complete_discovery(now, request.originator, FoundBy::OtherMessage),
            OfferResult::TableFull => self.stats.ignore(IgnoredReason::TableFull),
            OfferResult::Same | OfferResult::Worse => {}
        }
    }

    /// Answers a request for this node (§6.6.1).
    fn reply_as_destination(&mut self, now: Instant, request: &Rreq) {
        // §6.1 and §6.6.1 together: the number is never below that of the request.
        if let Some(asked) = request.destination_seq {
            self.seq = self.seq.max(asked);
        }
        if self.config.reply_sequence == ReplySequence::AlwaysAdvance {
            self.seq += 1;
        }
        let (seq, lifetime) = (self.seq, self.config.my_route_timeout);
        self.stats.replies_as_destination += 1;
        self.send_reply(now, request.originator, rrep(self.address, seq, 0, request.originator, lifetime));
    }

    /// Answers a request as a relay with a fresh route (§6.6.2). Returns whether this node could answer.
    fn reply_as_intermediate(&mut self, now: Instant, from: Ipv4Addr, request: &Rreq) -> bool {
        if request.destination_only {
            return false;
        }
        let kept = self.config.local_repair.keeps_sequence();
        let Some(route) = self.routes.known(now, request.destination) else { return false };
        let Some(seq) = route.seq() else { return false };
        let fresh = request.destination_seq.is_none_or(|asked| seq.at_or_after(asked));
        // A route that leads back to the requester is no answer. Sequence numbers alone rule that out (§6.1), unless the
        // requester has forgotten the route in the meantime, or does not raise its numbers and refuses such answers.
        if !fresh || (route.next_hop == from && !kept) {
            return false;
        }
        let (next_hop, hops, lifetime) = (route.next_hop, route.hops, route.expires.since(now));
        let Some(back) = self.routes.known(now, request.originator) else { return false };
        let (back_hop, back_hops, back_life) = (back.next_hop, back.hops, back.expires.since(now));
        let limit = self.config.limits.precursors;
        back.add_precursor(next_hop, limit);
        if let Some(route) = self.routes.known(now, request.destination) {
            route.add_precursor(back_hop, limit);
        }
        self.stats.replies_as_relay += 1;
        self.send_reply(
            now,
            request.originator,
            rrep(request.destination, seq, hops, request.originator, lifetime),
        );
        if request.gratuitous {
            // §6.6.3: the destination learns the route to the originator as if it had requested it.
            self.stats.replies_as_relay += 1;
            let gratuitous =
                rrep(request.originator, request.originator_seq, back_hops, request.destination, back_life);
            self.send_reply(now, request.destination, gratuitous);
        }
        true
    }

    /// Relays a request (§6.5, last part).
    fn relay_request(&mut self, now: Instant, ttl: u8, mut request: Rreq) {
        if ttl <= 1 {
            return self.stats.ignore(IgnoredReason::TtlExpired);
        }
        let known = self.routes.get(now, request.destination).and_then(|route| route.seq());
        request.destination_seq = match (request.destination_seq, known) {
            (Some(asked), Some(known)) => Some(asked.max(known)),
            (asked, known) => asked.or(known),
        };
        let due = self.departure_time(now, self.config.broadcast_jitter);
        if self.broadcast(now, due, Message::Rreq(request), ttl - 1) {
            self.stats.requests_relayed += 1;
        }
    }

    /// Sends a reply one hop towards `to`.
    pub(super) fn send_reply(&mut self, now: Instant, to: Ipv4Addr, mut reply: Rrep) {
        let Some(back) = self.routes.known(now, to) else {
            return self.stats.ignore(IgnoredReason::NoReverseRoute);
        };
        let next_hop = back.next_hop;
        reply.ack_required = self.config.reply_ack == ReplyAck::Always;
        if reply.ack_required {
            self.pending_rrep_acks.add(next_hop, now + self.config.next_hop_wait);
        }
        let ttl = self.config.net_diameter;
        self.unicast(Message::Rrep(reply), next_hop, ttl);
    }
}

fn rrep(
    destination: Ipv4Addr,
    destination_seq: Seq32,
    hop_count: u8,
    originator: Ipv4Addr,
    lifetime: Duration,
) -> Rrep {
    Rrep {
        repair: false,
        ack_required: false,
        prefix_size: 0,
        hop_count,
        destination,
        destination_seq,
        originator,
        lifetime,
    }
}
