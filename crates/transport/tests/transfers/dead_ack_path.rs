//! ACK inhibition, as in appendix B of the TPA paper: for 11.4 s data arrive and acknowledgments do not.
//!
//! There, three hops with OLSR: segment 0 of block 131 timed out at 39.557 s, TPA sent 3 to 9, one at each expiry, all
//! arrived; at 50.92 s the route was back, and the ACK for 9 showed it. TCP sent one segment again and again.

use bytes::Bytes;
use hopline_core::{Duration, Instant, Seq32, StateMachine};
use hopline_testkit::pair::PacketEvent;
use hopline_testkit::reference_stream::InOrder;
use hopline_testkit::{Emulation, Packet, Pair, Recording, Side};
use hopline_transport::tcp::{self, Ports};
use hopline_transport::tpa;

const OUTAGE: Duration = Duration::from_millis(11_363);

/// 2 Mb/s, 5 ms each way: what is there when acknowledgments arrive, and what is not when they do not.
fn link(back: f64) -> [Emulation; 2] {
    let base = Emulation::delay(Duration::from_millis(5)).with_rate(Some(2_000_000));
    [base.clone(), base.with_loss(back)]
}

fn run<M>(pair: &mut Pair<M>, until: Instant, mut each: impl FnMut(&mut Pair<M>))
where
    M: StateMachine<Transmit = <M as StateMachine>::Packet>,
    M::Packet: Packet,
{
    while pair.step(until) {
        each(pair);
    }
}

/// Positions of the data segments on record from A, as they were sent.
fn positions(pair: &Pair<tpa::Endpoint<Bytes>>, since: Instant) -> Vec<(u64, u8)> {
    pair.entries()
        .iter()
        .filter(|e| e.from == Side::A && e.event == PacketEvent::Sent && e.at >= since)
        .filter_map(|e| Some((e.at.since(since).as_nanos() / 1_000_000, e.packet.position?.position)))
        .collect()
}

#[test]
fn tpa_sends_a_new_segment_at_each_timeout_and_retransmits_none() {
    // The least RTO that reproduces the trace: 63 of them lie between segment 3 and segment 9.
    let mut config = tpa::Config::tpa(3);
    config = config.with_rto(config.rto().with_min(Duration::from_millis(180)));
    let end = || tpa::Endpoint::<Bytes>::new(config).unwrap();
    let (mut a, mut b) = (end(), end());
    b.listen().unwrap();
    a.connect(Instant::ZERO).unwrap();
    let mut pair = Pair::asymmetric(a, b, link(0.0), 1);
    pair.record(Recording::On);
    pair.settle();
    let block = 12 * 1460;
    pair.a.send(Instant::ZERO, InOrder::bytes(0, 134 * block)).unwrap();
    let mut oracle = InOrder::default();
    let mut read = |pair: &mut Pair<tpa::Endpoint<Bytes>>| {
        while let Some(data) = pair.b.recv() {
            oracle.check(&data);
        }
        oracle.received()
    };
    while pair.a.stats().blocks < 131 {
        assert!(pair.step(Instant::from_secs(1000)));
        read(&mut pair);
    }
    // Block 131 has begun: 0, 1 and 2 are on their way.
    let start = pair.now();
    assert_eq!((pair.a.in_flight(), read(&mut pair)), (3, 131 * block as u64));
    pair.change_link(link(1.0));
    let mut arrived = vec![0];
    run(&mut pair, start + OUTAGE, |pair| arrived.push((read(pair) - 131 * block as u64) / 1460));
    arrived.dedup();
    assert_eq!(
        positions(&pair, start),
        [(0, 0), (0, 1), (0, 2), (180, 3), (360, 4), (720, 5), (1440, 6), (2880, 7), (5760, 8)]
    );
    assert_eq!(arrived, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], "3 to 8 are new, and arrive one after another");
    assert_eq!(pair.a.path(), tpa::PathState::CongestedOrFrozen);

    pair.change_link(link(0.0));
    let back = start + OUTAGE;
    run(&mut pair, Instant::from_secs(1000), |pair| {
        read(pair);
    });
    let after = positions(&pair, back);
    let ninth = after[0];
    assert_eq!(ninth, (157, 9), "the expiry that finds the route again, 11.52 s after the first");
    assert_eq!(after[1..4].iter().map(|&(_, p)| p).collect::<Vec<_>>(), [10, 11, 0], "then a new block");
    assert!(after[1].0 - ninth.0 < 25, "one round trip later");
    assert_eq!(read(&mut pair), 134 * block as u64);
    assert_eq!((pair.a.stats().retransmissions, pair.b.stats().duplicates_received), (0, 0));
    assert_eq!((pair.a.path(), pair.a.cwnd()), (tpa::PathState::Normal, 3));
}

#[test]
fn tcp_retransmits_one_segment_over_the_same_link() {
    let mut config = tcp::Config::modern()
        .with_newreno()
        .with_window_clamp(Some(3))
        .with_timestamps(tcp::OptionOffer::NotOffered);
    config = config.with_rto(config.rto().with_min(Duration::from_millis(180)));
    let end = |local, remote| tcp::Endpoint::<Bytes>::new(config, Ports { local, remote }, Seq32(0)).unwrap();
    let (mut a, mut b) = (end(1, 2), end(2, 1));
    b.listen().unwrap();
    a.connect(Instant::ZERO).unwrap();
    let mut pair = Pair::asymmetric(a, b, link(0.0), 1);
    pair.record(Recording::On);
    pair.settle();
    pair.a.send(Instant::ZERO, InOrder::bytes(0, 400 * 1460)).unwrap();
    let mut oracle = InOrder::default();
    let mut read = |pair: &mut Pair<tcp::Endpoint<Bytes>>| {
        while let Some(data) = pair.b.recv() {
            oracle.check(&data);
        }
        oracle.received()
    };
    while read(&mut pair) < 200 * 1460 {
        assert!(pair.step(Instant::from_secs(1000)));
    }
    let start = pair.now();
    pair.change_link(link(1.0));
    // What was in flight arrives; then nothing new does.
    run(&mut pair, start + Duration::from_millis(100), |pair| {
        read(pair);
    });
    let (before, quiet) = (read(&mut pair), pair.now());
    run(&mut pair, start + OUTAGE, |pair| {
        read(pair);
    });
    let repeated: Vec<u32> = pair
        .entries()
        .iter()
        .filter(|e| e.from == Side::A && e.event == PacketEvent::Sent && e.at > quiet)
        .map(|e| e.packet.seq.0)
        .collect();
    assert_eq!(read(&mut pair), before, "not a byte of news in 11.3 s");
    assert_eq!(repeated, [repeated[0]; 6], "one segment, six times");
    assert!(u64::from(repeated[0]) < before, "which had arrived before");
    assert_eq!(pair.b.stats().duplicates_received, 6);
}
