//! Packet processing at the source, at relays and at the destination (RFC 4728 §8.1).

use super::agent::{Dsr, UnroutedPacket};
use super::config::{NoCache, NoCacheRelays, RouteCache};
use super::source_path::{SourcePath, reversed, salvage_count};
use super::stats::IgnoredReason;
use super::types::{Event, Flow, Packet, Received, Transmit};
use crate::DropReason;
use hopline_core::{Duration, Instant};
use hopline_wire::dsr::{Ack, Addresses, DsrOption, ErrorKind, FirstHop, Header, LastHop, SourceRoute};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Time to live of replies, errors and acknowledgements: more than the hops of any source route.
const CONTROL_TTL: u8 = 64;
/// Error type OPTION_NOT_SUPPORTED (§6.4).
const OPTION_NOT_SUPPORTED: u8 = 3;

/// Bits of an unknown option's type that say how to treat it (§8.1.6).
const NOTIFY_SOURCE: u8 = 0x80;
const ACTION: u8 = 0x60;
const STRIP: u8 = 0x20;
const MARK: u8 = 0x40;
const DROP: u8 = 0x60;

impl<M: Copy> Dsr<M> {
    /// Sends a data packet along `path`, which begins behind this node.
    pub(super) fn send_along(&mut self, now: Instant, path: &[Ipv4Addr], waiting: UnroutedPacket<M>) {
        self.send_along_after(now, Duration::ZERO, path, waiting);
    }

    /// Does the same after `delay`.
    pub(super) fn send_along_after(
        &mut self,
        now: Instant,
        delay: Duration,
        path: &[Ipv4Addr],
        waiting: UnroutedPacket<M>,
    ) {
        let Some(transmit) = self.data_along(now, path, waiting) else { return };
        if !self.transmit_after(now, delay, transmit) {
            self.drop_packet(waiting.packet, DropReason::BufferFull);
        }
    }

    /// Returns the packet with a source route along `path`. An empty path drops it.
    fn data_along(
        &mut self,
        now: Instant,
        path: &[Ipv4Addr],
        waiting: UnroutedPacket<M>,
    ) -> Option<Transmit<M>> {
        let UnroutedPacket { source, ttl, next, salvage, packet } = waiting;
        let Some((&destination, between)) = path.split_last() else {
            self.drop_packet(packet, DropReason::NoRoute);
            return None;
        };
        let mut addresses = Addresses::new();
        let flow = if source != self.address || salvage > 0 {
            // §8.3.6: the first address is the node that gave the packet its route.
            addresses.push(self.address);
            Flow::Announced
        } else {
            self.flows.record_packet(now, path, self.config.source_routes)
        };
        addresses.extend_from_slice(between);
        let route = new_route(salvage, between.len(), addresses);
        let next_hop = route.next_hop(destination);
        let header = Header { next, options: core::iter::once(DsrOption::SourceRoute(route)).collect() };
        let header = Arc::new(header);
        let packet = Packet { source, destination, ttl, header, payload: Some(packet), flow };
        Some(Transmit { packet, next_hop })
    }

    /// Returns a packet of this node with one option, along `path`.
    pub(super) fn control_along(&self, path: &[Ipv4Addr], option: DsrOption) -> Option<Transmit<M>> {
        let (&destination, between) = path.split_last()?;
        let route = new_route(0, between.len(), Addresses::from_slice(between));
        let next_hop = route.next_hop(destination);
        let packet = self.control_packet(destination, CONTROL_TTL, [DsrOption::SourceRoute(route), option]);
        Some(Transmit { packet, next_hop })
    }

    /// Handles a packet that a neighbour addressed to this node (§8.1.4).
    pub(super) fn handle_addressed(&mut self, now: Instant, received: Received<M>) {
        let Received { packet, from, .. } = received;
        let way = match self.check(&packet, from) {
            Ok(way) => way,
            Err(reason) => {
                self.stats.ignore(reason);
                if let Some(packet) = packet.payload {
                    self.drop_packet(packet, DropReason::BadRoute);
                }
                return;
            }
        };
        self.cancel_delayed_replies(&packet, &way);
        if packet.flow == Flow::Announced {
            self.learn_from(now, &packet.header, packet.destination, &way, from);
        }
        self.acknowledge(&packet, from);
        if packet.destination == self.address {
            self.deliver(now, packet);
        } else {
            self.forward_along_route(now, packet);
        }
    }

    fn check(&mut self, packet: &Packet<M>, from: Ipv4Addr) -> Result<SourcePath, IgnoredReason> {
        let way = SourcePath::of_packet(packet).ok_or(IgnoredReason::Malformed)?;
        if way.receiver() != self.address {
            return Err(IgnoredReason::NotOnRoute);
        }
        if way.transmitter() != from || from == self.address {
            return Err(IgnoredReason::Malformed);
        }
        self.report_unknown_option(packet, &way);
        if forbids_forwarding(&packet.header) {
            return Err(IgnoredReason::UnknownOption);
        }
        Ok(way)
    }

    /// Informs the source of an unknown option, if the option asks for it (§8.1.6).
    fn report_unknown_option(&mut self, packet: &Packet<M>, way: &SourcePath) {
        let objection = packet.header.options.iter().find_map(|option| match option {
            DsrOption::Unknown { kind, .. } if kind & NOTIFY_SOURCE != 0 => Some(*kind),
            _ => None,
        });
        if let (Some(kind), RouteCache::Paths(_)) = (objection, self.config.cache) {
            let kind =
                ErrorKind::Other { kind: OPTION_NOT_SUPPORTED, data: core::iter::once(kind).collect() };
            self.send_error(packet, way.travelled(), kind);
        }
    }

