//! Names, and connections to what has them.

use super::super::identity;
use super::LOOK_UP;
use super::setback::Setback;
use crate::console;
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
    peer: &str,
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
pub(super) fn key_of(peer: &str, limit: Duration) -> Result<PublicKey, Setback> {
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

/// Does `work` with the addresses of `HOST[:PORT]`, one after the other until one succeeds, each with its part of the time. It
/// does so on a thread of its own, which is not waited for after Ctrl-C. The name is resolved anew each time: it may have got
/// an address, or another one.
fn at_an_address<T: Send + 'static>(
    peer: &str,
    limit: Duration,
    mut work: impl FnMut(SocketAddr, Duration) -> io::Result<T> + Send + 'static,
) -> Result<T, Setback> {
    let (host, port) = host_and_port(peer);
    let (host, (give, done)) = (host.to_owned(), mpsc::channel());
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

/// `192.0.2.1`, `192.0.2.1:9`, `name:9`, `2001:db8::1`, `[2001:db8::1]` or `[2001:db8::1]:9`.
fn host_and_port(peer: &str) -> (&str, u16) {
    let in_brackets = peer.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let default = (in_brackets.unwrap_or(peer), hopline_wire::tpa::PORT);
    if in_brackets.is_some() {
        return default;
    }
    if peer.parse::<IpAddr>().is_ok() {
        return default;
    }
    match peer.rsplit_once(':').map(|(host, port)| (host, port.parse())) {
        Some((host, Ok(port))) => (host.trim_start_matches('[').trim_end_matches(']'), port),
        _ => default,
    }
}

#[cfg(test)]
mod tests {
    use super::host_and_port;

    #[test]
    fn a_port_may_follow_any_kind_of_host() {
        for (peer, expected) in [
            ("192.0.2.1", ("192.0.2.1", 7172)),
            ("192.0.2.1:9", ("192.0.2.1", 9)),
            ("drone-3", ("drone-3", 7172)),
            ("drone-3:65535", ("drone-3", 65535)),
            ("2001:db8::1", ("2001:db8::1", 7172)),
            ("[2001:db8::1]:9", ("2001:db8::1", 9)),
            ("::1", ("::1", 7172)),
            ("[::1]", ("::1", 7172)),
        ] {
            assert_eq!(host_and_port(peer), expected, "{peer}");
        }
    }
}
