//! Listeners for connections.

use super::config::ListenerConfig;
use super::error::Error;
use crate::diversion::Unaccepted;
use crate::endpoints::FlowEndpoints;
use hopline_linux::sys;
use hopline_linux::transparent::TransparentListener;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::sleep;

/// Backlog of a listener. The system may limit it further.
const BACKLOG: i32 = 4096;
/// Pause after a failed accept, for lack of file descriptors or memory.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(50);

/// A listening socket, for one [`ListenerConfig`].
#[derive(Debug)]
pub(crate) struct GatewayListener {
    listener: Listener,
    pub(crate) config: ListenerConfig,
}

#[derive(Debug)]
enum Listener {
    Plain(TcpListener),
    Transparent(TransparentListener),
}

/// An accepted connection.
pub(crate) struct AcceptedConnection {
    pub(crate) stream: TcpStream,
    pub(crate) client: SocketAddr,
    /// Destination of the client's connection: this host or, if it was diverted, another one.
    pub(crate) destination: OriginalDestination,
}

/// Destination of a client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OriginalDestination {
    Local,
    Diverted(SocketAddr),
}

impl GatewayListener {
    pub(crate) fn open(way: &ListenerConfig) -> Result<Self, Error> {
        let listener = match way {
            ListenerConfig::Transparent { listen } => {
                Listener::Transparent(TransparentListener::bind(*listen)?)
            }
            ListenerConfig::Forward { listen, .. } | ListenerConfig::Socks { listen, .. } => {
                let doing = format!("listening at TCP address {listen}");
                Listener::Plain(
                    listen_at(*listen)
                        .map_err(|error| hopline_linux::Error::of_address(doing, listen.ip(), error))?,
                )
            }
        };
        Ok(Self { listener, config: way.clone() })
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        match &self.listener {
            Listener::Plain(listener) => listener.local_addr(),
            Listener::Transparent(listener) => listener.local_addr(),
        }
    }

    /// Returns the listener of diverted connections.
    pub(crate) const fn transparent(&self) -> Option<&TransparentListener> {
        match &self.listener {
            Listener::Plain(_) => None,
            Listener::Transparent(listener) => Some(listener),
        }
    }

    /// Passes each connection to `take`, and reports diverted ones to `unaccepted`. Returns only if the system cannot
    /// wait for connections.
    pub(crate) async fn serve(
        self,
        unaccepted: Unaccepted,
        mut take: impl FnMut(AcceptedConnection, &ListenerConfig),
    ) -> io::Result<()> {
        let own = self.local_addr()?;
        match self.listener {
            Listener::Plain(listener) => serve_plain(listener, &self.config, take).await,
            Listener::Transparent(listener) => {
                serve_diverted(listener, (own, unaccepted), |call| take(call, &self.config)).await
            }
        }
    }
}

async fn serve_plain(
    listener: TcpListener,
    way: &ListenerConfig,
    mut take: impl FnMut(AcceptedConnection, &ListenerConfig),
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        match listener.accept().await {
            Ok((stream, client)) => {
                take(AcceptedConnection { stream, client, destination: OriginalDestination::Local }, way)
            }
            Err(_) => sleep(ACCEPT_BACKOFF).await,
        }
    }
}

async fn serve_diverted(
    listener: TransparentListener,
    (own, unaccepted): (SocketAddr, Unaccepted),
    mut take: impl FnMut(AcceptedConnection),
) -> io::Result<()> {
    let readable = sys::watch(listener.as_fd().try_clone_to_owned()?)?;
    loop {
        let mut ready = readable.readable().await?;
        match listener.accept() {
            Ok(Some(call)) => {
                unaccepted.accepted(FlowEndpoints::new(call.client, call.server));
                let is_ours = call.server.port() == own.port()
                    && (own.ip().is_unspecified() || own.ip() == call.server.ip());
                let called = if is_ours {
                    OriginalDestination::Local
                } else {
                    OriginalDestination::Diverted(call.server)
                };
                if let Ok(stream) = TcpStream::from_std(call.stream) {
                    take(AcceptedConnection { stream, client: call.client, destination: called });
                }
            }
            Ok(None) => ready.clear_ready(),
            Err(_) => sleep(ACCEPT_BACKOFF).await,
        }
    }
}

fn listen_at(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    // Accepted sockets inherit the option: if the process dies, the connection is reset.
    socket.set_linger(Some(Duration::ZERO))?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}
