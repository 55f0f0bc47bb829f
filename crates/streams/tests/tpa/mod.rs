//! TPA over UDP on the loopback interface.

#![allow(clippy::unwrap_used, reason = "helpers of tests, though without `#[test]`")]

mod failures;
mod hostile;
mod path;
mod redirection;
pub(crate) mod relay;
mod transfers;
mod waiting;

use hopline_core::Duration as Span;
use hopline_streams::tpa::{Config, Host, TpaListener, TpaStream, config};
use hopline_testkit::streams::{echo, pattern, through_echo, until};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::thread;
use std::time::Duration;

const ANY: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

/// The usual parameters, but nothing lingers.
fn quick() -> Config {
    config(12).with_time_wait(Span::from_millis(20)).with_block_fill(Span::from_millis(5))
}

fn listener() -> (TpaListener, SocketAddr) {
    let listener = TpaListener::bind(ANY, &quick()).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Two ends of one connection.
fn pair() -> (TpaStream, TpaStream) {
    let (listener, address) = listener();
    let client = TpaStream::connect(address, &quick()).unwrap();
    let (server, peer) = listener.accept().unwrap();
    assert_eq!(peer.port(), client.host().local_addr().unwrap().port());
    (client, server)
}

/// A host that listens and one that does not.
fn hosts() -> (Host, TpaListener, Host) {
    let server = Host::bind(ANY).unwrap();
    let listener = server.listen(&quick(), 300).unwrap();
    (server, listener, Host::bind(ANY).unwrap())
}
