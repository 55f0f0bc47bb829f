//! Version 1, against what Linux does (`net/ipv4/tcp_bbr.c`).

use super::{BbrConfig, BbrState, Link, PLAIN, TestPath, TokenBucketPolicer};
use crate::tcp::{BbrVersion, PolicerDetection, PolicerState, RecoveryPhase};
use hopline_core::Duration;

const V1: BbrConfig = BbrConfig::V1;

/// Data bytes per second that the bottleneck carries in segments of 1448.
fn max_goodput(link: Link) -> f64 {
    link.bits_per_sec as f64 / 8.0 * 1448.0 / 1500.0
}

#[test]
fn startup_ends_when_the_bandwidth_stops_growing_and_drain_empties_the_queue() {
    let mut path = TestPath::new_busy(V1, PLAIN, 1);
    path.run_until(2.0);
    let states: Vec<BbrState> = path.states.iter().map(|&(_, state)| state).collect();
    assert_eq!(states[..2], [BbrState::Startup, BbrState::Drain]);
    assert!(matches!(states[2], BbrState::ProbeBw { .. }));
    let model = path.model();
    assert!(
        (model.bandwidth / max_goodput(PLAIN) - 1.0).abs() < 0.03,
        "{} for {}",
        model.bandwidth,
        max_goodput(PLAIN)
    );
    let least = model.min_rtt.unwrap().as_millis();
    assert!((40..44).contains(&least), "{least} ms");
    assert_eq!(path.a.stats().retransmissions, 0, "a queue of four products is enough");
}

#[test]
fn startup_and_drain_use_gains_of_2_885_and_its_inverse() {
    let mut path = TestPath::new_busy(V1, PLAIN, 1);
    let (mut fastest, mut slowest) = (0.0_f64, f64::INFINITY);
    for ms in 100..1000 {
        path.run_until(f64::from(ms) / 1000.0);
        let model = path.model();
        let gain = model.pacing_rate / model.bandwidth / 0.99;
        match model.state {
            BbrState::Startup if model.bandwidth > 1e6 => fastest = fastest.max(gain),
            BbrState::Drain => slowest = slowest.min(gain),
            _ => {}
        }
    }
    assert!((fastest - 739.0 / 256.0).abs() < 1e-3, "{fastest}");
    assert!((slowest - 88.0 / 256.0).abs() < 1e-3, "{slowest}");
}

#[test]
fn probe_bw_cycles_through_eight_phases_of_a_min_rtt() {
    let mut path = TestPath::new_busy(V1, PLAIN, 1);
    path.run_until(6.0);
    let turns: Vec<(f64, u8)> = path
        .states
        .iter()
        .filter(|(at, _)| at.as_secs_f64() > 3.0)
        .filter_map(|&(at, state)| match state {
            BbrState::ProbeBw { phase: turn } => Some((at.as_secs_f64(), turn)),
            _ => None,
        })
        .collect();
    assert!(turns.len() > 40, "{}", turns.len());
    for pair in turns.windows(2) {
        assert_eq!(pair[1].1, (pair[0].1 + 1) % 8, "one after the other");
        let lasts = pair[1].0 - pair[0].0;
        assert!(lasts > 0.0 && lasts < 0.095, "turn {} lasts {lasts} s", pair[0].1);
        assert!(pair[0].1 == 1 || lasts > 0.040, "turn {} lasts {lasts} s", pair[0].1);
    }
}

#[test]
fn probe_bw_uses_gains_of_1_25_0_75_and_1() {
    let mut path = TestPath::new_busy(V1, PLAIN, 1);
    let mut gains = [None::<f64>; 8];
    for ms in 3000..4000 {
        path.run_until(f64::from(ms) / 1000.0);
        let model = path.model();
        if let BbrState::ProbeBw { phase: turn } = model.state {
            gains[usize::from(turn)] = Some(model.pacing_rate / model.bandwidth / 0.99);
        }
    }
    for (turn, expected) in [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0].into_iter().enumerate() {
        let gain = gains[turn].expect("there are several cycles in a second");
        assert!((gain - expected).abs() < 1e-6, "turn {turn}: {gain}");
    }
}

#[test]
fn probe_rtt_limits_the_window_for_200_ms_every_ten_seconds() {
    let mut path = TestPath::new_busy(V1, PLAIN, 1);
    path.run_until(10.0);
    let before = path.a.cwnd();
    path.run_until(25.0);
    let begun = path.times_of(BbrState::ProbeRtt);
    assert_eq!(begun.len(), 2, "{begun:?}");
    let after: Vec<f64> =
        path.states.iter().map(|(at, _)| at.as_secs_f64()).filter(|at| *at > begun[0]).collect();
    let lasted = after[0] - begun[0];
    assert!((0.2..0.4).contains(&lasted), "{lasted} s");
    assert!((begun[1] - after[0] - 10.0).abs() < 0.1, "ten seconds after the end of the last");

    let mut path = TestPath::new_busy(V1, PLAIN, 1);
    path.run_until(begun[0] + 0.15);
    assert_eq!((path.model().state, path.a.cwnd()), (BbrState::ProbeRtt, 4 * 1448));
    path.run_until(begun[0] + 1.0);
    let window = path.a.cwnd();
    assert!(window >= before / 4 * 3 && window <= before / 4 * 5, "{window} after {before}");
}

