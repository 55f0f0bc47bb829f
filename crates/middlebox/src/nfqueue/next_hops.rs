//! Routes of injected packets, on a router with policy routing ([`policy`](hopline_linux::policy)).
//!
//! Packets of a raw socket have no incoming interface, and only the mark that they are given. The kernel is therefore
//! asked for the next hop of a packet of the flow (`RTM_GETROUTE` with the interface, the mark and the addresses of the
//! forwarded packet). The injected packet is sent to that next hop through its interface: the kernel resolves the address
//! that it is given, not the one in the header (`FLOWI_FLAG_KNOWN_NH` of raw sockets with their own headers). This
//! requires that, by the rules for local packets, the next hop is a neighbour on that interface. If it is not, or if the
//! answer is not the interface by which the packet leaves, the flow passes unprocessed.

use crate::endpoints::endpoints;
use hopline_linux::Error;
use hopline_linux::policy::{CACHE_TIME, OwnRules, Policy, Selection};
use hopline_linux::route_lookup::{Hop, NoRouteFallback, RouteQuery, Routes};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

/// Maximum number of remembered flows. Of two flows in the same slot, the later one is kept.
const MAX_FLOWS: usize = 4096;

/// Cache of the next hops of flows.
#[derive(Debug)]
pub(super) struct NextHopCache {
    policy: Policy,
    routes: Routes,
    /// Mark of injected packets.
    mark: u32,
    state: Selection,
    hasher: RandomState,
    /// Empty until a rule requires it.
    flows: Vec<Option<Flow>>,
}

/// Interfaces and mark of a forwarded or local packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PacketContext {
    /// `None`: a local packet.
    pub(super) in_interface: Option<u32>,
    /// `None`: it is delivered locally.
    pub(super) out_interface: Option<u32>,
    pub(super) mark: u32,
}

/// Route of an injected packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InjectRoute {
    /// The route that the kernel selects.
    Kernel,
    /// By this next hop.
    Via(Hop),
    /// There is no route on which packets of the flow could be followed.
    None,
}

#[derive(Debug)]
struct Flow {
    ends: [SocketAddr; 2],
    context: PacketContext,
    queried_at: Instant,
    route: InjectRoute,
}

impl NextHopCache {
    /// Opens the cache in the calling thread's namespace, for packets that are injected with this mark.
    pub(super) fn open(mark: u32) -> Result<Self, Error> {
        let (policy, routes) = (Policy::open(OwnRules::None)?, Routes::open()?);
        let state = Selection::ByDestination;
        Ok(Self { policy, routes, mark, state, hasher: RandomState::new(), flows: Vec::new() })
    }

    /// Reads the routing rules, unless they were read within the last second.
    pub(super) fn refresh(&mut self) {
        self.state = self.policy.state(now());
        if self.state == Selection::ByMore && self.flows.is_empty() {
            self.flows.resize_with(MAX_FLOWS, || None);
        }
    }

    /// Remembers the flow of a packet. Returns whether injected packets could follow it, and those in the reverse
    /// direction.
    pub(super) fn remember(&mut self, packet: &[u8], crossing: PacketContext) -> bool {
        if self.state == Selection::ByDestination {
            return true;
        }
        let now = now();
        let Some([source, destination]) = endpoints(packet) else { return true };
        let forth = crossing.out_interface.is_none()
            || self.store([source, destination], crossing, now) != InjectRoute::None;
        forth && self.route_of([destination, source], now) != InjectRoute::None
    }

    /// Returns the route of a packet that is to be injected.
    pub(super) fn route(&mut self, packet: &[u8]) -> InjectRoute {
        if self.state == Selection::ByDestination {
            return InjectRoute::Kernel;
        }
        endpoints(packet).map_or(InjectRoute::Kernel, |ends| self.route_of(ends, now()))
    }

    fn store(&mut self, ends: [SocketAddr; 2], crossing: PacketContext, now: Instant) -> InjectRoute {
        let place = self.slot(&ends);
        let known = self.flows[place].as_ref().filter(|flow| flow.ends == ends && flow.context == crossing);
        if known.is_none() {
            let way = self.query(ends, crossing);
            self.flows[place] = Some(Flow { ends, context: crossing, queried_at: now, route: way });
        }
        self.route_of(ends, now)
    }

    /// Returns the route of a flow; for an unknown flow, that of the kernel.
    fn route_of(&mut self, ends: [SocketAddr; 2], now: Instant) -> InjectRoute {
        let place = self.slot(&ends);
        let known = self.flows[place].as_ref().filter(|flow| flow.ends == ends);
        let Some(&Flow { context: crossing, queried_at: asked, route: way, .. }) = known else {
            return InjectRoute::Kernel;
        };
        if now.saturating_duration_since(asked) < CACHE_TIME {
            return way;
        }
        let way = self.query(ends, crossing);
        self.flows[place] = Some(Flow { ends, context: crossing, queried_at: now, route: way });
        way
    }

    fn query(&mut self, [source, destination]: [SocketAddr; 2], crossing: PacketContext) -> InjectRoute {
        let asked = RouteQuery {
            source: Some(source.ip()),
            ports: Some([source.port(), destination.port()]),
            in_interface: crossing.in_interface,
            mark: crossing.mark,
            ..RouteQuery::to_destination(destination.ip())
        };
        let hop = self.routes.next_hop(&asked).ok().flatten();
        match hop.filter(|hop| crossing.out_interface == Some(hop.interface)) {
            Some(hop) if self.reaches(hop, destination.ip()) => InjectRoute::Via(hop),
            _ => InjectRoute::None,
        }
    }

    /// Returns whether a local packet that is sent to a next hop through its interface reaches it.
    fn reaches(&mut self, hop: Hop, destination: IpAddr) -> bool {
        let Hop { interface, next } = hop;
        // The kernel resolves the address in the header if it only assumes that the next hop is a neighbour.
        let fallback =
            if next == destination { NoRouteFallback::Neighbour } else { NoRouteFallback::Nothing };
        let asked = RouteQuery {
            out_interface: Some(interface),
            mark: self.mark,
            fallback,
            ..RouteQuery::to_destination(next)
        };
        self.routes.next_hop(&asked).ok().flatten() == Some(hop)
    }

    fn slot(&self, ends: &[SocketAddr; 2]) -> usize {
        self.hasher.hash_one(ends) as usize % MAX_FLOWS
    }
}

#[expect(clippy::disallowed_methods, reason = "routes are in real time")]
fn now() -> Instant {
    Instant::now()
}
