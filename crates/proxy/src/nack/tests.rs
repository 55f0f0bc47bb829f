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
    let ip = Header::between(from.0, to.0, Protocol::Tcp);
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
    machine: Nacks<()>,
    now_ms: u64,
}

impl Station {
    /// Creates a station; the fixed host has acknowledged packet 0.
    fn new(config: Config) -> Self {
        let mut station = Self { machine: Nacks::new(config), now_ms: 0 };
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
        let verdict = self.machine.pass_from_mobile(self.now(), Packet::new(&ip, &segment));
        assert_eq!(verdict, Verdict::Forward, "nothing is ever held up");
        self.asked()
    }

    fn ack(&mut self, n: u32) {
        let (ip, segment) = ack(n);
        let packet = Packet::new(&ip, &segment);
        assert_eq!(self.machine.pass_to_mobile(self.now(), packet, || ()), Verdict::Forward);
    }

    fn asked(&mut self) -> Vec<(u32, u32)> {
        let mut asked = Vec::new();
        while let Some(transmit) = self.machine.poll_transmit() {
            let Transmit::Nack(nack) = transmit else { panic!("{transmit:?}") };
            let number = |at: Seq32| (at - START) / LEN;
            asked.extend(nack.missing.as_slice().iter().map(|gap| (number(gap.left), number(gap.right))));
        }
        asked
    }

    /// Returns the ranges requested by a timer, with their times.
    fn wait(&mut self, until_ms: u64) -> Vec<(u64, u32, u32)> {
        let mut asked = Vec::new();
        while let Some(at) = self.machine.poll_timeout().filter(|at| *at <= Instant::from_millis(until_ms)) {
            self.now_ms = at.as_nanos().div_ceil(1_000_000);
            self.machine.handle_timeout(self.now());
            let now_ms = self.now_ms;
            asked.extend(self.asked().into_iter().map(|(left, right)| (now_ms, left, right)));
        }
        self.now_ms = until_ms;
        asked
    }
}

#[test]
fn the_first_later_packet_brings_the_question_and_others_do_not_repeat_it() {
    let mut station = Station::new(Config::default());
    assert_eq!(station.data(1), []);
    assert_eq!(station.data(4), [(2, 4)]);
    assert_eq!(station.data(5), []);
    assert_eq!(station.data(7), [(6, 7)], "and of another gap alone");
}

#[test]
fn what_does_not_come_is_asked_for_again_ever_more_rarely_and_then_left_alone() {
    let mut station = Station::new(Config { attempts: 3, ..Config::default() });
    station.data(2);
    assert_eq!(station.wait(10_000), [(100, 1, 2), (300, 1, 2)], "nothing is known of the last hop yet");
    assert_eq!((station.machine.stats().nacks, station.machine.stats().left_to_sender), (3, 1));
}

#[test]
fn an_answer_measures_the_last_hop_and_ends_the_questions() {
    let mut station = Station::new(Config::default());
    station.data(2);
    station.now_ms = 4;
    assert_eq!(station.data(1), []);
    assert_eq!(station.wait(1000), []);
    station.data(4);
    assert_eq!(station.wait(1013), [(1012, 3, 4)], "4 ms, deviation 2 ms");
    assert_eq!(station.machine.stats().repaired, 1);
}

#[test]
fn part_of_an_answer_leaves_the_rest_open() {
    let mut station = Station::new(Config::default());
    assert_eq!(station.data(5), [(1, 5)]);
    station.now_ms = 4;
    station.data(3);
    assert_eq!(station.wait(12), [(12, 1, 3), (12, 4, 5)], "4 ms, deviation 2 ms");
}

#[test]
fn what_the_fixed_host_has_is_not_asked_for() {
    let mut station = Station::new(Config::default());
    station.data(2);
    // The packet has taken another path.
    station.ack(2);
    assert_eq!(station.wait(10_000), []);
}

#[test]
fn nobody_is_asked_before_the_fixed_host_has_said_anything() {
    let mut station = Station { machine: Nacks::new(Config::default()), now_ms: 0 };
    station.data(0);
    assert_eq!(station.data(2), []);
    station.ack(1);
    assert_eq!(station.wait(150), [(100, 1, 2)]);
}

