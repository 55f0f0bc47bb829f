//! TPA over UDP on the loopback interface.

#![allow(clippy::unwrap_used, reason = "helpers of tests, though without `#[test]`")]

mod failures;
mod hostile;
mod path;
mod redirection;
mod relay;
mod transfers;
mod waiting;

use hopline_core::Duration as Span;
use hopline_net::tpa::{Config, Host, TpaListener, TpaStream, config};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::thread;
use std::time::Duration;

const ANY: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

/// The usual parameters, but nothing lingers.
fn quick() -> Config {
    Config { time_wait: Span::from_millis(20), block_fill: Span::from_millis(5), ..config(12) }
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

/// Bytes that tell where they belong, and of which stream they are.
fn pattern(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| ((i * 31 + i / 251) ^ seed.wrapping_mul(97)) as u8).collect()
}

/// Sends back what it receives, to the end.
fn echo(mut stream: &TpaStream) {
    let mut buffer = vec![0; 10_000];
    loop {
        let len = stream.read(&mut buffer).unwrap();
        if len == 0 {
            break;
        }
        stream.write_all(&buffer[..len]).unwrap();
    }
    stream.shutdown(Shutdown::Write).unwrap();
}

/// Writes `data`, ends the stream, and gives what comes back.
fn through_echo(stream: &TpaStream, data: &[u8]) -> Vec<u8> {
    thread::scope(|scope| {
        scope.spawn(|| {
            { stream }.write_all(data).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
        });
        let mut back = Vec::new();
        { stream }.read_to_end(&mut back).unwrap();
        back
    })
}

/// Waits for what must come about sooner or later.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..3000 {
        if holds() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("never: {what}");
}

/// A host that listens and one that does not.
fn hosts() -> (Host, TpaListener, Host) {
    let server = Host::bind(ANY).unwrap();
    let listener = server.listen(&quick(), 300).unwrap();
    (server, listener, Host::bind(ANY).unwrap())
}
