//! Automatic route shortening (RFC 4728 §3.4.3, §4.4).

use super::agent::Dsr;
use super::config::{GratuitousReplies, RouteCache};
use super::source_path::{SourcePath, reversed, salvage_count};
use super::types::Packet;
use hopline_core::Instant;
use hopline_wire::dsr::{Addresses, DsrOption, LastHop, RouteReply};

impl<M: Copy> Dsr<M> {
    /// Informs the source of an overheard data packet if this node is further along its path.
    pub(super) fn send_gratuitous_reply(&mut self, now: Instant, packet: &Packet<M>, way: &SourcePath) {
        let RouteCache::Paths(cache) = &self.config.cache else { return };
        let GratuitousReplies::On { holdoff } = cache.gratuitous_replies else { return };
        let Some(skipped) = way.remaining().iter().position(|node| *node == self.address) else { return };
        let salvaged = salvage_count(&packet.header) > 0;
        // The first node ahead is the receiver. A salvaged packet does not tell its path to the node that salvaged it.
        if skipped == 0 || salvaged || packet.header.next.is_none() {
            return;
        }
        if let Err(reason) =
            self.gratuitous_replies.record(now, packet.source, way.transmitter(), now + holdoff)
        {
            return self.stats.ignore(reason);
        }
        let mut nodes = Addresses::from_slice(&way.travelled()[1..]);
        nodes.extend_from_slice(&way.remaining()[skipped..]);
        let back = reversed(way.travelled());
        self.learn_reverse_path(now, &back);
        let reply = DsrOption::Reply(RouteReply { last: LastHop::Ordinary, path: nodes });
        let Some(transmit) = self.control_along(&back, reply) else { return };
        let delay = self.jitter.below(now, self.config.gratuitous_jitter);
        if self.transmit_after(now, delay, transmit) {
            self.stats.replies_gratuitous += 1;
        }
    }
}
