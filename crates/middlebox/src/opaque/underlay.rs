//! Route of a tunnel's datagrams, if the tunnel's own routes contain the peer.
//!
//! The kernel would route such datagrams into the tunnel itself. The socket is therefore bound to the interface of the
//! peer's route without the tunnel: a lookup for one interface skips routes through others, and takes the next best one,
//! whatever the state of its gateway. While the peer is absent, the tunnel has no routes, and the socket is not bound, so
//! that another interface can be found. This creates no routes and no rules, and leaves none behind.

use super::tunnel_routes;
use crate::peer_socket::PeerSocket;
use hopline_linux::Error;
use hopline_linux::Network;
use hopline_linux::route_lookup::{Route, Routes};
use std::io;
use std::net::IpAddr;

/// Route around the routes of a tunnel.
#[derive(Debug)]
pub(super) struct Underlay {
    routes: Routes,
    peer: IpAddr,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The kernel's routes select the interface.
    Free,
    /// All datagrams use one interface.
    Bound,
}

impl Underlay {
    /// Returns the underlay of a tunnel; `None` if its routes do not contain the peer.
    pub(super) fn for_peer(peer: IpAddr, networks: &[tunnel_routes::Network]) -> Result<Option<Self>, Error> {
        let contains =
            |&(address, prefix): &tunnel_routes::Network| Network { address, prefix }.contains(peer);
        if !networks.iter().any(contains) {
            return Ok(None);
        }
        Ok(Some(Self { routes: Routes::open()?, peer, state: State::Free }))
    }

    /// Binds the socket to the interface that currently leads to the peer. Call it before the tunnel's routes are set.
    pub(super) fn bind(&mut self, socket: &PeerSocket, tun: &str) -> io::Result<()> {
        let Some(Route::Remote(index)) = self.routes.lookup(self.peer)? else { return Ok(()) };
        // A route of an administrator leads into the tunnel: there is no other interface to bind to.
        if self.state == State::Bound || self.routes.interface(tun) == Some(index) {
            return Ok(());
        }
        socket.bind_to(Some(index))?;
        self.state = State::Bound;
        Ok(())
    }

    /// Unbinds the socket. Call it after the tunnel's routes were removed.
    pub(super) fn release(&mut self, socket: &PeerSocket) -> io::Result<()> {
        if self.state == State::Bound {
            socket.bind_to(None)?;
            self.state = State::Free;
        }
        Ok(())
    }
}
