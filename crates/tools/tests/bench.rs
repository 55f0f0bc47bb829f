//! Tests between a client and a server on the loopback interface, over all transports that have connections.

#![allow(clippy::unwrap_used, reason = "helpers of tests, though without `#[test]`")]

use hopline_tools::bench::{
    ConnectOptions, Connected, Direction, Ending, Error, Interval, Limit, Observer, Phase, Plan, Rate,
    Report, Role, Server, SideReport, TestCount, TestSettings, Transport, measure,
};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::thread;
use std::time::Duration;

const TPA: Transport = Transport::Tpa { cwnd_max: 12 };
const WIDE: Transport = Transport::TpaWide;
const TCP: Transport = Transport::Tcp { congestion_control: None };
const CONNECTED: [Transport; 3] = [TPA, WIDE, TCP];
const BOTH_WAYS: [Direction; 2] = [Direction::Forward, Direction::Reverse];

/// Keeps what it is told, and interrupts after so many intervals.
#[derive(Default)]
struct RecordingObserver {
    plans: Vec<Plan>,
    streams: Vec<Connected>,
    intervals: Vec<Interval>,
    interrupt_after: Option<usize>,
    ended: Option<Result<Report, String>>,
}

impl Observer for RecordingObserver {
    fn accepted(&mut self, _: SocketAddr, plan: &Plan) {
        self.plans.push(plan.clone());
    }

    fn connected(&mut self, settled: &TestSettings) {
        self.streams = settled.streams.clone();
    }

    fn interval(&mut self, interval: &Interval) {
        self.intervals.push(interval.clone());
    }

    fn ended(&mut self, result: &Result<Report, Error>) {
        self.ended = Some(result.as_ref().cloned().map_err(ToString::to_string));
    }

    fn interrupted(&self) -> bool {
        self.interrupt_after.is_some_and(|most| self.intervals.len() >= most)
    }
}

fn plan(transport: Transport, direction: Direction, limit: Limit) -> Plan {
    Plan { direction, limit, streams: 3, length: Some(20_000), ..Plan::new(transport) }
}

fn to(peers: &[SocketAddr]) -> ConnectOptions {
    ConnectOptions { peers: peers.to_vec(), ..ConnectOptions::default() }
}

/// Of all streams.
fn all(side: &SideReport) -> u64 {
    side.bytes(Role::Sends) + side.bytes(Role::Receives)
}

fn moved(interval: &Interval) -> u64 {
    interval.bytes(Role::Sends) + interval.bytes(Role::Receives)
}

/// One test: what came of it, and what the client and the server saw.
fn run(
    plan: &Plan,
    period_ms: u64,
    patience: Option<usize>,
) -> (Report, RecordingObserver, RecordingObserver) {
    let server = Server::bind(IpAddr::V4(Ipv4Addr::LOCALHOST), 0).unwrap();
    let address = server.local_addr().unwrap();
    let period = Some(Duration::from_millis(period_ms));
    thread::scope(|scope| {
        let serving = scope.spawn(|| {
            let mut seen = RecordingObserver::default();
            server.serve(TestCount::One, period, &mut seen).unwrap();
            seen
        });
        let mut seen = RecordingObserver { interrupt_after: patience, ..RecordingObserver::default() };
        // The first of the two does not listen.
        let call = to(&[SocketAddr::from((Ipv4Addr::LOCALHOST, 1)), address]);
        let report = measure(plan, &call, period, &mut seen).unwrap();
        (report, seen, serving.join().unwrap())
    })
}

fn sender_and_receiver<'a>(
    plan: &Plan,
    a: &'a RecordingObserver,
    b: &'a RecordingObserver,
) -> (&'a RecordingObserver, &'a RecordingObserver) {
    if plan.direction == Direction::Forward { (a, b) } else { (b, a) }
}

#[test]
fn the_requested_bytes_arrive_and_both_sides_count_them() {
    for (transport, direction) in CONNECTED.into_iter().flat_map(|t| BOTH_WAYS.map(|d| (t.clone(), d))) {
        // No multiple of what is handed over at once.
        let plan = plan(transport, direction, Limit::Bytes(1_234_567));
        let (report, client, server) = run(&plan, 10, None);
        assert_eq!(report.ending, Ending::Complete);
        let remote = report.remote.as_ref().unwrap();
        assert_eq!((all(&report.local), all(remote)), (1_234_567, 1_234_567), "{plan:?}");
        assert_eq!((report.local.streams.len(), remote.streams.len()), (3, 3));
        assert_eq!((server.plans[0].direction, server.plans[0].limit), (plan.direction, plan.limit));
        let (sender, receiver) = sender_and_receiver(&plan, &client, &server);
        for seen in [sender, receiver] {
            assert_eq!(seen.intervals.iter().map(moved).sum::<u64>(), 1_234_567);
            assert!(seen.intervals.windows(2).all(|pair| pair[0].end == pair[1].start));
        }
        assert!(sender.intervals.iter().all(|i| i.retransmits().is_some()));
        assert!(receiver.intervals.iter().all(|i| i.retransmits().is_none()));
        // Each side knows the other's addresses.
        let far: Vec<SocketAddr> = server.streams.iter().map(|s| s.remote).collect();
        assert_eq!(client.streams.iter().map(|s| s.local).collect::<Vec<_>>(), far);
        // The server says the same, the other way round.
        let told = server.ended.unwrap().unwrap();
        assert_eq!(all(&told.local), all(remote));
    }
}

