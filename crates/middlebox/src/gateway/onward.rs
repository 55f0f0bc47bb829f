//! TCP connections to destinations.

use super::destination::Destination;
use super::handshake::Denial;
use super::leg::TcpLeg;
use hopline_linux::transparent::{LegOptions, connect_from};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout};

/// Maximum number of addresses of a name that are tried.
const MAX_ADDRESSES: usize = 8;

/// Source address that the destination sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BindAddress {
    Gateway,
    Client(SocketAddr),
}

/// Connects to the first address of `destination` that `permits` and that answers, within `limit` in total.
pub(crate) async fn connect(
    destination: &Destination,
    from: BindAddress,
    permits: impl Fn(SocketAddr) -> bool,
    (options, limit): (&LegOptions, Duration),
) -> Result<TcpLeg, Denial> {
    let mut last = Denial::NotAllowed;
    for (address, share) in candidates(destination, permits, limit).await? {
        last = match timeout(share, connect_to(address, from, options)).await {
            Ok(Ok(leg)) => return Ok(leg),
            Ok(Err(error)) => Denial::from(&error),
            Err(_) => Denial::TimedOut,
        };
    }
    Err(last)
}

/// Addresses to try in order. Each gets an equal share of the time left, so that a silent address leaves time for the
/// rest.
#[derive(Debug)]
pub(crate) struct Candidates {
    addresses: std::vec::IntoIter<SocketAddr>,
    deadline: Instant,
}

impl Iterator for Candidates {
    type Item = (SocketAddr, Duration);

    fn next(&mut self) -> Option<Self::Item> {
        let those_left = self.addresses.len();
        let address = self.addresses.next()?;
        let left = self.deadline.saturating_duration_since(Instant::now());
        // There are at most eight addresses.
        Some((address, left / those_left as u32))
    }
}

/// Returns the addresses of `destination` that `permits`. Resolving and trying them takes at most `limit` in total.
pub(crate) async fn candidates(
    destination: &Destination,
    permits: impl Fn(SocketAddr) -> bool,
    limit: Duration,
) -> Result<Candidates, Denial> {
    let until = Instant::now() + limit;
    let mut addresses = timeout(limit, resolve(destination)).await.map_err(|_| Denial::TimedOut)??;
    addresses.retain(|&address| permits(address));
    Ok(Candidates { addresses: addresses.into_iter(), deadline: until })
}

/// Returns the addresses of `destination`, at most eight.
pub(crate) async fn resolve(destination: &Destination) -> Result<Vec<SocketAddr>, Denial> {
    match destination {
        Destination::Address(address) => Ok(vec![*address]),
        Destination::Named { host, port } => {
            let found = lookup_host((host.as_str(), *port)).await.map_err(|_| Denial::NameUnknown)?;
            let found: Vec<_> = found.take(MAX_ADDRESSES).collect();
            if found.is_empty() { Err(Denial::NameUnknown) } else { Ok(found) }
        }
    }
}

async fn connect_to(address: SocketAddr, from: BindAddress, options: &LegOptions) -> io::Result<TcpLeg> {
    let begun = match from {
        BindAddress::Client(client) if client.is_ipv4() == address.is_ipv4() => {
            // The client's port may be in use by another connection; only its address matters.
            let another_port = SocketAddr::new(client.ip(), 0);
            match connect_from(client, address, options) {
                Err(error) if is_address_in_use(&error) => connect_from(another_port, address, options),
                begun => begun,
            }
        }
        _ => start_connect(address, options),
    }?;
    let stream = TcpStream::from_std(begun)?;
    stream.writable().await?;
    match stream.take_error()? {
        Some(error) => Err(error),
        None => TcpLeg::new(stream, options),
    }
}

/// Starts to connect to `address` under the gateway's own address.
fn start_connect(address: SocketAddr, options: &LegOptions) -> io::Result<std::net::TcpStream> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
    options.apply(&socket)?;
    match socket.connect(&address.into()) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(socket.into()),
    }
}

fn is_address_in_use(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::AddrInUse | ErrorKind::AddrNotAvailable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_are_silent_share_the_limit_of_the_whole_attempt() {
        let limit = Duration::from_millis(8);
        let addresses: Vec<SocketAddr> =
            (1..=4).map(|last| SocketAddr::from(([192, 0, 2, last], 80))).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let turns = Candidates { addresses: addresses.clone().into_iter(), deadline: Instant::now() + limit };
        let tried: Vec<_> = runtime.block_on(async {
            let mut tried = Vec::new();
            for (address, share) in turns {
                tokio::time::sleep(share).await;
                tried.push((address, share));
            }
            tried
        });
        assert!(tried.iter().map(|(address, _)| address).eq(&addresses), "{tried:?}");
        assert!(tried.iter().map(|(_, share)| *share).sum::<Duration>() <= limit, "{tried:?}");
        assert!(tried[0].1 <= limit / 4, "{tried:?}");
    }

    #[test]
    fn a_single_address_gets_the_whole_time() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let destination = Destination::Address(SocketAddr::from(([192, 0, 2, 1], 80)));
        let turns = candidates(&destination, |_| true, Duration::from_secs(1000));
        let all: Vec<_> = runtime.block_on(turns).expect("it is an address").collect();
        assert!(matches!(all[..], [(_, share)] if share > Duration::from_secs(900)));
    }
}
