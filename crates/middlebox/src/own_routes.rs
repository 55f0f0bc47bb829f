//! Connections that can be terminated on this host without a change of their route.
//!
//! When this host terminates a connection, it sends both halves itself: segments to the server under the client's
//! address, and segments to the client under the server's. Routing rules that match the incoming interface or a firewall
//! mark do not apply to them ([`policy`](hopline_linux::policy)). Each connection is therefore checked: the next hops of
//! forwarded packets must equal those of local ones. Otherwise the connection passes.
//!
//! Beside a [base station](BaseStation) the two routes of a connection differ: packets for mobile hosts arrive by the
//! tunnel, and packets of mobile hosts leave by the wired interface. What the daemon sends to mobile hosts has the mark by
//! which the station's rule leads to the radio. There, of IPv4 connections, only the next hop towards the fixed host is compared.

use crate::diversion::Diversion;
use crate::endpoints::endpoints;
use crate::nfqueue::QueuedPacket;
use crate::split::BaseStation;
use hopline_linux::Error;
use hopline_linux::policy::{OwnRules, Policy, Selection};
use hopline_linux::route_lookup::{Hop, RouteQuery, Routes};
use hopline_linux::transparent;
use std::net::SocketAddr;
use std::time::Instant;

/// Compares the routes of connections.
#[derive(Debug)]
pub(crate) struct OwnRoutes {
    policy: Policy,
    routes: Routes,
    halves: Halves,
    base_station: Option<StationRoute>,
}

/// The base station of this machine: the interface of its radio, and the mark of what is sent to mobile hosts.
#[derive(Debug)]
struct StationRoute {
    wireless: String,
    mark: u32,
}

/// The halves of a connection that this host sends under addresses of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Halves {
    /// Towards the client only.
    Client,
    /// Towards the client and the server.
    Both,
}

/// Index of the loopback interface: for routing rules, a packet that comes by it is a local one (ip-rule(8)).
const LOOPBACK: u32 = 1;
/// Bits of a mark that belong to the firewall, in a queue of connections; the rest select the listener.
const FIREWALL_MARK_BITS: u32 = 0xffff;

impl OwnRoutes {
    /// Opens a checker in the calling thread's namespace, for connections of a diversion. `beside`: base station of this
    /// host, if it has one.
    pub(crate) fn open(
        diversion: Diversion,
        halves: Halves,
        beside: Option<&BaseStation>,
    ) -> Result<Self, Error> {
        let mark = u32::from(diversion.mark) << 16;
        let own = if beside.is_some() { OwnRules::MarkedAndOfStation(mark) } else { OwnRules::Marked(mark) };
        let beside =
            beside.map(|station| StationRoute { wireless: station.wireless.clone(), mark: station.mark });
        Ok(Self { policy: Policy::open(own)?, routes: Routes::open()?, halves, base_station: beside })
    }

    /// Returns whether local packets for the connection of a SYN take the route of its forwarded packets.
    pub(crate) fn match_forwarded(&mut self, syn: &QueuedPacket) -> bool {
        #[expect(clippy::disallowed_methods, reason = "routes are in real time")]
        if self.policy.state(Instant::now()) == Selection::ByDestination {
            return true;
        }
        let (Some(came_by), Some(leaves_by)) = (syn.in_interface, syn.out_interface) else { return false };
        let Some([client, server]) = syn.packet.as_deref().and_then(endpoints) else { return false };
        let mark = syn.mark & FIREWALL_MARK_BITS;
        if let Some(StationRoute { wireless, mark: own_mark }) = &self.base_station
            && client.is_ipv4()
        {
            let (radio, own_mark) = (self.routes.interface(wireless), *own_mark);
            let by_mobile_host = radio == Some(came_by);
            let (own_mark, towards_fixed) = match by_mobile_host {
                true => (transparent::onward_mark(), query(client, server)),
                // A connection that was accepted has the mark of the listener.
                false => (own_mark, query(server, client)),
            };
            let forwarded = self.hop(&RouteQuery { in_interface: radio, mark, ..towards_fixed });
            let own = RouteQuery { in_interface: None, mark: own_mark, ..towards_fixed };
            return forwarded.is_some() && forwarded == self.own_hop(&own);
        }
        let forth = RouteQuery { in_interface: Some(came_by), mark, ..query(client, server) };
        let back = RouteQuery { in_interface: Some(leaves_by), ..query(server, client) };
        let own = |asked: RouteQuery, mark| RouteQuery { in_interface: None, mark, ..asked };
        let to_client = self.same_next_hop(&back, &own(back, 0), came_by);
        let to_server = self.halves == Halves::Client
            || self.same_next_hop(&forth, &own(forth, transparent::onward_mark()), leaves_by);
        to_client && to_server
    }

    /// Returns whether both have the same next hop, through this interface.
    fn same_next_hop(&mut self, forwarded: &RouteQuery, own: &RouteQuery, interface: u32) -> bool {
        let forwarded = self.hop(forwarded).filter(|hop| hop.interface == interface);
        forwarded.is_some() && forwarded == self.own_hop(own)
    }

    fn own_hop(&mut self, asked: &RouteQuery) -> Option<Hop> {
        if self.policy.matches_sources() {
            // The kernel answers no query about a local packet with a foreign source, but one about a packet that comes
            // by the loopback interface.
            return self.hop(&RouteQuery { in_interface: Some(LOOPBACK), ..*asked });
        }
        self.hop(&RouteQuery { source: None, ..*asked })
    }

    fn hop(&mut self, asked: &RouteQuery) -> Option<Hop> {
        self.routes.next_hop(asked).ok().flatten()
    }
}

fn query(source: SocketAddr, destination: SocketAddr) -> RouteQuery {
    let ports = Some([source.port(), destination.port()]);
    RouteQuery { source: Some(source.ip()), ports, ..RouteQuery::to_destination(destination.ip()) }
}
