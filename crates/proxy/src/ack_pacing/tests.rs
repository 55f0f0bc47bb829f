//! Timed dialogues: ACKs from the mobile host, and the times at which they are forwarded.

use super::*;
use crate::table::TableLimits;
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

fn with_port(port: u16, segment: Tcp) -> Tcp {
    Segment { src_port: port, ..segment }
}

/// An ACK pacer, the time in microseconds, and the forwarded ACKs with their times.
struct Station {
    pacing: AckPacing<Tcp>,
    now_us: u64,
    forwarded: Vec<(u64, Tcp)>,
}

impl Station {
    fn new(config: Config) -> Self {
        Self { pacing: AckPacing::new(config), now_us: 0, forwarded: Vec::new() }
    }

    /// Creates a station that has received bursts of 4 ACKs every 4 ms, up to number 40.
    fn after_bursts(config: Config) -> Self {
        let mut station = Self::new(config);
        for burst in 0..10 {
            station.burst(4 * burst + 1..=4 * burst + 4);
            station.wait_until(4000 * (u64::from(burst) + 1));
        }
        station.forwarded.clear();
        station
    }

    fn now(&self) -> Instant {
        Instant::ZERO + Duration::from_micros(self.now_us)
    }

    fn handle_ack(&mut self, segment: Tcp) -> Verdict {
        let ip = Header::new(MOBILE.0, FIXED.0, Protocol::Tcp);
        let packet = Packet::new(&ip, &segment);
        let verdict = self.pacing.pass_from_mobile(self.now(), packet, || segment);
        if verdict == Verdict::Forward {
            self.forwarded.push((self.now_us, segment));
        }
        self.drain();
        verdict
    }

    fn drain(&mut self) {
        while let Some(segment) = self.pacing.poll_transmit() {
            self.forwarded.push((self.now_us, segment));
        }
    }

    /// Sends ACKs, 50 µs apart.
    fn burst(&mut self, numbers: impl IntoIterator<Item = u32>) {
        for n in numbers {
            let _either = self.handle_ack(ack(n));
            self.wait_until(self.now_us + 50);
        }
    }

    fn wait_until(&mut self, until_us: u64) {
        let until = Instant::ZERO + Duration::from_micros(until_us);
        while let Some(at) = self.pacing.poll_timeout().filter(|at| *at <= until) {
            self.now_us = at.as_nanos().div_ceil(1000);
            self.pacing.handle_timeout(self.now());
            self.drain();
        }
        self.now_us = until_us;
    }

    /// Returns the forwarded ACKs with their times, µs.
    fn forwarded(&self) -> Vec<(u64, u32)> {
        self.forwarded.iter().map(|(at, segment)| (*at, (segment.ack - START) / LEN)).collect()
    }
}

#[test]
fn acks_pass_at_once_before_a_burst_period_is_known() {
    let mut station = Station::new(Config::default());
    station.burst(1..=4);
    assert_eq!(station.forwarded(), [(0, 1), (50, 2), (100, 3), (150, 4)]);
    assert_eq!((station.pacing.delayed(), station.pacing.stats().delayed), (0, 0));
}

#[test]
fn a_burst_is_spread_evenly_over_the_time_between_bursts() {
    let mut station = Station::after_bursts(Config::default());
    station.burst(41..=44);
    station.wait_until(44_000);
    assert_eq!(station.forwarded(), [(40_000, 41), (41_000, 42), (42_000, 43), (43_000, 44)]);
    assert_eq!(station.pacing.delayed(), 0);
}

#[test]
fn burst_of_twice_the_length_takes_the_same_time() {
    let mut station = Station::after_bursts(Config::default());
    station.burst(41..=48);
    station.wait_until(44_000);
    assert_eq!((station.forwarded.len(), station.pacing.delayed()), (8, 0));
    let gone: Vec<u64> = station.forwarded().iter().map(|(at, _)| at - 40_000).collect();
    assert_eq!(gone, [0, 500, 1000, 1500, 2000, 2500, 3000, 3500]);
}

#[test]
fn single_ack_passes_at_once() {
    let mut station = Station::after_bursts(Config::default());
    for n in 0..5 {
        assert_eq!(station.handle_ack(ack(41 + n)), Verdict::Forward);
        station.wait_until(station.now_us + 300);
    }
    assert_eq!(station.forwarded.len(), 5);
}

#[test]
fn acks_wait_at_most_max_delay() {
    let config = Config { max_delay: Duration::from_millis(2), ..Config::default() };
    let mut station = Station::after_bursts(config);
    station.burst(41..=80);
    let came = |n: u32| 40_000 + 50 * u64::from(n - 41);
    station.wait_until(60_000);
    let gone = station.forwarded();
    assert_eq!(gone.len(), 40);
    assert!(gone.iter().all(|(at, n)| (came(*n)..=came(*n) + 2000).contains(at)), "{gone:?}");
    assert!(gone.is_sorted());
}

#[test]
fn late_timer_releases_all_due_acks() {
    let mut station = Station::after_bursts(Config::default());
    station.burst(41..=44);
    station.now_us = 42_500;
    station.pacing.handle_timeout(station.now());
    station.drain();
    station.wait_until(44_000);
    assert_eq!(station.forwarded(), [(40_000, 41), (42_500, 42), (42_500, 43), (43_000, 44)]);
}

