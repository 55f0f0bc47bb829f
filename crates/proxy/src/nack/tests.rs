//! Dialogues: data from the mobile host, requests of the base station, and reactions of the host's Snoop.

use super::*;
use crate::snoop::{self, Snoop};
use hopline_core::Length;
use hopline_wire::ip::{Header, Protocol};
use std::net::Ipv6Addr;

const FIXED: (IpAddr, u16) = (IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)), 80);
const MOBILE: (IpAddr, u16) = (IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2)), 9);
const LEN: u32 = 1000;
/// Sequence number before packet 0. Numbers wrap around with packet 2.
const START: Seq32 = Seq32(u32::MAX - 2 * LEN);

fn seq(n: u32) -> Seq32 {
    START + n * LEN
}

fn segment(from: (IpAddr, u16), to: (IpAddr, u16)) -> (Header, Segment<Length>) {
    let ip = Header::new(from.0, to.0, Protocol::Tcp);
    (ip, Segment { src_port: from.1, dst_port: to.1, flags: Flags::ACK, window: 500, ..Segment::default() })
}

fn data(n: u32) -> (Header, Segment<Length>) {
    let (ip, segment) = segment(MOBILE, FIXED);
    (ip, Segment { seq: seq(n), ack: Seq32(7), payload: Length(LEN.into()), ..segment })
}

fn ack(n: u32) -> (Header, Segment<Length>) {
    let (ip, segment) = segment(FIXED, MOBILE);
    (ip, Segment { seq: Seq32(7), ack: seq(n), ..segment })
}

/// A base station, and the time.
struct Station {
    nacks: NackStation<()>,
    now_ms: u64,
}

impl Station {
    /// Creates a station; the fixed host has acknowledged packet 0.
    fn new(config: Config) -> Self {
        let mut station = Self { nacks: NackStation::new(config), now_ms: 0 };
        assert_eq!(station.data(0), []);
        station.ack(1);
        station
    }

    fn now(&self) -> Instant {
        Instant::from_millis(self.now_ms)
    }

    /// Passes a packet. Returns the requested ranges.
    fn data(&mut self, n: u32) -> Vec<(u32, u32)> {
        let (ip, segment) = data(n);
        let verdict = self.nacks.handle_packet_from_mobile(self.now(), Packet::new(&ip, &segment));
        assert_eq!(verdict, Verdict::Forward, "nothing is ever held up");
        self.requested()
    }

    fn ack(&mut self, n: u32) {
        let (ip, segment) = ack(n);
        let packet = Packet::new(&ip, &segment);
        assert_eq!(self.nacks.handle_packet_to_mobile(self.now(), packet, || ()), Verdict::Forward);
    }

    fn requested(&mut self) -> Vec<(u32, u32)> {
        let mut asked = Vec::new();
        while let Some(transmit) = self.nacks.poll_transmit() {
            let Transmit::Nack(nack) = transmit else { panic!("{transmit:?}") };
            let number = |at: Seq32| (at - START) / LEN;
            asked.extend(nack.missing.as_slice().iter().map(|gap| (number(gap.left), number(gap.right))));
        }
        asked
    }

    /// Returns the ranges requested by a timer, with their times.
    fn wait(&mut self, until_ms: u64) -> Vec<(u64, u32, u32)> {
        let mut asked = Vec::new();
        while let Some(at) = self.nacks.poll_timeout().filter(|at| *at <= Instant::from_millis(until_ms)) {
            self.now_ms = at.as_nanos().div_ceil(1_000_000);
            self.nacks.handle_timeout(self.now());
            let now_ms = self.now_ms;
            asked.extend(self.requested().into_iter().map(|(left, right)| (now_ms, left, right)));
        }
        self.now_ms = until_ms;
        asked
    }
}

#[test]
fn first_packet_after_a_gap_triggers_one_nack() {
    let mut station = Station::new(Config::default());
    assert_eq!(station.data(1), []);
    assert_eq!(station.data(4), [(2, 4)]);
    assert_eq!(station.data(5), []);
    assert_eq!(station.data(7), [(6, 7)], "and of another gap alone");
}

