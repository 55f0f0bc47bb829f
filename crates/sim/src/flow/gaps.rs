//! When the source of a flow had packets to send and knew no route.

use super::Flow;
use crate::trace::Tracer;
use crate::world::World;
use core::ops::Sub;
use hopline_core::{Duration, FlowId, Instant, NodeId};
use std::net::Ipv4Addr;

/// The gaps so far. One begins with a packet that finds no route, and ends with one that finds a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Gaps {
    pub(super) begun: u64,
    /// Without the one that goes on.
    ended: Duration,
    since: Option<Instant>,
}

/// Gaps within some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct GapsWithin {
    pub(super) begun: u64,
    pub(super) time: Duration,
}

impl Gaps {
    fn note(&mut self, now: Instant, route: Route) {
        match (route, self.since) {
            (Route::None, None) => {
                self.begun += 1;
                self.since = Some(now);
            }
            (Route::Known, Some(since)) => {
                self.ended += now.since(since);
                self.since = None;
            }
            (Route::None, Some(_)) | (Route::Known, None) => {}
        }
    }

    pub(super) fn until(&self, now: Instant) -> GapsWithin {
        let open = self.since.map_or(Duration::ZERO, |since| now.since(since));
        GapsWithin { begun: self.begun, time: self.ended + open }
    }
}

impl Sub for GapsWithin {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self { begun: self.begun - earlier.begun, time: self.time - earlier.time }
    }
}

/// What the routing agent of the source knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    Known,
    None,
}

impl<T: Tracer> World<T> {
    /// A packet of `flow` leaves `node` for `destination`. Only agents have gaps, and only the source of the data counts.
    pub(crate) fn note_route(&mut self, node: NodeId, flow: FlowId, destination: Ipv4Addr) {
        let now = self.now;
        let Some(agent) = self.nodes[node.index()].agent.as_deref() else { return };
        let Flow { src, gaps, .. } = &mut self.flows[flow.index()];
        if *src == node {
            let known = agent.machine.has_route(now, destination);
            gaps.note(now, if known { Route::Known } else { Route::None });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_lasts_from_the_first_packet_without_a_route_to_the_first_with_one() {
        let at = Instant::from_secs;
        let mut gaps = Gaps::default();
        for (second, route) in
            [(1, Route::Known), (3, Route::None), (5, Route::None), (9, Route::Known), (12, Route::None)]
        {
            gaps.note(at(second), route);
        }
        assert_eq!(gaps.until(at(12)), GapsWithin { begun: 2, time: Duration::from_secs(6) });
        let since = gaps.until(at(15)) - gaps.until(at(12));
        assert_eq!(since, GapsWithin { begun: 0, time: Duration::from_secs(3) });
    }
}
