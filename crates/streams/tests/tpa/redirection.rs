//! Attacks that would make a connection flood a third party.

use crate::tpa::*;
use bytes::Bytes;
use hopline_wire::tpa::{Ack, Bitmap, Control, Opening, Receipt, Segment, Tag};
use std::net::UdpSocket;
use std::num::NonZeroU64;

/// A hand-made client of a server with many data to send. It may send from other source addresses than its own, as an
/// attacker that forges addresses can.
struct Client {
    socket: UdpSocket,
    /// Tag of the server.
    tag: Tag,
    /// Current block and its received segments.
    block: u16,
    received: Bitmap,
    proof: u16,
    tx: u8,
}

const OWN: u64 = 77;

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind(ANY).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    socket
}

fn emit(segment: &Segment<Bytes>) -> Vec<u8> {
    let mut out = Vec::new();
    segment.emit_udp(&mut out);
    out
}

fn next(socket: &UdpSocket) -> Option<Segment<Bytes>> {
    let mut buffer = [0; 2048];
    let len = socket.recv(&mut buffer).ok()?;
    Some(Segment::parse_udp(&Bytes::copy_from_slice(&buffer[..len])).unwrap())
}

impl Client {
    fn connected_to(server: SocketAddr) -> Self {
        let socket = socket();
        let opening =
            Opening { tag: NonZeroU64::new(OWN).map(Tag), mss: 1448, block_segments: 12, cwnd_max: 12 };
        let syn = Segment { control: Control::Syn, opening: Some(opening), ..Segment::default() };
        socket.send_to(&emit(&syn), server).unwrap();
        let tag = next(&socket).unwrap().opening.unwrap().tag.unwrap();
        let client = Self { socket, tag, block: u16::MAX, received: Bitmap::EMPTY, proof: 0, tx: 0 };
        let first = Segment { opening: Some(opening), ..client.ack() };
        client.socket.send_to(&emit(&first), server).unwrap();
        client
    }

    /// Returns the honest acknowledgement.
    fn ack(&self) -> Segment<Bytes> {
        Segment {
            ack: Some(Ack { block: self.block, bitmap: self.received, tx: self.tx }),
            window: u16::MAX,
            tag: Some(self.tag),
            receipt: Receipt { nonce: 0, proof: self.proof },
            ..Segment::default()
        }
    }

    fn receive(&mut self) -> bool {
        let Some(segment) = next(&self.socket) else { return false };
        if let Some(place) = segment.position {
            if segment.block != self.block {
                (self.block, self.received, self.proof) = (segment.block, Bitmap::EMPTY, 0);
            }
            if !self.received.contains(place.position) {
                self.received.insert(place.position);
                self.proof ^= segment.receipt.nonce;
            }
            self.tx = segment.tx;
        }
        true
    }
}

/// Returns the bytes that a socket receives until there are no more, without IP and UDP headers.
fn reached(socket: &UdpSocket) -> usize {
    let mut buffer = [0; 2048];
    std::iter::from_fn(|| socket.recv(&mut buffer).ok()).sum()
}

fn begin_to_send(listener: &TpaListener) -> TpaStream {
    let (stream, _) = listener.accept().unwrap();
    stream.set_write_timeout(Some(Duration::from_millis(50)));
    let _ = { &stream }.write(&pattern(1, 200_000));
    stream
}

#[test]
fn a_peer_cannot_amplify_traffic_to_a_victim() {
    let (listener, address) = listener();
    let mut cheat = Client::connected_to(address);
    let stream = begin_to_send(&listener);
    // It acknowledges honestly for a while, so that it knows all that an attacker can.
    for _ in 0..30 {
        cheat.receive();
        cheat.socket.send_to(&emit(&cheat.ack()), address).unwrap();
    }
    let victim = socket();
    let mut spent = 0;
    for round in 0..300_u16 {
        // Acknowledge received segments, guess unreceived ones, and those of later blocks.
        let honest = cheat.ack();
        let all = Ack { block: cheat.block.wrapping_add(round / 100), bitmap: Bitmap::first(12), tx: 11 };
        let guess = Segment {
            ack: Some(all),
            receipt: Receipt { nonce: 0, proof: round.wrapping_mul(211) },
            ..honest.clone()
        };
        for segment in [honest, guess] {
            spent += victim.send_to(&emit(&segment), address).unwrap();
        }
    }
    let got = reached(&victim);
    assert!(got > 0, "it is asked whether it is there");
    assert!(got <= 3 * spent, "{got} bytes for {spent}");
    assert_ne!(stream.peer_addr(), victim.local_addr().unwrap());
    assert_eq!(stream.peer_addr().port(), cheat.socket.local_addr().unwrap().port());
}

