//! Route maintenance: links that fail, errors about them, and the packets they carried (RFC 4728 §8.3).

use super::config::{LostControl, PathCache, QueuedPackets, RouteCache, Stranded, Uncached, UncachedRelays};
use super::machine::{Dsr, Waiting};
use super::types::{Event, Packet};
use super::way::{Way, salvage_count};
use crate::DropReason;
use hopline_core::Instant;
use hopline_wire::dsr::{Addresses, DsrOption, ErrorKind, RouteError};
use std::net::Ipv4Addr;

/// Largest salvage count that a header can express.
const LARGEST_SALVAGE: u8 = 15;

impl<M: Copy> Dsr<M> {
    /// Handles a frame to `neighbour` that the link layer gave up.
    pub(super) fn handle_link_failure(&mut self, now: Instant, neighbour: Ipv4Addr, packet: Packet<M>) {
        self.stats.frames_failed += 1;
        if self.config.queued_packets == QueuedPackets::Salvaged {
            self.outbox.events.push_back(Event::PurgeQueue { next_hop: neighbour });
        }
        self.forget_link(now, self.address, neighbour);
        if self.has_others_to_tell() {
            self.report(now, neighbour, &packet);
        }
        match packet.carried {
            None => self.salvage_control(now, neighbour, packet),
            Some(carried) if self.paths.is_none() => self.fail_uncached(now, &packet, carried),
            Some(carried) => self.salvage(now, packet, carried),
        }
    }

    /// Returns whether packets carry routes that other nodes chose. If relays look for routes too, each packet has the next
    /// hop from its transmitter.
    fn has_others_to_tell(&self) -> bool {
        !matches!(self.config.cache, RouteCache::Off(Uncached { relays: UncachedRelays::Search, .. }))
    }

    /// Sends a route error to the node that gave the packet its route (§8.3.4).
    fn report(&mut self, now: Instant, neighbour: Ipv4Addr, packet: &Packet<M>) {
        let Some(way) = Way::of(packet) else { return };
        let ours = way.transmitter() == self.address && way.start() != self.address;
        if ours && !is_error(packet) && self.broken.is_news(now, neighbour, way.start()) {
            self.send_error(packet, way.travelled(), ErrorKind::NodeUnreachable(neighbour));
        }
    }

    /// Sends an error about `packet`, which `travelled` along these nodes, back over the same path. Sends none about errors.
    pub(super) fn send_error(&mut self, packet: &Packet<M>, travelled: &[Ipv4Addr], kind: ErrorKind) {
        if is_error(packet) {
            return;
        }
        let back = self.way_back(travelled);
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
            let waiting = Waiting { source, ttl, next: packet.header.next, salvage: 0, packet: carried };
            return self.route(now, destination, waiting);
        }
        if salvage_count(&packet.header) >= self.max_salvage() {
            return self.drop_packet(carried, DropReason::LinkFailure);
        }
        match self.paths.as_mut().and_then(|paths| paths.take(now, destination)) {
            Some(path) => self.send_salvaged(packet, &path),
            None => self.strand(now, &packet, carried),
        }
    }

    /// Handles a packet of another node without an alternative path.
    fn strand(&mut self, now: Instant, packet: &Packet<M>, carried: M) {
        match &self.config.cache {
            RouteCache::Paths(PathCache { stranded: Stranded::NeighboursAsked, .. }) => {
                let salvage = salvage_count(&packet.header) + 1;
                self.stats.salvaged += 1;
                self.wait(now, packet.destination, packet.without_route(salvage, carried));
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
        let RouteCache::Paths(PathCache { lost_control: LostControl::Salvaged, .. }) = self.config.cache
        else {
            return None;
        };
        let spent = salvage_count(&packet.header) >= self.max_salvage();
        if spent || self.tells_of_link(packet, neighbour) {
            return None;
        }
        self.paths.as_mut()?.take(now, packet.destination)
    }

    /// Returns whether a reply contains the link to `neighbour`, in either direction.
    fn tells_of_link(&self, packet: &Packet<M>, neighbour: Ipv4Addr) -> bool {
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
        self.config.max_salvage.min(LARGEST_SALVAGE)
    }
}

fn is_error<M>(packet: &Packet<M>) -> bool {
    packet.header.options.iter().any(|option| matches!(option, DsrOption::Error(_)))
}