#[test]
fn holes_are_bounded_and_a_question_holds_as_many_as_fit() {
    let mut station = Station::new(Config::default());
    for n in 1..=200 {
        station.data(2 * n);
    }
    assert_eq!(station.machine.stats().nacks, HOLES as u64);
    assert_eq!(station.wait(100).len(), HOLES);
    assert_eq!(station.machine.stats().nacks, (HOLES + HOLES / SackBlocks::MAX) as u64);
}

#[test]
fn a_reset_or_a_new_call_ends_what_was_known() {
    for flags in [Flags::RST, Flags::SYN] {
        let mut station = Station::new(Config::default());
        station.data(2);
        let (ip, segment) = data(500);
        let segment = Segment { flags, payload: Length(0), ..segment };
        let _ = station.machine.pass_from_mobile(station.now(), Packet::new(&ip, &segment));
        assert_eq!(station.wait(10_000), [], "{flags:?}");
    }
}

/// Creates the Snoop of the mobile host, which has sent packets 0 to 5; packet 0 is acknowledged after 50 ms.
fn host() -> Snoop<u32> {
    let mut host = Snoop::new(snoop::Config::told());
    for n in 0..=5 {
        let (ip, segment) = data(n);
        let verdict =
            Filter::<u32>::pass_to_mobile(&mut host, Instant::ZERO, Packet::new(&ip, &segment), || n);
        assert_eq!(verdict, Verdict::Forward);
    }
    assert_eq!(told(&mut host, 50, 1), Verdict::Forward);
    host
}

fn told(host: &mut Snoop<u32>, at_ms: u64, n: u32) -> Verdict {
    let (ip, segment) = ack(n);
    host.pass_from_mobile(Instant::from_millis(at_ms), Packet::new(&ip, &segment))
}

fn asked(host: &mut Snoop<u32>, at_ms: u64, (left, right): (u32, u32)) -> Vec<u32> {
    let (ip, mut segment) = ack(1);
    segment.options.nack = true;
    segment.options.sack.push(SackBlock { left: seq(left), right: seq(right) });
    let packet = Packet::new(&ip, &segment);
    assert_eq!(host.pass_from_mobile(Instant::from_millis(at_ms), packet), Verdict::Absorb);
    again(host)
}

fn again(host: &mut Snoop<u32>) -> Vec<u32> {
    let sent = core::iter::from_fn(|| host.poll_transmit());
    sent.map(|transmit| if let Transmit::Again { kept, .. } = transmit { kept } else { u32::MAX }).collect()
}

#[test]
fn a_host_that_is_asked_sends_again_and_hides_the_duplicates() {
    let mut host = host();
    assert_eq!(asked(&mut host, 51, (1, 3)), [1, 2]);
    assert_eq!([100, 101, 102].map(|at_ms| told(&mut host, at_ms, 1)), [Verdict::Absorb; 3]);
    assert_eq!(told(&mut host, 103, 6), Verdict::Forward);
}

#[test]
fn what_nobody_asks_for_is_congestion_and_shows() {
    let mut host = host();
    assert_eq!([100, 101, 102].map(|at_ms| told(&mut host, at_ms, 1)), [Verdict::Forward; 3]);
    host.handle_timeout(Instant::from_secs(100));
    assert_eq!(again(&mut host), [], "nor is anything sent again by a timer");
}

#[test]
fn what_was_sent_again_and_is_lost_farther_on_shows_after_two_round_trips() {
    let mut host = host();
    assert_eq!(asked(&mut host, 60, (1, 2)), [1]);
    // Round trip 50 ms, deviation 25 ms: 150 ms, twice.
    assert_eq!(host.poll_timeout(), Some(Instant::from_millis(360)));
    host.handle_timeout(Instant::from_millis(360));
    assert_eq!((again(&mut host), told(&mut host, 361, 1)), (vec![], Verdict::Forward));
}

