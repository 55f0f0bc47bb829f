//! TPA, or TCP where the peer does not answer TPA: over the loopback interface. Links with delays and filters are in `over_link`.

#![allow(clippy::unwrap_used, reason = "helpers of tests, though without `#[test]`")]

mod listening;

use hopline_core::Duration as Span;
use hopline_streams::fallback::{Config, Connector, Listener, Port, Stream, Timeouts};
use hopline_streams::tpa::{TpaListener, TpaStream};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::task::Poll;
use std::time::Duration;

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const HUNG: Option<Duration> = Some(Duration::from_secs(60));

/// The usual parameters, but nothing lingers.
fn quick() -> Config {
    let mut config = Config::default();
    config = config
        .with_tpa(config.tpa().with_time_wait(Span::from_millis(20)).with_block_fill(Span::from_millis(5)));
    config
}

/// As long as it takes: a machine may be busy.
fn patient() -> Config {
    let long = Span::from_secs(60);
    quick().with_timeouts(Timeouts::default().with_min_wait(long).with_max_wait(long).with_tpa_only(long))
}

fn connect(to: SocketAddr, config: &Config) -> Stream {
    Connector::default().connect(to, config, HUNG).unwrap()
}

/// Returns a TCP listener, and a UDP socket at the port of the same number that never answers.
fn silent_over_udp() -> (TcpListener, UdpSocket) {
    loop {
        let tcp = TcpListener::bind(ANY).unwrap();
        if let Ok(udp) = UdpSocket::bind(tcp.local_addr().unwrap()) {
            return (tcp, udp);
        }
    }
}

/// Bytes there and back, and the end of both directions.
fn talk(client: &Stream, server: &Stream) {
    for (mut from, mut to) in [(client, server), (server, client)] {
        from.write_all(b"once").unwrap();
        from.shutdown(Shutdown::Write).unwrap();
        let mut got = Vec::new();
        to.read_to_end(&mut got).unwrap();
        assert_eq!(got, b"once");
    }
}

#[test]
fn a_peer_with_both_is_connected_over_tpa() {
    let listener = Listener::bind(ANY, &patient(), 8).unwrap();
    let client = connect(listener.local_addr(), &patient());
    let (server, from) = listener.accept().unwrap();
    assert!(matches!((&client, &server), (Stream::Tpa(_), Stream::Tpa(_))));
    assert_eq!(client.peer_addr().unwrap(), listener.local_addr());
    assert_eq!(from, server.peer_addr().unwrap());
    talk(&client, &server);
}

