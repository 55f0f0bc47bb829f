//! TPA-wide.

use crate::any_link;
use bytes::Bytes;
use hopline_core::{Duration, Instant, StateMachine};
use hopline_testkit::transfer::Transfer;
use hopline_testkit::{Emulation, Pair, Recording};
use hopline_transport::wide::{Config, Endpoint, State};
use proptest::prelude::*;

type End = Endpoint<Bytes>;

fn transfer(config: [Config; 2], totals: [u64; 2], link: &Emulation, seed: u64) -> Transfer<End> {
    let [a, b] = config.map(|config| End::new(config).unwrap());
    Transfer::new(a, b, totals, link, seed, invariants)
}

fn invariants(end: &End) {
    if end.in_flight() > 0 {
        assert!(end.poll_timeout().is_some(), "packets in flight and no timer in {:?}", end.state());
    }
    // What is out of order is bounded by the limit that the peer was told.
    assert!(end.received_unread() <= end.config().receive_buffer());
}

/// Never gives up; ends soon.
fn never_gives_up(config: Config) -> Config {
    config.with_opening_retries(None).with_silence_limit(None).with_time_wait(Duration::from_secs(240))
}

fn any_config() -> impl Strategy<Value = Config> {
    (64u16..1438, 1u32..9, 0u64..60, 1u32..20, 4u64..60).prop_map(|(mss, every, delay, share, room)| {
        let [delay, late] = [delay, delay + 95].map(Duration::from_millis);
        let ack = Config::DEFAULT.ack().with_every(every).with_low_rate_every(2 * every);
        let ack = ack
            .with_delay(delay)
            .with_low_rate_interval(delay)
            .with_relaxed_delay(late)
            .with_relaxed_max_loss(f64::from(every) / 10.0);
        never_gives_up(Config::DEFAULT)
            .with_mss(mss)
            .with_ack(ack)
            .with_loss_detection(Config::DEFAULT.loss_detection().with_reordering_divisor(share))
            .with_receive_buffer(room * u64::from(mss).max(512))
            .with_send_buffer(Some(30_000))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn every_byte_arrives_once_and_in_order(
        a in any_config(), b in any_config(), link in any_link(), seed in any::<u64>(),
        there in 0u64..40_000, back in prop_oneof![Just(0u64), 0u64..20_000],
    ) {
        let mut t = transfer([a, b], [there, back], &link, seed);
        t.run(Instant::from_secs(2_000));
        t.assert_complete();
    }
}

#[test]
fn after_a_blackout_few_packets_are_retransmitted() {
    let link = Emulation::delay(Duration::from_millis(20))
        .with_rate(Some(1_000_000))
        .with_blackouts(vec![(Instant::from_millis(500), Instant::from_secs(40))]);
    let mut t = transfer([Config::DEFAULT; 2], [200_000, 0], &link, 5);
    t.run(Instant::from_secs(1000));
    t.assert_complete();
    assert_eq!(t.pair.a.stats().freezes, 1);
    assert!(t.pair.a.stats().frozen > Duration::from_secs(35), "{:?}", t.pair.a.stats());
    assert!(t.pair.b.stats().duplicates_received <= 1, "{:?}", t.pair.b.stats());
}

#[test]
fn same_seed_same_dialogue() {
    let run = |seed| {
        let link = Emulation::delay(Duration::from_millis(20)).with_loss(0.1).with_reorder(0.1);
        let mut t = transfer([Config::DEFAULT; 2], [50_000, 0], &link, seed);
        t.pair.record(Recording::On);
        t.run(Instant::from_secs(1000));
        t.pair.dialogue()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn both_may_open_and_close_at_once() {
    let config = Config::DEFAULT.with_time_wait(Duration::from_secs(1));
    let [mut a, mut b] = [End::new(config).unwrap(), End::new(config).unwrap()];
    a.connect(Instant::ZERO).unwrap();
    b.connect(Instant::ZERO).unwrap();
    let mut pair = Pair::new(a, b, &Emulation::delay(Duration::from_millis(30)), 1);
    pair.run_until(Instant::from_millis(200));
    assert_eq!((pair.a.state(), pair.b.state()), (State::Established, State::Established));
    pair.a.close(pair.now()).unwrap();
    pair.b.close(pair.now()).unwrap();
    pair.run_until(Instant::from_secs(3));
    assert_eq!((pair.a.state(), pair.b.state()), (State::Closed, State::Closed));
}

/// Goodput in Mb/s of 6 s over `link`, and packets sent for each that was delivered.
fn measured(link: &Emulation, seed: u64) -> (f64, f64) {
    let ends = [(); 2].map(|()| End::new(Config::DEFAULT).unwrap());
    let [mut a, mut b] = ends;
    b.listen().unwrap();
    a.connect(Instant::ZERO).unwrap();
    a.send(Instant::ZERO, Bytes::from(vec![7; 40_000_000])).unwrap();
    let back = link.clone().with_loss(0.0).with_reorder(0.0);
    let mut pair = Pair::asymmetric(a, b, [link.clone(), back], seed);
    let mut received = 0;
    while pair.step(Instant::from_secs(6)) {
        while let Some(data) = pair.b.recv() {
            received += data.len();
        }
    }
    let packets = received as f64 / f64::from(Config::DEFAULT.mss());
    (received as f64 * 8.0 / 6.0 * 1e-6, pair.a.stats().segments_sent as f64 / packets)
}

fn wire(loss: f64) -> Emulation {
    Emulation::delay(Duration::from_millis(25))
        .with_rate(Some(20_000_000))
        .with_queue(Some(100))
        .with_loss(loss)
}

#[test]
fn random_losses_reduce_the_goodput_by_their_share() {
    for loss in [0.0, 0.01, 0.05, 0.1, 0.2] {
        // Of few losses some seeds have more than others.
        let runs = [1, 2, 3, 4, 5].map(|seed| measured(&wire(loss), seed));
        let mean = |of: fn(&(f64, f64)) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
        let (goodput, sent) = (mean(|run| run.0), mean(|run| run.1));
        let most = 20.0 * 1437.0 / 1500.0 * (1.0 - loss);
        // The start is a thirtieth of so short a run.
        assert!(goodput > 0.92 * most, "{loss}: {goodput:.2} of {most:.2} Mb/s");
        assert!(sent < 1.04 / (1.0 - loss), "{loss}: {sent:.3} packets sent for one delivered");
    }
}

#[test]
fn late_packets_are_not_retransmitted() {
    let late = wire(0.0).with_reorder(0.05).with_extra_delay(Duration::from_millis(30));
    let (goodput, sent) = measured(&late, 1);
    assert!(goodput > 17.0 && sent < 1.05, "{goodput:.2} Mb/s, {sent:.3} packets sent for one delivered");
}

#[test]
fn the_end_of_the_stream_may_arrive_before_earlier_data() {
    let link = Emulation::default().with_corrupt(0.06);
    for seed in 0..40 {
        let config = never_gives_up(Config::DEFAULT).with_mss(64);
        let mut t = transfer([config; 2], [0, 8449], &link, seed);
        t.run(Instant::from_secs(1000));
        t.assert_complete();
    }
}
