//! Version 3, against draft-ietf-ccwg-bbr.

use super::{BbrConfig, BbrState, Link, PLAIN, TestPath};
use hopline_core::Duration;

const V3: BbrConfig = BbrConfig::V3;

fn max_goodput(link: Link) -> f64 {
    link.bits_per_sec as f64 / 8.0 * 1448.0 / 1500.0
}

#[test]
fn startup_ends_when_the_bandwidth_stops_growing_and_probe_bw_starts_with_down() {
    let mut path = TestPath::new_busy(V3, PLAIN, 1);
    path.run_until(3.0);
    let states: Vec<BbrState> = path.states.iter().map(|&(_, state)| state).collect();
    // What has drained has nothing to go down for.
    assert_eq!(states[..3], [BbrState::Startup, BbrState::Drain, BbrState::ProbeBwCruise]);
    assert!(states.contains(&BbrState::ProbeBwDown));
    let model = path.model();
    assert!((model.bandwidth / max_goodput(PLAIN) - 1.0).abs() < 0.03, "{}", model.bandwidth);
}

#[test]
fn the_cycle_is_down_cruise_refill_up_every_two_to_three_seconds() {
    let link = Link { bits_per_sec: 40_000_000, round_trip: Duration::from_millis(80), queue: 500, ..PLAIN };
    // The search for the least round trip would put off every other probe.
    let rare = BbrConfig { probe_rtt_interval: Duration::from_secs(60), ..V3 };
    let mut path = TestPath::new_busy(rare, link, 1);
    path.run_until(20.0);
    let cycle =
        [BbrState::ProbeBwDown, BbrState::ProbeBwCruise, BbrState::ProbeBwRefill, BbrState::ProbeBwUp];
    let states = path.states_between(3.0, 20.0);
    for pair in states.windows(2) {
        let place = |state| cycle.iter().position(|&s| s == state);
        match (place(pair[0]), place(pair[1])) {
            (Some(from), Some(to)) => assert_eq!(to, (from + 1) % 4, "{pair:?}"),
            _ => panic!("{pair:?}"),
        }
    }
    let waits = probe_waits(&path);
    assert!(waits.len() >= 3 && waits.iter().all(|wait| (2.0..3.2).contains(wait)), "{waits:?}");
}

/// From each DOWN that led to a probe until REFILL, seconds.
fn probe_waits(path: &TestPath) -> Vec<f64> {
    let led = [BbrState::ProbeBwDown, BbrState::ProbeBwCruise, BbrState::ProbeBwRefill];
    let probes = path.states.windows(3).filter(|w| w.iter().map(|&(_, state)| state).eq(led));
    probes.map(|w| w[2].0.since(w[0].0).as_secs_f64()).collect()
}

#[test]
fn on_a_short_path_probes_coexist_with_reno() {
    // A product of 34 segments: after that many rounds of 40 ms and more.
    let mut path = TestPath::new_busy(V3, PLAIN, 1);
    path.run_until(9.0);
    let waits = probe_waits(&path);
    assert!(waits.len() >= 2 && waits.iter().all(|wait| (1.2..1.7).contains(wait)), "{waits:?}");
}

#[test]
fn up_and_down_use_gains_of_1_25_and_0_9() {
    let mut path = TestPath::new_busy(V3, PLAIN, 1);
    let mut seen = Vec::new();
    for ms in 2000..5000 {
        path.run_until(f64::from(ms) / 1000.0);
        let model = path.model();
        let gain = model.pacing_rate / model.bandwidth / 0.99;
        let expected = match model.state {
            BbrState::ProbeBwDown => 0.9,
            BbrState::ProbeBwUp => 1.25,
            _ => 1.0,
        };
        assert!((gain - expected).abs() < 1e-6, "{:?}: {gain}", model.state);
        seen.push(model.state);
    }
    assert!(seen.contains(&BbrState::ProbeBwUp) && seen.contains(&BbrState::ProbeBwDown));
}

