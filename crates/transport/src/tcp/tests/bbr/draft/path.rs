//! Cases 12 to 17: paths with aggregation, a small product, changes of the bandwidth and a policer.

use super::super::{Link, PLAIN, Supply, TestPath, TokenBucketPolicer};
use super::{BbrState, LONG, MSS, V3, data_rate, is_near, is_probe_bw, without_probe_rtt};
use hopline_core::Duration;

#[test]
fn case_12_startup_finds_the_bandwidth_of_a_link_with_aggregation() {
    let run = |period: Option<Duration>| {
        let mut path = TestPath::new_recorded(V3, LONG, Supply::Off);
        path.ack_period = period;
        path.set_supply(Supply::Bulk);
        let end = path.run_to_state(10.0, BbrState::Drain);
        (end, path)
    };
    let period = Duration::from_millis(40);
    let burst = data_rate(LONG) * period.as_secs_f64();
    let (end, path) = run(Some(period));
    let extra = end.var.extra_acked as f64;
    assert!(is_near(extra, burst, 0.15), "{extra} of {burst}");
    assert!(end.var.cwnd as f64 > 2.0 * end.var.bdp as f64 + 0.8 * extra, "{:?}", end.var);
    assert!(is_near(end.var.max_bw, data_rate(LONG), 0.02), "{}", end.var.max_bw);
    assert!(
        path.acks().iter().all(|ack| ack.var.max_bw < 1.02 * data_rate(LONG)),
        "limited by the send rate"
    );
    let (plain, _) = run(None);
    assert!(plain.var.extra_acked < 10 * MSS, "{}", plain.var.extra_acked);
    assert!(end.var.round_count <= plain.var.round_count + 1, "{:?}", end.var.round_count);
}

#[test]
fn case_13_cruise_fills_a_link_with_aggregation() {
    let mut path = TestPath::new_recorded(without_probe_rtt(), PLAIN, Supply::Bulk);
    path.run_to_state(10.0, BbrState::ProbeBwCruise);
    assert!(path.look().var.extra_acked < 10 * MSS);
    // 100 ms of silence: more than twice the product of 40 ms lasts.
    let period = Duration::from_millis(100);
    let burst = data_rate(PLAIN) * period.as_secs_f64();
    path.ack_period = Some(period);
    path.run_secs(2.0);
    let now = path.look().var;
    assert!(is_near(now.extra_acked as f64, burst, 0.25), "{} of {burst}", now.extra_acked);
    let acks = path.run_secs(4.0);
    let full = acks.iter().filter(|ack| ack.var.state == BbrState::ProbeBwCruise);
    assert!(full.clone().count() >= 5, "{}", full.clone().count());
    full.for_each(|ack| {
        let expected = 2 * ack.var.bdp + ack.var.extra_acked;
        assert!(ack.var.cwnd.abs_diff(expected) <= 2, "{expected}: {ack:?}");
    });
    assert!(path.share_of_link(3.0) > 0.95);
    // The filter has the maximum of the last ten rounds, also after the aggregation.
    path.ack_period = None;
    path.run_secs(3.0);
    let acks: Vec<_> = path.acks().iter().map(|ack| ack.var).collect();
    let since = acks.iter().position(|var| var.extra_acked as f64 > 0.5 * burst).expect("aggregation");
    for (i, var) in acks.iter().enumerate().skip(since) {
        let window = acks[..=i].iter().rev().take_while(|old| old.round_count + 10 >= var.round_count);
        let most = window.map(|old| old.newest_extra.unwrap().1).fold(0.0, f64::max);
        assert_eq!(var.extra_acked, most as u64, "round {}", var.round_count);
    }
    let falls = acks[since..].windows(2).filter(|pair| pair[1].extra_acked < pair[0].extra_acked).count();
    assert!(falls > 5, "{falls} maxima were forgotten");
}

#[test]
fn case_14_a_product_below_one_packet_keeps_four_in_flight() {
    let lan = Link { round_trip: Duration::from_millis(1), ..PLAIN };
    let slow = Link { bits_per_sec: 256_000, round_trip: Duration::from_millis(20), ..PLAIN };
    for (link, secs) in [(lan, 8.0), (slow, 60.0)] {
        let product = data_rate(link) * link.round_trip.as_secs_f64();
        assert!(product < MSS as f64);
        let mut path = TestPath::new_recorded(V3, link, Supply::Bulk);
        path.run_to(30.0, "ProbeBW", |now| is_probe_bw(now.var.state));
        let acks = path.run_secs(secs);
        assert!(acks.iter().all(|ack| ack.var.cwnd >= 4 * MSS));
        assert!(acks.iter().any(|ack| ack.var.state == BbrState::ProbeRtt && ack.var.cwnd == 4 * MSS));
        let cruise: Vec<_> = acks.iter().filter(|ack| ack.var.state == BbrState::ProbeBwCruise).collect();
        assert!(!cruise.is_empty());
        for ack in cruise {
            assert!(is_near(ack.var.pacing_rate, 0.99 * data_rate(link), 0.03), "{ack:?}");
        }
        let share = path.share_of_link(secs);
        assert!(share > 0.95, "{link:?}: {share}");
    }
}

