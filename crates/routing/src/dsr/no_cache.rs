//! DSR without a route cache: "DSR-Cache-off" of the TCP-DOOR paper (§4.2).
//!
//! Every packet that a node sends starts a search or joins the one in progress. The first reply serves all packets that
//! wait. A relay follows the source route of a packet, or looks for a route too. In the latter case the packet keeps its
//! source, and gets a source route that begins with the relay, as a salvaged packet does. [`NoCache`] has the readings of
//! the paper.

use super::agent::Dsr;
use super::config::{NoCache, NoCacheSalvage, NoCacheSearches, RouteCache};
use super::search::{Phase, Search};
use super::source_path::{are_distinct_hosts, salvage_count};
use super::stats::IgnoredReason;
use super::types::Packet;
use crate::DropReason;
use hopline_core::Instant;
use hopline_wire::dsr::{ErrorKind, RouteError, RouteReply};
use std::net::Ipv4Addr;

impl<M: Copy> Dsr<M> {
    /// Forwards a data packet of another node over a route of this one.
    pub(super) fn forward_without_cache(&mut self, now: Instant, packet: &Packet<M>, carried: M) {
        self.stats.data_forwarded += 1;
        let salvage = salvage_count(&packet.header);
        self.buffer_packet(now, packet.destination, packet.without_route(salvage, carried));
    }

    /// Handles a reply. The first reply that arrives while packets wait for its target serves all of them, or the first.
    /// Replies do not name their request, so a late reply of an earlier search counts.
    pub(super) fn handle_reply_without_cache(&mut self, now: Instant, reply: &RouteReply) {
        let Some(&target) = reply.path.last() else { return };
        let too_long = reply.path.len() > self.max_hops();
        if too_long || !are_distinct_hosts(&reply.path) || reply.path.contains(&self.address) {
            return self.stats.ignore(IgnoredReason::Malformed);
        }
        if self.searches.get(target).is_none_or(|search| search.phase == Phase::Idle) {
            return self.stats.ignore(IgnoredReason::StaleReply);
        }
        self.on_route_found(now, target, reply.path.len());
        if let Some(search) = self.searches.get_mut(target) {
            search.last_path = reply.path.clone();
        }
        match self.no_cache_config().searches {
            NoCacheSearches::Shared => self.send_buffered(now, target, &reply.path),
            NoCacheSearches::PerPacket => self.send_oldest_buffered(now, target, &reply.path),
        }
    }

    /// Sends the packet that has waited longest along `path`, and starts the search for the next one.
    fn send_oldest_buffered(&mut self, now: Instant, target: Ipv4Addr, path: &[Ipv4Addr]) {
        if let Some(waiting) = self.buffer.take_first(target) {
            self.send_along(now, path, waiting);
        }
        if self.buffer.has_packets_for(target) {
            self.start_search(now, target);
        }
    }

    /// Handles the report of a broken link (§8.3.4), which may be on the path found last to a destination of this node's own
    /// packets. There is no cache to update; only the flows concerned are notified.
    pub(super) fn handle_error_without_cache(&mut self, error: &RouteError) {
        let ErrorKind::NodeUnreachable(unreachable) = error.kind else { return };
        if self.route_cache.is_some() || error.destination != self.address {
            return;
        }
        let uses =
            |search: &Search| search.last_path.windows(2).any(|link| link == [error.source, unreachable]);
        let lost: Vec<Ipv4Addr> =
            self.searches.iter_mut().filter(|(_, search)| uses(search)).map(|(target, _)| target).collect();
        for destination in lost {
            self.on_route_lost(destination);
        }
    }

    /// Handles a data packet with a next hop that does not answer.
    pub(super) fn handle_failure_without_cache(&mut self, now: Instant, packet: &Packet<M>, carried: M) {
        let salvage = salvage_count(&packet.header);
        if packet.source == self.address {
            self.on_route_lost(packet.destination);
            return self.buffer_packet(now, packet.destination, packet.without_route(0, carried));
        }
        match self.no_cache_config().salvage {
            NoCacheSalvage::Everywhere if salvage < self.max_salvage() => {
                self.stats.salvaged += 1;
                self.buffer_packet(now, packet.destination, packet.without_route(salvage + 1, carried));
            }
            NoCacheSalvage::Everywhere | NoCacheSalvage::SourceOnly => {
                self.drop_packet(carried, DropReason::LinkFailure);
            }
        }
    }

    fn no_cache_config(&self) -> NoCache {
        match self.config.cache {
            RouteCache::Off(uncached) => uncached,
            RouteCache::Paths(_) => NoCache::DOOR,
        }
    }
}