#[test]
fn beside_timestamps_a_question_holds_three_ranges() {
    let mut station = Station::new(Config::default());
    let (ip, mut segment) = ack(1);
    segment.options.timestamps = Some(Timestamps { value: 7, echo: 8 });
    let packet = Packet::new(&ip, &segment);
    assert_eq!(station.machine.pass_to_mobile(station.now(), packet, || ()), Verdict::Forward);
    (1..=4).for_each(|n| drop(station.data(2 * n)));
    station.now_ms = 100;
    station.machine.handle_timeout(station.now());
    let mut held = Vec::new();
    while let Some(Transmit::Nack(nack)) = station.machine.poll_transmit() {
        held.push((nack.missing.len(), nack.segment::<Length>().options.sack_room()));
    }
    assert_eq!(held, [(3, 3), (1, 3)]);
}

fn careful() -> Config {
    Config { asks: Asks::Announced, ..Config::default() }
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
        self.machine.pass_from_mobile(self.now(), Packet::new(&ip, &segment))
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
fn a_host_that_does_not_say_that_it_keeps_what_it_sends_is_never_asked() {
    let mut station = Station::new(careful());
    assert_eq!(station.lose(0..50), 0);
    assert_eq!((station.machine.stats().nacks, station.machine.stats().unasked), (0, 50));
}

#[test]
fn a_host_that_says_so_is_asked_repeatedly_while_it_says_so() {
    let mut station = Station::new(careful());
    assert_eq!(station.announced(1), Verdict::Absorb, "it is for no other host");
    assert_eq!(station.data(2), [(1, 2)]);
    assert_eq!(station.wait(700), [(100, 1, 2), (300, 1, 2), (700, 1, 2)]);
    station.data(1);
    station.now_ms = 5_000;
    assert_eq!(station.data(4), [(3, 4)]);
    station.now_ms = 5_001;
    assert_eq!(station.data(6), [], "it may have ended");
    assert_eq!(station.wait(60_000), [], "nor is anything asked for again");
    assert_eq!(station.machine.stats().left_to_sender, 1);
    assert_eq!(station.announced(7), Verdict::Absorb);
    assert_eq!(station.data(8), [(7, 8)]);
}

#[test]
fn an_announcement_in_the_name_of_another_host_is_none() {
    let mut station = Station::new(careful());
    for n in [1 << 13, u32::MAX / LEN / 2] {
        assert_eq!(station.announced(n), Verdict::Forward, "its number is guessed: {n}");
    }
    let (ip, mut segment) = announcement(1);
    segment.src_port += 1;
    let packet = Packet::new(&ip, &segment);
    assert_eq!(station.machine.pass_from_mobile(station.now(), packet), Verdict::Forward, "no connection");
    assert_eq!(station.data(2), []);
    assert_eq!(station.machine.stats().announcements, 0);
}

#[test]
fn a_call_on_the_same_ports_is_asked_for_nothing_until_it_is_announced() {
    let mut station = Station::new(careful());
    assert_eq!(station.announced(1), Verdict::Absorb);
    let (ip, mut segment) = data(0);
    (segment.flags, segment.payload) = (Flags::SYN, Length(0));
    let _ = station.machine.pass_from_mobile(station.now(), Packet::new(&ip, &segment));
    station.ack(0);
    assert_eq!(station.data(3), []);
}

#[test]
fn other_parameters_decide_from_then_on_which_hosts_are_asked() {
    let mut station = Station::new(Config::default());
    assert_eq!(station.lose(0..5), 5);
    station.machine.set_config(careful());
    assert_eq!(station.lose(5..10), 0);
    assert_eq!(station.announced(21), Verdict::Absorb);
    assert_eq!(station.lose(10..15), 5);
}

/// Returns the times of the announcements of a host that sends a packet every `every_ms`.
fn announcements(every_ms: u64, packets: u32) -> Vec<u64> {
    let mut host = Snoop::<u32>::new(snoop::Config::announcing());
    let mut said = Vec::new();
    for n in 0..packets {
        let at_ms = u64::from(n) * every_ms;
        let (ip, segment) = data(n);
        let _ = host.pass_to_mobile(Instant::from_millis(at_ms), Packet::new(&ip, &segment), || n);
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
fn a_host_announces_uploads_soon_and_then_every_second() {
    assert_eq!(announcements(10, 350), [20, 120, 220, 1220, 2220, 3220]);
    assert_eq!(announcements(10, 2), [], "short exchanges are no uploads");
    assert_eq!(announcements(10_000, 5), [20_000, 30_000, 40_000], "no data, no announcement");
}

#[test]
fn a_station_hears_what_a_host_announces() {
    let mut station = Station::new(careful());
    let (ip, segment) = data(1);
    let mut host = Snoop::<u32>::new(snoop::Config::announcing());
    for n in 1..=3 {
        let (ip, segment) = data(n);
        let _ = host.pass_to_mobile(station.now(), Packet::new(&ip, &segment), || n);
        station.data(n);
    }
    let Some(Transmit::Nack(nack)) = host.poll_transmit() else { panic!("nothing is announced") };
    let said = nack.segment::<Length>();
    assert_eq!((said.src_port, said.dst_port), (segment.src_port, segment.dst_port));
    let verdict = station.machine.pass_from_mobile(station.now(), Packet::new(&ip, &said));
    assert_eq!((verdict, station.machine.stats().announcements), (Verdict::Absorb, 1));
}

/// Returns the number of packets that a host retransmits on forged requests, and its counters. `first`:
/// number of packets sent for the first time.
fn forged(first: u32, question: impl Fn(u32) -> Segment<Length>) -> (usize, snoop::Stats) {
    let mut host = Snoop::<u32>::new(snoop::Config::told());
    let (ip, _) = ack(0);
    let mut sent = 0;
    for n in 0..first {
        let now = Instant::from_millis(u64::from(n));
        let (to, segment) = data(n);
        let _ = host.pass_to_mobile(now, Packet::new(&to, &segment), || n);
        // The fixed host acknowledges the packet sent 50 packets ago.
        if n >= 50 {
            let _ = told(&mut host, n.into(), n - 50);
        }
        for _ in 0..20 {
            let segment = question(n);
            assert_eq!(host.pass_from_mobile(now, Packet::new(&ip, &segment)), Verdict::Absorb);
            sent += again(&mut host).len();
        }
    }
    (sent, host.stats())
}

fn question(n: u32, ack_of: u32) -> Segment<Length> {
    let (_, mut segment) = ack(ack_of);
    segment.options.nack = true;
    segment.options.sack.push(SackBlock { left: seq(0), right: seq(n + 1) });
    segment
}

#[test]
fn forged_questions_have_no_more_sent_again_than_was_sent() {
    let (sent, stats) = forged(1000, |n| question(n, n.saturating_sub(50)));
    assert!(
        (900..=1000).contains(&sent),
        "{sent} of 1000, though 20,000 questions asked for 50 packets each"
    );
    assert_eq!(stats.unfit_questions, 0);
    assert!(stats.unallowed > 18_000, "{stats:?}");
}

#[test]
fn a_question_whose_numbers_do_not_fit_sends_nothing() {
    let cases: [fn(u32) -> Segment<Length>; 3] = [
        |n| Segment { seq: Seq32(7 + (1 << 23)), ..question(n, n) },
        |n| question(n, n + 2),
        |n| Segment { ack: seq(n) - (1 << 23), ..question(n, n) },
    ];
    for (case, question) in cases.into_iter().enumerate() {
        let (sent, stats) = forged(100, question);
        assert_eq!((sent, stats.unfit_questions), (0, 2_000), "case {case}");
    }
}

#[test]
fn what_the_other_host_announces_passes_a_host_that_keeps_what_it_sends() {
    let mut host = host();
    let (ip, mut segment) = ack(1);
    segment.options.nack = true;
    let packet = Packet::new(&ip, &segment);
    assert_eq!(host.pass_from_mobile(Instant::from_millis(60), packet), Verdict::Forward);
    assert_eq!(again(&mut host), []);
}

impl Station {
    /// Creates a station after a SYN of the mobile host, which the fixed host answers with a window of 500 ·
    /// 2^shift bytes. Packet 0 is the first.
    fn called(config: Config, shift: u8) -> Self {
        let mut station = Self { machine: Nacks::new(config), now_ms: 0 };
        let (ip, mut segment) = data(0);
        (segment.seq, segment.flags, segment.payload) = (segment.seq - 1, Flags::SYN, Length(0));
        let _ = station.machine.pass_from_mobile(station.now(), Packet::new(&ip, &segment));
        let (ip, mut segment) = ack(0);
        segment.flags |= Flags::SYN;
        segment.options.window_scale = Some(shift);
        let _ = station.machine.pass_to_mobile(station.now(), Packet::new(&ip, &segment), || ());
        station.ack(0);
        station
    }
}

#[test]
fn a_forged_number_beyond_the_window_moves_nothing() {
    // The window is 32 packets.
    for forged in [33, 1000, (1 << 29) / LEN, (1 << 31) / LEN, (3 << 30) / LEN] {
        let mut station = Station::called(careful(), 6);
        (0..2).for_each(|n| drop(station.data(n)));
        assert_eq!(station.announced(2), Verdict::Absorb);
        assert_eq!(station.data(forged), [], "{forged}");
        assert_eq!(station.data(4), [(2, 4)], "{forged}");
        assert_eq!(station.machine.stats().beyond, 1);
        // Later packets of the fixed host change nothing.
        station.ack(2);
        assert_eq!(station.data(6), [(5, 6)], "{forged}");
    }
}

#[test]
fn a_window_that_is_not_known_is_taken_for_a_large_one() {
    let mut station = Station::new(Config::default());
    assert_eq!(station.data(10_000), [(1, 10_000)]);
    let mut station = Station::new(Config::default());
    assert_eq!(station.data(20_000), []);
    assert_eq!(station.data(2), [(1, 2)]);
}

#[test]
fn a_connection_that_went_on_elsewhere_is_found_when_the_fixed_host_acknowledges() {
    let mut station = Station::called(Config::default(), 6);
    station.data(1);
    for n in 500_000..500_010 {
        assert_eq!(station.data(n), []);
    }
    station.ack(500_005);
    assert_eq!(station.data(500_011), [(500_010, 500_011)]);
    assert_eq!(station.machine.stats().beyond, 10);
}

#[test]
fn the_window_of_the_fixed_host_may_be_filled_and_probed() {
    let mut station = Station::called(Config::default(), 6);
    for n in 0..32 {
        assert_eq!(station.data(n), []);
    }
    let (ip, mut segment) = data(32);
    segment.payload = Length(1);
    let _ = station.machine.pass_from_mobile(station.now(), Packet::new(&ip, &segment));
    assert_eq!(station.machine.stats().beyond, 0);
}

/// Simulates a server without SACK that has data in flight, and a host that uploads to it and announces; no
/// base station absorbs the announcements. Returns the number of announcements, and the server's counters.
fn announced_to_a_server(with: hopline_transport::tcp::Config) -> (usize, hopline_transport::tcp::Stats) {
    use hopline_core::{LinkId, Machine};
    use hopline_transport::tcp::{Endpoint, Ports};
    let ports = Ports { local: FIXED.1, remote: MOBILE.1 };
    let mut server = Endpoint::<Length>::new(with, ports, Seq32(6)).unwrap();
    server.listen().unwrap();
    let (_, mut syn) = data(0);
    (syn.seq, syn.flags, syn.payload) = (syn.seq - 1, Flags::SYN, Length(0));
    (syn.options.mss, syn.options.sack_permitted) = (Some(1000), true);
    server.handle_packet(Instant::ZERO, LinkId::ONLY, syn);
    assert!(server.poll_transmit(Instant::ZERO).is_some());
    let mut host = Snoop::<u32>::new(snoop::Config::announcing());
    let mut announcements = 0;
    for n in 0..30 {
        let now = Instant::from_millis(u64::from(n) * 10);
        let (ip, segment) = data(n);
        let _ = host.pass_to_mobile(now, Packet::new(&ip, &segment), || n);
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
        let (announcements, stats) = announced_to_a_server(with);
        assert_eq!(announcements, 3);
        assert_eq!((stats.dup_acks, stats.fast_retransmits, stats.retransmissions), (0, 0, 0));
    }
}

#[test]
fn a_host_with_a_closed_window_does_not_announce() {
    for (window, expected) in [(0, 0), (1, 0), (2, 1)] {
        let mut host = Snoop::<u32>::new(snoop::Config::announcing());
        for n in 0..3 {
            let (ip, mut segment) = data(n);
            segment.window = window;
            let _ = host.pass_to_mobile(Instant::ZERO, Packet::new(&ip, &segment), || n);
        }
        assert_eq!(core::iter::from_fn(|| host.poll_transmit()).count(), expected, "{window}");
    }
}
