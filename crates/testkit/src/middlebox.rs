//! Tests of packet sources and sinks of a middlebox, with Snoop as example. The same bodies run for a fake, for queues of
//! the kernel and pairs of TUN interfaces. Those that need no bytes also run in the simulator.

mod fake;

use bytes::Bytes;
use hopline_core::{Duration, Instant, Seq32};
use hopline_proxy::driver::{BypassedCounts, Counts};
use hopline_proxy::snoop::Stats;
use hopline_proxy::{Connection, Side};
use hopline_wire::ip::{Header, Protocol};
use hopline_wire::tcp::{Flags, Options, SackBlock, SackBlocks, Segment};
use hopline_wire::{ipv4, ipv6};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use fake::{Broken, FakeMiddleboxPath, FakePath};

/// Path between a fixed and a mobile host with Snoop `modern`; the test sets the time.
pub trait MiddleboxPath {
    /// Returns the addresses and ports of the hosts.
    fn hosts(&self) -> Connection {
        HOSTS
    }

    /// Handles packets from a side, and everything that follows from them at `now`. `arrivals` packets are then expected at
    /// the two hosts together: an implementation in real time waits for them.
    fn handle_packets(&mut self, now: Instant, from: Side, packets: &[Vec<u8>], arrivals: usize) -> Arrived;

    /// Returns the counters of packets.
    fn counts(&self) -> Counts;

    /// Returns the counters of Snoop.
    fn stats(&self) -> Stats;
}

/// Packets that have arrived at the two hosts, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrived {
    /// Packets at the fixed host.
    pub fixed: Vec<Vec<u8>>,
    /// Packets at the mobile host.
    pub mobile: Vec<Vec<u8>>,
}

/// IPv4 addresses of the fixed and the mobile host.
pub const IPV4: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 81, 0, 1), Ipv4Addr::new(10, 82, 0, 2)];

/// Addresses and ports of the hosts over IPv4.
pub const HOSTS: Connection =
    Connection { fixed: (IpAddr::V4(IPV4[0]), 80), mobile: (IpAddr::V4(IPV4[1]), 9) };

/// Addresses and ports of the hosts over IPv6.
pub const HOSTS_V6: Connection = Connection {
    fixed: (IpAddr::V6(Ipv6Addr::new(0xfd00, 0x81, 0, 0, 0, 0, 0, 1)), 80),
    mobile: (IpAddr::V6(Ipv6Addr::new(0xfd00, 0x82, 0, 0, 0, 0, 0, 2)), 9),
};

