//! Calls that could end on this machine without a change of their way.
//!
//! Where a call ends here, this machine sends both halves: segments to the server under the client's address, and segments to the client
//! under the server's. No rule of routing that looks at the interface by which packets come, or at a mark of the firewall, knows them
//! ([`policy`](crate::policy)). So each call is compared: the next hops of packets that are forwarded, and those of packets that are sent
//! here. A call for which they differ is left to pass.

use crate::diversion::Diversion;
use crate::ends::ends;
use crate::error::Error;
use crate::nfqueue::Passing;
use crate::policy::{Policy, State};
use crate::routes::{Asked, Hop, Routes};
use crate::transparent;
use std::net::SocketAddr;
use std::time::Instant;

/// Compares the ways of calls.
#[derive(Debug)]
pub(crate) struct OwnRoutes {
    policy: Policy,
    routes: Routes,
    halves: Halves,
}

/// The halves of a call that this machine sends under addresses of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Halves {
    /// To the client alone.
    Client,
    /// To the client and to the server.
    Both,
}

/// The loopback interface: a packet that comes by it is, for rules, one that this machine sends (ip-rule(8)).
const LOOPBACK: u32 = 1;
/// Bits of a mark that are as the firewall has set them, in a queue of calls: the others say which listener is meant.
const OF_FIREWALL: u32 = 0xffff;

impl OwnRoutes {
    /// Opens it in the calling thread's namespace, for calls of a diversion.
    pub(crate) fn open(diversion: Diversion, halves: Halves) -> Result<Self, Error> {
        let policy = Policy::open(Some(u32::from(diversion.mark) << 16))?;
        Ok(Self { policy, routes: Routes::open()?, halves })
    }

    /// Returns whether what this machine sends for the call of a SYN goes where packets of the call would.
    pub(crate) fn are_as_forwarded(&mut self, syn: &Passing) -> bool {
        #[expect(clippy::disallowed_methods, reason = "routes are in real time")]
        if self.policy.state(Instant::now()) == State::ByDestination {
            return true;
        }
        let (Some(came_by), Some(leaves_by)) = (syn.came_by, syn.leaves_by) else { return false };
        let Some([client, server]) = syn.packet.as_deref().and_then(ends) else { return false };
        let mark = syn.mark & OF_FIREWALL;
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
            // The kernel answers nothing about a packet from a foreign source that this machine would send, but for one that comes to it.
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