#[test]
fn case_15_a_bandwidth_ten_times_as_large_is_found() {
    // The queue overflows in STARTUP, which sets the long-term bound.
    let slow = Link { queue: 20, ..PLAIN };
    let mut path = TestPath::new_recorded(without_probe_rtt(), slow, Supply::Bulk);
    path.run_to_state(10.0, BbrState::ProbeBwCruise);
    assert!(path.look().var.bounds.inflight_longterm.is_some());
    path.link.queue = 400;
    path.set_rate(100_000_000);
    path.run_to_state(10.0, BbrState::ProbeBwRefill);
    let known = path.acks().len();
    let rounds_before = path.look().var.round_count;
    let full = data_rate(path.link);
    let found = path.run_to(20.0, "ten times the bandwidth", |now| now.var.max_bw > 0.97 * full);
    let rounds = found.var.round_count - rounds_before;
    // A product of 333 segments; log2 of it is 8.4.
    assert!(rounds <= 25, "{rounds} rounds");
    // Growth of the bound in each round of the probe that found it, segments.
    let acks = &path.acks()[known..];
    let start = acks.iter().rposition(|ack| ack.var.state == BbrState::ProbeBwRefill).unwrap() + 1;
    let mut steps = Vec::new();
    for round in acks[start..].chunk_by(|a, b| a.var.round_count == b.var.round_count) {
        let [first, .., last] = round else { continue };
        let grown = last.var.bounds.inflight_longterm.unwrap() - first.var.bounds.inflight_longterm.unwrap();
        steps.push(grown / MSS);
    }
    let doubles = |pair: &[u64]| pair[0] > 0 && is_near(pair[1] as f64, 2.0 * pair[0] as f64, 0.15);
    let doublings: Vec<_> = steps.windows(2).map(doubles).collect();
    assert!(doublings.windows(4).any(|four| four.iter().all(|&yes| yes)), "{steps:?}");
}

#[test]
fn case_16_a_bandwidth_a_tenth_as_large_is_adopted() {
    let fast = Link { bits_per_sec: 100_000_000, queue: 400, ..PLAIN };
    let mut path = TestPath::new_recorded(without_probe_rtt(), fast, Supply::Bulk);
    path.run_to_state(10.0, BbrState::ProbeBwCruise);
    path.run_secs(0.5);
    let before = path.look();
    assert!(is_near(before.var.max_bw, data_rate(fast), 0.02) && before.var.bounds.bw_shortterm.is_none());
    path.link.queue = 20;
    path.set_rate(10_000_000);
    let slow = data_rate(path.link);
    // The first round with losses lowers the volume by Beta, and the following ones the rate.
    let first = path.run_to(1.0, "a short-term bound", |now| now.var.bounds.bw_shortterm.is_some());
    assert!(first.var.round_count <= before.var.round_count + 5);
    let volume = first.var.bounds.inflight_shortterm.unwrap() as f64;
    assert!(is_near(volume, 0.7 * before.var.cwnd as f64, 1e-3), "{volume} of {}", before.var.cwnd);
    let low = path.run_to(2.0, "a lower short-term bound", |now| {
        now.var.bounds.bw_shortterm.is_some_and(|bound| bound < 0.75 * before.var.max_bw)
    });
    assert!(low.var.max_bw > 0.95 * before.var.max_bw, "the long-term model is as before");
    let adopted = path.run_to(5.0, "a low bandwidth", |now| now.var.max_bw < 1.05 * slow);
    assert_eq!(adopted.var.cycle_count, before.var.cycle_count + 2);
    assert!(is_near(adopted.var.max_bw, slow, 0.02), "{}", adopted.var.max_bw);
    path.run_secs(1.0);
    let share = path.share_of_link(5.0);
    assert!(share > 0.9, "{share}");
}

#[test]
fn case_17_a_policer_is_conformed_to() {
    let policer = TokenBucketPolicer { bits_per_sec: 10_000_000, bucket_bytes: 6e6 };
    let link = Link { policer: Some(policer), ..LONG };
    let mut path = TestPath::new_recorded(V3, link, Supply::Bulk);
    let cruise = path.run_to_state(10.0, BbrState::ProbeBwCruise);
    assert_eq!(path.a.stats().retransmissions, 0);
    assert!(is_near(cruise.var.max_bw, data_rate(link), 0.02));
    let bound = path.run_to(10.0, "short-term bounds", |now| now.var.bounds.bw_shortterm.is_some());
    assert!(bound.var.bounds.inflight_shortterm.is_some());
    path.run_secs(5.0);
    // Segments that were sent, and sent again.
    let sent = |path: &TestPath| (path.a.stats().segments_sent, path.a.stats().retransmissions);
    let start = sent(&path);
    let mut calm = 0;
    for _ in 0..40 {
        let before = sent(&path).1;
        let share = path.share_of_link(1.0) * 4.0;
        assert!((0.7..1.7).contains(&share), "{share} of the rate of the tokens");
        calm += u32::from(sent(&path).1 - before < 8);
    }
    let end = sent(&path);
    let lost = (end.1 - start.1) as f64 / (end.0 - start.0) as f64;
    assert!(lost < 0.06, "{lost}");
    assert!(calm >= 20, "{calm} of 40 seconds with less than 1 % lost");
}
