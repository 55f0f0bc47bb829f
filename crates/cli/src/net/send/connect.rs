//! Resolution of names, and connections to their addresses.

use super::super::identity;
use super::POLL_INTERVAL;
use super::retry_reason::RetryReason;
use crate::console;
use crate::net::args::Peer;
use hopline_streams::wide::{self, Credentials, PublicKey, Trust, Wide};
use hopline_streams::{Host, Protocol, Stream};
use hopline_tools::transfer::Error;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Interval between checks for the key of a receiver.
const KEY_POLL: Duration = Duration::from_millis(5);

/// Connects to the present address of `peer`.
pub(super) fn connect<P: Protocol>(
    peer: &Peer,
    config: &P::Config,
    limit: Duration,
) -> Result<Stream<P>, RetryReason>
where
    P::Config: Clone + Send + 'static,
{
    let config = config.clone();
    try_addresses(peer, limit, move |address, limit| Stream::<P>::connect_timeout(address, &config, limit))
}

/// Returns the authenticated key of the receiver. The receiver does not learn the own key: the connection uses a temporary
/// one.
pub(super) fn key_of(peer: &Peer, limit: Duration) -> Result<PublicKey, RetryReason> {
    let private =
        identity::generate().map_err(|e| RetryReason::Error(Error::Connection(io::Error::other(e))))?;
    let config = wide::config(Credentials::Keys { private, trust: Trust::Anyone });
    try_addresses(peer, limit, move |address, limit| {
        let any = match address.ip() {
            IpAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let stream = Host::<Wide>::bind((any, 0))?.begin_connect(address, &config)?;
        let until = now() + limit;
        // The receiver may reject this key. Its own key is known before it learns this one.
        let key = loop {
            if let Some(key) = stream.info().peer.key {
                break Ok(key);
            }
            match stream.is_open() {
                Err(error) => break Err(error),
                Ok(_) if now() >= until => break Err(ErrorKind::TimedOut.into()),
                Ok(_) => thread::sleep(KEY_POLL),
            }
        };
        stream.abort();
        key
    })
}

/// Calls `work` with the addresses of the peer, one after the other until one succeeds, each with its share of the time. It
/// runs on a thread of its own, which is not waited for after Ctrl-C. The name is resolved each time, since its addresses
/// may have changed.
fn try_addresses<T: Send + 'static>(
    peer: &Peer,
    limit: Duration,
    mut work: impl FnMut(SocketAddr, Duration) -> io::Result<T> + Send + 'static,
) -> Result<T, RetryReason> {
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
        let result = found.map_err(RetryReason::Name).and_then(|addresses| {
            let mut last = Err(ErrorKind::TimedOut.into());
            for (number, address) in addresses.iter().enumerate() {
                let left = until.saturating_duration_since(now());
                let others = (addresses.len() - number) as u32;
                last = work(*address, (left / others).max(super::MIN_ATTEMPT_TIMEOUT));
                if last.is_ok() {
                    break;
                }
            }
            last.map_err(|error| RetryReason::Error(Error::Connection(error)))
        });
        // After Ctrl-C no receiver waits for it.
        let _ = give.send(result);
    };
    let spawned = thread::Builder::new().name("connect".into()).spawn(body);
    spawned.map_err(|error| RetryReason::Error(Error::Connection(error)))?;
    loop {
        match done.recv_timeout(POLL_INTERVAL) {
            Ok(result) => return result,
            Err(RecvTimeoutError::Timeout) if console::interrupted() => {
                return Err(RetryReason::Error(Error::Interrupted));
            }
            Err(RecvTimeoutError::Timeout) if now() >= until && !resolved.load(Ordering::Relaxed) => {
                return Err(RetryReason::Name(ErrorKind::TimedOut.into()));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(RetryReason::Error(Error::Closed)),
        }
    }
}

fn now() -> Instant {
    crate::net::clock::now()
}
