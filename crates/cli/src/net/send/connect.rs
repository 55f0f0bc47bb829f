//! Names, and connections to what has them.

use super::super::identity;
use super::LOOK_UP;
use super::setback::Setback;
use crate::console;
use crate::net::args::Peer;
use hopline_net::streams::{Host, Protocol, Stream};
use hopline_net::transfer::Error;
use hopline_net::wide::{self, Credentials, PublicKey, Trust, Wide};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Interval at which the key of a called receiver is polled.
const KEY_LOOK_UP: Duration = Duration::from_millis(5);

/// Connects to what has the name `peer` now.
pub(super) fn connect<P: Protocol>(
    peer: &Peer,
    config: &P::Config,
    limit: Duration,
) -> Result<Stream<P>, Setback>
where
    P::Config: Clone + Send + 'static,
{
    let config = config.clone();
    at_an_address(peer, limit, move |address, limit| Stream::<P>::connect_timeout(address, &config, limit))
}

/// Returns the key that the receiver proves to have. It learns none of ours: it is called with a key that is made for this.
pub(super) fn key_of(peer: &Peer, limit: Duration) -> Result<PublicKey, Setback> {
    let private = identity::generate().map_err(|e| Setback::Error(Error::Connection(io::Error::other(e))))?;
    let config = wide::config(Credentials::Keys { private, trust: Trust::Anyone });
    at_an_address(peer, limit, move |address, limit| {
        let any = match address.ip() {
            IpAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let stream = Host::<Wide>::bind((any, 0))?.begin_connect(address, &config)?;
        let until = now() + limit;
        // The receiver may not let this key in. Its own is known before it hears which one this is.
        let key = loop {
            if let Some(key) = stream.info().peer.key {
                break Ok(key);
            }
            match stream.is_open() {
                Err(error) => break Err(error),
                Ok(_) if now() >= until => break Err(ErrorKind::TimedOut.into()),
                Ok(_) => thread::sleep(KEY_LOOK_UP),
            }
        };
        stream.abort();
        key
    })
}

/// Does `work` with the addresses of the peer, one after the other until one succeeds, each with its part of the time. It
/// does so on a thread of its own, which is not waited for after Ctrl-C. The name is resolved anew each time: it may have got
/// an address, or another one.
fn at_an_address<T: Send + 'static>(
    peer: &Peer,
    limit: Duration,
    mut work: impl FnMut(SocketAddr, Duration) -> io::Result<T> + Send + 'static,
) -> Result<T, Setback> {
    let ((host, port), (give, done)) = ((peer.host.clone(), peer.port), mpsc::channel());
    let until = now() + limit;
    let resolved = Arc::new(AtomicBool::new(false));
    let has_resolved = resolved.clone();
    let body = move || {
        let found = (host.as_str(), port).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
        let found = match found {
            Ok(found) if found.is_empty() => Err(io::Error::other("the name has no address")),
            found => found,
        };
        has_resolved.store(true, Ordering::Relaxed);
        let result = found.map_err(Setback::Name).and_then(|addresses| {
            let mut last = Err(ErrorKind::TimedOut.into());
            for (number, address) in addresses.iter().enumerate() {
                let left = until.saturating_duration_since(now());
                let others = (addresses.len() - number) as u32;
                last = work(*address, (left / others).max(super::LEAST_PATIENCE));
                if last.is_ok() {
                    break;
                }
            }
            last.map_err(|error| Setback::Error(Error::Connection(error)))
        });
        // After Ctrl-C it is wanted no more.
        let _ = give.send(result);
    };
    let spawned = thread::Builder::new().name("connect".into()).spawn(body);
    spawned.map_err(|error| Setback::Error(Error::Connection(error)))?;
    loop {
        match done.recv_timeout(LOOK_UP) {
            Ok(result) => return result,
            Err(RecvTimeoutError::Timeout) if console::interrupted() => {
                return Err(Setback::Error(Error::Interrupted));
            }
            Err(RecvTimeoutError::Timeout) if now() >= until && !resolved.load(Ordering::Relaxed) => {
                return Err(Setback::Name(ErrorKind::TimedOut.into()));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(Setback::Error(Error::Closed)),
        }
    }
}

fn now() -> Instant {
    crate::net::clock::now()
}
