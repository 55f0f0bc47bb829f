//! Split connections of a mobile host that repeatedly changes its base station: their state follows.

use crate::end_to_end::split::{CONNECTION, config};
use crate::end_to_end::support::{emulations, endpoints, transports, wire};
use bytes::Bytes;
use hopline_core::{Duration, Instant, Purpose, RandomStream};
use hopline_proxy::split::{Config, Split, TransferredConnection, Transmit, UnknownConnections};
use hopline_testkit::transfer::Transfer;
use hopline_testkit::{Side, Station, TwoLinks};
use hopline_transport::any::Segment;
use hopline_wire::tcp::Flags;
use proptest::prelude::*;

type Wired = hopline_wire::tcp::Segment<Bytes>;

/// Two base stations, one of which has the host. The transfer of its connections takes some time.
struct TwoStations {
    stations: [Split<Bytes>; 2],
    current: usize,
    move_interval: Duration,
    transfer_time: Duration,
    next_move: Instant,
    in_transfer: Option<(Instant, Vec<TransferredConnection<Bytes>>)>,
    moves: u32,
}

/// Number of moves after which the host stays.
const MAX_MOVES: u32 = 40;

impl TwoStations {
    fn new(config: Config, every: Duration, takes: Duration) -> Self {
        let station = |n| Split::new(config, RandomStream::keyed(n, 2, 3, Purpose::Transport));
        let mut first = station(1);
        first.add_host(Instant::ZERO, CONNECTION.mobile.0, Vec::new());
        Self {
            stations: [first, station(2)],
            current: 0,
            move_interval: every,
            transfer_time: takes,
            next_move: Instant::ZERO + every,
            in_transfer: None,
            moves: 0,
        }
    }

    /// Moves the host, and its connections after it.
    fn advance(&mut self, now: Instant) {
        if let Some((_, moved)) = self.in_transfer.take_if(|(at, _)| *at <= now) {
            self.stations[self.current].add_host(now, CONNECTION.mobile.0, moved);
        }
        if self.in_transfer.is_none() && self.next_move <= now && self.moves < MAX_MOVES {
            let moved = self.stations[self.current].remove_host(CONNECTION.mobile.0);
            assert!(moved.iter().all(|moved| moved.len_bytes() > 0));
            self.moves += 1;
            self.in_transfer = Some((now + self.transfer_time, moved));
            self.current = 1 - self.current;
            self.stations[self.current].expect_host(now, CONNECTION.mobile.0);
            self.next_move = now + self.transfer_time + self.move_interval;
        }
    }
}

impl Station<Wired> for TwoStations {
    fn handle_packet(&mut self, now: Instant, from: Side, segment: Wired) {
        self.advance(now);
        let from = if from == Side::A { hopline_proxy::Side::Fixed } else { hopline_proxy::Side::Mobile };
        self.stations[self.current].handle_packet(now, CONNECTION, from, Segment::Tcp(segment));
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        self.stations.iter_mut().for_each(|station| station.handle_timeout(now));
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<(Side, Wired)> {
        let Transmit { to, segment, .. } = self.stations.iter_mut().find_map(Split::poll_transmit)?;
        let Segment::Tcp(segment) = segment else { panic!("both halves are TCP") };
        Some((if to == hopline_proxy::Side::Mobile { Side::A } else { Side::B }, segment))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let due = self.stations.iter().filter_map(Split::poll_timeout).min();
        let arrival = self.in_transfer.as_ref().map(|(at, _)| *at);
        let leave = (arrival.is_none() && self.moves < MAX_MOVES).then_some(self.next_move);
        due.into_iter().chain(arrival).chain(leave).min()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn transfer_completes_across_stations(
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
        let unknown = UnknownConnections::Hold(Duration::from_secs(1_000_000));
        let config = Config { unknown, ..config(halves[0], halves[1], buffer) };
        let [every, takes] = [every_ms, takes_ms].map(Duration::from_millis);
        let cells = TwoStations::new(config, every, takes);
        let mut transfer = Transfer::of(TwoLinks::new(a, cells, b, [wire(), wire()], wireless, seed), totals, |_| {});
        transfer.run(Instant::from_secs(9000));
        transfer.assert_complete();
    }
}

#[test]
fn a_long_transfer_moves_many_times() {
    let tcp = hopline_transport::tcp::Config::modern().with_sack();
    let (a, b) = endpoints(tcp, [1, 2]);
    let unknown = UnknownConnections::Hold(Duration::from_secs(2));
    let config = Config { unknown, ..config(tcp, tcp, 100_000) };
    let cells = TwoStations::new(config, Duration::from_millis(200), Duration::from_millis(20));
    let mut transfer = Transfer::of(
        TwoLinks::new(a, cells, b, [wire(), wire()], [wire(), wire()], 7),
        [10_000_000, 0],
        |_| {},
    );
    transfer.run(Instant::from_secs(9000));
    transfer.assert_complete();
    assert_eq!(transfer.pair.station.moves, MAX_MOVES);
}

#[test]
fn station_resets_connections_after_waiting_for_their_state() {
    let tcp = hopline_transport::tcp::Config::modern();
    let unknown = UnknownConnections::Hold(Duration::from_secs(2));
    let mut station: Split<Bytes> = Split::new(
        Config { unknown, ..config(tcp, tcp, 100_000) },
        RandomStream::keyed(1, 2, 3, Purpose::Transport),
    );
    let mobile = CONNECTION.mobile.0;
    let data = Wired { src_port: 2, dst_port: 1, flags: Flags::ACK, ..Wired::default() };
    let sends_at = |station: &mut Split<Bytes>, ms| {
        let from = hopline_proxy::Side::Mobile;
        station.handle_packet(Instant::from_millis(ms), CONNECTION, from, Segment::Tcp(data.clone()));
        station.poll_transmit().is_some()
    };
    assert!(!sends_at(&mut station, 0), "the station does not know yet that the host is here");
    station.expect_host(Instant::from_millis(10), mobile);
    assert!(!sends_at(&mut station, 2000), "its state may be on its way");
    assert!(sends_at(&mut station, 2010), "nobody has it");
    assert!(station.remove_host(mobile).is_empty());
    assert!(!sends_at(&mut station, 2020), "the host has left");
    assert_eq!((station.stats().delayed, station.stats().unknown), (3, 1));
}
