//! Middleboxes in the path of TCP.

use super::Choices;
use bytes::Bytes;
use hopline_core::{Duration, Instant, Length, Purpose, RandomStream, Seq32};
use hopline_proxy::hop_window;
use hopline_proxy::mtcp::{self, Mtcp};
use hopline_proxy::nack::{self, NackStation};
use hopline_proxy::snoop;
use hopline_proxy::split::{self, Split};
use hopline_proxy::{Connection, LastHopProgress, Packet, Pep, Side, TableLimits, Transmit, Verdict};
use hopline_transport::any::{self, Transport};
use hopline_transport::tcp;
use hopline_wire::ip::{Ecn, Header, IpHeader, Protocol};
use hopline_wire::tcp::{Flags, Options, SackBlock, Segment, Timestamps};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Fixed and mobile host, by the IP version of a connection.
const HOSTS: [[IpAddr; 2]; 2] = [
    [IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2))],
    [
        IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
        IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2)),
    ],
];
/// Most connections in the tables of the machines.
const CONNECTIONS: u32 = 3;
const IDLE: Duration = Duration::from_secs(60);

/// Drives Snoop with any packets of several connections, in both directions. Checks that it never panics, sends the fixed
/// host no ACK that the mobile host has not sent, absorbs only old data, and has bounded memory.
pub fn snoop(data: &[u8]) {
    let mut choices = Choices(data);
    let which = choices.byte();
    let mut config = match which % 5 {
        0 => snoop::Config::published(),
        1 => snoop::Config::ns2(),
        2 => snoop::Config::nack_host(),
        3 => snoop::Config::announcing_host(),
        _ => snoop::Config::modern(),
    };
    config.limits = bounds();
    if which & 64 != 0 {
        config.high_water = 4.try_into().expect("not zero");
    }
    if which & 128 != 0 {
        config.hop_window = Some(hop_window::Config::DEFAULT);
    }
    let holds = if config.hop_window.is_some() { Holds::New } else { Holds::Nothing };
    let (mut machine, mut now) = pass(choices, snoop::windowed(config), holds);
    // Waiting packets are forwarded without further packets.
    while let Some(due) = machine.poll_timeout().filter(|_| machine.waiting_bytes() > 0) {
        now = now.max(due);
        machine.handle_timeout(now);
    }
    assert_eq!(machine.waiting_bytes(), 0, "it waits for ever");
}

/// Drives M-TCP's supervisor host in the same way. The same invariants hold, and it absorbs no data at all.
pub fn mtcp(data: &[u8]) {
    let config = mtcp::Config { limits: bounds(), ..mtcp::Config::default() };
    pass(Choices(data), Mtcp::new(config), Holds::Nothing);
}

/// Drives the machine that requests lost data of mobile hosts (NACK) in the same way. The same invariants hold.
pub fn nack(data: &[u8]) {
    let mut choices = Choices(data);
    let attempts = choices.byte();
    let asks = if attempts & 1 == 0 { nack::NackPolicy::All } else { nack::NackPolicy::Announced };
    let config =
        nack::Config { max_requests: attempts, policy: asks, limits: bounds(), ..nack::Config::default() };
    pass(choices, NackStation::new(config), Holds::Nothing);
}

/// Packets that a machine may hold, to forward them later.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Nothing,
    /// Packets with new data.
    New,
}

/// Passes packets of both directions through a machine. Returns the machine and the time.
fn pass<M: Pep<Segment<Length>>>(mut choices: Choices<'_>, mut machine: M, holds: Holds) -> (M, Instant) {
    let mut told: BTreeMap<u16, Vec<Seq32>> = BTreeMap::new();
    let mut now = Instant::ZERO;
    while !choices.is_over() {
        let operation = choices.byte();
        if operation < 40 {
            now += Duration::from_millis(u64::from(choices.byte()) * u64::from(operation));
            machine.handle_timeout(now);
        } else {
            let from = if operation & 1 == 0 { Side::Fixed } else { Side::Mobile };
            let (ip, segment) = any_packet(&mut choices, from);
            let packet = Packet::new(&ip, &segment);
            if from == Side::Fixed && operation > 240 {
                let ways = [LastHopProgress::Queued, LastHopProgress::Sent, LastHopProgress::Dropped];
                let way = ways[usize::from(operation) % ways.len()];
                machine.handle_progress(now, Connection::to_mobile(packet), segment.seq, way);
            } else if from == Side::Fixed {
                let verdict = machine.handle_packet_to_mobile(now, packet, || segment);
                if verdict == Verdict::Absorb && holds == Holds::Nothing {
                    let acked = told.get(&segment.src_port).into_iter().flatten();
                    let is_old = acked.copied().any(|acked| !segment.seq_end().after(acked));
                    assert!(is_old, "new data are absorbed");
                }
            } else {
                note(&mut told, &segment);
                let is_question = segment.options.nack;
                if machine.handle_packet_from_mobile(now, packet) == Verdict::Absorb && !is_question {
                    assert!(segment.seq_len() == 0, "data of the mobile host are absorbed");
                }
            }
        }
        drain(&mut machine, &told);
        assert!(machine.connections() <= CONNECTIONS as usize);
    }
    (machine, now)
}