#[test]
fn probe_rtt_halves_the_bdp_for_200_ms_every_five_seconds() {
    let mut path = TestPath::new_busy(V3, PLAIN, 1);
    path.run_until(17.0);
    let begun = path.times_of(BbrState::ProbeRtt);
    assert!((2..=3).contains(&begun.len()), "{begun:?}");
    let mut path = TestPath::new_busy(V3, PLAIN, 1);
    path.run_until(begun[0] + 0.1);
    assert_eq!(path.model().state, BbrState::ProbeRtt);
    let product = path.model().bandwidth * path.model().min_rtt.unwrap().as_secs_f64();
    let window = f64::from(path.a.cwnd());
    assert!((window / product - 0.5).abs() < 0.03, "{window} of {product}");
    path.run_until(begun[0] + 0.6);
    assert_ne!(path.model().state, BbrState::ProbeRtt);
}

#[test]
fn an_overflow_during_a_probe_sets_inflight_longterm() {
    // A tenth of a product waits at most.
    let link = Link { queue: 4, ..PLAIN };
    let mut path = TestPath::new_busy(V3, link, 1);
    path.run_until(10.0);
    let bound = path.model().inflight_longterm.expect("losses have told") as f64;
    let product = max_goodput(link) * 0.0412;
    assert!((0.7..1.6).contains(&(bound / product)), "{bound} of {product}");
    let share = path.goodput_until(20.0) / 8.0 / max_goodput(link);
    assert!(share > 0.8, "{share}");
}

#[test]
fn losses_above_two_per_cent_set_the_longterm_bound() {
    // A product of 276 segments: two per cent are five.
    let path = Link { bits_per_sec: 40_000_000, round_trip: Duration::from_millis(80), queue: 500, ..PLAIN };
    let bounded = |loss| {
        let link = Link { loss, ..path };
        let mut path = TestPath::new_busy(V3, link, 2);
        let mut bounded = 0;
        for half in 4..30 {
            path.run_until(f64::from(half) / 2.0);
            bounded += u32::from(path.model().inflight_longterm.is_some());
        }
        (bounded, path.goodput_until(20.0) / 8.0 / max_goodput(link))
    };
    let (never, much) = bounded(0.001);
    assert_eq!(never, 0);
    assert!(much > 0.9, "{much}");
    let (often, less) = bounded(0.1);
    assert!(often > 15, "{often} of 26");
    assert!(less < much, "{less}");
}

#[test]
fn one_loss_is_more_than_two_per_cent_of_a_short_flight() {
    let mut path = TestPath::new_busy(V3, Link { loss: 0.001, ..PLAIN }, 2);
    path.run_until(15.0);
    assert!(path.model().inflight_longterm.is_some());
}

#[test]
fn a_shallow_queue_ends_startup_by_its_losses() {
    let link = Link { queue: 4, ..PLAIN };
    let mut path = TestPath::new_busy(V3, link, 1);
    path.run_until(2.0);
    assert!(path.model().inflight_longterm.is_some());
    let drain = path.times_of(BbrState::Drain);
    assert!(drain[0] < 1.0, "{drain:?}");
}

#[test]
fn a_probe_queues_at_most_1_25_bdp_and_cruise_none() {
    let mut path = TestPath::new_busy(V3, Link { queue: 1000, ..PLAIN }, 1);
    path.run_until(3.0);
    path.max_queue = 0;
    let mut cruising = 0;
    for ms in 3000..9000 {
        path.run_until(f64::from(ms) / 1000.0);
        let (since, state) = *path.states.last().unwrap();
        if state == BbrState::ProbeBwCruise && path.now.since(since) > Duration::from_millis(200) {
            cruising = cruising.max(path.bottleneck_queue.len());
        }
    }
    assert!(path.max_queue <= 46, "{} packets", path.max_queue);
    assert!(cruising <= 5, "{cruising} packets");
}

#[test]
fn runs_are_deterministic_by_seed() {
    let run = |seed| {
        let mut path = TestPath::new_busy(V3, Link { loss: 0.02, ..PLAIN }, seed);
        path.run_until(8.0);
        (path.states, *path.a.stats(), path.a.cwnd())
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7).0, run(8).0);
}

#[test]
fn after_an_outage_the_goodput_recovers() {
    let mut path = TestPath::new_busy(V3, PLAIN, 1);
    path.run_until(3.0);
    path.link.loss = 1.0;
    path.run_until(6.0);
    path.link.loss = 0.0;
    path.run_until(14.0);
    let share = path.goodput_until(16.0) / 8.0 / max_goodput(PLAIN);
    assert!(share > 0.8, "{share}");
}