    /// Acknowledges the packet to the neighbour that sent it, if requested (§8.3.3).
    fn acknowledge(&mut self, packet: &Packet<M>, from: Ipv4Addr) {
        let options = &packet.header.options;
        let asked = options.iter().find_map(|option| match option {
            DsrOption::AckRequest(request) => Some(request.id),
            _ => None,
        });
        let acknowledges = options.iter().any(|option| matches!(option, DsrOption::Ack(_)));
        let Some(id) = asked.filter(|_| !acknowledges || packet.destination == self.address) else { return };
        let ack = DsrOption::Ack(Ack { id, source: self.address, destination: from });
        let packet = self.control_packet(from, 1, [ack]);
        self.stats.acks_sent += 1;
        self.transmit(packet, from);
    }

    /// Accepts a packet at its destination.
    fn deliver(&mut self, now: Instant, packet: Packet<M>) {
        for option in &packet.header.options {
            match option {
                DsrOption::Reply(reply) => self.handle_reply(now, reply),
                DsrOption::Error(error) => self.handle_error_without_cache(error),
                _ => {}
            }
        }
        if let Some(carried) = packet.payload {
            self.outbox.events.push_back(Event::Deliver { packet: carried, ttl: packet.ttl });
        }
    }

    /// Forwards a packet along its source route (§8.1.5). Without a route cache, data packets may have to look for a route
    /// of their own.
    fn forward_along_route(&mut self, now: Instant, packet: Packet<M>) {
        if packet.ttl <= 1 {
            self.stats.ignore(IgnoredReason::TtlExpired);
            if let Some(packet) = packet.payload {
                self.drop_packet(packet, DropReason::TtlExpired);
            }
            return;
        }
        let packet = Packet { ttl: packet.ttl - 1, ..packet };
        match (self.config.cache, packet.payload) {
            (RouteCache::Off(NoCache { relays: NoCacheRelays::Search, .. }), Some(carried)) => {
                self.forward_without_cache(now, &packet, carried);
            }
            (_, carried) => {
                if carried.is_some() {
                    self.stats.data_forwarded += 1;
                } else {
                    self.stats.control_forwarded += 1;
                }
                self.forward(packet);
            }
        }
    }

    fn forward(&mut self, packet: Packet<M>) {
        let mut next_hop = packet.destination;
        let mut options = options_for_next_hop(&packet.header);
        for option in &mut options {
            if let DsrOption::SourceRoute(route) = option {
                route.segments_left = route.segments_left.saturating_sub(1);
                next_hop = route.next_hop(packet.destination);
            }
        }
        let header = Arc::new(Header { next: packet.header.next, options });
        self.transmit(Packet { header, ..packet }, next_hop);
    }

    /// Sends a packet along `path` in place of the route with the failed next hop (§8.3.6).
    pub(super) fn send_salvaged(&mut self, packet: Packet<M>, path: &[Ipv4Addr]) {
        let between = &path[..path.len().saturating_sub(1)];
        let mut addresses = Addresses::new();
        addresses.push(self.address);
        addresses.extend_from_slice(between);
        let salvage = salvage_count(&packet.header) + 1;
        let route = new_route(salvage, between.len(), addresses);
        let next_hop = route.next_hop(packet.destination);
        let mut options = options_for_next_hop(&packet.header);
        // A reply with data goes back along the record of its request, or not at all.
        let keeps_reply = packet.payload.is_none();
        options.retain(|option| match option {
            DsrOption::SourceRoute(_) => false,
            DsrOption::Reply(_) => keeps_reply,
            _ => true,
        });
        options.insert(0, DsrOption::SourceRoute(route));
        self.stats.salvaged += 1;
        let header = Arc::new(Header { next: packet.header.next, options });
        self.transmit(Packet { header, flow: Flow::Announced, ..packet }, next_hop);
    }

    /// Returns the reverse path from this node along `travelled`.
    pub(super) fn reverse_path(&self, travelled: &[Ipv4Addr]) -> Addresses {
        let end = travelled.iter().position(|node| *node == self.address).unwrap_or(travelled.len());
        reversed(&travelled[..end])
    }
}

fn new_route(salvage: u8, segments_left: usize, path: Addresses) -> SourceRoute {
    let segments_left = u8::try_from(segments_left).expect("paths are at most 61 nodes long");
    SourceRoute { first: FirstHop::Ordinary, last: LastHop::Ordinary, salvage, segments_left, path }
}

/// Returns the treatment that an unknown option asks for.
fn unknown_option_action(option: &DsrOption) -> Option<u8> {
    match option {
        DsrOption::Unknown { kind, .. } => Some(kind & ACTION),
        _ => None,
    }
}

/// Returns whether an unknown option's type forbids to forward the packet (§8.1.6).
pub(super) fn forbids_forwarding(header: &Header) -> bool {
    header.options.iter().any(|option| unknown_option_action(option) == Some(DROP))
}

/// Returns the options for the next node: without the acknowledgement request, which was for this node, and with unknown
/// options treated as their types ask (§8.1.6).
pub(super) fn options_for_next_hop(header: &Header) -> smallvec::SmallVec<[DsrOption; 1]> {
    let mut options = header.options.clone();
    options.retain(|option| {
        !matches!(option, DsrOption::AckRequest(_)) && unknown_option_action(option) != Some(STRIP)
    });
    for option in &mut options {
        let marked = unknown_option_action(option) == Some(MARK);
        if let (true, DsrOption::Unknown { data, .. }) = (marked, option)
            && let Some(first) = data.first_mut()
        {
            *first |= 0x80;
        }
    }
    options
}
