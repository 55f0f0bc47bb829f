//! Overheard packets for other nodes (RFC 4728 §3.3.1, §8.1.4).

use super::agent::Dsr;
use super::config::{RouteCache, Tap};
use super::source_path::SourcePath;
use super::stats::IgnoredReason;
use super::types::{Flow, Received};
use crate::TimerEffect;
use hopline_core::Instant;
use std::net::Ipv4Addr;

impl<M: Copy> Dsr<M> {
    /// Handles an overheard packet of a neighbour to `to`.
    pub(super) fn overhear(&mut self, now: Instant, received: &Received<M>, to: Ipv4Addr) -> TimerEffect {
        let RouteCache::Paths(cache) = &self.config.cache else { return TimerEffect::None };
        if cache.tap == Tap::Off {
            return TimerEffect::None;
        }
        let (packet, from) = (&received.packet, received.from);
        let way = SourcePath::of_packet(packet).filter(|way| {
            // This node does not overhear its own transmission.
            (way.transmitter(), way.receiver()) == (from, to) && from != self.address && to != self.address
        });
        let Some(way) = way else {
            self.stats.ignore(IgnoredReason::Malformed);
            return TimerEffect::None;
        };
        match packet.flow {
            Flow::Announced => {
                self.cancel_delayed_replies(packet, &way);
                self.learn_from(now, &packet.header, packet.destination, &way, from);
                self.send_gratuitous_reply(now, packet, &way);
            }
            Flow::Established if packet.destination != self.address => {
                self.send_gratuitous_reply(now, packet, &way)
            }
            Flow::Established => {}
        }
        TimerEffect::Possible
    }
}