#[test]
fn nack_is_repeated_with_backoff_then_given_up() {
    let mut station = Station::new(Config { max_requests: 3, ..Config::default() });
    station.data(2);
    assert_eq!(station.wait(10_000), [(100, 1, 2), (300, 1, 2)], "nothing is known of the last hop yet");
    assert_eq!((station.nacks.stats().nacks, station.nacks.stats().left_to_sender), (3, 1));
}

#[test]
fn repair_samples_the_rtt_and_ends_nacks() {
    let mut station = Station::new(Config::default());
    station.data(2);
    station.now_ms = 4;
    assert_eq!(station.data(1), []);
    assert_eq!(station.wait(1000), []);
    station.data(4);
    assert_eq!(station.wait(1013), [(1012, 3, 4)], "4 ms, deviation 2 ms");
    assert_eq!(station.nacks.stats().repaired, 1);
}

#[test]
fn partial_repair_leaves_the_rest_missing() {
    let mut station = Station::new(Config::default());
    assert_eq!(station.data(5), [(1, 5)]);
    station.now_ms = 4;
    station.data(3);
    assert_eq!(station.wait(12), [(12, 1, 3), (12, 4, 5)], "4 ms, deviation 2 ms");
}

#[test]
fn acknowledged_data_are_not_requested() {
    let mut station = Station::new(Config::default());
    station.data(2);
    // The packet has taken another path.
    station.ack(2);
    assert_eq!(station.wait(10_000), []);
}

#[test]
fn no_nack_before_the_fixed_host_has_sent() {
    let mut station = Station { nacks: NackStation::new(Config::default()), now_ms: 0 };
    station.data(0);
    assert_eq!(station.data(2), []);
    station.ack(1);
    assert_eq!(station.wait(150), [(100, 1, 2)]);
}

#[test]
fn holes_are_bounded_and_a_nack_holds_what_fits() {
    let mut station = Station::new(Config::default());
    for n in 1..=200 {
        station.data(2 * n);
    }
    assert_eq!(station.nacks.stats().nacks, MAX_HOLES as u64);
    assert_eq!(station.wait(100).len(), MAX_HOLES);
    assert_eq!(station.nacks.stats().nacks, (MAX_HOLES + MAX_HOLES / SackBlocks::MAX) as u64);
}

#[test]
fn reset_or_new_syn_removes_state() {
    for flags in [Flags::RST, Flags::SYN] {
        let mut station = Station::new(Config::default());
        station.data(2);
        let (ip, segment) = data(500);
        let segment = Segment { flags, payload: Length(0), ..segment };
        let _ = station.nacks.handle_packet_from_mobile(station.now(), Packet::new(&ip, &segment));
        assert_eq!(station.wait(10_000), [], "{flags:?}");
    }
}

/// Creates the Snoop of the mobile host, which has sent packets 0 to 5; packet 0 is acknowledged after 50 ms.
fn host() -> Snoop<u32> {
    let mut host = Snoop::new(snoop::Config::nack_host());
    for n in 0..=5 {
        let (ip, segment) = data(n);
        let verdict =
            Pep::<u32>::handle_packet_to_mobile(&mut host, Instant::ZERO, Packet::new(&ip, &segment), || n);
        assert_eq!(verdict, Verdict::Forward);
    }
    assert_eq!(receive_ack(&mut host, 50, 1), Verdict::Forward);
    host
}

fn receive_ack(host: &mut Snoop<u32>, at_ms: u64, n: u32) -> Verdict {
    let (ip, segment) = ack(n);
    host.handle_packet_from_mobile(Instant::from_millis(at_ms), Packet::new(&ip, &segment))
}

fn receive_nack(host: &mut Snoop<u32>, at_ms: u64, (left, right): (u32, u32)) -> Vec<u32> {
    let (ip, mut segment) = ack(1);
    segment.options.nack = true;
    segment.options.sack.push(SackBlock { left: seq(left), right: seq(right) });
    let packet = Packet::new(&ip, &segment);
    assert_eq!(host.handle_packet_from_mobile(Instant::from_millis(at_ms), packet), Verdict::Absorb);
    retransmitted(host)
}