/// Test body, with its name.
pub type Case = (&'static str, fn(&mut dyn MiddleboxPath));

/// All test bodies. Each needs a place that has handled no packet yet.
pub const CASES: [Case; 5] = [
    ("what_the_mobile_host_lacks_is_sent_again_here", missing_packets_are_retransmitted_locally),
    ("what_is_repaired_here_is_not_shown", local_repairs_are_hidden_from_the_sender),
    ("what_nobody_reports_is_sent_again_in_time", unreported_losses_are_repaired_by_timeout),
    ("what_is_no_whole_segment_passes_untouched", incomplete_segments_pass_unchanged),
    ("order_is_kept", order_is_kept),
];

/// Data of a packet, bytes.
const LEN: u32 = 1000;
/// Sequence number before packet 0. The numbers wrap around within packet 2.
const START: Seq32 = Seq32(u32::MAX - 2 * LEN);

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn missing_packets_are_retransmitted_locally(place: &mut dyn MiddleboxPath) {
    let hosts = place.hosts();
    connect(place);
    let sent: Vec<Vec<u8>> = (0..4).map(|n| data_between(hosts, n)).collect();
    let arrived = place.handle_packets(at(10), Side::Fixed, &sent, 4);
    assert_eq!(segments(&arrived.mobile), segments(&sent));
    place.handle_packets(at(14), Side::Mobile, &[ack_between(hosts, 1, &[])], 1);
    // Packet 1 is lost; 2 and 3 arrived.
    let arrived = place.handle_packets(at(15), Side::Mobile, &[ack_between(hosts, 1, &[(2, 4)])], 1);
    let (again, shown) = (segments(&arrived.mobile), parsed(&arrived.fixed));
    assert_eq!(again, segments(&sent[1..2]), "the same bytes");
    assert!(shown.is_empty(), "the sender sees nothing of it: {shown:?}");
    let arrived = place.handle_packets(at(19), Side::Mobile, &[ack_between(hosts, 4, &[])], 1);
    assert_eq!(parsed(&arrived.fixed)[0].ack, seq(4));
    let (counts, stats) = (place.counts(), place.stats());
    assert_eq!((stats.local_retransmissions, counts.sent_to_mobile, counts.no_route), (1, 1, 0));
    assert_eq!((counts.to_mobile, counts.from_mobile, counts.absorbed), (5, 4, 1));
}

fn local_repairs_are_hidden_from_the_sender(place: &mut dyn MiddleboxPath) {
    let hosts = place.hosts();
    connect(place);
    let sent: Vec<Vec<u8>> = (0..6).map(|n| data_between(hosts, n)).collect();
    place.handle_packets(at(10), Side::Fixed, &sent, 6);
    place.handle_packets(at(14), Side::Mobile, &[ack_between(hosts, 1, &[])], 1);
    // New data are acknowledged, with a hole after them.
    let arrived = place.handle_packets(at(15), Side::Mobile, &[ack_between(hosts, 2, &[(3, 6)])], 2);
    assert_eq!(segments(&arrived.mobile), segments(&sent[2..3]));
    assert_eq!(parsed(&arrived.fixed).iter().map(|shown| shown.ack).collect::<Vec<_>>(), [seq(2)]);
    assert!(parsed(&arrived.fixed)[0].options.sack.is_empty());
    let whole = ack_between(hosts, 2, &[(3, 6)]);
    assert_eq!(arrived.fixed[0].len(), whole.len(), "nothing moves");
    assert_eq!((place.counts().rewritten, place.stats().acks_rewritten), (1, 1));
}

fn unreported_losses_are_repaired_by_timeout(place: &mut dyn MiddleboxPath) {
    let hosts = place.hosts();
    connect(place);
    let sent = [data_between(hosts, 0), data_between(hosts, 1)];
    place.handle_packets(at(10), Side::Fixed, &sent, 2);
    place.handle_packets(at(14), Side::Mobile, &[ack_between(hosts, 1, &[])], 1);
    assert_eq!(place.handle_packets(at(15), Side::Fixed, &[], 0), Arrived::default());
    let late = at(14) + Duration::from_millis(500);
    let arrived = place.handle_packets(late, Side::Fixed, &[], 1);
    assert_eq!(segments(&arrived.mobile), segments(&sent[1..]));
    assert_eq!((place.stats().timeouts, place.counts().sent_to_mobile), (1, 1));
}

fn incomplete_segments_pass_unchanged(place: &mut dyn MiddleboxPath) {
    let hosts = place.hosts();
    connect(place);
    let before = place.counts();
    let mut damaged = data_between(hosts, 0);
    *damaged.last_mut().expect("it has data") ^= 1;
    let sent = [
        damaged,
        as_fragment(data_between(hosts, 1)),
        as_udp(data_between(hosts, 2)),
        truncated(data_between(hosts, 3)),
    ];
    let arrived = place.handle_packets(at(10), Side::Fixed, &sent, sent.len());
    assert_eq!(segments(&arrived.mobile), segments(&sent));
    let counts = place.counts();
    let untouched = BypassedCounts {
        bad_checksums: 1,
        fragments: 1,
        other_protocols: 1,
        malformed: 1,
        ..Default::default()
    };
    assert_eq!(counts, Counts { bypassed: untouched, ..before });
    assert_eq!(place.stats().cached, 0);
}

fn order_is_kept(place: &mut dyn MiddleboxPath) {
    let hosts = place.hosts();
    connect(place);
    // More packets than are handled in one batch.
    let sent: Vec<Vec<u8>> = (0..200).map(|n| data_between(hosts, n)).collect();
    let arrived = place.handle_packets(at(10), Side::Fixed, &sent, sent.len());
    assert_eq!(segments(&arrived.mobile), segments(&sent));
    place.handle_packets(at(14), Side::Mobile, &[ack_between(hosts, 1, &[])], 1);
    // ACKs that pass, then ACKs about packet 10 that are absorbed, then ACKs that pass again.
    let about_10 = (12..20).map(|n| ack_between(hosts, 10, &[(11, n)]));
    let acks: Vec<Vec<u8>> = (2..=10)
        .map(|n| ack_between(hosts, n, &[]))
        .chain(about_10)
        .chain((20..50).map(|n| ack_between(hosts, n, &[])))
        .collect();
    let arrived = place.handle_packets(at(15), Side::Mobile, &acks, 9 + 30 + 1);
    let numbers: Vec<Seq32> = parsed(&arrived.fixed).iter().map(|segment| segment.ack).collect();
    assert_eq!(numbers, (2..=10).chain(20..50).map(seq).collect::<Vec<_>>());
    assert_eq!(segments(&arrived.mobile), segments(&sent[10..11]));
    assert_eq!(place.counts().absorbed, 8);
}

/// Performs the handshake, one packet after the other.
fn connect(place: &mut dyn MiddleboxPath) {
    for (now, (side, packet)) in [at(1), at(5)].into_iter().zip(connecting_between(place.hosts())) {
        let arrived = place.handle_packets(now, side, std::slice::from_ref(&packet), 1);
        let Arrived { fixed, mobile } = arrived;
        assert_eq!(segments(&[mobile, fixed].concat()), segments(&[packet]));
    }
}

/// Returns the packets of a handshake over IPv4, with SACK.
#[must_use]
pub fn connecting() -> [(Side, Vec<u8>); 2] {
    connecting_between(HOSTS)
}

/// Returns the packets of a handshake of two hosts, with SACK.
#[must_use]
pub fn connecting_between(hosts: Connection) -> [(Side, Vec<u8>); 2] {
    let options = Options { mss: Some(1460), sack_permitted: true, ..Options::default() };
    let fixed = Segment { seq: START + u32::MAX, flags: Flags::SYN, options, ..from(hosts, Side::Fixed) };
    let flags = Flags::SYN | Flags::ACK;
    let mobile = Segment { seq: Seq32(76), ack: START, flags, options, ..from(hosts, Side::Mobile) };
    [(Side::Fixed, packet(hosts, Side::Fixed, &fixed)), (Side::Mobile, packet(hosts, Side::Mobile, &mobile))]
}

/// Returns the sequence number of the first byte of packet `n`.
fn seq(n: u32) -> Seq32 {
    START + n * LEN
}

/// Returns packet `n`, with 1000 bytes of data over IPv4, for the mobile host.
#[must_use]
pub fn data(n: u32) -> Vec<u8> {
    data_between(HOSTS, n)
}

/// Returns packet `n`, with 1000 bytes of data for the mobile host, between two hosts.
#[must_use]
pub fn data_between(hosts: Connection, n: u32) -> Vec<u8> {
    let payload: Vec<u8> = (0..LEN).map(|i| (i + n) as u8).collect();
    let payload = Bytes::from(payload);
    packet(
        hosts,
        Side::Fixed,
        &Segment { seq: seq(n), ack: Seq32(77), flags: Flags::ACK, payload, ..from(hosts, Side::Fixed) },
    )
}

/// Returns the ACK over IPv4 of a mobile host that has received all packets before packet `n`, and the ranges `has`, ends
/// excluded.
///
/// # Panics
/// If there are more than four ranges.
#[must_use]
pub fn ack(n: u32, has: &[(u32, u32)]) -> Vec<u8> {
    ack_between(HOSTS, n, has)
}

/// Returns the ACK as [`ack`] does, between two hosts.
///
/// # Panics
/// If there are more than four ranges.
#[must_use]
pub fn ack_between(hosts: Connection, n: u32, has: &[(u32, u32)]) -> Vec<u8> {
    let mut sack = SackBlocks::default();
    for &(from, to) in has {
        assert!(sack.push(SackBlock { left: seq(from), right: seq(to) }));
    }
    let options = Options { sack, ..Options::default() };
    packet(
        hosts,
        Side::Mobile,
        &Segment { seq: Seq32(77), ack: seq(n), flags: Flags::ACK, options, ..from(hosts, Side::Mobile) },
    )
}

/// Returns a segment from a side, without flags, data or options.
fn from(hosts: Connection, side: Side) -> Segment<Bytes> {
    let (src_port, dst_port) = match side {
        Side::Fixed => (hosts.fixed.1, hosts.mobile.1),
        Side::Mobile => (hosts.mobile.1, hosts.fixed.1),
    };
    Segment { src_port, dst_port, window: 5000, ..Segment::default() }
}

fn packet(hosts: Connection, from: Side, segment: &Segment<Bytes>) -> Vec<u8> {
    let (src, dst) = match from {
        Side::Fixed => (hosts.fixed.0, hosts.mobile.0),
        Side::Mobile => (hosts.mobile.0, hosts.fixed.0),
    };
    let ip = match Header::new(src, dst, Protocol::Tcp) {
        Header::V4(header) => Header::V4(ipv4::Header { ttl: 60, id: 7, ..header }),
        Header::V6(header) => Header::V6(ipv6::Header { hop_limit: 60, flow_label: 7, ..header }),
    };
    let mut packet = Vec::new();
    ip.emit(segment.wire_len(), &mut packet);
    segment.emit(&ip, &mut packet);
    packet
}

/// Returns the packet as a fragment.
fn as_fragment(mut packet: Vec<u8>) -> Vec<u8> {
    if is_ipv6(&packet) {
        // The first eight bytes of the segment become the fragment header.
        packet[6] = 44;
    } else {
        packet[6..8].copy_from_slice(&[0x20, 0]);
        fix_header_checksum(&mut packet);
    }
    packet
}

/// Returns the packet as one of UDP.
fn as_udp(mut packet: Vec<u8>) -> Vec<u8> {
    if is_ipv6(&packet) {
        packet[6] = 17;
    } else {
        packet[9] = 17;
        fix_header_checksum(&mut packet);
    }
    packet
}

/// Returns the packet, truncated within the header of its segment.
fn truncated(mut packet: Vec<u8>) -> Vec<u8> {
    const LEFT: u8 = 24;
    let header = header_len(&packet);
    packet[header + 12] = 0xf0;
    packet.truncate(header + usize::from(LEFT));
    if is_ipv6(&packet) {
        packet[4..6].copy_from_slice(&[0, LEFT]);
    } else {
        packet[2..4].copy_from_slice(&[0, header as u8 + LEFT]);
        fix_header_checksum(&mut packet);
    }
    packet
}

fn is_ipv6(packet: &[u8]) -> bool {
    packet[0] >> 4 == 6
}

fn header_len(packet: &[u8]) -> usize {
    if is_ipv6(packet) { ipv6::HEADER_LEN } else { ipv4::HEADER_LEN }
}

/// Corrects the checksum of the IPv4 header.
fn fix_header_checksum(packet: &mut [u8]) {
    packet[10..12].fill(0);
    let sum = hopline_wire::checksum::internet(&packet[..ipv4::HEADER_LEN]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// Returns the packets without their IP headers, in which routers change the TTL.
fn segments(packets: &[Vec<u8>]) -> Vec<&[u8]> {
    packets.iter().map(|packet| &packet[header_len(packet)..]).collect()
}

fn parsed(packets: &[Vec<u8>]) -> Vec<Segment<Bytes>> {
    let parse = |packet: &Vec<u8>| {
        let (ip, payload) = Header::parse(packet).expect("an IP packet");
        let bytes = Bytes::copy_from_slice(&packet[payload]);
        Segment::parse(&ip, &bytes).expect("a segment with a right checksum")
    };
    packets.iter().map(parse).collect()
}
