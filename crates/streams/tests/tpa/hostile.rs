//! Datagrams of attackers.

use crate::tpa::relay::Relay;
use crate::tpa::*;
use bytes::Bytes;
use hopline_wire::tpa::{Ack, Control, Opening, Segment, Tag};
use std::io::ErrorKind::WouldBlock;
use std::net::UdpSocket;
use std::num::NonZeroU64;

fn tag(number: u64) -> Tag {
    Tag(NonZeroU64::new(number).unwrap())
}

fn bytes(segment: &Segment<Bytes>) -> Vec<u8> {
    let mut out = Vec::new();
    segment.emit_udp(&mut out);
    out
}

fn opening(number: u64) -> Option<Opening> {
    Some(Opening { tag: Some(tag(number)), mss: 1452, block_segments: 12, cwnd_max: 3 })
}

/// Sends datagrams, slowly enough for the kernel to keep them all.
fn send_all(to: SocketAddr, host: &Host, datagrams: impl Iterator<Item = Vec<u8>>) {
    let socket = UdpSocket::bind(ANY).unwrap();
    for (number, datagram) in datagrams.enumerate() {
        socket.send_to(&datagram, to).unwrap();
        if number % 50 == 49 {
            until("they were read", || host.stats().received > number as u64);
        }
    }
}

#[test]
fn a_flood_of_syns_leaves_no_state() {
    let (listener, address) = listener();
    listener.set_nonblocking(true);
    let host = listener.host().clone();
    let syn = |number| Segment { control: Control::Syn, opening: opening(number), ..Segment::default() };
    send_all(address, &host, (1..=5000).map(|number| bytes(&syn(number))));
    until("all were looked at", || host.stats().answered + host.stats().unanswered == 5000);
    assert!(host.stats().answered >= 2000, "{:?}", host.stats());
    assert_eq!((host.stats().connections, host.stats().accepted), (0, 0));
    assert_eq!(listener.accept().unwrap_err().kind(), WouldBlock);
    let _client = TpaStream::connect(address, &quick()).unwrap();
    until("a client gets in", || listener.accept().is_ok());
}

#[test]
fn a_peer_that_did_not_receive_the_syn_ack_gets_no_connection() {
    let (listener, address) = listener();
    let host = listener.host().clone();
    let guess = |number| Segment {
        ack: Some(Ack::default()),
        tag: Some(tag(number)),
        opening: opening(number),
        ..Segment::default()
    };
    send_all(address, &host, (1..=1000).map(|number| bytes(&guess(number))));
    until("all were looked at", || host.stats().unknown_segments == 1000);
    assert_eq!(host.stats().connections, 0);
}

#[test]
fn garbage_is_only_counted() {
    let (mut client, mut server) = pair();
    let host = server.host().clone();
    let before = host.stats();
    let to = host.local_addr().unwrap();
    send_all(to, &host, (1..=300).map(|len| vec![0xff; len]));
    until("all were read", || host.stats().received >= before.received + 300);
    assert_eq!(host.stats().malformed, 300);
    client.write_all(b"as before").unwrap();
    client.flush().unwrap();
    let mut got = [0; 9];
    server.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"as before");
}

#[test]
fn a_reset_without_the_tag_is_ignored() {
    let (mut client, mut server) = pair();
    let host = client.host().clone();
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, host.local_addr().unwrap().port()));
    let reset = |tag| Segment { control: Control::Rst, tag, ..Segment::default() };
    send_all(to, &host, [None, Some(tag(1)), Some(tag(u64::MAX))].map(|tag| bytes(&reset(tag))).into_iter());
    until("all were read", || host.stats().unknown_segments == 3);
    server.write_all(b"still here").unwrap();
    server.flush().unwrap();
    let mut got = [0; 10];
    client.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"still here");
}

#[test]
fn a_repeated_opening_segment_opens_no_second_connection() {
    let (listener, address) = listener();
    let relay = Relay::to(address);
    let host = listener.host().clone();
    let mut client = TpaStream::connect(relay.address, &quick()).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    client.write_all(b"transfer 100").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut got = Vec::new();
    server.read_to_end(&mut got).unwrap();
    drop((client, server));
    until("it is over", || host.stats().connections == 0);
    let before = host.stats();
    let copies = relay.replay(address) as u64;
    assert!(copies >= 3, "{copies}");
    until("all were read", || host.stats().received >= before.received + copies);
    assert_eq!((host.stats().connections, host.stats().accepted), (0, 1));
}
