//! Automatic route shortening (RFC 4728 §3.4.3, §4.4).

use super::config::{GratuitousReplies, RouteCache};
use super::machine::Dsr;
use super::types::Packet;
use super::way::{Way, reversed, salvage_count};
use hopline_core::Instant;
use hopline_wire::dsr::{Addresses, DsrOption, Last, RouteReply};

impl<M: Copy> Dsr<M> {
    /// Informs the source of an overheard data packet if this node is further along its path.
    pub(super) fn shorten(&mut self, now: Instant, packet: &Packet<M>, way: &Way) {
        let RouteCache::Paths(cache) = &self.config.cache else { return };
        let GratuitousReplies::On { holdoff } = cache.gratuitous_replies else { return };
        let Some(skipped) = way.ahead().iter().position(|node| *node == self.address) else { return };
        let salvaged = salvage_count(&packet.header) > 0;
        // The first node ahead is the receiver. A salvaged packet does not tell its path to the node that salvaged it.
        if skipped == 0 || salvaged || packet.header.next.is_none() {
            return;
        }
        if let Err(reason) = self.detours.note(now, packet.source, way.transmitter(), now + holdoff) {
            return self.stats.ignore(reason);
        }
        let mut nodes = Addresses::from_slice(&way.travelled()[1..]);
        nodes.extend_from_slice(&way.ahead()[skipped..]);
        let back = reversed(way.travelled());
        self.learn_way_back(now, &back);
        let reply = DsrOption::Reply(RouteReply { last: Last::Hop, path: nodes });
        let Some(transmit) = self.control_along(&back, reply) else { return };
        let delay = self.jitter.below(now, self.config.gratuitous_jitter);
        if self.transmit_after(now, delay, transmit) {
            self.stats.replies_gratuitous += 1;
        }
    }
}