#[test]
fn a_test_ends_by_time_and_the_omission_is_in_no_total() {
    for (transport, direction) in CONNECTED.into_iter().flat_map(|t| BOTH_WAYS.map(|d| (t.clone(), d))) {
        let limit = Limit::Time(Duration::from_millis(300));
        let plan = Plan { omit: Duration::from_millis(100), ..plan(transport, direction, limit) };
        let (report, client, server) = run(&plan, 60, None);
        for (seen, counted) in
            [(&client, &report.local), (&server, &server.ended.as_ref().unwrap().as_ref().unwrap().local)]
        {
            let mut measured = seen.intervals.iter().filter(|i| i.phase == Phase::Measured);
            assert!(all(counted) > 0, "{plan:?}");
            assert_eq!(measured.clone().map(moved).sum::<u64>(), all(counted));
            assert_eq!(measured.clone().next().unwrap().start, Duration::ZERO);
            assert_eq!(measured.next_back().unwrap().end, counted.elapsed);
            assert_eq!(seen.intervals[0].phase, Phase::Omitted);
        }
        // The server ends when it is told, perhaps before its own clock says so.
        assert!(report.local.elapsed >= Duration::from_millis(300));
    }
}

#[test]
fn a_stopped_test_has_a_result_on_both_sides() {
    for transport in CONNECTED {
        for direction in BOTH_WAYS {
            let plan = plan(transport.clone(), direction, Limit::Time(Duration::from_secs(3600)));
            let (report, client, server) = run(&plan, 20, Some(2));
            assert_eq!(report.ending, Ending::Stopped);
            assert!(report.remote.is_some(), "{plan:?}");
            assert!(client.intervals.len() <= 3, "{}", client.intervals.len());
            assert_eq!(server.ended.unwrap().unwrap().ending, Ending::Stopped);
        }
    }
}

#[test]
fn in_both_directions_each_side_sends_over_its_own_streams() {
    for transport in CONNECTED {
        let plan =
            Plan { direction: Direction::Both, ..plan(transport, Direction::Both, Limit::Bytes(100_000)) };
        let (report, ..) = run(&plan, 50, None);
        let remote = report.remote.unwrap();
        for side in [&report.local, &remote] {
            assert_eq!((side.bytes(Role::Sends), side.bytes(Role::Receives)), (100_000, 100_000), "{plan:?}");
            assert_eq!(side.streams.len(), 6);
        }
    }
}

#[test]
fn datagrams_are_numbered_counted_and_paced() {
    for direction in [Direction::Forward, Direction::Reverse, Direction::Both] {
        let limit = Limit::Time(Duration::from_millis(400));
        let rate = Rate { bps: 800_000, burst: 0 };
        let plan = Plan { rate, length: Some(1000), streams: 2, ..plan(Transport::Udp, direction, limit) };
        let (report, ..) = run(&plan, 100, None);
        let remote = report.remote.unwrap();
        for (sent, received) in [(&report.local, &remote), (&remote, &report.local)] {
            let Some(sent) = sent.datagrams(Role::Sends) else { continue };
            let seen = received.datagrams(Role::Receives).unwrap();
            // 100 a second for each of two streams, and the first at once.
            assert!((10..=90).contains(&sent.packets), "{direction:?} {sent:?}");
            assert!(seen.packets > 0 && seen.packets <= sent.packets + 2, "{direction:?} {seen:?} {sent:?}");
        }
    }
}

#[test]
fn latency_is_measured_before_during_and_after_the_load() {
    for transport in [TPA, WIDE, TCP, Transport::Udp] {
        let limit = Limit::Time(Duration::from_millis(300));
        let probes = Some(Duration::from_millis(200));
        let plan = Plan { probes, length: None, ..plan(transport, Direction::Forward, limit) };
        let (report, ..) = run(&plan, 100, None);
        let latency = report.latency.unwrap();
        for trips in [&latency.before, &latency.during, &latency.after] {
            assert!(trips.answered > 0 && trips.answered <= trips.sent, "{trips:?}");
            assert!(trips.p50 <= trips.p95 && trips.p95 <= trips.p99 && trips.p99 <= trips.max, "{trips:?}");
        }
    }
}

#[test]
fn a_missing_server_is_an_error() {
    let nobody = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    for transport in CONNECTED {
        let plan = plan(transport, Direction::Forward, Limit::Bytes(1));
        let error = measure(&plan, &to(&[nobody]), None, &mut ()).unwrap_err();
        assert_eq!(error.to_string(), "cannot connect to 127.0.0.1:1: nobody listens there");
    }
    let plan = Plan { streams: 0, ..plan(TCP, Direction::Forward, Limit::Bytes(1)) };
    assert!(matches!(measure(&plan, &to(&[nobody]), None, &mut ()), Err(Error::Plan(_))));
}