fn retransmitted(host: &mut Snoop<u32>) -> Vec<u32> {
    let sent = core::iter::from_fn(|| host.poll_transmit());
    sent.map(
        |transmit| if let Transmit::Retransmission { packet: kept, .. } = transmit { kept } else { u32::MAX },
    )
    .collect()
}

#[test]
fn host_retransmits_on_nack_and_absorbs_duplicates() {
    let mut host = host();
    assert_eq!(receive_nack(&mut host, 51, (1, 3)), [1, 2]);
    assert_eq!([100, 101, 102].map(|at_ms| receive_ack(&mut host, at_ms, 1)), [Verdict::Absorb; 3]);
    assert_eq!(receive_ack(&mut host, 103, 6), Verdict::Forward);
}

#[test]
fn loss_without_nack_is_congestion() {
    let mut host = host();
    assert_eq!([100, 101, 102].map(|at_ms| receive_ack(&mut host, at_ms, 1)), [Verdict::Forward; 3]);
    host.handle_timeout(Instant::from_secs(100));
    assert_eq!(retransmitted(&mut host), [], "nor is anything sent again by a timer");
}

#[test]
fn retransmission_lost_beyond_the_station_is_left_to_the_sender() {
    let mut host = host();
    assert_eq!(receive_nack(&mut host, 60, (1, 2)), [1]);
    // Round trip 50 ms, deviation 25 ms: 150 ms, twice.
    assert_eq!(host.poll_timeout(), Some(Instant::from_millis(360)));
    host.handle_timeout(Instant::from_millis(360));
    assert_eq!((retransmitted(&mut host), receive_ack(&mut host, 361, 1)), (vec![], Verdict::Forward));
}

#[test]
fn nack_with_timestamps_holds_three_ranges() {
    let mut station = Station::new(Config::default());
    let (ip, mut segment) = ack(1);
    segment.options.timestamps = Some(Timestamps { value: 7, echo: 8 });
    let packet = Packet::new(&ip, &segment);
    assert_eq!(station.nacks.handle_packet_to_mobile(station.now(), packet, || ()), Verdict::Forward);
    (1..=4).for_each(|n| drop(station.data(2 * n)));
    station.now_ms = 100;
    station.nacks.handle_timeout(station.now());
    let mut held = Vec::new();
    while let Some(Transmit::Nack(nack)) = station.nacks.poll_transmit() {
        held.push((nack.missing.len(), nack.segment::<Length>().options.sack_room()));
    }
    assert_eq!(held, [(3, 3), (1, 3)]);
}

fn announced_only() -> Config {
    Config { policy: NackPolicy::Announced, ..Config::default() }
}

/// Returns the announcement of a host that has sent all packets up to `n`.
fn announcement(n: u32) -> (Header, Segment<Length>) {
    let (ip, mut segment) = data(n);
    (segment.payload, segment.options.nack) = (Length(0), true);
    (ip, segment)
}

impl Station {
    fn announced(&mut self, n: u32) -> Verdict {
        let (ip, segment) = announcement(n);
        self.nacks.handle_packet_from_mobile(self.now(), Packet::new(&ip, &segment))
    }

    /// Loses packets one by one; each arrives 4 ms later. Returns the number of requested ranges.
    fn lose(&mut self, gaps: core::ops::Range<u32>) -> usize {
        let mut asked = 0;
        for gap in gaps.map(|n| 2 * n + 1) {
            asked += self.data(gap + 1).len();
            self.now_ms += 4;
            self.data(gap);
            self.ack(gap + 2);
        }
        asked
    }
}

#[test]
fn host_without_announcement_gets_no_nack() {
    let mut station = Station::new(announced_only());
    assert_eq!(station.lose(0..50), 0);
    assert_eq!((station.nacks.stats().nacks, station.nacks.stats().not_requested), (0, 50));
}

#[test]
fn host_gets_nacks_while_it_announces() {
    let mut station = Station::new(announced_only());
    assert_eq!(station.announced(1), Verdict::Absorb, "it is for no other host");
    assert_eq!(station.data(2), [(1, 2)]);
    assert_eq!(station.wait(700), [(100, 1, 2), (300, 1, 2), (700, 1, 2)]);
    station.data(1);
    station.now_ms = 5_000;
    assert_eq!(station.data(4), [(3, 4)]);
    station.now_ms = 5_001;
    assert_eq!(station.data(6), [], "it may have ended");
    assert_eq!(station.wait(60_000), [], "nor is anything asked for again");
    assert_eq!(station.nacks.stats().left_to_sender, 1);
    assert_eq!(station.announced(7), Verdict::Absorb);
    assert_eq!(station.data(8), [(7, 8)]);
}

