//! Split connections: ends and resets are passed on, and after a restart of the middlebox no host waits for
//! ever.

use crate::end_to_end::support::{emulations, endpoints, transports, wire};
use bytes::Bytes;
use hopline_core::{Duration, Instant, Purpose, RandomStream};
use hopline_proxy::Connection;
use hopline_proxy::split::{Config, Split, Transmit};
use hopline_testkit::transfer::{EndpointPair, Transfer};
use hopline_testkit::{Emulation, Side, Station, TwoLinks};
use hopline_transport::any::{Segment, Transport};
use hopline_transport::connection::{CloseReason, Event, State};
use hopline_transport::tcp::{self, Endpoint};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr};

type Wired = hopline_wire::tcp::Segment<Bytes>;

struct SplitStation {
    split: Split<Bytes>,
    config: Config,
    restart_at: Option<Instant>,
}

impl SplitStation {
    fn new(config: Config) -> Self {
        Self { split: Split::new(config, stream()), config, restart_at: None }
    }
}

fn stream() -> RandomStream {
    RandomStream::keyed(1, 2, 3, Purpose::Transport)
}

/// The hosts, by the ports of the endpoints: 1 at the fixed one, 2 at the mobile one.
pub(crate) const CONNECTION: Connection = Connection {
    fixed: (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 1),
    mobile: (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 2),
};

impl Station<Wired> for SplitStation {
    fn handle_packet(&mut self, now: Instant, from: Side, segment: Wired) {
        if self.restart_at.take_if(|at| *at <= now).is_some() {
            self.split = Split::new(self.config, stream());
        }
        let from = if from == Side::A { hopline_proxy::Side::Fixed } else { hopline_proxy::Side::Mobile };
        self.split.handle_packet(now, CONNECTION, from, Segment::Tcp(segment));
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.split.handle_timeout(now);
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<(Side, Wired)> {
        let Transmit { to, segment, .. } = self.split.poll_transmit()?;
        let Segment::Tcp(segment) = segment else { panic!("both halves are TCP") };
        Some((if to == hopline_proxy::Side::Mobile { Side::A } else { Side::B }, segment))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.split.poll_timeout()
    }
}

pub(crate) fn config(fixed: tcp::Config, mobile: tcp::Config, buffer: u64) -> Config {
    let patient = |config: tcp::Config| Transport::Tcp(config.with_syn_retries(None).with_data_retries(None));
    Config::new(patient(fixed), patient(mobile), buffer)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn transfer_completes_over_both_halves(
        ends in transports(),
        halves in [transports(), transports()],
        buffer in prop_oneof![1u64..10_000, 10_000u64..1_000_000],
        wireless in [emulations(), emulations()],
        totals in [0u64..200_000, 0u64..30_000],
        isns in [u32::MAX - 50_000..u32::MAX, 0..u32::MAX],
        seed in any::<u64>(),
    ) {
        let (a, b) = endpoints(ends, isns);
        let base = SplitStation::new(config(halves[0], halves[1], buffer));
        let mut transfer = Transfer::of(TwoLinks::new(a, base, b, [wire(), wire()], wireless, seed), totals, |_| {});
        transfer.run(Instant::from_secs(9000));
        transfer.assert_complete();
        prop_assert_eq!(transfer.pair.station.split.buffered_bytes(&CONNECTION).unwrap_or(0), 0);
    }
}

fn lossless() -> [Emulation; 2] {
    let link = Emulation::default().with_latency(Duration::from_millis(2)).with_rate(Some(20_000_000));
    [link.clone(), link]
}

fn middle(buffer: u64) -> TwoLinks<Endpoint<Bytes>, SplitStation> {
    let tcp = tcp::Config::modern().with_sack();
    let (a, b) = endpoints(tcp, [1, 2]);
    TwoLinks::new(a, SplitStation::new(config(tcp, tcp, buffer)), b, [wire(), wire()], lossless(), 1)
}

fn close_reasons(middle: &mut TwoLinks<Endpoint<Bytes>, SplitStation>) -> Vec<(Side, CloseReason)> {
    let events = middle.take_events().into_iter();
    events
        .filter_map(|(_, side, event)| match event {
            Event::Closed(reason) => Some((side, reason)),
            _ => None,
        })
        .collect()
}

#[test]
fn syn_is_answered_after_the_other_host_answers() {
    let mut middle = middle(10_000);
    // 15 ms forth, 2 ms on and back, 15 ms back.
    middle.step(Instant::from_millis(1));
    while middle.a.state() != State::Established {
        assert!(middle.step(Instant::from_secs(5)));
    }
    assert!((34..36).contains(&(middle.now().as_nanos() / 1_000_000)), "{:?}", middle.now());
}

#[test]
fn refused_connection_is_refused_by_the_proxy() {
    let mut middle = middle(10_000);
    middle.b.abort(Instant::ZERO);
    while middle.step(Instant::from_secs(5)) {}
    assert_eq!(close_reasons(&mut middle).last(), Some(&(Side::A, CloseReason::Refused)));
}

#[test]
fn a_reset_is_passed_on() {
    let mut middle = middle(10_000);
    while middle.b.state() != State::Established || middle.a.state() != State::Established {
        assert!(middle.step(Instant::from_secs(5)));
    }
    let now = middle.now();
    middle.b.abort(now);
    while middle.step(Instant::from_secs(5)) {}
    assert!(close_reasons(&mut middle).contains(&(Side::A, CloseReason::Reset)));
    assert_eq!(middle.station.split.stats().connections, 1);
}

#[test]
fn slow_reader_stops_the_sender_with_bounded_memory() {
    const BUFFER: u64 = 20_000;
    let mut middle = middle(BUFFER);
    while middle.a.state() != State::Established {
        assert!(middle.step(Instant::from_secs(5)));
    }
    let now = middle.now();
    middle.a.send(now, Bytes::from(vec![7; 20_000_000])).expect("open, and without a limit");
    while middle.step(Instant::from_secs(60)) {}
    let held = middle.station.split.buffered_bytes(&CONNECTION).expect("it is open");
    let window = u64::from(tcp::Config::modern().receive_buffer());
    assert!(held <= window + BUFFER + 2 * 65_536, "{held}");
    assert!(held > BUFFER / 2, "{held}");
}

#[test]
fn restarted_split_resets_both_hosts() {
    for ms in [40, 60, 100, 200, 400] {
        let mut middle = middle(100_000);
        middle.station.restart_at = Some(Instant::from_millis(ms));
        let mut transfer = Transfer::of(middle, [2_000_000, 10_000], |_| {});
        transfer.run_users();
        while transfer.pair.a.state() != State::Closed && transfer.pair.step(Instant::from_secs(60)) {
            if transfer.pair.a.state() != State::Closed && transfer.pair.b.state() != State::Closed {
                transfer.run_users();
            }
        }
        assert!(transfer.received()[0] < 2_000_000);
        let ends = close_reasons(&mut transfer.pair);
        assert_eq!(ends.first().map(|end| end.1), Some(CloseReason::Reset), "after {ms} ms: {ends:?}");
        assert!(transfer.pair.station.split.stats().unknown > 0);
    }
}
