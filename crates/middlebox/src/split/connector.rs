//! Calls of servers under the addresses of clients.

use super::Shared;
use hopline_linux::Error;
use hopline_linux::route_lookup::{Route, Routes};
use hopline_linux::transparent::{LegOptions, connect_from};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};

/// Calls servers, and tells halves of connections what they are told by the hosts at their ends.
#[derive(Debug)]
pub(super) struct Connector<'a> {
    shared: &'a Shared,
    routes: Routes,
}

impl<'a> Connector<'a> {
    pub(super) fn new(shared: &'a Shared) -> Result<Self, Error> {
        Ok(Self { shared, routes: Routes::open()? })
    }

    /// Begins to call `server` as `client`. `None`: the server is this machine, which no rule has sent here, or which would wait for
    /// itself.
    pub(super) fn connect(
        &mut self,
        client: SocketAddr,
        server: SocketAddr,
    ) -> io::Result<Option<TcpStream>> {
        let forth = self.routes.lookup(server.ip())?;
        if forth == Some(Route::Local) {
            return Ok(None);
        }
        let legs = self.shared.legs();
        let leg = legs.options_for(server.ip(), forth, &self.routes);
        self.shared.spare_descriptor.with_spare_held(|| connect_from(client, server, leg)).map(Some)
    }

    /// Returns the options of a half that ends at `host`. `None`: the host is this machine.
    pub(super) fn options(&mut self, host: IpAddr) -> io::Result<Option<LegOptions>> {
        let route = self.routes.lookup(host)?;
        let legs = self.shared.legs();
        Ok((route != Some(Route::Local)).then(|| legs.options_for(host, route, &self.routes).clone()))
    }

    /// Tells the half that ends at `host`.
    pub(super) fn apply_options(&mut self, stream: &TcpStream, host: IpAddr) -> io::Result<()> {
        let route = self.routes.lookup(host)?;
        self.shared.legs().options_for(host, route, &self.routes).apply(stream)
    }
}