/// Records the ACKs of the mobile host, by the port of the fixed one.
fn note(told: &mut BTreeMap<u16, Vec<Seq32>>, segment: &Segment<Length>) {
    let begins = segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK);
    if begins || segment.flags.contains(Flags::RST) {
        // A new connection may begin with any number.
        told.remove(&segment.dst_port);
    } else if segment.flags.contains(Flags::ACK) {
        told.entry(segment.dst_port).or_default().push(segment.ack);
    }
}

fn drain(machine: &mut impl Pep<Segment<Length>>, told: &BTreeMap<u16, Vec<Seq32>>) {
    let mut sent = 0;
    while let Some(transmit) = machine.poll_transmit() {
        sent += 1;
        assert!(sent < 10_000, "it does not stop sending");
        if let Transmit::Ack(ack) = transmit {
            let given = told.get(&ack.connection.fixed.1);
            assert!(given.is_some_and(|given| given.contains(&ack.ack)), "an ACK that nobody gave");
        }
    }
}

/// Drives split connections with any packets of both hosts. Checks that they never panic, come to rest after each packet,
/// and are bounded.
pub fn split(data: &[u8]) {
    let mut choices = Choices(data);
    let tcp = match choices.byte() % 3 {
        0 => tcp::Config::modern(),
        1 => tcp::Config::linux(),
        _ => tcp::Config::ns2_235().with_sack(),
    };
    let tcp = tcp.with_receive_buffer(20_000);
    let mut config = split::Config::new(Transport::Tcp(tcp), Transport::Tcp(tcp), 10_000);
    config.limits = bounds();
    let mut split = Split::<Bytes>::new(config, RandomStream::keyed(1, 1, 1, Purpose::Proxy));
    let mut now = Instant::ZERO;
    while !choices.is_over() {
        let operation = choices.byte();
        if operation < 40 {
            now += Duration::from_millis(u64::from(choices.byte()) * u64::from(operation));
            split.handle_timeout(now);
        } else {
            let from = if operation & 1 == 0 { Side::Fixed } else { Side::Mobile };
            let (ip, segment) = any_packet(&mut choices, from);
            let (src, dst) = ((ip.src(), segment.src_port), (ip.dst(), segment.dst_port));
            let connection = match from {
                Side::Fixed => Connection { fixed: src, mobile: dst },
                Side::Mobile => Connection { fixed: dst, mobile: src },
            };
            let payload = Bytes::from(vec![0; segment.payload.0 as usize]);
            let segment = Segment { payload, ..with_bytes(&segment) };
            split.handle_packet(now, connection, from, any::Segment::Tcp(segment));
            let held = split.buffered_bytes(&connection).unwrap_or(0);
            assert!(held < 200_000, "{held} bytes held");
        }
        let mut sent = 0;
        while split.poll_transmit().is_some() {
            sent += 1;
            assert!(sent < 10_000, "it does not stop sending");
        }
        assert!(split.connections() <= CONNECTIONS as usize);
    }
}

fn with_bytes(segment: &Segment<Length>) -> Segment<Bytes> {
    let Segment { src_port, dst_port, seq, ack, flags, window, urgent, options, ecn, .. } = *segment;
    Segment { src_port, dst_port, seq, ack, flags, window, urgent, options, ecn, payload: Bytes::new() }
}

fn bounds() -> TableLimits {
    TableLimits { max_connections: CONNECTIONS, idle_timeout: IDLE, ..TableLimits::default() }
}

/// Returns a packet of one of four connections, mostly near the beginning of its numbers.
fn any_packet(choices: &mut Choices<'_>, from: Side) -> (Header, Segment<Length>) {
    let number = |choices: &mut Choices<'_>| match choices.byte() {
        255 => Seq32(choices.u32()),
        near => Seq32(0xffff_f000) + 500 * u32::from(near),
    };
    let port = 1 + u16::from(choices.byte() % 4);
    let [fixed, mobile] = HOSTS[usize::from(port % 2)];
    let ((src, src_port), (dst, dst_port)) = match from {
        Side::Fixed => ((fixed, port), (mobile, 9)),
        Side::Mobile => ((mobile, 9), (fixed, port)),
    };
    let flags = Flags(match choices.byte() {
        0..200 => Flags::ACK.0,
        200..220 => Flags::SYN.0,
        220..235 => (Flags::SYN | Flags::ACK).0,
        235..245 => (Flags::FIN | Flags::ACK).0,
        _ => choices.u16(),
    });
    let (seq, ack) = (number(choices), number(choices));
    let data = if from == Side::Fixed { choices.byte() < 220 } else { choices.byte() < 20 };
    let options = any_options(choices, ack);
    let window = choices.u16();
    let payload = Length(if data { 500 } else { 0 });
    let segment = Segment {
        src_port,
        dst_port,
        seq,
        ack,
        flags,
        window,
        urgent: 0,
        options,
        ecn: Ecn::NotCapable,
        payload,
    };
    (Header::new(src, dst, Protocol::Tcp), segment)
}

fn any_options(choices: &mut Choices<'_>, ack: Seq32) -> Options {
    let which = choices.byte();
    let mut options = Options { sack_permitted: which & 4 != 0, ..Options::default() };
    if which & 8 != 0 {
        options.timestamps = Some(Timestamps { value: choices.u32(), echo: choices.u32() });
    }
    for _ in 0..which >> 5 {
        let left = ack + 500 * u32::from(choices.byte() % 16);
        options.sack.push(SackBlock { left, right: left + 500 * u32::from(choices.byte() % 8) });
    }
    options.nack = which & 3 == 3;
    options
}