#[test]
fn random_losses_do_not_lower_the_bandwidth() {
    for (loss, least) in [(0.01, 0.93), (0.05, 0.85), (0.10, 0.75)] {
        let link = Link { loss, ..PLAIN };
        let mut path = TestPath::new_busy(V1, link, 3);
        path.run_until(2.0);
        let share = path.goodput_until(9.0) / 8.0 / max_goodput(link);
        assert!(share > least, "{share} at {loss}");
    }
}

#[test]
fn the_queue_stays_below_that_of_a_loss_based_sender() {
    let link = Link { queue: 1000, ..PLAIN };
    let mut path = TestPath::new_busy(V1, link, 1);
    path.run_until(3.0);
    path.max_queue = 0;
    path.run_until(9.0);
    // A product is 34 packets, and a window of two of them leaves one in the queue.
    assert!(path.max_queue < 45, "{} packets", path.max_queue);
}

#[test]
fn a_policer_is_detected_and_its_rate_used() {
    let policer = Some(TokenBucketPolicer { bits_per_sec: 2_000_000, bucket_bytes: 60_000.0 });
    let link = Link { policer, ..PLAIN };
    let sent_per_delivered = |detection| {
        let version = BbrVersion::V1 { policer: detection };
        let mut path = TestPath::new_busy(BbrConfig { version, ..V1 }, link, 1);
        path.run_until(4.0);
        let (sent, delivered) = (path.a.stats().bytes_sent, path.b.stats().bytes_received);
        let mut found = false;
        for half in 9..40 {
            path.run_until(f64::from(half) / 2.0);
            found |= path.model().policer_state == PolicerState::Detected;
        }
        let ratio =
            (path.a.stats().bytes_sent - sent) as f64 / (path.b.stats().bytes_received - delivered) as f64;
        (found, ratio)
    };
    let (found, kept) = sent_per_delivered(PolicerDetection::On);
    assert!(found && kept < 1.25, "{kept} packets for each that arrives");
    let (found, blind) = sent_per_delivered(PolicerDetection::Off);
    assert!(!found && blind > kept, "{blind} and {kept}");
}

#[test]
fn random_losses_of_a_tenth_detect_no_policer() {
    let mut path = TestPath::new_busy(V1, Link { loss: 0.1, ..PLAIN }, 5);
    for tenth in 2..90 {
        path.run_until(f64::from(tenth) / 10.0);
        assert_eq!(path.model().policer_state, PolicerState::NotDetected);
    }
}

#[test]
fn bandwidth_changes_are_detected_within_seconds() {
    let mut path = TestPath::new_busy(V1, PLAIN, 1);
    path.run_until(3.0);
    path.link.bits_per_sec = 20_000_000;
    path.run_until(8.0);
    let fast = path.model().bandwidth;
    assert!(fast > 1.9 * max_goodput(PLAIN), "{fast}");
    path.link.bits_per_sec = 5_000_000;
    path.run_until(16.0);
    let slow = path.model().bandwidth;
    assert!(slow < 0.55 * max_goodput(PLAIN), "{slow}");
}

#[test]
fn after_an_outage_the_goodput_recovers() {
    let mut path = TestPath::new_busy(V1, PLAIN, 1);
    path.run_until(3.0);
    path.link.loss = 1.0;
    path.run_until(6.0);
    assert!(path.a.stats().timeouts >= 2);
    path.link.loss = 0.0;
    path.run_until(12.0);
    let share = path.goodput_until(14.0) / 8.0 / max_goodput(PLAIN);
    assert!(share > 0.8, "{share}");
}

#[test]
fn runs_are_deterministic_by_seed() {
    let run = |seed| {
        let mut path = TestPath::new_busy(V1, Link { loss: 0.02, ..PLAIN }, seed);
        path.run_until(5.0);
        (path.states, *path.a.stats(), path.a.cwnd())
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7).0, run(8).0);
}

#[test]
fn slow_long_and_fast_short_paths_are_filled() {
    for (bits_per_sec, ms, queue) in [(300_000, 300, 50), (100_000_000, 2, 100)] {
        let link = Link { bits_per_sec, round_trip: Duration::from_millis(ms), queue, ..PLAIN };
        let mut path = TestPath::new_busy(V1, link, 1);
        path.run_until(if ms == 2 { 1.0 } else { 15.0 });
        let until = if ms == 2 { 2.0 } else { 30.0 };
        let share = path.goodput_until(until) / 8.0 / max_goodput(link);
        assert!(share > 0.9, "{share} of {bits_per_sec} b/s");
    }
}

#[test]
fn recovery_continues_while_losses_are_unrepaired() {
    // Linux, `tcp_time_to_recover`. At a tenth lost there nearly always is something.
    let mut path =
        TestPath::new_busy(V1, Link { loss: 0.1, round_trip: Duration::from_millis(80), ..PLAIN }, 1);
    path.run_until(2.0);
    let mut open = 0;
    for hundredth in 201..901 {
        path.run_until(f64::from(hundredth) / 100.0);
        open += u32::from(path.a.phase() == RecoveryPhase::Open);
    }
    assert!(open <= 14, "{open} of 700 times");
    assert!(path.a.stats().fast_retransmits > 20);
}
