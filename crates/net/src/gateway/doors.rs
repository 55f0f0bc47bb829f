//! Where connections come in.

use super::config::Way;
use super::error::Error;
use crate::diversion::Unaccepted;
use crate::ends::Ends;
use crate::sys;
use crate::transparent::TransparentListener;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::sleep;

/// Connections that the kernel keeps until they are taken; the system may have less.
const BACKLOG: i32 = 4096;
/// How long none is taken after one could not be, for want of descriptors or memory.
const RESPITE: Duration = Duration::from_millis(50);

/// A socket that listens, for one [`Way`] in.
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

/// A connection that came in.
pub(crate) struct Call {
    pub(crate) stream: TcpStream,
    pub(crate) client: SocketAddr,
    /// Whom the client called: us, or, where it was diverted, somebody else.
    pub(crate) called: Called,
}

/// Whom a client called.
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
                        .map_err(|error| crate::Error::of_address(doing, listen.ip(), error))?,
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

    /// Returns the listener of connections that are diverted.
    pub(crate) const fn transparent(&self) -> Option<&TransparentListener> {
        match &self.listener {
            Listener::Plain(_) => None,
            Listener::Transparent(listener) => Some(listener),
        }
    }

    /// Gives each connection to `take`, and tells `unaccepted` of those that were diverted; ends only if the system has no way to wait for
    /// them.
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
    // What is accepted resets from its first moment when whoever has it dies: it has that from the listener.
    socket.set_linger(Some(Duration::ZERO))?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}
