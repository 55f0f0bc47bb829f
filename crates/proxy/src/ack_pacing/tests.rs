//! Timed dialogues: ACKs from the mobile host, and the times at which they are forwarded.

use super::*;
use crate::table::Bounds;
use core::num::NonZeroU16;
use hopline_core::Duration;
use hopline_core::Length;
use hopline_wire::ip::{Header, Protocol};
use hopline_wire::tcp::SackBlock;
use std::net::Ipv4Addr;

const FIXED: (IpAddr, u16) = (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 80);
const MOBILE: (IpAddr, u16) = (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 9);
const LEN: u32 = 1000;
/// The numbers wrap around with packet 3.
const START: Seq32 = Seq32(u32::MAX - 2 * LEN);

type Tcp = Segment<Length>;

fn ack(n: u32) -> Tcp {
    let (src_port, dst_port) = (MOBILE.1, FIXED.1);
    Segment { src_port, dst_port, flags: Flags::ACK, ack: START + n * LEN, window: 500, ..Segment::default() }
}

fn of_port(port: u16, segment: Tcp) -> Tcp {
    Segment { src_port: port, ..segment }
}

/// An ACK pacer, the time in microseconds, and the forwarded ACKs with their times.
struct Station {
    machine: AckPacing<Tcp>,
    now_us: u64,
    gone: Vec<(u64, Tcp)>,
}

impl Station {
    fn new(config: Config) -> Self {
        Self { machine: AckPacing::new(config), now_us: 0, gone: Vec::new() }
    }

    /// Creates a station that has received bursts of 4 ACKs every 4 ms, up to number 40.
    fn in_rhythm(config: Config) -> Self {
        let mut station = Self::new(config);
        for burst in 0..10 {
            station.burst(4 * burst + 1..=4 * burst + 4);
            station.wait_until(4000 * (u64::from(burst) + 1));
        }
        station.gone.clear();
        station
    }

    fn now(&self) -> Instant {
        Instant::ZERO + Duration::from_micros(self.now_us)
    }

    fn take(&mut self, segment: Tcp) -> Verdict {
        let ip = Header::between(MOBILE.0, FIXED.0, Protocol::Tcp);
        let packet = Packet::new(&ip, &segment);
        let verdict = self.machine.pass_from_mobile(self.now(), packet, || segment);
        if verdict == Verdict::Forward {
            self.gone.push((self.now_us, segment));
        }
        self.drain();
        verdict
    }

    fn drain(&mut self) {
        while let Some(segment) = self.machine.poll() {
            self.gone.push((self.now_us, segment));
        }
    }

    /// Sends ACKs, 50 µs apart.
    fn burst(&mut self, numbers: impl IntoIterator<Item = u32>) {
        for n in numbers {
            let _either = self.take(ack(n));
            self.wait_until(self.now_us + 50);
        }
    }

    fn wait_until(&mut self, until_us: u64) {
        let until = Instant::ZERO + Duration::from_micros(until_us);
        while let Some(at) = self.machine.poll_timeout().filter(|at| *at <= until) {
            self.now_us = at.as_nanos().div_ceil(1000);
            self.machine.handle_timeout(self.now());
            self.drain();
        }
        self.now_us = until_us;
    }

    /// Returns the forwarded ACKs with their times, µs.
    fn gone(&self) -> Vec<(u64, u32)> {
        self.gone.iter().map(|(at, segment)| (*at, (segment.ack - START) / LEN)).collect()
    }
}

#[test]
fn before_it_knows_a_rhythm_everything_passes_at_once() {
    let mut station = Station::new(Config::default());
    station.burst(1..=4);
    assert_eq!(station.gone(), [(0, 1), (50, 2), (100, 3), (150, 4)]);
    assert_eq!((station.machine.held(), station.machine.stats().held), (0, 0));
}

