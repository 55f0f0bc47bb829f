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
use crate::ends::ends;
use crate::nfqueue::Passing;
use crate::split::BaseStation;
use hopline_linux::Error;
use hopline_linux::policy::{Own, Policy, State};
use hopline_linux::routes::{Asked, Hop, Routes};
use hopline_linux::transparent;
use std::net::SocketAddr;
use std::time::Instant;

/// Compares the routes of connections.
#[derive(Debug)]
pub(crate) struct OwnRoutes {
    policy: Policy,
    routes: Routes,
    halves: Halves,
    beside: Option<Beside>,
}

/// The base station of this machine: the interface of its radio, and the mark of what is sent to mobile hosts.
#[derive(Debug)]
struct Beside {
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
const OF_FIREWALL: u32 = 0xffff;

impl OwnRoutes {
    /// Opens a checker in the calling thread's namespace, for connections of a diversion. `beside`: base station of this
    /// host, if it has one.
    pub(crate) fn open(
        diversion: Diversion,
        halves: Halves,
        beside: Option<&BaseStation>,
    ) -> Result<Self, Error> {
        let mark = u32::from(diversion.mark) << 16;
        let own = if beside.is_some() { Own::MarkedAndOfStation(mark) } else { Own::Marked(mark) };
        let beside = beside.map(|station| Beside { wireless: station.wireless.clone(), mark: station.mark });
        Ok(Self { policy: Policy::open(own)?, routes: Routes::open()?, halves, beside })
    }

    /// Returns whether local packets for the connection of a SYN take the route of its forwarded packets.
    pub(crate) fn are_as_forwarded(&mut self, syn: &Passing) -> bool {
        #[expect(clippy::disallowed_methods, reason = "routes are in real time")]
        if self.policy.state(Instant::now()) == State::ByDestination {
            return true;
        }
        let (Some(came_by), Some(leaves_by)) = (syn.came_by, syn.leaves_by) else { return false };
        let Some([client, server]) = syn.packet.as_deref().and_then(ends) else { return false };
        let mark = syn.mark & OF_FIREWALL;
        if let Some(Beside { wireless, mark: own_mark }) = &self.beside
            && client.is_ipv4()
        {
            let (radio, own_mark) = (self.routes.interface(wireless), *own_mark);
            let by_mobile_host = radio == Some(came_by);
            let (own_mark, towards_fixed) = match by_mobile_host {
                true => (transparent::onward_mark(), asked(client, server)),
                // A connection that was accepted has the mark of the listener.
                false => (own_mark, asked(server, client)),
            };
            let forwarded = self.hop(&Asked { came_by: radio, mark, ..towards_fixed });
            let own = Asked { came_by: None, mark: own_mark, ..towards_fixed };
            return forwarded.is_some() && forwarded == self.own_hop(&own);
        }
        let forth = Asked { came_by: Some(came_by), mark, ..asked(client, server) };
        let back = Asked { came_by: Some(leaves_by), ..asked(server, client) };
        let own = |asked: Asked, mark| Asked { came_by: None, mark, ..asked };
        let to_client = self.is_alike(&back, &own(back, 0), came_by);
        let to_server = self.halves == Halves::Client
            || self.is_alike(&forth, &own(forth, transparent::onward_mark()), leaves_by);
        to_client && to_server
    }

    /// Returns whether both have the same next hop, through this interface.
    fn is_alike(&mut self, forwarded: &Asked, own: &Asked, interface: u32) -> bool {
        let forwarded = self.hop(forwarded).filter(|hop| hop.interface == interface);
        forwarded.is_some() && forwarded == self.own_hop(own)
    }

    fn own_hop(&mut self, asked: &Asked) -> Option<Hop> {
        if self.policy.looks_at_sources() {
            // The kernel answers no query about a local packet with a foreign source, but one about a packet that comes
            // by the loopback interface.
            return self.hop(&Asked { came_by: Some(LOOPBACK), ..*asked });
        }
        self.hop(&Asked { source: None, ..*asked })
    }

    fn hop(&mut self, asked: &Asked) -> Option<Hop> {
        self.routes.hop(asked).ok().flatten()
    }
}

fn asked(source: SocketAddr, destination: SocketAddr) -> Asked {
    let ports = Some([source.port(), destination.port()]);
    Asked { source: Some(source.ip()), ports, ..Asked::to(destination.ip()) }
}