#[test]
fn forged_announcement_is_ignored() {
    let mut station = Station::new(announced_only());
    for n in [1 << 13, u32::MAX / LEN / 2] {
        assert_eq!(station.announced(n), Verdict::Forward, "its number is guessed: {n}");
    }
    let (ip, mut segment) = announcement(1);
    segment.src_port += 1;
    let packet = Packet::new(&ip, &segment);
    assert_eq!(
        station.nacks.handle_packet_from_mobile(station.now(), packet),
        Verdict::Forward,
        "no connection"
    );
    assert_eq!(station.data(2), []);
    assert_eq!(station.nacks.stats().announcements, 0);
}

#[test]
fn reused_ports_need_a_new_announcement() {
    let mut station = Station::new(announced_only());
    assert_eq!(station.announced(1), Verdict::Absorb);
    let (ip, mut segment) = data(0);
    (segment.flags, segment.payload) = (Flags::SYN, Length(0));
    let _ = station.nacks.handle_packet_from_mobile(station.now(), Packet::new(&ip, &segment));
    station.ack(0);
    assert_eq!(station.data(3), []);
}

#[test]
fn new_config_applies_to_later_nacks() {
    let mut station = Station::new(Config::default());
    assert_eq!(station.lose(0..5), 5);
    station.nacks.set_config(announced_only());
    assert_eq!(station.lose(5..10), 0);
    assert_eq!(station.announced(21), Verdict::Absorb);
    assert_eq!(station.lose(10..15), 5);
}

/// Returns the times of the announcements of a host that sends a packet every `every_ms`.
fn announcements(every_ms: u64, packets: u32) -> Vec<u64> {
    let mut host = Snoop::<u32>::new(snoop::Config::announcing_host());
    let mut said = Vec::new();
    for n in 0..packets {
        let at_ms = u64::from(n) * every_ms;
        let (ip, segment) = data(n);
        let _ = host.handle_packet_to_mobile(Instant::from_millis(at_ms), Packet::new(&ip, &segment), || n);
        while let Some(Transmit::Nack(nack)) = host.poll_transmit() {
            let expected = Nack {
                connection: Connection { fixed: MOBILE, mobile: FIXED },
                seq: seq(n + 1),
                ack: Seq32(7),
                window: 499,
                timestamps: None,
                missing: SackBlocks::default(),
            };
            assert_eq!(nack, expected);
            said.push(at_ms);
        }
    }
    said
}

#[test]
fn host_announces_uploads_quickly_then_every_second() {
    assert_eq!(announcements(10, 350), [20, 120, 220, 1220, 2220, 3220]);
    assert_eq!(announcements(10, 2), [], "short exchanges are no uploads");
    assert_eq!(announcements(10_000, 5), [20_000, 30_000, 40_000], "no data, no announcement");
}

#[test]
fn station_reads_announcements() {
    let mut station = Station::new(announced_only());
    let (ip, segment) = data(1);
    let mut host = Snoop::<u32>::new(snoop::Config::announcing_host());
    for n in 1..=3 {
        let (ip, segment) = data(n);
        let _ = host.handle_packet_to_mobile(station.now(), Packet::new(&ip, &segment), || n);
        station.data(n);
    }
    let Some(Transmit::Nack(nack)) = host.poll_transmit() else { panic!("nothing is announced") };
    let said = nack.segment::<Length>();
    assert_eq!((said.src_port, said.dst_port), (segment.src_port, segment.dst_port));
    let verdict = station.nacks.handle_packet_from_mobile(station.now(), Packet::new(&ip, &said));
    assert_eq!((verdict, station.nacks.stats().announcements), (Verdict::Absorb, 1));
}