#[test]
fn a_burst_is_spread_evenly_over_the_time_between_bursts() {
    let mut station = Station::in_rhythm(Config::default());
    station.burst(41..=44);
    station.wait_until(44_000);
    assert_eq!(station.gone(), [(40_000, 41), (41_000, 42), (42_000, 43), (43_000, 44)]);
    assert_eq!(station.machine.held(), 0);
}

#[test]
fn a_burst_of_twice_the_length_goes_on_in_the_same_time() {
    let mut station = Station::in_rhythm(Config::default());
    station.burst(41..=48);
    station.wait_until(44_000);
    assert_eq!((station.gone.len(), station.machine.held()), (8, 0));
    let gone: Vec<u64> = station.gone().iter().map(|(at, _)| at - 40_000).collect();
    assert_eq!(gone, [0, 500, 1000, 1500, 2000, 2500, 3000, 3500]);
}

#[test]
fn an_ack_that_comes_alone_passes_at_once() {
    let mut station = Station::in_rhythm(Config::default());
    for n in 0..5 {
        assert_eq!(station.take(ack(41 + n)), Verdict::Forward);
        station.wait_until(station.now_us + 300);
    }
    assert_eq!(station.gone.len(), 5);
}

#[test]
fn nothing_waits_for_longer_than_it_may() {
    let config = Config { max_hold: Duration::from_millis(2), ..Config::default() };
    let mut station = Station::in_rhythm(config);
    station.burst(41..=80);
    let came = |n: u32| 40_000 + 50 * u64::from(n - 41);
    station.wait_until(60_000);
    let gone = station.gone();
    assert_eq!(gone.len(), 40);
    assert!(gone.iter().all(|(at, n)| (came(*n)..=came(*n) + 2000).contains(at)), "{gone:?}");
    assert!(gone.is_sorted());
}

#[test]
fn who_is_woken_late_lets_go_what_has_had_its_turn() {
    let mut station = Station::in_rhythm(Config::default());
    station.burst(41..=44);
    station.now_us = 42_500;
    station.machine.handle_timeout(station.now());
    station.drain();
    station.wait_until(44_000);
    assert_eq!(station.gone(), [(40_000, 41), (42_500, 42), (42_500, 43), (43_000, 44)]);
}

#[test]
fn a_pause_of_an_hour_counts_as_no_more_than_the_longest_time() {
    let mut station = Station::in_rhythm(Config::default());
    station.wait_until(500_000_000);
    station.burst(41..=44);
    station.wait_until(500_020_000);
    let waited = station.gone().iter().map(|(at, _)| at - 500_000_000).max();
    // One of four periods of 4 ms was one of 20 ms: 8 ms.
    assert_eq!(waited, Some(6000));
}

#[test]
fn whatever_is_no_news_passes_at_once_behind_all_that_waited() {
    let sack = {
        let mut segment = ack(45);
        segment.options.sack.push(SackBlock { left: START + 46 * LEN, right: START + 47 * LEN });
        segment
    };
    let others = [
        ("duplicate", ack(44)),
        ("older", ack(20)),
        ("SACK", sack),
        ("data", Segment { payload: Length(1), ..ack(45) }),
        ("FIN", Segment { flags: Flags::ACK | Flags::FIN, ..ack(45) }),
        ("RST", Segment { flags: Flags::RST, ..ack(45) }),
        ("SYN", Segment { flags: Flags::SYN, ..ack(45) }),
        ("ECN-Echo", Segment { flags: Flags::ACK | Flags::ECE, ..ack(45) }),
        ("no flag", Segment { flags: Flags(0), ..ack(45) }),
        ("far ahead", Segment { ack: START + 44 * LEN + (1 << 31), ..ack(0) }),
        ("too far", Segment { ack: START + 44 * LEN + (3 << 29), ..ack(0) }),
    ];
    for (name, other) in others {
        let mut station = Station::in_rhythm(Config::default());
        station.burst(41..=44);
        assert_eq!((station.gone.len(), station.machine.held()), (1, 3), "{name}");
        assert_eq!(station.take(other), Verdict::Taken, "{name}");
        let last: Vec<_> = station.gone[1..].to_vec();
        assert_eq!(last, [ack(42), ack(43), ack(44), other].map(|segment| (40_200, segment)), "{name}");
        assert_eq!((station.machine.held(), station.machine.stats().flushed), (0, 3), "{name}");
    }
}

