//! Version 3, against draft-ietf-ccwg-bbr.

use super::{BbrConfig, BbrState, Link, PLAIN, Path};
use hopline_core::Duration;

const V3: BbrConfig = BbrConfig::V3;

fn most(link: Link) -> f64 {
    link.bits_per_sec as f64 / 8.0 * 1448.0 / 1500.0
}

#[test]
fn startup_is_left_when_the_bandwidth_stops_growing_and_the_cycle_begins_with_down() {
    let mut path = Path::busy(V3, PLAIN, 1);
    path.run_to(3.0);
    let states: Vec<BbrState> = path.states.iter().map(|&(_, state)| state).collect();
    // What has drained has nothing to go down for.
    assert_eq!(states[..3], [BbrState::Startup, BbrState::Drain, BbrState::ProbeBwCruise]);
    assert!(states.contains(&BbrState::ProbeBwDown));
    let model = path.model();
    assert!((model.bandwidth / most(PLAIN) - 1.0).abs() < 0.03, "{}", model.bandwidth);
}

#[test]
fn the_cycle_is_down_cruise_refill_up_every_two_to_three_seconds() {
    let link = Link { bits_per_sec: 40_000_000, round_trip: Duration::from_millis(80), queue: 500, ..PLAIN };
    // The search for the least round trip would put off every other probe.
    let rare = BbrConfig { probe_rtt_interval: Duration::from_secs(60), ..V3 };
    let mut path = Path::busy(rare, link, 1);
    path.run_to(20.0);
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
    let waits = waits(&path);
    assert!(waits.len() >= 3 && waits.iter().all(|wait| (2.0..3.2).contains(wait)), "{waits:?}");
}

/// From each DOWN that led to a probe until REFILL, seconds.
fn waits(path: &Path) -> Vec<f64> {
    let led = [BbrState::ProbeBwDown, BbrState::ProbeBwCruise, BbrState::ProbeBwRefill];
    let probes = path.states.windows(3).filter(|w| w.iter().map(|&(_, state)| state).eq(led));
    probes.map(|w| w[2].0.since(w[0].0).as_secs_f64()).collect()
}

#[test]
fn on_a_short_path_it_probes_as_often_as_reno_would_have_grown_so_far() {
    // A product of 34 segments: after that many rounds of 40 ms and more.
    let mut path = Path::busy(V3, PLAIN, 1);
    path.run_to(9.0);
    let waits = waits(&path);
    assert!(waits.len() >= 2 && waits.iter().all(|wait| (1.2..1.7).contains(wait)), "{waits:?}");
}

#[test]
fn probing_sends_a_quarter_more_and_going_down_a_tenth_less() {
    let mut path = Path::busy(V3, PLAIN, 1);
    let mut seen = Vec::new();
    for ms in 2000..5000 {
        path.run_to(f64::from(ms) / 1000.0);
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
fn every_five_seconds_the_window_is_half_a_product_for_200_ms() {
    let mut path = Path::busy(V3, PLAIN, 1);
    path.run_to(17.0);
    let begun = path.times_of(BbrState::ProbeRtt);
    assert!((2..=3).contains(&begun.len()), "{begun:?}");
    let mut path = Path::busy(V3, PLAIN, 1);
    path.run_to(begun[0] + 0.1);
    assert_eq!(path.model().state, BbrState::ProbeRtt);
    let product = path.model().bandwidth * path.model().min_rtt.unwrap().as_secs_f64();
    let window = f64::from(path.a.cwnd());
    assert!((window / product - 0.5).abs() < 0.03, "{window} of {product}");
    path.run_to(begun[0] + 0.6);
    assert_ne!(path.model().state, BbrState::ProbeRtt);
}

#[test]
fn a_queue_that_overflows_while_it_probes_bounds_what_is_in_flight() {
    // A tenth of a product waits at most.
    let link = Link { queue: 4, ..PLAIN };
    let mut path = Path::busy(V3, link, 1);
    path.run_to(10.0);
    let bound = path.model().inflight_longterm.expect("losses have told") as f64;
    let product = most(link) * 0.0412;
    assert!((0.7..1.6).contains(&(bound / product)), "{bound} of {product}");
    let share = path.goodput_to(20.0) / 8.0 / most(link);
    assert!(share > 0.8, "{share}");
}

#[test]
fn losses_below_two_per_cent_of_a_flight_bound_nothing_for_long_and_above_it_do() {
    // A product of 276 segments: two per cent are five.
    let path = Link { bits_per_sec: 40_000_000, round_trip: Duration::from_millis(80), queue: 500, ..PLAIN };
    let bounded = |loss| {
        let link = Link { loss, ..path };
        let mut path = Path::busy(V3, link, 2);
        let mut bounded = 0;
        for half in 4..30 {
            path.run_to(f64::from(half) / 2.0);
            bounded += u32::from(path.model().inflight_longterm.is_some());
        }
        (bounded, path.goodput_to(20.0) / 8.0 / most(link))
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
    let mut path = Path::busy(V3, Link { loss: 0.001, ..PLAIN }, 2);
    path.run_to(15.0);
    assert!(path.model().inflight_longterm.is_some());
}

#[test]
fn a_shallow_queue_ends_startup_by_its_losses() {
    let link = Link { queue: 4, ..PLAIN };
    let mut path = Path::busy(V3, link, 1);
    path.run_to(2.0);
    assert!(path.model().inflight_longterm.is_some());
    let drain = path.times_of(BbrState::Drain);
    assert!(drain[0] < 1.0, "{drain:?}");
}

#[test]
fn a_probe_queues_a_product_and_a_quarter_at_most_and_cruising_queues_nothing() {
    let mut path = Path::busy(V3, Link { queue: 1000, ..PLAIN }, 1);
    path.run_to(3.0);
    path.longest = 0;
    let mut cruising = 0;
    for ms in 3000..9000 {
        path.run_to(f64::from(ms) / 1000.0);
        let (since, state) = *path.states.last().unwrap();
        if state == BbrState::ProbeBwCruise && path.now.since(since) > Duration::from_millis(200) {
            cruising = cruising.max(path.waiting.len());
        }
    }
    assert!(path.longest <= 46, "{} packets", path.longest);
    assert!(cruising <= 5, "{cruising} packets");
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_another() {
    let run = |seed| {
        let mut path = Path::busy(V3, Link { loss: 0.02, ..PLAIN }, seed);
        path.run_to(8.0);
        (path.states, *path.a.stats(), path.a.cwnd())
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7).0, run(8).0);
}

#[test]
fn an_outage_ends_in_timeouts_and_afterwards_the_path_is_as_it_was() {
    let mut path = Path::busy(V3, PLAIN, 1);
    path.run_to(3.0);
    path.link.loss = 1.0;
    path.run_to(6.0);
    path.link.loss = 0.0;
    path.run_to(14.0);
    let share = path.goodput_to(16.0) / 8.0 / most(PLAIN);
    assert!(share > 0.8, "{share}");
}
