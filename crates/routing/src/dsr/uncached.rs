//! DSR without a route cache: "DSR-Cache-off" of the TCP-DOOR paper (§4.2).
//!
//! Every packet that a node sends starts a search or joins the one in progress. The first reply serves all packets that
//! wait. A relay follows the source route of a packet, or looks for a route too. In the latter case the packet keeps its
//! source, and gets a source route that begins with the relay, as a salvaged packet does. [`Uncached`] has the readings of
//! the paper.

use super::config::{RouteCache, Uncached, UncachedSalvage, UncachedSearches};
use super::machine::Dsr;
use super::search::{Phase, Search};
use super::stats::Ignored;
use super::types::Packet;
use super::way::{are_distinct_hosts, salvage_count};
use crate::DropReason;
use hopline_core::Instant;
use hopline_wire::dsr::{ErrorKind, RouteError, RouteReply};
use std::net::Ipv4Addr;

impl<M: Copy> Dsr<M> {
    /// Forwards a data packet of another node over a route of this one.
    pub(super) fn pass_on_uncached(&mut self, now: Instant, packet: &Packet<M>, carried: M) {
        self.stats.data_forwarded += 1;
        let salvage = salvage_count(&packet.header);
        self.wait(now, packet.destination, packet.without_route(salvage, carried));
    }

    /// Handles a reply. The first reply that arrives while packets wait for its target serves all of them, or the first.
    /// Replies do not name their request, so a late reply of an earlier search counts.
    pub(super) fn take_reply(&mut self, now: Instant, reply: &RouteReply) {
        let Some(&target) = reply.path.last() else { return };
        let too_long = reply.path.len() > self.max_hops();
        if too_long || !are_distinct_hosts(&reply.path) || reply.path.contains(&self.address) {
            return self.stats.ignore(Ignored::Malformed);
        }
        if self.searches.get(target).is_none_or(|search| search.phase == Phase::Idle) {
            return self.stats.ignore(Ignored::StaleReply);
        }
        self.found(now, target, reply.path.len());
        if let Some(search) = self.searches.get_mut(target) {
            search.way = reply.path.clone();
        }
        match self.uncached().searches {
            UncachedSearches::Shared => self.release(now, target, &reply.path),
            UncachedSearches::PerPacket => self.release_one(now, target, &reply.path),
        }
    }

    /// Sends the packet that has waited longest along `path`, and starts the search for the next one.
    fn release_one(&mut self, now: Instant, target: Ipv4Addr, path: &[Ipv4Addr]) {
        if let Some(waiting) = self.buffer.take_first(target) {
            self.send_along(now, path, waiting);
        }
        if self.buffer.holds_for(target) {
            self.look_for(now, target);
        }
    }

    /// Handles the report of a broken link (§8.3.4), which may be on the path found last to a destination of this node's own
    /// packets. There is no cache to update; only the flows concerned are notified.
    pub(super) fn take_error(&mut self, error: &RouteError) {
        let ErrorKind::NodeUnreachable(unreachable) = error.kind else { return };
        if self.paths.is_some() || error.destination != self.address {
            return;
        }
        let uses = |search: &Search| search.way.windows(2).any(|link| link == [error.source, unreachable]);
        let lost: Vec<Ipv4Addr> =
            self.searches.iter_mut().filter(|(_, search)| uses(search)).map(|(target, _)| target).collect();
        for destination in lost {
            self.lose(destination);
        }
    }

    /// Handles a data packet with a next hop that does not answer.
    pub(super) fn fail_uncached(&mut self, now: Instant, packet: &Packet<M>, carried: M) {
        let salvage = salvage_count(&packet.header);
        if packet.source == self.address {
            self.lose(packet.destination);
            return self.wait(now, packet.destination, packet.without_route(0, carried));
        }
        match self.uncached().salvage {
            UncachedSalvage::Everywhere if salvage < self.max_salvage() => {
                self.stats.salvaged += 1;
                self.wait(now, packet.destination, packet.without_route(salvage + 1, carried));
            }
            UncachedSalvage::Everywhere | UncachedSalvage::SourceOnly => {
                self.drop_packet(carried, DropReason::LinkFailure);
            }
        }
    }

    fn uncached(&self) -> Uncached {
        match self.config.cache {
            RouteCache::Off(uncached) => uncached,
            RouteCache::Paths(_) => Uncached::DOOR,
        }
    }
}
