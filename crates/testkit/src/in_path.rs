//! What whatever brings packets to a machine in the path must do, by the example of Snoop: the same bodies for a fake, for real queues of
//! the kernel and pairs of TUN interfaces, and, those that need no bytes, for the simulator's seat.

mod fake;

use bytes::Bytes;
use hopline_core::{Duration, Instant, Seq32};
use hopline_proxy::driver::{Counts, Untouched};
use hopline_proxy::snoop::Stats;
use hopline_proxy::{Connection, Side};
use hopline_wire::ipv4::{Ecn, HEADER_LEN, Header, Protocol};
use hopline_wire::tcp::{Flags, Options, SackBlock, SackBlocks, Segment};
use std::net::Ipv4Addr;

pub use fake::{Broken, Fake, FakePlace};

/// Snoop `modern` on a path between a fixed and a mobile host, in a time that the test makes.
pub trait Place {
    /// Packets come from a side, and whatever follows from it at `now` happens. `arrivals` packets are then expected at the two hosts
    /// together: who is in real time waits for as many.
    fn take(&mut self, now: Instant, from: Side, packets: &[Vec<u8>], arrivals: usize) -> Arrived;

    /// What was done with packets.
    fn counts(&self) -> Counts;

    /// What Snoop did.
    fn stats(&self) -> Stats;
}

/// Packets that have come to the two hosts, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrived {
    /// At the fixed one.
    pub fixed: Vec<Vec<u8>>,
    /// At the mobile one.
    pub mobile: Vec<Vec<u8>>,
}

/// The hosts, as packets name them.
pub const HOSTS: Connection =
    Connection { fixed: (Ipv4Addr::new(10, 81, 0, 1), 80), mobile: (Ipv4Addr::new(10, 82, 0, 2), 9) };

