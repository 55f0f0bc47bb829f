//! Local repair (RFC 3561 §6.12).

use super::config::{LocalRepair, RepairEnd};
use super::error::{Casualties, Deletion, Pace};
use super::machine::Aodv;
use super::search::Goal;
use super::table::RouteState;
use hopline_core::Instant;
use std::net::Ipv4Addr;

impl<M: Copy> Aodv<M> {
    /// Starts or continues the repair of the route to `destination`, on which a packet that had `travelled` so many
    /// hops met the broken link to `neighbour`. Returns whether the packet may wait for the result.
    pub(super) fn repair(
        &mut self,
        now: Instant,
        neighbour: Ipv4Addr,
        destination: Ipv4Addr,
        travelled: u8,
    ) -> bool {
        let policy = self.config.local_repair;
        if policy == LocalRepair::Off || travelled == 0 || self.searches_are_full(destination) {
            return false; // a source starts an ordinary discovery with its next packet
        }
        let Some(route) = self.routes.get(now, destination) else { return false };
        match route.state {
            RouteState::Repairing => return true,
            RouteState::Valid if route.next_hop == neighbour => {}
            RouteState::Valid | RouteState::Invalid => return false,
        }
        let hops = route.hops;
        let near = match policy {
            LocalRepair::Off => false,
            LocalRepair::Rfc { max_hops, .. } => hops <= max_hops,
            LocalRepair::WhenPastHalfWay(_) => travelled > hops,
        };
        if near {
            route.invalidate(RouteState::Repairing, Instant::FAR_FUTURE);
            self.begin_repair(now, destination, hops, travelled);
        }
        near
    }

    fn searches_are_full(&mut self, destination: Ipv4Addr) -> bool {
        self.searches.begin(destination).is_none()
    }

    fn begin_repair(&mut self, now: Instant, destination: Ipv4Addr, hops: u8, travelled: u8) {
        self.stats.repairs += 1;
        if let Some(search) = self.searches.begin(destination) {
            search.goal = Goal::Repair { hops };
        }
        match self.config.local_repair {
            LocalRepair::Rfc { add_ttl, .. } => {
                // MIN_REPAIR_TTL is the last known distance to the destination (§10).
                let ttl = hops.max(travelled / 2).saturating_add(add_ttl).min(self.config.net_diameter);
                self.request(now, destination, ttl, self.config.ring_traversal_time(ttl));
            }
            LocalRepair::WhenPastHalfWay(end) => {
                self.attempt(now, destination);
                self.limit_repair(now, destination, end);
            }
            LocalRepair::Off => {}
        }
    }

    fn limit_repair(&mut self, now: Instant, destination: Ipv4Addr, end: RepairEnd) {
        let Some(search) = self.searches.get(destination) else { return };
        let absolute = search.deadline - Instant::ZERO;
        if let (RepairEnd::Ns2AbsoluteTimer, Some(route)) = (end, self.routes.get(now, destination)) {
            route.expires = now + absolute;
            self.routes.note_expiry(now + absolute);
        }
    }

    /// The discovery for a repair failed or lost its purpose.
    pub(super) fn repair_failed(&mut self, now: Instant, destination: Ipv4Addr) {
        if self.config.local_repair != LocalRepair::WhenPastHalfWay(RepairEnd::Ns2AbsoluteTimer) {
            self.end_repair(now, destination);
        }
    }

    /// A repair succeeded. If the way became longer, the users are told and may look for a better one.
    pub(super) fn tell_of_repair(&mut self, now: Instant, destination: Ipv4Addr, before: u8) {
        let Some(route) = self.routes.valid(now, destination) else { return };
        if route.hops <= before {
            return;
        }
        let mut casualties = Casualties::default();
        casualties.add(destination, route.seq(), route.precursors());
        self.send_errors(now, casualties, Pace::Immediate, Deletion::Forbidden);
    }

    /// The route is gone and its users are told (§6.11).
    fn end_repair(&mut self, now: Instant, destination: Ipv4Addr) {
        let forget = self.routes.forget_at(now);
        let Some(route) = self.routes.get(now, destination) else { return };
        if route.state != RouteState::Repairing {
            return;
        }
        route.invalidate(RouteState::Invalid, forget);
        let mut casualties = Casualties::default();
        casualties.add(destination, route.seq(), route.precursors());
        route.clear_precursors();
        self.routes.note_expiry(forget);
        if !matches!(self.config.local_repair, LocalRepair::WhenPastHalfWay(_)) {
            self.send_error(now, casualties, Pace::Immediate);
        }
    }
}
