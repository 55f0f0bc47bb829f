//! Streams over a protocol that is not TPA: that the two have nothing in common but what is said to be.

#![allow(clippy::unwrap_used, reason = "helpers of tests, though without `#[test]`")]

mod begun;
mod toy;

use hopline_streams::{AsyncListener, AsyncStream, Host, Listener, Stream};
use hopline_testkit::streams::{pattern, until};
use hopline_transport::connection::State;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, UdpSocket};
use std::thread;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use toy::Toy;

const ANY: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

#[test]
fn data_of_several_connections_do_not_mix() {
    echo_several(ANY.into());
}

#[test]
fn data_of_several_connections_do_not_mix_over_ipv6() {
    echo_several((Ipv6Addr::LOCALHOST, 0).into());
}

fn echo_several(any: SocketAddr) {
    const STREAMS: usize = 5;
    let host = Host::bind_with(any, Toy::default()).unwrap();
    let listener = Listener::<Toy>::bind(any, &()).unwrap();
    let address = listener.local_addr().unwrap();
    thread::scope(|scope| {
        for seed in 0..STREAMS {
            let host = &host;
            scope.spawn(move || {
                let stream = host.connect(address, &(), None).unwrap();
                let data = pattern(seed, 200_000);
                thread::scope(|scope| {
                    scope.spawn(|| {
                        { &stream }.write_all(&data).unwrap();
                        stream.shutdown(Shutdown::Write).unwrap();
                    });
                    let mut back = Vec::new();
                    { &stream }.read_to_end(&mut back).unwrap();
                    assert!(back == data, "stream {seed}");
                });
            });
        }
        for _ in 0..STREAMS {
            let (mut stream, _) = listener.accept().unwrap();
            scope.spawn(move || {
                std::io::copy(&mut { &stream }, &mut { &stream }).unwrap();
                stream.flush().unwrap();
                stream.close().unwrap();
            });
        }
    });
    assert_eq!(listener.host().stats().accepted, STREAMS as u64);
    until("all are over", || host.stats().connections + listener.host().stats().connections == 0);
}

#[test]
fn a_rejected_peer_gets_the_reason_and_leaves_no_state() {
    let deaf = UdpSocket::bind(ANY).unwrap();
    let closed = Host::<Toy>::bind(ANY).unwrap();
    let host = Host::<Toy>::bind(ANY).unwrap();
    let why = |address| host.connect(address, &(), None).unwrap_err().kind();
    assert_eq!(why(closed.local_addr().unwrap()), ErrorKind::ConnectionRefused);
    assert_eq!(why(deaf.local_addr().unwrap()), ErrorKind::TimedOut);
    assert_eq!(host.stats().connections, 0);
}

#[test]
fn an_accepted_connection_frees_its_backlog_slot() {
    let host = Host::<Toy>::bind(ANY).unwrap();
    let listener = host.listen(&(), 1).unwrap();
    let address = host.local_addr().unwrap();
    assert_eq!(host.listen(&(), 1).unwrap_err().kind(), ErrorKind::AddrInUse);
    let first = Stream::<Toy>::connect(address, &()).unwrap();
    assert_eq!(Stream::<Toy>::connect(address, &()).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    let (accepted, peer) = listener.accept().unwrap();
    assert_eq!(peer.port(), first.host().local_addr().unwrap().port());
    assert_eq!((accepted.info(), accepted.peer_addr()), (State::Established, peer));
    assert!(Stream::<Toy>::connect(address, &()).is_ok());
}

#[tokio::test]
async fn tasks_are_woken() {
    let listener = AsyncListener::<Toy>::bind(ANY, &()).unwrap();
    let address = listener.get_ref().local_addr().unwrap();
    let served = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await.unwrap();
        stream.write_all(&all).await.unwrap();
        stream.close().await.unwrap();
    });
    let mut stream = AsyncStream::<Toy>::connect(address, &()).await.unwrap();
    let data = pattern(7, 100_000);
    stream.write_all(&data).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut back = Vec::new();
    stream.read_to_end(&mut back).await.unwrap();
    assert!(back == data);
    served.await.unwrap();
}
