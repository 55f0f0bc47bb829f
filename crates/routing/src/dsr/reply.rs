//! Replies: as the target, from the cache, and received (RFC 4728 §8.2.4 to §8.2.6).

use super::agent::Dsr;
use super::delayed_replies::DelayedReply;
use super::source_path::{SourcePath, reversed, salvage_count};
use super::stats::IgnoredReason;
use super::types::{Packet, Transmit};
use hopline_core::{Duration, Instant};
use hopline_wire::dsr::{Addresses, DsrOption, LastHop, RouteReply, RouteRequest};
use std::net::Ipv4Addr;

impl<M: Copy> Dsr<M> {
    /// Replies as the target (§8.2.4).
    pub(super) fn reply_as_target(&mut self, now: Instant, initiator: Ipv4Addr, request: &RouteRequest) {
        let mut nodes = request.path.clone();
        nodes.push(self.address);
        let Some(transmit) = self.reply_along_record(now, initiator, &request.path, nodes) else { return };
        let delay = self.jitter.below(now, self.config.reply_jitter);
        if self.transmit_after(now, delay, transmit) {
            self.stats.replies_as_target += 1;
        }
    }

    /// Schedules a reply from the cache, as this node knows the rest of the path (§8.2.5). `nodes`: all of it, without the
    /// initiator.
    pub(super) fn delay_reply(
        &mut self,
        now: Instant,
        per_hop: Duration,
        initiator: Ipv4Addr,
        request: &RouteRequest,
        nodes: Addresses,
    ) {
        let hops = nodes.len();
        let Some(transmit) = self.reply_along_record(now, initiator, &request.path, nodes) else { return };
        let delay = per_hop.saturating_mul(hops as u64 - 1) + self.jitter.below(now, per_hop);
        if delay.is_zero() {
            self.stats.replies_from_cache += 1;
            self.outbox.transmits.push_back(transmit);
        } else if self.delayed_replies.waiting.len() >= self.delayed_replies.limit {
            self.stats.ignore(IgnoredReason::OutboxFull);
        } else {
            let target = request.target;
            self.delayed_replies.waiting.push(DelayedReply {
                due: now + delay,
                initiator,
                target,
                hops,
                transmit,
            });
        }
    }

    pub(super) fn send_delayed_replies(&mut self, now: Instant) {
        while let Some(transmit) = self.delayed_replies.pop_due(now) {
            self.stats.replies_from_cache += 1;
            self.outbox.transmits.push_back(transmit);
        }
    }

    /// Cancels replies to an initiator that uses a route as short as theirs (§8.2.5). A salvaged packet does not tell the
    /// route of its source.
    pub(super) fn cancel_delayed_replies(&mut self, packet: &Packet<M>, way: &SourcePath) {
        if packet.header.next.is_none() || salvage_count(&packet.header) > 0 {
            return;
        }
        let before = self.delayed_replies.waiting.len();
        self.delayed_replies.waiting.retain(|reply| {
            (reply.initiator, reply.target) != (packet.source, packet.destination) || way.hops() > reply.hops
        });
        self.stats.replies_cancelled += (before - self.delayed_replies.waiting.len()) as u64;
    }

    /// §8.2.6. Where routes are remembered, that has already been done.
    pub(super) fn handle_reply(&mut self, now: Instant, reply: &RouteReply) {
        if self.route_cache.is_none() {
            self.handle_reply_without_cache(now, reply);
        }
    }

    /// Sends a reply back along the record of its request, which tests whether the links are bidirectional (§8.2.4).
    fn reply_along_record(
        &mut self,
        now: Instant,
        initiator: Ipv4Addr,
        record: &[Ipv4Addr],
        nodes: Addresses,
    ) -> Option<Transmit<M>> {
        let mut back = reversed(record);
        back.push(initiator);
        self.learn_reverse_path(now, &back);
        self.control_along(&back, DsrOption::Reply(RouteReply { last: LastHop::Ordinary, path: nodes }))
    }
}