/// A body, with its name.
pub type Case = (&'static str, fn(&mut dyn Place));

/// All of them; each wants a place where nothing has happened yet.
pub const CASES: [Case; 5] = [
    ("what_the_mobile_host_lacks_is_sent_again_here", what_the_mobile_host_lacks_is_sent_again_here),
    ("what_is_repaired_here_is_not_shown", what_is_repaired_here_is_not_shown),
    ("what_nobody_reports_is_sent_again_in_time", what_nobody_reports_is_sent_again_in_time),
    ("what_is_no_whole_segment_passes_untouched", what_is_no_whole_segment_passes_untouched),
    ("order_is_kept", order_is_kept),
];

/// Data of a packet, in bytes.
const LEN: u32 = 1000;
/// Before packet 0. The numbers wrap around with packet 2.
const START: Seq32 = Seq32(u32::MAX - 2 * LEN);

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn what_the_mobile_host_lacks_is_sent_again_here(place: &mut dyn Place) {
    connect(place);
    let sent: Vec<Vec<u8>> = (0..4).map(data).collect();
    let arrived = place.take(at(10), Side::Fixed, &sent, 4);
    assert_eq!(segments(&arrived.mobile), segments(&sent));
    place.take(at(14), Side::Mobile, &[ack(1, &[])], 1);
    // Packet 1 is lost; 2 and 3 came.
    let arrived = place.take(at(15), Side::Mobile, &[ack(1, &[(2, 4)])], 1);
    let (again, shown) = (segments(&arrived.mobile), parsed(&arrived.fixed));
    assert_eq!(again, segments(&sent[1..2]), "the same bytes");
    assert!(shown.is_empty(), "the sender sees nothing of it: {shown:?}");
    let arrived = place.take(at(19), Side::Mobile, &[ack(4, &[])], 1);
    assert_eq!(parsed(&arrived.fixed)[0].ack, seq(4));
    let (counts, stats) = (place.counts(), place.stats());
    assert_eq!((stats.local_retransmissions, counts.sent_to_mobile, counts.refused), (1, 1, 0));
    assert_eq!((counts.to_mobile, counts.from_mobile, counts.absorbed), (5, 4, 1));
}

fn what_is_repaired_here_is_not_shown(place: &mut dyn Place) {
    connect(place);
    let sent: Vec<Vec<u8>> = (0..6).map(data).collect();
    place.take(at(10), Side::Fixed, &sent, 6);
    place.take(at(14), Side::Mobile, &[ack(1, &[])], 1);
    // Something new, and a hole behind it.
    let arrived = place.take(at(15), Side::Mobile, &[ack(2, &[(3, 6)])], 2);
    assert_eq!(segments(&arrived.mobile), segments(&sent[2..3]));
    assert_eq!(parsed(&arrived.fixed).iter().map(|shown| shown.ack).collect::<Vec<_>>(), [seq(2)]);
    assert!(parsed(&arrived.fixed)[0].options.sack.is_empty());
    let whole = ack(2, &[(3, 6)]);
    assert_eq!(arrived.fixed[0].len(), whole.len(), "nothing moves");
    assert_eq!((place.counts().rewritten, place.stats().acks_edited), (1, 1));
}

fn what_nobody_reports_is_sent_again_in_time(place: &mut dyn Place) {
    connect(place);
    let sent = [data(0), data(1)];
    place.take(at(10), Side::Fixed, &sent, 2);
    place.take(at(14), Side::Mobile, &[ack(1, &[])], 1);
    assert_eq!(place.take(at(15), Side::Fixed, &[], 0), Arrived::default());
    let late = at(14) + Duration::from_millis(500);
    let arrived = place.take(late, Side::Fixed, &[], 1);
    assert_eq!(segments(&arrived.mobile), segments(&sent[1..]));
    assert_eq!((place.stats().timeouts, place.counts().sent_to_mobile), (1, 1));
}

fn what_is_no_whole_segment_passes_untouched(place: &mut dyn Place) {
    connect(place);
    let before = place.counts();
    let mut damaged = data(0);
    *damaged.last_mut().expect("it has data") ^= 1;
    let mut fragment = data(1);
    fragment[6..8].copy_from_slice(&[0x20, 0]);
    let mut datagram = data(2);
    datagram[9] = 17;
    let mut cut = data(3);
    cut[HEADER_LEN + 12] = 0xf0; // longer than the packet
    cut.truncate(HEADER_LEN + 24);
    cut[2..4].copy_from_slice(&((HEADER_LEN + 24) as u16).to_be_bytes());
    let mut sent = vec![damaged, fragment, datagram, cut];
    sent.iter_mut().for_each(|packet| check_header(packet));
    let arrived = place.take(at(10), Side::Fixed, &sent, sent.len());
    assert_eq!(segments(&arrived.mobile), segments(&sent));
    let counts = place.counts();
    let untouched =
        Untouched { bad_checksums: 1, fragments: 1, other_protocols: 1, malformed: 1, ..Default::default() };
    assert_eq!(counts, Counts { untouched, ..before });
    assert_eq!(place.stats().kept, 0);
}

fn order_is_kept(place: &mut dyn Place) {
    connect(place);
    // More than are taken at once.
    let sent: Vec<Vec<u8>> = (0..200).map(data).collect();
    let arrived = place.take(at(10), Side::Fixed, &sent, sent.len());
    assert_eq!(segments(&arrived.mobile), segments(&sent));
    place.take(at(14), Side::Mobile, &[ack(1, &[])], 1);
    // ACKs that pass, then absorbed ones about packet 10, then again some that pass.
    let about_10 = (12..20).map(|n| ack(10, &[(11, n)]));
    let acks: Vec<Vec<u8>> =
        (2..=10).map(|n| ack(n, &[])).chain(about_10).chain((20..50).map(|n| ack(n, &[]))).collect();
    let arrived = place.take(at(15), Side::Mobile, &acks, 9 + 30 + 1);
    let numbers: Vec<Seq32> = parsed(&arrived.fixed).iter().map(|segment| segment.ack).collect();
    assert_eq!(numbers, (2..=10).chain(20..50).map(seq).collect::<Vec<_>>());
    assert_eq!(segments(&arrived.mobile), segments(&sent[10..11]));
    assert_eq!(place.counts().absorbed, 8);
}

/// The handshake, a packet after the other.
fn connect(place: &mut dyn Place) {
    for (now, (side, packet)) in [at(1), at(5)].into_iter().zip(connecting()) {
        let arrived = place.take(now, side, std::slice::from_ref(&packet), 1);
        let Arrived { fixed, mobile } = arrived;
        assert_eq!(segments(&[mobile, fixed].concat()), segments(&[packet]));
    }
}

/// The handshake, with SACK.
#[must_use]
pub fn connecting() -> [(Side, Vec<u8>); 2] {
    let options = Options { mss: Some(1460), sack_permitted: true, ..Options::default() };
    let fixed = Segment { seq: START + u32::MAX, flags: Flags::SYN, options, ..from(Side::Fixed) };
    let flags = Flags::SYN | Flags::ACK;
    let mobile = Segment { seq: Seq32(76), ack: START, flags, options, ..from(Side::Mobile) };
    [(Side::Fixed, packet(Side::Fixed, &fixed)), (Side::Mobile, packet(Side::Mobile, &mobile))]
}

/// The first byte of packet `n`.
fn seq(n: u32) -> Seq32 {
    START + n * LEN
}

/// Packet `n` with 1000 bytes of data, for the mobile host.
#[must_use]
pub fn data(n: u32) -> Vec<u8> {
    let payload: Vec<u8> = (0..LEN).map(|i| (i + n) as u8).collect();
    let payload = Bytes::from(payload);
    packet(
        Side::Fixed,
        &Segment { seq: seq(n), ack: Seq32(77), flags: Flags::ACK, payload, ..from(Side::Fixed) },
    )
}

/// The mobile host has all before packet `n`, and these: from one up to, not including, another.
///
/// # Panics
/// If there are more than four ranges.
#[must_use]
pub fn ack(n: u32, has: &[(u32, u32)]) -> Vec<u8> {
    let mut sack = SackBlocks::default();
    for &(from, to) in has {
        assert!(sack.push(SackBlock { left: seq(from), right: seq(to) }));
    }
    let options = Options { sack, ..Options::default() };
    packet(
        Side::Mobile,
        &Segment { seq: Seq32(77), ack: seq(n), flags: Flags::ACK, options, ..from(Side::Mobile) },
    )
}

/// A segment from a side, that says nothing yet.
fn from(side: Side) -> Segment<Bytes> {
    let (src_port, dst_port) = match side {
        Side::Fixed => (HOSTS.fixed.1, HOSTS.mobile.1),
        Side::Mobile => (HOSTS.mobile.1, HOSTS.fixed.1),
    };
    Segment { src_port, dst_port, window: 5000, ..Segment::default() }
}

fn packet(from: Side, segment: &Segment<Bytes>) -> Vec<u8> {
    let (src, dst) = match from {
        Side::Fixed => (HOSTS.fixed.0, HOSTS.mobile.0),
        Side::Mobile => (HOSTS.mobile.0, HOSTS.fixed.0),
    };
    let ip = Header { src, dst, ttl: 60, protocol: Protocol::Tcp, ecn: Ecn::NotCapable, id: 7 };
    let mut packet = Vec::new();
    ip.emit(segment.wire_len(), &mut packet);
    segment.emit(&ip, &mut packet);
    packet
}

/// Makes the checksum of the IP header right.
fn check_header(packet: &mut [u8]) {
    packet[10..12].fill(0);
    let sum = hopline_wire::checksum::internet(&packet[..HEADER_LEN]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// What stands behind the IP headers, in which routers count down.
fn segments(packets: &[Vec<u8>]) -> Vec<&[u8]> {
    packets.iter().map(|packet| &packet[HEADER_LEN..]).collect()
}

fn parsed(packets: &[Vec<u8>]) -> Vec<Segment<Bytes>> {
    let parse = |packet: &Vec<u8>| {
        let (ip, payload) = Header::parse(&packet.clone().into()).expect("an IPv4 packet");
        Segment::parse(&ip, &payload).expect("a segment with a right checksum")
    };
    packets.iter().map(parse).collect()
}
