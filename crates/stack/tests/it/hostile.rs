//! Packets that no honest peer sends.

use crate::world::{ADDRESSES, PORT, World, config, modern, pattern};
use bytes::Bytes;
use hopline_core::{Duration, Instant, Seq32};
use hopline_link::Emulation;
use hopline_stack::{ConnectionId, Event, Stack, StackConfig};
use hopline_transport::pacing::{self, Pacing};
use hopline_wire::ip::{Ecn, Header, Protocol};
use hopline_wire::tcp::{Flags, Options, Segment};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr};

fn segment(from: (IpAddr, u16), flags: Flags, seq: u32, payload: &'static [u8]) -> Vec<u8> {
    let segment = Segment {
        src_port: from.1,
        dst_port: PORT,
        seq: Seq32(seq),
        ack: Seq32(7),
        flags,
        window: 1000,
        urgent: 0,
        options: Options::default(),
        ecn: Ecn::NotCapable,
        payload: Bytes::from_static(payload),
    };
    let header = Header::new(from.0, ADDRESSES[1].parse().unwrap(), Protocol::Tcp);
    let mut packet = Vec::new();
    header.emit(segment.wire_len(), &mut packet);
    segment.emit(&header, &mut packet);
    packet
}

fn attacker(number: u32) -> (IpAddr, u16) {
    (IpAddr::V4(Ipv4Addr::from_bits(0x0b00_0000 + number / 50_000)), 1024 + (number % 50_000) as u16)
}

/// A segment with the acknowledgment number `ack`.
fn acknowledging(from: (IpAddr, u16), seq: u32, ack: u32, payload: &'static [u8]) -> Vec<u8> {
    let mut packet = segment(from, Flags::ACK, seq, payload);
    let (ip, at) = Header::parse(&packet).unwrap();
    let mut parsed = Segment::parse(&ip, &Bytes::copy_from_slice(&packet[at])).unwrap();
    parsed.ack = Seq32(ack);
    packet.truncate(20);
    parsed.emit(&ip, &mut packet);
    packet
}

/// Opens a connection of a peer with an initial sequence number of 0. Returns the peer, the stack's initial sequence number, and the name.
fn open_raw(stack: &mut Stack) -> ((IpAddr, u16), u32, ConnectionId) {
    stack.listen(PORT);
    let peer = attacker(1);
    stack.handle_packet(Instant::ZERO, &segment(peer, Flags::SYN, 0, b""));
    let mut answer = Vec::new();
    assert!(stack.poll_transmit(Instant::ZERO, &mut answer));
    let ours = u32::from_be_bytes(answer[24..28].try_into().unwrap());
    stack.handle_packet(Instant::ZERO, &acknowledging(peer, 1, ours.wrapping_add(1), b""));
    while stack.poll_transmit(Instant::ZERO, &mut answer) {}
    let Some(Event::Accepted(id)) = stack.poll_event() else { panic!("no connection") };
    (peer, ours, id)
}

#[test]
fn a_flood_of_syns_is_bounded_and_an_honest_transfer_goes_on() {
    let mut world = World::with_tcp(modern(), &Emulation::delay(Duration::from_millis(10)));
    let ids = world.open();
    let data = pattern(1, 200_000);
    world.stacks[0].send(world.now, ids[0], &data);
    world.stacks[0].close(world.now, ids[0]);
    world.flush();
    for number in 0..100_000 {
        world.stacks[1].handle_packet(world.now, &segment(attacker(number), Flags::SYN, number, b""));
        assert!(world.stacks[1].half_open() <= 256 && world.stacks[1].len() <= 257);
        let mut answer = Vec::new();
        while world.stacks[1].poll_transmit(world.now, &mut answer) {}
    }
    assert!(world.stacks[1].stats().half_open_evicted > 90_000);
    assert!(world.exchange(ids, [&[], b"x"])[1] == data);
    // A newcomer gets in as well.
    world.connect(ADDRESSES[1]);
    assert!(world.run_until(|world| !world.accepted.is_empty()));
}

#[test]
fn a_segment_for_no_connection_is_reset_unless_it_is_a_reset() {
    let mut stack = Stack::new(config(1, modern())).unwrap();
    let mut answer = Vec::new();
    let mut to = |flags, payload| {
        stack.handle_packet(Instant::ZERO, &segment(attacker(1), flags, 100, payload));
        let is_answered = stack.poll_transmit(Instant::ZERO, &mut answer);
        is_answered.then(|| {
            let (ip, payload) = Header::parse(&answer).unwrap();
            Segment::parse(&ip, &Bytes::copy_from_slice(&answer[payload])).unwrap()
        })
    };
    let reset = to(Flags::ACK, b"data").unwrap();
    assert_eq!((reset.flags, reset.seq), (Flags::RST, Seq32(7)));
    let reset = to(Flags::SYN, b"").unwrap();
    assert_eq!((reset.flags, reset.ack), (Flags::RST | Flags::ACK, Seq32(101)));
    assert_eq!(to(Flags::RST, b""), None);
    assert_eq!(to(Flags::RST | Flags::ACK, b""), None);
    assert_eq!((stack.stats().unknown_connection, stack.stats().resets_sent), (4, 2));
}

