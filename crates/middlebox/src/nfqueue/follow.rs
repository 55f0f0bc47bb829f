//! Routes of injected packets, on a router with policy routing ([`policy`](hopline_linux::policy)).
//!
//! Packets of a raw socket have no incoming interface, and only the mark that they are given. The kernel is therefore
//! asked for the next hop of a packet of the flow (`RTM_GETROUTE` with the interface, the mark and the addresses of the
//! forwarded packet). The injected packet is sent to that next hop through its interface: the kernel resolves the address
//! that it is given, not the one in the header (`FLOWI_FLAG_KNOWN_NH` of raw sockets with their own headers). This
//! requires that, by the rules for local packets, the next hop is a neighbour on that interface. If it is not, or if the
//! answer is not the interface by which the packet leaves, the flow passes unprocessed.

use crate::ends::ends;
use hopline_linux::Error;
use hopline_linux::policy::{FRESH, Own, Policy, State};
use hopline_linux::routes::{Asked, Fallback, Hop, Routes};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

/// Maximum number of remembered flows. Of two flows in the same slot, the later one is kept.
const FLOWS: usize = 4096;

/// Cache of the next hops of flows.
#[derive(Debug)]
pub(super) struct Follower {
    policy: Policy,
    routes: Routes,
    /// Mark of injected packets.
    mark: u32,
    state: State,
    places: RandomState,
    /// Empty until a rule requires it.
    flows: Vec<Option<Flow>>,
}

/// Interfaces and mark of a forwarded or local packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Crossing {
    /// `None`: a local packet.
    pub(super) came_by: Option<u32>,
    /// `None`: it is delivered locally.
    pub(super) leaves_by: Option<u32>,
    pub(super) mark: u32,
}

/// Route of an injected packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// The route that the kernel selects.
    Plain,
    /// By this next hop.
    By(Hop),
    /// There is no route on which packets of the flow could be followed.
    Lost,
}

#[derive(Debug)]
struct Flow {
    ends: [SocketAddr; 2],
    crossing: Crossing,
    asked: Instant,
    way: Way,
}

impl Follower {
    /// Opens the cache in the calling thread's namespace, for packets that are injected with this mark.
    pub(super) fn open(mark: u32) -> Result<Self, Error> {
        let (policy, routes) = (Policy::open(Own::None)?, Routes::open()?);
        let state = State::ByDestination;
        Ok(Self { policy, routes, mark, state, places: RandomState::new(), flows: Vec::new() })
    }

    /// Reads the routing rules, unless they were read within the last second.
    pub(super) fn look(&mut self) {
        self.state = self.policy.state(now());
        if self.state == State::ByMore && self.flows.is_empty() {
            self.flows.resize_with(FLOWS, || None);
        }
    }

    /// Remembers the flow of a packet. Returns whether injected packets could follow it, and those in the reverse
    /// direction.
    pub(super) fn follows(&mut self, packet: &[u8], crossing: Crossing) -> bool {
        if self.state == State::ByDestination {
            return true;
        }
        let now = now();
        let Some([source, destination]) = ends(packet) else { return true };
        let forth =
            crossing.leaves_by.is_none() || self.note([source, destination], crossing, now) != Way::Lost;
        forth && self.way_of([destination, source], now) != Way::Lost
    }

    /// Returns the route of a packet that is to be injected.
    pub(super) fn way(&mut self, packet: &[u8]) -> Way {
        if self.state == State::ByDestination {
            return Way::Plain;
        }
        ends(packet).map_or(Way::Plain, |ends| self.way_of(ends, now()))
    }

    fn note(&mut self, ends: [SocketAddr; 2], crossing: Crossing, now: Instant) -> Way {
        let place = self.place(&ends);
        let known = self.flows[place].as_ref().filter(|flow| flow.ends == ends && flow.crossing == crossing);
        if known.is_none() {
            let way = self.ask(ends, crossing);
            self.flows[place] = Some(Flow { ends, crossing, asked: now, way });
        }
        self.way_of(ends, now)
    }

    /// Returns the route of a flow; for an unknown flow, that of the kernel.
    fn way_of(&mut self, ends: [SocketAddr; 2], now: Instant) -> Way {
        let place = self.place(&ends);
        let known = self.flows[place].as_ref().filter(|flow| flow.ends == ends);
        let Some(&Flow { crossing, asked, way, .. }) = known else { return Way::Plain };
        if now.saturating_duration_since(asked) < FRESH {
            return way;
        }
        let way = self.ask(ends, crossing);
        self.flows[place] = Some(Flow { ends, crossing, asked: now, way });
        way
    }

    fn ask(&mut self, [source, destination]: [SocketAddr; 2], crossing: Crossing) -> Way {
        let asked = Asked {
            source: Some(source.ip()),
            ports: Some([source.port(), destination.port()]),
            came_by: crossing.came_by,
            mark: crossing.mark,
            ..Asked::to(destination.ip())
        };
        let hop = self.routes.hop(&asked).ok().flatten();
        match hop.filter(|hop| crossing.leaves_by == Some(hop.interface)) {
            Some(hop) if self.reaches(hop, destination.ip()) => Way::By(hop),
            _ => Way::Lost,
        }
    }

    /// Returns whether a local packet that is sent to a next hop through its interface reaches it.
    fn reaches(&mut self, hop: Hop, destination: IpAddr) -> bool {
        let Hop { interface, next } = hop;
        // The kernel resolves the address in the header if it only assumes that the next hop is a neighbour.
        let fallback = if next == destination { Fallback::Neighbour } else { Fallback::Nothing };
        let asked = Asked { leaves_by: Some(interface), mark: self.mark, fallback, ..Asked::to(next) };
        self.routes.hop(&asked).ok().flatten() == Some(hop)
    }

    fn place(&self, ends: &[SocketAddr; 2]) -> usize {
        self.places.hash_one(ends) as usize % FLOWS
    }
}

#[expect(clippy::disallowed_methods, reason = "routes are in real time")]
fn now() -> Instant {
    Instant::now()
}