/// Returns the number of packets that a host retransmits on forged requests, and its counters. `first`:
/// number of packets sent for the first time.
fn forged_nacks(first: u32, question: impl Fn(u32) -> Segment<Length>) -> (usize, snoop::Stats) {
    let mut host = Snoop::<u32>::new(snoop::Config::nack_host());
    let (ip, _) = ack(0);
    let mut sent = 0;
    for n in 0..first {
        let now = Instant::from_millis(u64::from(n));
        let (to, segment) = data(n);
        let _ = host.handle_packet_to_mobile(now, Packet::new(&to, &segment), || n);
        // The fixed host acknowledges the packet sent 50 packets ago.
        if n >= 50 {
            let _ = receive_ack(&mut host, n.into(), n - 50);
        }
        for _ in 0..20 {
            let segment = question(n);
            assert_eq!(host.handle_packet_from_mobile(now, Packet::new(&ip, &segment)), Verdict::Absorb);
            sent += retransmitted(&mut host).len();
        }
    }
    (sent, host.stats())
}

fn nack(n: u32, ack_of: u32) -> Segment<Length> {
    let (_, mut segment) = ack(ack_of);
    segment.options.nack = true;
    segment.options.sack.push(SackBlock { left: seq(0), right: seq(n + 1) });
    segment
}

#[test]
fn forged_nacks_are_limited_by_the_allowance() {
    let (sent, stats) = forged_nacks(1000, |n| nack(n, n.saturating_sub(50)));
    assert!(
        (900..=1000).contains(&sent),
        "{sent} of 1000, though 20,000 questions asked for 50 packets each"
    );
    assert_eq!(stats.invalid_nacks, 0);
    assert!(stats.nacks_over_allowance > 18_000, "{stats:?}");
}

#[test]
fn nack_with_implausible_numbers_is_ignored() {
    let cases: [fn(u32) -> Segment<Length>; 3] = [
        |n| Segment { seq: Seq32(7 + (1 << 23)), ..nack(n, n) },
        |n| nack(n, n + 2),
        |n| Segment { ack: seq(n) - (1 << 23), ..nack(n, n) },
    ];
    for (case, question) in cases.into_iter().enumerate() {
        let (sent, stats) = forged_nacks(100, question);
        assert_eq!((sent, stats.invalid_nacks), (0, 2_000), "case {case}");
    }
}

#[test]
fn announcements_of_the_fixed_host_pass() {
    let mut host = host();
    let (ip, mut segment) = ack(1);
    segment.options.nack = true;
    let packet = Packet::new(&ip, &segment);
    assert_eq!(host.handle_packet_from_mobile(Instant::from_millis(60), packet), Verdict::Forward);
    assert_eq!(retransmitted(&mut host), []);
}

impl Station {
    /// Creates a station after a SYN of the mobile host, which the fixed host answers with a window of 500 ·
    /// 2^shift bytes. Packet 0 is the first.
    fn after_syn(config: Config, shift: u8) -> Self {
        let mut station = Self { nacks: NackStation::new(config), now_ms: 0 };
        let (ip, mut segment) = data(0);
        (segment.seq, segment.flags, segment.payload) = (segment.seq - 1, Flags::SYN, Length(0));
        let _ = station.nacks.handle_packet_from_mobile(station.now(), Packet::new(&ip, &segment));
        let (ip, mut segment) = ack(0);
        segment.flags |= Flags::SYN;
        segment.options.window_scale = Some(shift);
        let _ = station.nacks.handle_packet_to_mobile(station.now(), Packet::new(&ip, &segment), || ());
        station.ack(0);
        station
    }
}

#[test]
fn number_beyond_the_window_is_ignored() {
    // The window is 32 packets.
    for forged in [33, 1000, (1 << 29) / LEN, (1 << 31) / LEN, (3 << 30) / LEN] {
        let mut station = Station::after_syn(announced_only(), 6);
        (0..2).for_each(|n| drop(station.data(n)));
        assert_eq!(station.announced(2), Verdict::Absorb);
        assert_eq!(station.data(forged), [], "{forged}");
        assert_eq!(station.data(4), [(2, 4)], "{forged}");
        assert_eq!(station.nacks.stats().beyond_window, 1);
        // Later packets of the fixed host change nothing.
        station.ack(2);
        assert_eq!(station.data(6), [(5, 6)], "{forged}");
    }
}