#[test]
fn long_pause_is_capped_in_the_average() {
    let mut station = Station::after_bursts(Config::default());
    station.wait_until(500_000_000);
    station.burst(41..=44);
    station.wait_until(500_020_000);
    let waited = station.forwarded().iter().map(|(at, _)| at - 500_000_000).max();
    // One of four periods of 4 ms was one of 20 ms: 8 ms.
    assert_eq!(waited, Some(6000));
}

#[test]
fn other_segments_flush_the_queue_and_pass() {
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
        let mut station = Station::after_bursts(Config::default());
        station.burst(41..=44);
        assert_eq!((station.forwarded.len(), station.pacing.delayed()), (1, 3), "{name}");
        assert_eq!(station.handle_ack(other), Verdict::Kept, "{name}");
        let last: Vec<_> = station.forwarded[1..].to_vec();
        assert_eq!(last, [ack(42), ack(43), ack(44), other].map(|segment| (40_200, segment)), "{name}");
        assert_eq!((station.pacing.delayed(), station.pacing.stats().flushed), (0, 3), "{name}");
    }
}

#[test]
fn fin_or_rst_of_the_fixed_host_flushes_the_queue() {
    let mut station = Station::after_bursts(Config::default());
    station.burst(41..=44);
    let ip = Header::new(FIXED.0, MOBILE.0, Protocol::Tcp);
    let reset = Tcp { src_port: FIXED.1, dst_port: MOBILE.1, flags: Flags::RST, ..Segment::default() };
    station.pacing.pass_to_mobile(Packet::new(&ip, &reset));
    station.drain();
    assert_eq!((station.forwarded.len(), station.pacing.delayed(), station.pacing.connections()), (4, 0, 0));
}

#[test]
fn queue_of_a_connection_is_limited() {
    let config = Config { max_delayed_acks: NonZeroU16::new(2).expect("not zero"), ..Config::default() };
    let mut station = Station::after_bursts(config);
    let before = station.pacing.stats().overflowed;
    station.burst(41..=46);
    assert_eq!(station.forwarded(), [(40_000, 41), (40_150, 42), (40_200, 43), (40_250, 44)]);
    assert_eq!((station.pacing.delayed(), station.pacing.stats().overflowed - before), (2, 3));
}

#[test]
fn total_queue_is_limited() {
    let mut station = Station::after_bursts(Config { max_total_delayed_acks: 3, ..Config::default() });
    station.burst(41..=44);
    assert_eq!(station.pacing.delayed(), 3);
    station.burst([45]);
    assert_eq!((station.pacing.delayed(), station.forwarded.len()), (0, 5), "in order");
    assert!(station.forwarded.is_sorted_by_key(|(at, segment)| (*at, segment.ack - START)));
}

#[test]
fn evicted_and_expired_connections_flush_their_queue() {
    let bounds =
        TableLimits { max_connections: 1, idle_timeout: Duration::from_millis(3), ..TableLimits::default() };
    let mut station = Station::after_bursts(Config { limits: bounds, ..Config::default() });
    assert_eq!(station.pacing.connections(), 0, "4 ms between bursts are too many");
    station.burst(41..=44);
    let mut station = Station::after_bursts(Config {
        limits: TableLimits { max_connections: 1, ..TableLimits::default() },
        ..Config::default()
    });
    station.burst(41..=44);
    let _stranger = station.handle_ack(with_port(10, ack(7)));
    assert_eq!((station.forwarded.len(), station.pacing.delayed(), station.pacing.connections()), (5, 0, 1));
    assert_eq!(station.pacing.stats().evicted, 1);
}

#[test]
fn state_is_bounded_under_a_flood_of_connections() {
    let bounds = TableLimits { max_connections: 8, ..TableLimits::default() };
    let mut station =
        Station::new(Config { limits: bounds, max_total_delayed_acks: 16, ..Config::default() });
    for n in 0..20_000u32 {
        let _either = station.handle_ack(with_port((n % 64) as u16, ack(n / 3)));
        station.wait_until(station.now_us + u64::from(n % 7) * 40);
        assert!(station.pacing.delayed() <= 16 && station.pacing.connections() <= 8);
    }
    station.wait_until(station.now_us + 30_000);
    assert_eq!((station.pacing.delayed(), station.forwarded.len()), (0, 20_000), "all have gone on");
}

#[test]
fn reused_ports_start_with_new_state() {
    let mut station = Station::after_bursts(Config::default());
    let _passes = station.handle_ack(Segment { flags: Flags::SYN | Flags::ACK, ..ack(900_000) });
    assert_eq!(station.pacing.connections(), 0);
    station.forwarded.clear();
    station.burst(900_000..900_004);
    assert_eq!(station.forwarded.len(), 4);
}

#[test]
fn equal_inputs_give_equal_outputs() {
    let run = || {
        let mut station = Station::after_bursts(Config::default());
        station.burst(41..=60);
        station.wait_until(100_000);
        station.forwarded()
    };
    assert_eq!(run(), run());
}
