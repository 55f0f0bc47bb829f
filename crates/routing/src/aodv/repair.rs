//! Local repair (RFC 3561 §6.12).

use super::agent::Aodv;
use super::config::{LocalRepair, RepairEnd, RepairSequence};
use super::discoveries::DiscoveryPurpose;
use super::error::{DeletionRule, ErrorCause, LostRoutes};
use super::table::RouteState;
use super::types::Event;
use hopline_core::Instant;
use std::net::Ipv4Addr;

impl<M: Copy> Aodv<M> {
    /// Starts or continues the repair of the route to `destination`, after a packet that had `travelled` this many hops met
    /// the broken link to `neighbour`. Returns whether the packet may wait for the result.
    pub(super) fn repair(
        &mut self,
        now: Instant,
        neighbour: Ipv4Addr,
        destination: Ipv4Addr,
        travelled: u8,
    ) -> bool {
        if travelled == 0 || self.is_discovery_table_full(destination) {
            return false; // a source starts an ordinary discovery with its next packet
        }
        match self.config.local_repair {
            LocalRepair::Off => false,
            LocalRepair::Rfc { max_hops, add_ttl } => {
                let Some(route) = self.routes.get(now, destination) else { return false };
                match route.state {
                    RouteState::Repairing => return true,
                    RouteState::Valid if route.next_hop == neighbour && route.hops <= max_hops => {}
                    _ => return false,
                }
                self.begin_rfc_repair(now, destination, travelled, add_ttl);
                true
            }
            LocalRepair::PastHalfway { number, end } => {
                self.repair_past_halfway(now, destination, travelled, number, end)
            }
        }
    }

    fn is_discovery_table_full(&mut self, destination: Ipv4Addr) -> bool {
        self.discoveries.get_or_create(destination).is_none()
    }

    fn begin_rfc_repair(&mut self, now: Instant, destination: Ipv4Addr, travelled: u8, add_ttl: u8) {
        let Some(route) = self.routes.get(now, destination) else { return };
        let hops = route.hops;
        route.invalidate(RouteState::Repairing, Instant::FAR_FUTURE);
        self.stats.repairs += 1;
        if let Some(search) = self.discoveries.get_or_create(destination) {
            search.purpose = DiscoveryPurpose::Repair { hops };
        }
        // MIN_REPAIR_TTL is the last known distance to the destination (§10).
        let ttl = hops.max(travelled / 2).saturating_add(add_ttl).min(self.config.net_diameter);
        self.send_rreq(now, destination, ttl, self.config.ring_traversal_time(ttl));
    }

    /// Repairs by an ordinary discovery, which every further failed packet can start (ns-2).
    fn repair_past_halfway(
        &mut self,
        now: Instant,
        destination: Ipv4Addr,
        travelled: u8,
        number: RepairSequence,
        end: RepairEnd,
    ) -> bool {
        let Some(route) = self.routes.get(now, destination) else { return false };
        if route.state == RouteState::Invalid || travelled <= route.hops {
            return false;
        }
        if !route.is_repairing() {
            self.stats.repairs += 1;
            match number {
                RepairSequence::Advanced => route.invalidate(RouteState::Repairing, Instant::FAR_FUTURE),
                RepairSequence::Ns2Kept => route.begin_kept_repair(),
            }
        }
        self.start_discovery(now, destination);
        if let (RepairEnd::Ns2AbsoluteTimer, Some(search)) = (end, self.discoveries.get(destination)) {
            let absolute = search.deadline - Instant::ZERO;
            self.repair_timers.add(now + absolute, destination);
        }
        true
    }

    /// Ends repairs with an expired timer, as ns-2 does. No node is informed.
    pub(super) fn end_expired_repairs(&mut self, now: Instant) {
        while let Some(destination) = self.repair_timers.take_expired(now) {
            self.end_repair(now, destination);
        }
    }

    /// Handles the failure of a repair's discovery, or the loss of its purpose.
    pub(super) fn on_repair_failure(&mut self, now: Instant, destination: Ipv4Addr) {
        match self.config.local_repair {
            LocalRepair::PastHalfway { end: RepairEnd::Ns2AbsoluteTimer, .. } => {}
            _ => self.end_repair(now, destination),
        }
    }

    /// Handles a successful repair. If the route became longer, the precursors are informed and may look for a better one.
    pub(super) fn announce_repair(&mut self, now: Instant, destination: Ipv4Addr, before: u8) {
        let Some(route) = self.routes.valid(now, destination) else { return };
        if route.hops <= before {
            return;
        }
        let mut casualties = LostRoutes::default();
        casualties.add(destination, route.seq(), route.precursors());
        self.send_errors(now, casualties, ErrorCause::Local, DeletionRule::Forbidden);
    }

    /// Gives up the route and informs its precursors (§6.11).
    fn end_repair(&mut self, now: Instant, destination: Ipv4Addr) {
        let forget = self.routes.deletion_time(now);
        let Some(route) = self.routes.get(now, destination) else { return };
        if !route.is_repairing() {
            return;
        }
        route.end_repair(forget);
        let mut casualties = LostRoutes::default();
        casualties.add(destination, route.seq(), route.precursors());
        route.clear_precursors();
        self.outbox.events.push_back(Event::RouteLost { destination });
        self.routes.update_next_expiry(forget);
        if !matches!(self.config.local_repair, LocalRepair::PastHalfway { .. }) {
            self.send_error(now, casualties, ErrorCause::Local);
        }
    }
}
