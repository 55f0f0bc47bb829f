//! The way of the datagrams of a tunnel where its own routes contain the other end.
//!
//! The kernel would lead such datagrams into the tunnel itself. So the socket is bound to the interface to which the route to the other
//! end leads without the tunnel: a lookup for one interface passes over the routes through others, and takes the next best one, whatever
//! becomes of its gateway. While the other end is not there the tunnel has no routes, and the socket is bound to no interface: that is when
//! another interface is found. No route and no rule is made for this, and none is left behind.

use super::leads;
use crate::error::Error;
use crate::network::Network;
use crate::peer_socket::PeerSocket;
use crate::routes::{Route, Routes};
use std::io;
use std::net::IpAddr;

/// The way around the routes of a tunnel.
#[derive(Debug)]
pub(super) struct Underlay {
    routes: Routes,
    peer: IpAddr,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The kernel's routes decide.
    Free,
    /// All datagrams leave, and come, by one interface.
    Bound,
}

impl Underlay {
    /// Returns that of a tunnel; `None` if its routes do not contain the other end.
    pub(super) fn of(peer: IpAddr, networks: &[leads::Network]) -> Result<Option<Self>, Error> {
        let contains = |&(address, prefix): &leads::Network| Network { address, prefix }.contains(peer);
        if !networks.iter().any(contains) {
            return Ok(None);
        }
        Ok(Some(Self { routes: Routes::open()?, peer, state: State::Free }))
    }

    /// Binds the socket to the interface that leads to the other end now. Routes of the tunnel come afterwards.
    pub(super) fn bind(&mut self, socket: &PeerSocket, tun: &str) -> io::Result<()> {
        let Some(Route::Beyond(index)) = self.routes.towards(self.peer)? else { return Ok(()) };
        // A route that an administrator has made leads into the tunnel: there is no other way to bind to.
        if self.state == State::Bound || self.routes.interface(tun) == Some(index) {
            return Ok(());
        }
        socket.bind_to(Some(index))?;
        self.state = State::Bound;
        Ok(())
    }

    /// Lets the kernel's routes decide again. Routes of the tunnel are gone.
    pub(super) fn release(&mut self, socket: &PeerSocket) -> io::Result<()> {
        if self.state == State::Bound {
            socket.bind_to(None)?;
            self.state = State::Free;
        }
        Ok(())
    }
}
