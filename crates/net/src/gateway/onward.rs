//! Connections onward by TCP.

use super::destination::Destination;
use super::greeting::Denial;
use super::leg::TcpLeg;
use crate::transparent::{LegOptions, connect_from};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

/// Addresses of a name that are tried.
const MOST_ADDRESSES: usize = 8;

/// Whose address the destination is to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    Gateway,
    Client(SocketAddr),
}

/// Connects to `destination`, by the first of its addresses that `permits` and that answers, within `limit` in all.
pub(crate) async fn connect(
    destination: &Destination,
    from: From,
    permits: impl Fn(SocketAddr) -> bool,
    (options, limit): (&LegOptions, Duration),
) -> Result<TcpLeg, Denial> {
    let attempt = async {
        let addresses: Vec<_> =
            resolve(destination).await?.into_iter().filter(|&address| permits(address)).collect();
        let mut last = Denial::NotAllowed;
        for address in addresses {
            match connect_to(address, from, options).await {
                Ok(leg) => return Ok(leg),
                Err(error) => last = Denial::from(&error),
            }
        }
        Err(last)
    };
    timeout(limit, attempt).await.unwrap_or(Err(Denial::TimedOut))
}

/// The addresses of `destination`, at most eight.
pub(crate) async fn resolve(destination: &Destination) -> Result<Vec<SocketAddr>, Denial> {
    match destination {
        Destination::Address(address) => Ok(vec![*address]),
        Destination::Named { host, port } => {
            let found = lookup_host((host.as_str(), *port)).await.map_err(|_| Denial::NameUnknown)?;
            let found: Vec<_> = found.take(MOST_ADDRESSES).collect();
            if found.is_empty() { Err(Denial::NameUnknown) } else { Ok(found) }
        }
    }
}

async fn connect_to(address: SocketAddr, from: From, options: &LegOptions) -> io::Result<TcpLeg> {
    let begun = match from {
        From::Client(client) if client.is_ipv4() == address.is_ipv4() => {
            // The client's port may be another connection's; its address is what matters.
            let another_port = SocketAddr::new(client.ip(), 0);
            match connect_from(client, address, options) {
                Err(error) if is_taken(&error) => connect_from(another_port, address, options),
                begun => begun,
            }
        }
        _ => begin(address, options),
    }?;
    let stream = TcpStream::from_std(begun)?;
    stream.writable().await?;
    match stream.take_error()? {
        Some(error) => Err(error),
        None => TcpLeg::new(stream, options),
    }
}

/// Begins to connect to `address` as ourselves.
fn begin(address: SocketAddr, options: &LegOptions) -> io::Result<std::net::TcpStream> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
    options.apply(&socket)?;
    match socket.connect(&address.into()) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(socket.into()),
    }
}

fn is_taken(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::AddrInUse | ErrorKind::AddrNotAvailable)
}
