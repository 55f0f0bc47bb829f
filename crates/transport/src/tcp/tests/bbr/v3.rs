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
    assert_eq!(states[..3], [BbrState::Startup, BbrState::Drain, BbrState::ProbeBwDown]);
    let model = path.model();
    assert!((model.bandwidth / most(PLAIN) - 1.0).abs() < 0.03, "{}", model.bandwidth);
}

#[test]
fn the_cycle_is_down_cruise_refill_up_every_two_to_three_seconds() {
    let link = Link { bits_per_sec: 40_000_000, round_trip: Duration::from_millis(80), queue: 500, ..PLAIN };
    let mut path = Path::busy(V3, link, 1);
    path.run_to(20.0);
    let cycle =
        [BbrState::ProbeBwDown, BbrState::ProbeBwCruise, BbrState::ProbeBwRefill, BbrState::ProbeBwUp];
    let states = path.states_between(3.0, 20.0);
    for pair in states.windows(2) {
        let place = |state| cycle.iter().position(|&s| s == state);
        match (place(pair[0]), place(pair[1])) {
            (Some(from), Some(to)) => assert_eq!(to, (from + 1) % 4, "{pair:?}"),
            _ => assert!(pair.contains(&BbrState::ProbeRtt), "{pair:?}"),
        }
    }
    let ups = path.times_of(BbrState::ProbeBwUp);
    assert!(ups.len() >= 4, "{ups:?}");
    // A round of REFILL, and the search for the least round trip that may come between.
    assert!(ups.windows(2).all(|pair| (2.0..4.2).contains(&(pair[1] - pair[0]))), "{ups:?}");
}

#[test]
fn on_a_short_path_it_probes_as_often_as_reno_would_have_grown_so_far() {
    // A product of 34 segments: after that many rounds of 40 ms and more.
    let mut path = Path::busy(V3, PLAIN, 1);
    path.run_to(9.0);
    let ups = path.times_of(BbrState::ProbeBwUp);
    assert!(ups.windows(2).all(|pair| (1.0..2.6).contains(&(pair[1] - pair[0]))), "{ups:?}");
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
fn losses_below_two_per_cent_bound_nothing_for_long_and_above_it_do() {
    let bounded = |loss| {
        let mut path = Path::busy(V3, Link { loss, ..PLAIN }, 2);
        let mut bounded = 0;
        for half in 4..40 {
            path.run_to(f64::from(half) / 2.0);
            bounded += u32::from(path.model().inflight_longterm.is_some());
        }
        (bounded, path.goodput_to(30.0) / 8.0 / most(PLAIN))
    };
    let (never, much) = bounded(0.001);
    assert_eq!(never, 0);
    assert!(much > 0.9, "{much}");
    let (often, less) = bounded(0.1);
    assert!(often > 20, "{often} of 36");
    assert!(less < much, "{less}");
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
fn the_queue_is_shorter_than_that_of_version_1() {
    let longest = |bbr| {
        let mut path = Path::busy(bbr, Link { queue: 1000, ..PLAIN }, 1);
        path.run_to(3.0);
        path.longest = 0;
        path.run_to(9.0);
        path.longest
    };
    let (v1, v3) = (longest(BbrConfig::V1), longest(V3));
    assert!(v3 <= v1, "{v3} and {v1} packets");
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