#[test]
fn unfetched_replies_are_bounded() {
    let mut stack = Stack::new(config(1, modern())).unwrap();
    for number in 0..1000 {
        stack.handle_packet(Instant::ZERO, &segment(attacker(number), Flags::ACK, 1, b""));
    }
    assert_eq!((stack.stats().resets_sent, stack.stats().replies_dropped), (64, 936));
}

#[test]
fn packets_from_invalid_addresses_are_ignored() {
    let mut stack = Stack::new(config(1, modern())).unwrap();
    stack.listen(PORT);
    for ip in ["127.0.0.1", "224.0.0.1", "255.255.255.255", "0.0.0.0", ADDRESSES[1]] {
        stack.handle_packet(Instant::ZERO, &segment((ip.parse().unwrap(), 1024), Flags::SYN, 1, b""));
    }
    assert_eq!((stack.stats().misaddressed, stack.len()), (5, 0));
    assert!(!stack.poll_transmit(Instant::ZERO, &mut Vec::new()));
}

#[test]
fn unread_one_byte_segments_are_bounded() {
    let mut stack = Stack::new(config(1, modern())).unwrap();
    let (peer, ours, id) = open_raw(&mut stack);
    let mut answer = Vec::new();
    for number in 0..10_000 {
        stack.handle_packet(Instant::ZERO, &acknowledging(peer, 1 + number, ours + 1, b"x"));
        while stack.poll_transmit(Instant::ZERO, &mut answer) {}
    }
    assert_eq!(stack.stats().unread_limit_drops, 10_000 - 8192);
    // The data of such a segment are dropped. What it acknowledges is not.
    assert_eq!(stack.send(Instant::ZERO, id, b"data"), 4);
    assert!(stack.poll_transmit(Instant::ZERO, &mut answer));
    stack.handle_packet(Instant::ZERO, &acknowledging(peer, 1 + 8192, ours + 5, b"x"));
    assert_eq!(stack.status(id).unwrap().unacknowledged, 0);
    assert_eq!(stack.stats().unread_limit_drops, 10_001 - 8192);
}

/// Spacing of the sender's segments after a transfer in which forged packets arrived at the sender from time to time.
fn send_spacing(forged: Option<(Flags, u32)>) -> Duration {
    let tcp = modern().with_pacing(Pacing::Adaptive(pacing::Config::AUTHORS));
    let mut world = World::with_tcp(tcp, &Emulation::delay(Duration::from_millis(10)));
    let ids = world.open();
    let (local, remote) = world.stacks[0].addresses(ids[0]).unwrap();
    for _ in 0..10 {
        if let Some((flags, ack)) = forged {
            let (seq, ack) = (Seq32(1 << 31), Seq32(ack));
            let (src_port, dst_port) = (remote.port(), local.port());
            let segment = Segment::<Bytes> { src_port, dst_port, seq, ack, flags, ..Segment::default() };
            let mut header = Header::new(remote.ip(), local.ip(), Protocol::Tcp);
            let Header::V4(v4) = &mut header else { panic!("addresses of version 4") };
            v4.ttl = 40;
            let mut packet = Vec::new();
            header.emit(segment.wire_len(), &mut packet);
            segment.emit(&header, &mut packet);
            world.stacks[0].handle_packet(world.now, &packet);
        }
        world.stacks[0].send(world.now, ids[0], &pattern(1, 1000));
        world.flush();
        assert!(world.run_until(|world| world.status(0, ids[0]).unacknowledged == 0));
    }
    world.stacks[0].endpoint(ids[0]).unwrap().pacing().unwrap().interval()
}

#[test]
fn forged_segments_do_not_change_the_path_length() {
    let honest = send_spacing(None);
    for (flags, ack) in
        [(Flags::ACK, 7), (Flags::SYN, 0), (Flags::RST, 0), (Flags::ACK | Flags::FIN, 1 << 31)]
    {
        assert_eq!(send_spacing(Some((flags, ack))), honest, "{flags:?}");
    }
}

proptest! {
    /// Packets of any bytes, with headers that are right or damaged: nothing panics, limits hold, and every packet is counted.
    #[test]
    fn garbage_is_counted(packets in prop::collection::vec((any::<u8>(), any::<u32>(), prop::collection::vec(any::<u8>(), 0..80)), 0..200)) {
        let small = StackConfig { max_connections: 8, max_half_open: 4, ..config(1, modern()) };
        let mut stack = Stack::new(small).unwrap();
        stack.listen(PORT);
        let mut now = Instant::ZERO;
        let mut answer = Vec::new();
        for (kind, number, bytes) in packets {
            now += Duration::from_millis(u64::from(kind) * 10);
            let packet = match kind % 4 {
                0 => bytes,
                1 => segment(attacker(number % 16), Flags((kind ^ number as u8).into()), number, b"data"),
                2 => segment(attacker(number % 16), Flags::SYN, number, b""),
                _ => {
                    let mut packet = segment(attacker(number % 16), Flags((number as u8).into()), number, b"abc");
                    let at = number as usize % packet.len();
                    packet[at] ^= kind;
                    packet
                }
            };
            stack.handle_packet(now, &packet);
            stack.handle_timeout(now);
            while stack.poll_transmit(now, &mut answer) {
                prop_assert!(Header::parse(&answer).is_ok());
            }
            while stack.poll_event().is_some() {}
            prop_assert!(stack.len() <= 8 && stack.half_open() <= 4);
            prop_assert!(stack.poll_timeout().is_none_or(|due| due > now));
        }
    }
}
