//! Replies (RFC 3561 §6.7, §6.8).

use super::agent::Aodv;
use super::config::ReplyAck;
use super::discoveries::FoundBy;
use super::stats::IgnoredReason;
use super::table::{Expiry, OfferResult, RouteOffer};
use hopline_core::Instant;
use hopline_wire::aodv::{Message, Rrep};
use std::net::Ipv4Addr;

impl<M: Copy> Aodv<M> {
    pub(super) fn handle_reply(&mut self, now: Instant, from: Ipv4Addr, ttl: u8, mut reply: Rrep) {
        self.learn_previous_hop(now, from);
        if reply.ack_required {
            self.stats.acks_sent += 1;
            self.unicast(Message::RrepAck, from, 1);
        }
        if !self.is_other_host(reply.destination) {
            return self.stats.ignore(IgnoredReason::BadAddress);
        }
        let Some(hops) = reply.hop_count.checked_add(1) else {
            return self.stats.ignore(IgnoredReason::BadHopCount);
        };
        reply.hop_count = hops;
        let expiry = Expiry::At(now + reply.lifetime);
        let offer = RouteOffer { next_hop: from, hops, seq: reply.destination_seq, expiry };
        match self.routes.offer(now, reply.destination, offer) {
            OfferResult::Worse => return self.stats.ignore(IgnoredReason::StaleReply),
            OfferResult::TableFull => return self.stats.ignore(IgnoredReason::TableFull),
            // §6.7 passes a reply on if it changed the route. A reply that confirms the route counts too: otherwise a second
            // node could not discover a destination with an unchanged sequence number.
            OfferResult::Better | OfferResult::Same => {}
        }
        if reply.originator == self.address {
            self.complete_discovery(now, reply.destination, FoundBy::OwnReply);
        } else {
            self.complete_discovery(now, reply.destination, FoundBy::ForwardedReply);
            self.relay_reply(now, from, ttl, reply);
        }
    }

    /// Passes a reply on towards the originator of the request (§6.7), and records the precursors of both routes.
    fn relay_reply(&mut self, now: Instant, from: Ipv4Addr, ttl: u8, mut reply: Rrep) {
        if ttl <= 1 {
            return self.stats.ignore(IgnoredReason::TtlExpired);
        }
        let until = now + self.config.active_route_timeout;
        let Some(back) = self.routes.known(now, reply.originator).filter(|back| back.next_hop != from) else {
            return self.stats.ignore(IgnoredReason::NoReverseRoute);
        };
        back.renew(until);
        let back_hop = back.next_hop;
        let limit = self.config.limits.precursors;
        for target in [reply.destination, from] {
            if let Some(route) = self.routes.valid(now, target) {
                route.add_precursor(back_hop, limit);
            }
        }
        reply.ack_required = self.config.reply_ack == ReplyAck::Always;
        if reply.ack_required {
            self.pending_rrep_acks.add(back_hop, now + self.config.next_hop_wait);
        }
        self.stats.replies_relayed += 1;
        self.unicast(Message::Rrep(reply), back_hop, ttl - 1);
    }

    /// Blacklists neighbours that did not confirm a reply (§6.8): they may not receive from this node at all.
    pub(super) fn blacklist_unconfirmed(&mut self, now: Instant) {
        while let Some(neighbour) = self.pending_rrep_acks.take_expired(now) {
            self.blacklist.add(now, neighbour, now + self.config.blacklist_timeout);
        }
    }
}
