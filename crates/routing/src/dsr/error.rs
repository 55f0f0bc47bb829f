//! Route maintenance: links that fail, errors about them, and the packets they carried (RFC 4728 §8.3).

use super::agent::{Dsr, UnroutedPacket};
use super::config::{
    FailedControl, NoCache, NoCacheRelays, PathCache, QueuedPackets, RouteCache, UnsalvageablePackets,
};
use super::source_path::{SourcePath, salvage_count};
use super::types::{Event, Packet};
use crate::DropReason;
use hopline_core::Instant;
use hopline_wire::dsr::{Addresses, DsrOption, ErrorKind, RouteError};
use std::net::Ipv4Addr;

/// Largest salvage count that a header can express.
const MAX_SALVAGE: u8 = 15;

impl<M: Copy> Dsr<M> {
    /// Handles a frame to `neighbour` that the link layer gave up.
    pub(super) fn handle_link_failure(&mut self, now: Instant, neighbour: Ipv4Addr, packet: Packet<M>) {
        self.stats.frames_failed += 1;
        if self.config.queued_packets == QueuedPackets::Salvaged {
            self.outbox.events.push_back(Event::PurgeQueue { next_hop: neighbour });
        }
        self.remove_link(now, self.address, neighbour);
        if self.must_report_errors() {
            self.report_link_failure(now, neighbour, &packet);
        }
        match packet.payload {
            None => self.salvage_control(now, neighbour, packet),
            Some(carried) if self.route_cache.is_none() => {
                self.handle_failure_without_cache(now, &packet, carried)
            }
            Some(carried) => self.salvage(now, packet, carried),
        }
    }

    /// Returns whether packets carry routes that other nodes chose. If relays look for routes too, each packet has the next
    /// hop from its transmitter.
    fn must_report_errors(&self) -> bool {
        !matches!(self.config.cache, RouteCache::Off(NoCache { relays: NoCacheRelays::Search, .. }))
    }

    /// Sends a route error to the node that gave the packet its route (§8.3.4).
    fn report_link_failure(&mut self, now: Instant, neighbour: Ipv4Addr, packet: &Packet<M>) {
        let Some(way) = SourcePath::of_packet(packet) else { return };
        let ours = way.transmitter() == self.address && way.start() != self.address;
        if ours && !is_error(packet) && self.link_errors.is_first_report(now, neighbour, way.start()) {
            self.send_error(packet, way.travelled(), ErrorKind::NodeUnreachable(neighbour));
        }
    }

    /// Sends an error about `packet`, which `travelled` along these nodes, back over the same path. Sends none about errors.
    pub(super) fn send_error(&mut self, packet: &Packet<M>, travelled: &[Ipv4Addr], kind: ErrorKind) {
        if is_error(packet) {
            return;
        }
        let back = self.reverse_path(travelled);
        let Some(&destination) = back.last() else { return };
        let salvage = salvage_count(&packet.header);
        let error = RouteError { salvage, source: self.address, destination, kind };
        if let Some(transmit) = self.control_along(&back, DsrOption::Error(error)) {
            self.stats.errors_sent += 1;
            self.outbox.transmits.push_back(transmit);
        }
    }

    /// Salvages a packet (§8.3.6). Packets of this node's own start again.
    fn salvage(&mut self, now: Instant, packet: Packet<M>, carried: M) {
        let Packet { source, destination, ttl, .. } = packet;
        if source == self.address {
            let waiting =
                UnroutedPacket { source, ttl, next: packet.header.next, salvage: 0, packet: carried };
            return self.route(now, destination, waiting);
        }
        if salvage_count(&packet.header) >= self.max_salvage() {
            return self.drop_packet(carried, DropReason::LinkFailure);
        }
        match self.route_cache.as_mut().and_then(|paths| paths.find_and_use(now, destination)) {
            Some(path) => self.send_salvaged(packet, &path),
            None => self.handle_unsalvageable(now, &packet, carried),
        }
    }

    /// Handles a packet of another node without an alternative path.
    fn handle_unsalvageable(&mut self, now: Instant, packet: &Packet<M>, carried: M) {
        match &self.config.cache {
            RouteCache::Paths(PathCache {
                unsalvageable_packets: UnsalvageablePackets::QueryNeighbours,
                ..
            }) => {
                let salvage = salvage_count(&packet.header) + 1;
                self.stats.salvaged += 1;
                self.buffer_packet(now, packet.destination, packet.without_route(salvage, carried));
            }
            _ => self.drop_packet(carried, DropReason::NoRoute),
        }
    }

    /// Sends a reply or an error over another path, if one is known.
    fn salvage_control(&mut self, now: Instant, neighbour: Ipv4Addr, packet: Packet<M>) {
        match self.path_for_control(now, neighbour, &packet) {
            Some(path) => self.send_salvaged(packet, &path),
            None => self.stats.control_lost += 1,
        }
    }

    fn path_for_control(
        &mut self,
        now: Instant,
        neighbour: Ipv4Addr,
        packet: &Packet<M>,
    ) -> Option<Addresses> {
        let RouteCache::Paths(PathCache { failed_control: FailedControl::Salvaged, .. }) = self.config.cache
        else {
            return None;
        };
        let spent = salvage_count(&packet.header) >= self.max_salvage();
        if spent || self.reply_contains_link(packet, neighbour) {
            return None;
        }
        self.route_cache.as_mut()?.find_and_use(now, packet.destination)
    }

    /// Returns whether a reply contains the link to `neighbour`, in either direction.
    fn reply_contains_link(&self, packet: &Packet<M>, neighbour: Ipv4Addr) -> bool {
        let ends = [self.address, neighbour];
        packet.header.options.iter().any(|option| match option {
            DsrOption::Reply(reply) => {
                let nodes = core::iter::once(&packet.destination).chain(&reply.path);
                nodes.zip(&reply.path).any(|(from, to)| ends.contains(from) && ends.contains(to))
            }
            _ => false,
        })
    }

    pub(super) fn max_salvage(&self) -> u8 {
        self.config.max_salvage.min(MAX_SALVAGE)
    }
}

fn is_error<M>(packet: &Packet<M>) -> bool {
    packet.header.options.iter().any(|option| matches!(option, DsrOption::Error(_)))
}
