//! Replies (RFC 3561 §6.7, §6.8).

use super::config::ReplyAck;
use super::machine::Aodv;
use super::search::Answered;
use super::stats::Ignored;
use super::table::{Expiry, Offer, Verdict};
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
            return self.stats.ignore(Ignored::BadAddress);
        }
        let Some(hops) = reply.hop_count.checked_add(1) else {
            return self.stats.ignore(Ignored::BadHopCount);
        };
        reply.hop_count = hops;
        let expiry = Expiry::At(now + reply.lifetime);
        let offer = Offer { next_hop: from, hops, seq: reply.destination_seq, expiry };
        match self.routes.offer(now, reply.destination, offer) {
            Verdict::Worse => return self.stats.ignore(Ignored::StaleReply),
            Verdict::TableFull => return self.stats.ignore(Ignored::TableFull),
            // §6.7 passes a reply on if it changed the route. A reply that confirms the route counts too: otherwise a second
            // node could not discover a destination with an unchanged sequence number.
            Verdict::Better | Verdict::Same => {}
        }
        if reply.originator == self.address {
            self.found(now, reply.destination, Answered::ByReply);
        } else {
            self.found(now, reply.destination, Answered::ByReplyToOther);
            self.relay_reply(now, from, ttl, reply);
        }
    }

    /// Passes a reply on towards the originator of the request (§6.7), and records the precursors of both routes.
    fn relay_reply(&mut self, now: Instant, from: Ipv4Addr, ttl: u8, mut reply: Rrep) {
        if ttl <= 1 {
            return self.stats.ignore(Ignored::TtlExpired);
        }
        let until = now + self.config.active_route_timeout;
        let Some(back) = self.routes.known(now, reply.originator).filter(|back| back.next_hop != from) else {
            return self.stats.ignore(Ignored::NoWayBack);
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
            self.ack_waits.begin(back_hop, now + self.config.next_hop_wait);
        }
        self.stats.replies_relayed += 1;
        self.unicast(Message::Rrep(reply), back_hop, ttl - 1);
    }

    /// Blacklists neighbours that did not confirm a reply (§6.8): they may not receive from this node at all.
    pub(super) fn blacklist_silent(&mut self, now: Instant) {
        while let Some(neighbour) = self.ack_waits.take_overdue(now) {
            self.blacklist.add(now, neighbour, now + self.config.blacklist_timeout);
        }
    }
}
