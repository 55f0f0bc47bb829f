//! Listeners for connections.

use super::config::Way;
use super::error::Error;
use crate::diversion::Unaccepted;
use crate::ends::Ends;
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
const RESPITE: Duration = Duration::from_millis(50);

/// A listening socket, for one [`Way`].
#[derive(Debug)]
pub(crate) struct Door {
    listener: Listener,
    pub(crate) way: Way,
}

#[derive(Debug)]
enum Listener {
    Plain(TcpListener),
    Transparent(TransparentListener),
}

/// An accepted connection.
pub(crate) struct Call {
    pub(crate) stream: TcpStream,
    pub(crate) client: SocketAddr,
    /// Destination of the client's connection: this host or, if it was diverted, another one.
    pub(crate) called: Called,
}

/// Destination of a client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Called {
    Us,
    Another(SocketAddr),
}

impl Door {
    pub(crate) fn open(way: &Way) -> Result<Self, Error> {
        let listener = match way {
            Way::Transparent { listen } => Listener::Transparent(TransparentListener::bind(*listen)?),
            Way::Forward { listen, .. } | Way::Socks { listen, .. } => {
                let doing = format!("listening at TCP address {listen}");
                Listener::Plain(
                    listen_at(*listen)
                        .map_err(|error| hopline_linux::Error::of_address(doing, listen.ip(), error))?,
                )
            }
        };
        Ok(Self { listener, way: way.clone() })
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
        mut take: impl FnMut(Call, &Way),
    ) -> io::Result<()> {
        let own = self.local_addr()?;
        match self.listener {
            Listener::Plain(listener) => serve_plain(listener, &self.way, take).await,
            Listener::Transparent(listener) => {
                serve_diverted(listener, (own, unaccepted), |call| take(call, &self.way)).await
            }
        }
    }
}

async fn serve_plain(listener: TcpListener, way: &Way, mut take: impl FnMut(Call, &Way)) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        match listener.accept().await {
            Ok((stream, client)) => take(Call { stream, client, called: Called::Us }, way),
            Err(_) => sleep(RESPITE).await,
        }
    }
}

async fn serve_diverted(
    listener: TransparentListener,
    (own, unaccepted): (SocketAddr, Unaccepted),
    mut take: impl FnMut(Call),
) -> io::Result<()> {
    let readable = sys::watch(listener.as_fd().try_clone_to_owned()?)?;
    loop {
        let mut ready = readable.readable().await?;
        match listener.accept() {
            Ok(Some(call)) => {
                unaccepted.accepted(Ends::new(call.client, call.server));
                let is_ours = call.server.port() == own.port()
                    && (own.ip().is_unspecified() || own.ip() == call.server.ip());
                let called = if is_ours { Called::Us } else { Called::Another(call.server) };
                if let Ok(stream) = TcpStream::from_std(call.stream) {
                    take(Call { stream, client: call.client, called });
                }
            }
            Ok(None) => ready.clear_ready(),
            Err(_) => sleep(RESPITE).await,
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
