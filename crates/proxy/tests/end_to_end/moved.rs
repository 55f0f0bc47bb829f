//! Split connections of a mobile host that repeatedly changes its base station: their state follows.

use crate::end_to_end::split::{CONNECTION, config};
use crate::end_to_end::support::{emulations, endpoints, transports, wire};
use bytes::Bytes;
use hopline_core::{Duration, Instant, Purpose, Stream};
use hopline_proxy::split::{Config, Moved, Split, Transmit, Unknown};
use hopline_testkit::transfer::Transfer;
use hopline_testkit::{Middle, Side, Station};
use hopline_transport::any::Segment;
use hopline_wire::tcp::Flags;
use proptest::prelude::*;

type Wired = hopline_wire::tcp::Segment<Bytes>;

/// Two base stations, one of which has the host. The transfer of its connections takes some time.
struct Cells {
    stations: [Split<Bytes>; 2],
    current: usize,
    every: Duration,
    takes: Duration,
    next: Instant,
    under_way: Option<(Instant, Vec<Moved<Bytes>>)>,
    moves: u32,
}

/// Number of moves after which the host stays.
const MOST_MOVES: u32 = 40;

impl Cells {
    fn new(config: Config, every: Duration, takes: Duration) -> Self {
        let station = |n| Split::new(config, Stream::keyed(n, 2, 3, Purpose::Transport));
        let mut first = station(1);
        first.put_in(Instant::ZERO, CONNECTION.mobile.0, Vec::new());
        Self {
            stations: [first, station(2)],
            current: 0,
            every,
            takes,
            next: Instant::ZERO + every,
            under_way: None,
            moves: 0,
        }
    }

    /// Moves the host, and its connections after it.
    fn advance(&mut self, now: Instant) {
        if let Some((_, moved)) = self.under_way.take_if(|(at, _)| *at <= now) {
            self.stations[self.current].put_in(now, CONNECTION.mobile.0, moved);
        }
        if self.under_way.is_none() && self.next <= now && self.moves < MOST_MOVES {
            let moved = self.stations[self.current].take_out(CONNECTION.mobile.0);
            assert!(moved.iter().all(|moved| moved.len_bytes() > 0));
            self.moves += 1;
            self.under_way = Some((now + self.takes, moved));
            self.current = 1 - self.current;
            self.stations[self.current].expect(now, CONNECTION.mobile.0);
            self.next = now + self.takes + self.every;
        }
    }
}

impl Station<Wired> for Cells {
    fn take(&mut self, now: Instant, from: Side, segment: Wired) {
        self.advance(now);
        let from = if from == Side::A { hopline_proxy::Side::Fixed } else { hopline_proxy::Side::Mobile };
        self.stations[self.current].handle_packet(now, CONNECTION, from, Segment::Tcp(segment));
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        self.stations.iter_mut().for_each(|station| station.handle_timeout(now));
    }

    fn poll(&mut self, _now: Instant) -> Option<(Side, Wired)> {
        let Transmit { to, segment, .. } = self.stations.iter_mut().find_map(Split::poll_transmit)?;
        let Segment::Tcp(segment) = segment else { panic!("both halves are TCP") };
        Some((if to == hopline_proxy::Side::Mobile { Side::A } else { Side::B }, segment))
    }

    fn next_wake(&self) -> Option<Instant> {
        let due = self.stations.iter().filter_map(Split::poll_timeout).min();
        let arrival = self.under_way.as_ref().map(|(at, _)| *at);
        let leave = (arrival.is_none() && self.moves < MOST_MOVES).then_some(self.next);
        due.into_iter().chain(arrival).chain(leave).min()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn every_byte_arrives_whatever_the_stations(
        ends in transports(),
        halves in [transports(), transports()],
        buffer in prop_oneof![1u64..10_000, 10_000u64..1_000_000],
        every_ms in 20u64..1000,
        takes_ms in 0u64..500,
        wireless in [emulations(), emulations()],
        totals in [0u64..200_000, 0u64..30_000],
        isns in [u32::MAX - 50_000..u32::MAX, 0..u32::MAX],
        seed in any::<u64>(),
    ) {
        let (a, b) = endpoints(ends, isns);
        let unknown = Unknown::WaitedFor(Duration::from_secs(1_000_000));
        let config = Config { unknown, ..config(halves[0], halves[1], buffer) };
        let [every, takes] = [every_ms, takes_ms].map(Duration::from_millis);
        let cells = Cells::new(config, every, takes);
        let mut transfer = Transfer::of(Middle::new(a, cells, b, [wire(), wire()], wireless, seed), totals, |_| {});
        transfer.run(Instant::from_secs(9000));
        transfer.assert_complete();
    }
}

#[test]
fn a_long_transfer_moves_many_times() {
    let tcp = hopline_transport::tcp::Config::modern().with_sack();
    let (a, b) = endpoints(tcp, [1, 2]);
    let unknown = Unknown::WaitedFor(Duration::from_secs(2));
    let config = Config { unknown, ..config(tcp, tcp, 100_000) };
    let cells = Cells::new(config, Duration::from_millis(200), Duration::from_millis(20));
    let mut transfer = Transfer::of(
        Middle::new(a, cells, b, [wire(), wire()], [wire(), wire()], 7),
        [10_000_000, 0],
        |_| {},
    );
    transfer.run(Instant::from_secs(9000));
    transfer.assert_complete();
    assert_eq!(transfer.pair.station.moves, MOST_MOVES);
}

#[test]
fn only_a_station_that_has_waited_in_vain_for_a_host_s_connections_resets_them() {
    let tcp = hopline_transport::tcp::Config::modern();
    let unknown = Unknown::WaitedFor(Duration::from_secs(2));
    let mut station: Split<Bytes> = Split::new(
        Config { unknown, ..config(tcp, tcp, 100_000) },
        Stream::keyed(1, 2, 3, Purpose::Transport),
    );
    let mobile = CONNECTION.mobile.0;
    let data = Wired { src_port: 2, dst_port: 1, flags: Flags::ACK, ..Wired::default() };
    let sends_at = |station: &mut Split<Bytes>, ms| {
        let from = hopline_proxy::Side::Mobile;
        station.handle_packet(Instant::from_millis(ms), CONNECTION, from, Segment::Tcp(data.clone()));
        station.poll_transmit().is_some()
    };
    assert!(!sends_at(&mut station, 0), "the station does not know yet that the host is here");
    station.expect(Instant::from_millis(10), mobile);
    assert!(!sends_at(&mut station, 2000), "its state may be on its way");
    assert!(sends_at(&mut station, 2010), "nobody has it");
    assert!(station.take_out(mobile).is_empty());
    assert!(!sends_at(&mut station, 2020), "the host has left");
    assert_eq!((station.stats().held_off, station.stats().unknown), (3, 1));
}
