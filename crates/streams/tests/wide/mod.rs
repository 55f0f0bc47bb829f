//! TPA-wide over UDP on the loopback interface.

#![allow(clippy::unwrap_used, reason = "helpers of tests, though without `#[test]`")]

mod failures;
mod hostile;
mod readiness;
mod strangers;
mod transfers;

use hopline_core::Duration as Span;
use hopline_streams::wide::{
    Config, Credentials, Host, PreSharedKey, PrivateKey, Trust, Wide, WideListener, WideStream, config,
};
use hopline_testkit::streams::{echo, pattern, through_echo, until};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::thread;
use std::time::Duration;

const ANY: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

fn shared_key(byte: u8) -> Credentials {
    Credentials::Shared(PreSharedKey::new([byte; 32]))
}

fn private(byte: u8) -> PrivateKey {
    PrivateKey::new([byte; 32])
}

fn key(own: u8, trust: Trust) -> Credentials {
    Credentials::Keys { private: private(own), trust }
}

/// Returns credentials that permit one peer only.
fn knows(own: u8, peer: u8) -> Credentials {
    key(own, Trust::Only(vec![private(peer).public()]))
}

/// Returns the usual parameters, without TIME-WAIT.
fn quick_with(credentials: Credentials) -> Config {
    let config = config(credentials);
    let transport = config.transport().with_time_wait(Span::from_millis(20));
    config.with_transport(transport)
}

fn quick() -> Config {
    quick_with(shared_key(7))
}

/// Returns these parameters with an idle timeout.
fn given_up_after(silence: Span) -> Config {
    let config = quick();
    let transport =
        config.transport().with_silence_limit(Some(silence)).with_keep_alive(Some(Span::from_millis(100)));
    config.with_transport(transport)
}

/// Returns a host with a short handshake timeout.
fn impatient() -> Host {
    let config = Wide::host_config().unwrap();
    let initiator = config.initiator().with_initial_wait(Span::from_millis(20)).with_max_tries(4);
    let config = config.with_initiator(initiator).with_confirmation_timeout(Span::from_secs(1));
    Host::bind_with(ANY, Wide::with(config).unwrap()).unwrap()
}

fn listener() -> (WideListener, SocketAddr) {
    let listener = WideListener::bind(ANY, &quick()).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Returns both ends of a connection.
fn pair() -> (WideStream, WideStream) {
    let (listener, address) = listener();
    let client = WideStream::connect(address, &quick()).unwrap();
    let (server, peer) = listener.accept().unwrap();
    assert_eq!(peer.port(), client.host().local_addr().unwrap().port());
    (client, server)
}
