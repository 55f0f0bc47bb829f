//! Forwarding of data packets (RFC 3561 §6.2, §6.3, §6.11 case ii).

use super::agent::Aodv;
use super::config::RenewedRoutes;
use super::table::{RouteRole, RouteState};
use super::types::{Decision, Event, Origin};
use crate::DropReason;
use hopline_core::Instant;
use std::net::Ipv4Addr;

impl<M: Copy> Aodv<M> {
    /// Decides how to handle a data packet, and renews the routes that it uses. Drain the outputs afterwards.
    ///
    /// Packets for this node itself are delivered, and broadcasts are sent, without this call.
    pub fn route(&mut self, now: Instant, destination: Ipv4Addr, origin: Origin, packet: M) -> Decision {
        let decision = self.decide(now, destination, origin, packet);
        self.set_timers();
        decision
    }

    fn decide(&mut self, now: Instant, destination: Ipv4Addr, origin: Origin, packet: M) -> Decision {
        if !self.is_other_host(destination) {
            return Decision::Dropped { reason: DropReason::Unroutable };
        }
        if matches!(origin, Origin::Forwarded { source, .. } if source == self.address) {
            return Decision::Dropped { reason: DropReason::RoutingLoop };
        }
        let state = self.routes.get(now, destination).map(|route| (route.state, route.next_hop));
        match (state, origin) {
            (Some((RouteState::Valid, next_hop)), _) => {
                self.extend_path(now, destination, next_hop, origin);
                Decision::Forward { next_hop }
            }
            (_, Origin::Local) => {
                self.buffer_packet(now, destination, packet);
                self.start_discovery(now, destination);
                Decision::Accepted
            }
            (Some((RouteState::Repairing | RouteState::RepairingKept, _)), Origin::Forwarded { .. }) => {
                self.buffer_packet(now, destination, packet);
                self.continue_discovery(now, destination);
                Decision::Accepted
            }
            (_, Origin::Forwarded { previous_hop, .. }) => {
                self.report_no_route(now, destination, previous_hop);
                Decision::Dropped { reason: DropReason::NoRoute }
            }
        }
    }

    /// Renews the routes to destination, next hop, source and previous hop (§6.2).
    fn extend_path(&mut self, now: Instant, destination: Ipv4Addr, next_hop: Ipv4Addr, origin: Origin) {
        let until = now + self.config.active_route_timeout;
        self.extend_route(now, destination, until);
        if self.config.renewed_routes == RenewedRoutes::Destination {
            return;
        }
        if next_hop != destination {
            self.extend_route(now, next_hop, until);
        }
        if let Origin::Forwarded { previous_hop, source } = origin {
            self.extend_route(now, previous_hop, until);
            if source != previous_hop {
                self.extend_route(now, source, until);
            }
        }
    }

    pub(super) fn extend_route(&mut self, now: Instant, destination: Ipv4Addr, until: Instant) {
        if let Some(route) = self.routes.valid(now, destination) {
            route.renew(until);
            route.role = RouteRole::Path;
        }
    }

    /// Puts a packet into the send buffer.
    pub(super) fn buffer_packet(&mut self, now: Instant, destination: Ipv4Addr, packet: M) {
        if let Some(oldest) = self.buffer.push(now, destination, packet) {
            self.drop_packet(oldest, DropReason::BufferFull);
        }
    }

    pub(super) fn drop_packet(&mut self, packet: M, reason: DropReason) {
        self.outbox.events.push_back(Event::Drop { packet, reason });
    }

    pub(super) fn drop_expired_packets(&mut self, now: Instant) {
        while let Some(packet) = self.buffer.pop_expired(now) {
            self.drop_packet(packet, DropReason::BufferTimeout);
        }
    }

    /// Drops every packet that waits for `destination`.
    pub(super) fn drop_buffered(&mut self, destination: Ipv4Addr, reason: DropReason) {
        let events = &mut self.outbox.events;
        self.buffer.take_all(destination, |packet| events.push_back(Event::Drop { packet, reason }));
    }
}