#[test]
fn a_losing_tcp_connection_is_never_accepted() {
    let port = Port::bind(ANY).unwrap();
    let listener = port.listen(&patient(), 64).unwrap();
    let clients: Vec<Stream> = (0..20).map(|_| connect(port.local_addr(), &patient())).collect();
    let last = TcpStream::connect(port.local_addr()).unwrap();
    // TCP's queue is in order: with those that have lost in it, they came before the last.
    let accepted: Vec<(Stream, SocketAddr)> = (0..21).map(|_| listener.accept().unwrap()).collect();
    let over_tcp: Vec<_> = accepted.iter().filter(|(stream, _)| matches!(stream, Stream::Tcp(_))).collect();
    assert_eq!((over_tcp.len(), over_tcp[0].1), (1, last.local_addr().unwrap()));
    assert!(clients.iter().all(|client| matches!(client, Stream::Tpa(_))));
    listener.set_nonblocking(true);
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn a_peer_without_tpa_is_connected_over_tcp() {
    let listener = TcpListener::bind(ANY).unwrap();
    // Its host says that the UDP port is closed.
    let client = connect(listener.local_addr().unwrap(), &patient());
    let (server, _) = listener.accept().unwrap();
    assert!(matches!(client, Stream::Tcp(_)));
    talk(&client, &Stream::Tcp(server));
}

#[test]
fn a_peer_that_is_silent_over_udp_is_connected_by_tcp_only_from_the_third_connection_on() {
    let (listener, udp) = silent_over_udp();
    let peer = listener.local_addr().unwrap();
    let connector = Connector::default();
    for number in 1..=4 {
        assert_eq!(connector.is_silent(peer), number > 2);
        let client = connector.connect(peer, &quick(), HUNG).unwrap();
        assert!(matches!(client, Stream::Tcp(_)));
        talk(&client, &Stream::Tcp(listener.accept().unwrap().0));
        udp.set_nonblocking(true).unwrap();
        let mut calls = 0;
        while udp.recv_from(&mut [0; 2048]).is_ok() {
            calls += 1;
        }
        assert_eq!(calls > 0, number <= 2, "connection {number}: {calls} datagrams");
    }
}

#[test]
fn a_peer_with_only_tpa_is_connected_over_tpa() {
    let listener = TpaListener::bind(ANY, &quick().tpa()).unwrap();
    let client = connect(listener.local_addr().unwrap(), &patient());
    let (server, _) = listener.accept().unwrap();
    talk(&client, &Stream::Tpa(server));
}

#[test]
fn a_peer_without_either_is_refused() {
    let nobody = Port::bind(ANY).unwrap().local_addr();
    let refused = Connector::default().connect(nobody, &patient(), HUNG).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn a_peer_that_refuses_tcp_and_is_silent_over_udp_fails() {
    let udp = UdpSocket::bind(ANY).unwrap();
    let mut config = quick();
    config = config.with_timeouts(config.timeouts().with_tpa_only(Span::from_millis(100)));
    let refused = Connector::default().connect(udp.local_addr().unwrap(), &config, HUNG).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused, "TCP's error");
}

#[test]
fn a_timeout_ends_both_attempts() {
    let (listener, _udp) = silent_over_udp();
    let peer = listener.local_addr().unwrap();
    let limited = Connector::default().connect(peer, &patient(), Some(Duration::from_millis(70)));
    assert_eq!(limited.unwrap_err().kind(), ErrorKind::TimedOut);
    let next = TcpStream::connect(peer).unwrap();
    assert_eq!(listener.accept().unwrap().1, next.local_addr().unwrap(), "TCP's attempt is not accepted");
}

#[test]
fn a_dropped_attempt_leaves_no_connection() {
    let (listener, _udp) = silent_over_udp();
    let peer = listener.local_addr().unwrap();
    let opening = Connector::default().begin(None, peer, &patient()).unwrap();
    assert!(matches!(opening.poll(), Poll::Pending));
    drop(opening);
    let next = TcpStream::connect(peer).unwrap();
    assert_eq!(listener.accept().unwrap().1, next.local_addr().unwrap());
}

#[test]
fn a_server_that_sends_first_is_received() {
    let listener = TcpListener::bind(ANY).unwrap();
    let mut client = connect(listener.local_addr().unwrap(), &patient());
    // The handshake is complete without any byte of the client.
    let (mut server, _) = listener.accept().unwrap();
    server.write_all(b"220 ready").unwrap();
    let mut got = [0; 9];
    client.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"220 ready");
}

#[test]
fn invalid_parameters_are_rejected() {
    let mut config = quick();
    config = config.with_tpa(config.tpa().with_cwnd_max(13));
    let refused = Connector::default().connect(ANY, &config, HUNG).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
}

#[test]
fn a_close_waits_until_the_peer_has_everything() {
    let listener = TcpListener::bind(ANY).unwrap();
    let mut client = connect(listener.local_addr().unwrap(), &patient());
    let (mut server, _) = listener.accept().unwrap();
    client.write_all(&[7; 100_000]).unwrap();
    client.close_within(Duration::from_secs(60)).unwrap();
    drop(client);
    let mut got = Vec::new();
    server.read_to_end(&mut got).unwrap();
    assert_eq!(got.len(), 100_000);
}

#[test]
fn a_close_has_a_timeout() {
    let listener = TcpListener::bind(ANY).unwrap();
    let client = connect(listener.local_addr().unwrap(), &patient());
    let (_server, _) = listener.accept().unwrap();
    let Stream::Tcp(tcp) = &client else { unreachable!("its host refuses TPA") };
    // More than the windows of both ends take: the peer does not read.
    tcp.set_nonblocking(true).unwrap();
    while (&*tcp).write(&[7; 1 << 20]).is_ok() {}
    let late = client.close_within(Duration::from_millis(30)).unwrap_err();
    assert_eq!(late.kind(), ErrorKind::WouldBlock);
}
