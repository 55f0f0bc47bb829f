//! Handling of requests from other nodes (RFC 3561 §6.5, §6.6).

use super::config::{PreviousHop, ReplyAck, ReplySequence, ReverseLifetime};
use super::machine::Aodv;
use super::search::Answered;
use super::stats::Ignored;
use super::table::{Expiry, Offer, Verdict};
use crate::{Effect, Sighting};
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
    ) -> Effect {
        if self.blacklist.contains(now, from) {
            self.stats.ignore(Ignored::Blacklisted);
            return Effect::None;
        }
        let effect = self.learn_previous_hop(now, from);
        if let Err(reason) = self.check_request(now, &request) {
            self.stats.ignore(reason);
            return effect;
        }
        request.hop_count += 1;
        self.learn_way_back(now, from, &request);
        if request.destination == self.address {
            self.answer_as_destination(now, &request);
        } else if !self.answer_as_relay(now, from, &request) {
            self.relay_request(now, ttl, request);
        }
        Effect::Some
    }

    fn check_request(&mut self, now: Instant, request: &Rreq) -> Result<(), Ignored> {
        if request.originator == self.address {
            return Err(Ignored::OwnRequest);
        }
        if !self.is_other_host(request.originator) || request.originator == request.destination {
            return Err(Ignored::BadAddress);
        }
        if request.hop_count == u8::MAX {
            return Err(Ignored::BadHopCount);
        }
        match self.seen.note(now, request.originator, request.id) {
            Sighting::First => Ok(()),
            Sighting::Again => Err(Ignored::DuplicateRequest),
            Sighting::Full => Err(Ignored::TableFull),
        }
    }

    /// Learns a route to the transmitter of a message, which is a neighbour (§6.5, §6.7).
    pub(super) fn learn_previous_hop(&mut self, now: Instant, from: Ipv4Addr) -> Effect {
        if self.config.previous_hop == PreviousHop::Ignored {
            return Effect::None;
        }
        let expires = now + self.config.active_route_timeout;
        if !self.routes.offer_neighbour(now, from, expires) {
            return Effect::None;
        }
        self.found(now, from, Answered::Otherwise);
        Effect::Some
    }

    /// Learns the reverse route (§6.5).
    fn learn_way_back(&mut self, now: Instant, from: Ipv4Addr, request: &Rreq) {
        let lifetime = match self.config.reverse_lifetime {
            ReverseLifetime::Fixed(lifetime) => lifetime,
            ReverseLifetime::Rfc => {
                let spent = self.config.node_traversal_time.saturating_mul(u64::from(request.hop_count));
                self.config.net_traversal_time().saturating_sub(spent).saturating_mul(2)
            }
        };
        let offer = Offer {
            next_hop: from,
            hops: request.hop_count,
            seq: request.originator_seq,
            expiry: Expiry::AtLeast(now + lifetime),
        };
        match self.routes.offer(now, request.originator, offer) {
            Verdict::Better => self.found(now, request.originator, Answered::Otherwise),
            Verdict::TableFull => self.stats.ignore(Ignored::TableFull),
            Verdict::Same | Verdict::Worse => {}
        }
    }

    /// Answers a request for this node (§6.6.1).
    fn answer_as_destination(&mut self, now: Instant, request: &Rreq) {
        // §6.1 and §6.6.1 together: the number is never below that of the request.
        if let Some(asked) = request.destination_seq {
            self.seq = self.seq.max(asked);
        }
        if self.config.reply_sequence == ReplySequence::AlwaysAdvance {
            self.seq += 1;
        }
        let (seq, lifetime) = (self.seq, self.config.my_route_timeout);
        self.stats.replies_as_destination += 1;
        self.reply(now, request.originator, rrep(self.address, seq, 0, request.originator, lifetime));
    }

    /// Answers a request as a relay with a fresh route (§6.6.2). Returns whether this node could answer.
    fn answer_as_relay(&mut self, now: Instant, from: Ipv4Addr, request: &Rreq) -> bool {
        if request.destination_only {
            return false;
        }
        let kept = self.config.local_repair.keeps_number();
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
        self.reply(
            now,
            request.originator,
            rrep(request.destination, seq, hops, request.originator, lifetime),
        );
        if request.gratuitous {
            // §6.6.3: the destination learns the route to the originator as if it had requested it.
            self.stats.replies_as_relay += 1;
            let gratuitous =
                rrep(request.originator, request.originator_seq, back_hops, request.destination, back_life);
            self.reply(now, request.destination, gratuitous);
        }
        true
    }

    /// Relays a request (§6.5, last part).
    fn relay_request(&mut self, now: Instant, ttl: u8, mut request: Rreq) {
        if ttl <= 1 {
            return self.stats.ignore(Ignored::TtlExpired);
        }
        let known = self.routes.get(now, request.destination).and_then(|route| route.seq());
        request.destination_seq = match (request.destination_seq, known) {
            (Some(asked), Some(known)) => Some(asked.max(known)),
            (asked, known) => asked.or(known),
        };
        let due = self.departure(now, self.config.broadcast_jitter);
        if self.broadcast(now, due, Message::Rreq(request), ttl - 1) {
            self.stats.requests_relayed += 1;
        }
    }

    /// Sends a reply one hop towards `to`.
    pub(super) fn reply(&mut self, now: Instant, to: Ipv4Addr, mut reply: Rrep) {
        let Some(back) = self.routes.known(now, to) else {
            return self.stats.ignore(Ignored::NoWayBack);
        };
        let next_hop = back.next_hop;
        reply.ack_required = self.config.reply_ack == ReplyAck::Always;
        if reply.ack_required {
            self.ack_waits.begin(next_hop, now + self.config.next_hop_wait);
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