#[test]
fn acknowledging_unreceived_data_triggers_no_transmission() {
    let (listener, address) = listener();
    let mut cheat = Client::connected_to(address);
    let _stream = begin_to_send(&listener);
    while !cheat.receive() {}
    let before = listener.host().stats().sent;
    for proof in 0..2000_u16 {
        let all = Ack { block: cheat.block, bitmap: Bitmap::first(12), tx: 11 };
        let guess = Segment { ack: Some(all), receipt: Receipt { nonce: 0, proof }, ..cheat.ack() };
        cheat.socket.send_to(&emit(&guess), address).unwrap();
        if proof % 100 == 99 {
            thread::sleep(Duration::from_millis(2));
        }
    }
    // Permitted are the window of twelve and segments that time out meanwhile, but not one segment for each of 2000
    // guesses.
    let sent = listener.host().stats().sent - before;
    assert!(sent < 60, "{sent}");
}

#[test]
fn a_blind_attacker_triggers_no_transmission() {
    let (listener, address) = listener();
    let (client, victim) = (socket(), socket());
    let mut honest = Client::connected_to(address);
    let _stream = begin_to_send(&listener);
    while honest.receive() {}
    let forger = Client { socket: client, tag: Tag(NonZeroU64::new(4711).unwrap()), ..honest };
    let mut spent = 0;
    for number in 0..1000_u64 {
        let guess = Segment { tag: NonZeroU64::new(number * 97 + 1).map(Tag), ..forger.ack() };
        spent += victim.send_to(&emit(&guess), address).unwrap();
        if number % 100 == 99 {
            thread::sleep(Duration::from_millis(2));
        }
    }
    let got = reached(&victim);
    assert!(got <= spent, "{got} bytes for {spent}: some are told that nobody knows them, and that is all");
}

#[test]
fn a_challenge_is_echoed_only_to_a_holder_of_the_tag() {
    let (listener, address) = listener();
    let client = Client::connected_to(address);
    let _stream = listener.accept().unwrap();
    while next(&client.socket).is_some() {}
    let token = hopline_wire::tpa::ChallengeToken(0x0123_4567_89ab_cdef);
    let question = |tag| Segment {
        control: Control::Challenge(token),
        tag: Some(tag),
        payload: Bytes::from(vec![0; 1000]),
        ..Segment::default()
    };
    client.socket.send_to(&emit(&question(client.tag)), address).unwrap();
    let echo = next(&client.socket).unwrap();
    assert_eq!((echo.control, echo.tag), (Control::Echo(token), NonZeroU64::new(OWN).map(Tag)));
    client.socket.send_to(&emit(&question(Tag(NonZeroU64::MIN))), address).unwrap();
    assert!(next(&client.socket).is_none());
}

#[test]
fn an_unsolicited_echo_does_not_move_the_path() {
    let (listener, address) = listener();
    let client = Client::connected_to(address);
    let (stream, peer) = listener.accept().unwrap();
    let elsewhere = socket();
    for token in 0..1000 {
        let echo = Segment {
            control: Control::Echo(hopline_wire::tpa::ChallengeToken(token)),
            tag: Some(client.tag),
            ..Segment::default()
        };
        elsewhere.send_to(&emit(&echo), address).unwrap();
    }
    until("all were read", || listener.host().stats().unknown_segments >= 1000);
    assert_eq!(stream.peer_addr(), peer);
}