#[test]
fn an_end_at_the_other_side_lets_all_go() {
    let mut station = Station::in_rhythm(Config::default());
    station.burst(41..=44);
    let ip = Header::between(FIXED.0, MOBILE.0, Protocol::Tcp);
    let reset = Tcp { src_port: FIXED.1, dst_port: MOBILE.1, flags: Flags::RST, ..Segment::default() };
    station.machine.pass_to_mobile(Packet::new(&ip, &reset));
    station.drain();
    assert_eq!((station.gone.len(), station.machine.held(), station.machine.connections()), (4, 0, 0));
}

#[test]
fn of_one_connection_no_more_wait_than_may() {
    let config = Config { held_packets: NonZeroU16::new(2).expect("not zero"), ..Config::default() };
    let mut station = Station::in_rhythm(config);
    let before = station.machine.stats().crowded;
    station.burst(41..=46);
    assert_eq!(station.gone(), [(40_000, 41), (40_150, 42), (40_200, 43), (40_250, 44)]);
    assert_eq!((station.machine.held(), station.machine.stats().crowded - before), (2, 3));
}

#[test]
fn of_all_connections_no_more_wait_than_may() {
    let mut station = Station::in_rhythm(Config { held_in_all: 3, ..Config::default() });
    station.burst(41..=44);
    assert_eq!(station.machine.held(), 3);
    station.burst([45]);
    assert_eq!((station.machine.held(), station.gone.len()), (0, 5), "in order");
    assert!(station.gone.is_sorted_by_key(|(at, segment)| (*at, segment.ack - START)));
}

#[test]
fn who_makes_room_or_is_silent_loses_nothing_that_waited() {
    let bounds = Bounds { connections: 1, idle: Duration::from_millis(3), ..Bounds::default() };
    let mut station = Station::in_rhythm(Config { bounds, ..Config::default() });
    assert_eq!(station.machine.connections(), 0, "4 ms between bursts are too many");
    station.burst(41..=44);
    let mut station = Station::in_rhythm(Config {
        bounds: Bounds { connections: 1, ..Bounds::default() },
        ..Config::default()
    });
    station.burst(41..=44);
    let _stranger = station.take(of_port(10, ack(7)));
    assert_eq!((station.gone.len(), station.machine.held(), station.machine.connections()), (5, 0, 1));
    assert_eq!(station.machine.stats().evicted, 1);
}

#[test]
fn a_flood_of_strangers_leaves_bounded_state() {
    let bounds = Bounds { connections: 8, ..Bounds::default() };
    let mut station = Station::new(Config { bounds, held_in_all: 16, ..Config::default() });
    for n in 0..20_000u32 {
        let _either = station.take(of_port((n % 64) as u16, ack(n / 3)));
        station.wait_until(station.now_us + u64::from(n % 7) * 40);
        assert!(station.machine.held() <= 16 && station.machine.connections() <= 8);
    }
    station.wait_until(station.now_us + 30_000);
    assert_eq!((station.machine.held(), station.gone.len()), (0, 20_000), "all have gone on");
}

#[test]
fn after_a_new_beginning_on_the_same_ports_it_learns_anew() {
    let mut station = Station::in_rhythm(Config::default());
    let _passes = station.take(Segment { flags: Flags::SYN | Flags::ACK, ..ack(900_000) });
    assert_eq!(station.machine.connections(), 0);
    station.gone.clear();
    station.burst(900_000..900_004);
    assert_eq!(station.gone.len(), 4);
}

#[test]
fn the_same_twice_is_the_same() {
    let run = || {
        let mut station = Station::in_rhythm(Config::default());
        station.burst(41..=60);
        station.wait_until(100_000);
        station.gone()
    };
    assert_eq!(run(), run());
}