#[test]
fn unknown_window_is_assumed_large() {
    let mut station = Station::new(Config::default());
    assert_eq!(station.data(10_000), [(1, 10_000)]);
    let mut station = Station::new(Config::default());
    assert_eq!(station.data(20_000), []);
    assert_eq!(station.data(2), [(1, 2)]);
}

#[test]
fn moved_connection_is_resynchronised_by_an_ack() {
    let mut station = Station::after_syn(Config::default(), 6);
    station.data(1);
    for n in 500_000..500_010 {
        assert_eq!(station.data(n), []);
    }
    station.ack(500_005);
    assert_eq!(station.data(500_011), [(500_010, 500_011)]);
    assert_eq!(station.nacks.stats().beyond_window, 10);
}

#[test]
fn window_may_be_filled_and_probed() {
    let mut station = Station::after_syn(Config::default(), 6);
    for n in 0..32 {
        assert_eq!(station.data(n), []);
    }
    let (ip, mut segment) = data(32);
    segment.payload = Length(1);
    let _ = station.nacks.handle_packet_from_mobile(station.now(), Packet::new(&ip, &segment));
    assert_eq!(station.nacks.stats().beyond_window, 0);
}

/// Simulates a server without SACK that has data in flight, and a host that uploads to it and announces; no
/// base station absorbs the announcements. Returns the number of announcements, and the server's counters.
fn simulate_announcing_server(
    with: hopline_transport::tcp::Config,
) -> (usize, hopline_transport::tcp::Stats) {
    use hopline_core::{LinkId, StateMachine};
    use hopline_transport::tcp::{Endpoint, Ports};
    let ports = Ports { local: FIXED.1, remote: MOBILE.1 };
    let mut server = Endpoint::<Length>::new(with, ports, Seq32(6)).unwrap();
    server.listen().unwrap();
    let (_, mut syn) = data(0);
    (syn.seq, syn.flags, syn.payload) = (syn.seq - 1, Flags::SYN, Length(0));
    (syn.options.mss, syn.options.sack_permitted) = (Some(1000), true);
    server.handle_packet(Instant::ZERO, LinkId::ONLY, syn);
    assert!(server.poll_transmit(Instant::ZERO).is_some());
    let mut host = Snoop::<u32>::new(snoop::Config::announcing_host());
    let mut announcements = 0;
    for n in 0..30 {
        let now = Instant::from_millis(u64::from(n) * 10);
        let (ip, segment) = data(n);
        let _ = host.handle_packet_to_mobile(now, Packet::new(&ip, &segment), || n);
        server.handle_packet(now, LinkId::ONLY, segment);
        while let Some(Transmit::Nack(nack)) = host.poll_transmit() {
            announcements += 1;
            server.handle_packet(now, LinkId::ONLY, nack.segment());
        }
        if n == 0 {
            server.send(now, Length(100_000)).unwrap();
        }
        while server.poll_transmit(now).is_some() {}
        while server.recv().is_some() {}
    }
    assert!(server.flight_size() > 0);
    (announcements, *server.stats())
}

#[test]
fn announcements_are_no_duplicate_acks_to_a_server() {
    let tcp = hopline_transport::tcp::Config::modern();
    for with in [tcp.with_newreno(), tcp.with_sack(), hopline_transport::tcp::Config::linux()] {
        let (announcements, stats) = simulate_announcing_server(with);
        assert_eq!(announcements, 3);
        assert_eq!((stats.dup_acks, stats.fast_retransmits, stats.retransmissions), (0, 0, 0));
    }
}

#[test]
fn a_host_with_a_closed_window_does_not_announce() {
    for (window, expected) in [(0, 0), (1, 0), (2, 1)] {
        let mut host = Snoop::<u32>::new(snoop::Config::announcing_host());
        for n in 0..3 {
            let (ip, mut segment) = data(n);
            segment.window = window;
            let _ = host.handle_packet_to_mobile(Instant::ZERO, Packet::new(&ip, &segment), || n);
        }
        assert_eq!(core::iter::from_fn(|| host.poll_transmit()).count(), expected, "{window}");
    }
}
