//! Cases 10, 11 and 20: PROBE_RTT.

use super::super::{PLAIN, Supply, TestPath};
use super::{BbrState, MSS, V3, data_rate, is_near, is_probe_bw};
use hopline_core::Duration;

const INTERVAL: Duration = Duration::from_secs(5);
const HOLD: Duration = Duration::from_millis(200);

#[test]
fn case_10_probe_rtt_begins_after_5_s_and_lasts_200_ms() {
    let mut path = TestPath::new_recorded(V3, PLAIN, Supply::Bulk);
    let start = path.run_to_state(20.0, BbrState::ProbeRtt);
    let last = path.acks().iter().rfind(|ack| ack.at < start.at).unwrap().var;
    assert!(is_probe_bw(last.state) && last.full_bw_reached);
    let since = start.at.since(last.probe_rtt_min_stamp);
    assert!(since > INTERVAL && since < INTERVAL + Duration::from_millis(100), "{since:?}");
    assert!((start.var.cwnd_gain - 0.5).abs() < 1e-9 && (start.var.pacing_gain - 1.0).abs() < 1e-9);
    let small = (start.var.bdp / 2).max(4 * MSS);
    assert!(start.var.cwnd <= small + 1 && start.in_flight > small);
    // The bytes in flight fall to that; from then on it lasts 200 ms, and at least a round.
    let held = path.run_to(1.0, "the small window", |now| now.in_flight <= now.var.bdp / 2);
    assert_eq!(held.var.state, BbrState::ProbeRtt);
    let end = path.run_to(2.0, "the end of PROBE_RTT", |now| now.var.state != BbrState::ProbeRtt);
    assert_eq!(end.var.state, BbrState::ProbeBwCruise);
    let lasted = end.at.since(held.at);
    assert!(lasted > HOLD && lasted < HOLD + Duration::from_millis(50), "{lasted:?}");
    assert!(end.var.round_count > held.var.round_count);
    assert_eq!(end.var.probe_rtt_min_stamp, end.at);
    assert!(end.var.cwnd >= last.cwnd.min(end.var.bdp * 2 - MSS), "{} to {}", last.cwnd, end.var.cwnd);
    path.run_secs(0.1);
    assert!(path.share_of_link(2.0) > 0.95);
    // A round trip longer than 200 ms determines the length.
    let long = super::Link { round_trip: Duration::from_millis(500), ..PLAIN };
    let mut path = TestPath::new_recorded(V3, long, Supply::Bulk);
    path.run_to_state(20.0, BbrState::ProbeRtt);
    let held = path.run_to(2.0, "the small window", |now| now.in_flight <= now.var.bdp / 2);
    let end = path.run_to(2.0, "the end of PROBE_RTT", |now| now.var.state != BbrState::ProbeRtt);
    assert!(end.at.since(held.at) >= long.round_trip, "{:?}", end.at.since(held.at));
    assert!(end.var.round_count > held.var.round_count);
}

#[test]
fn case_11_idleness_takes_the_place_of_probe_rtt() {
    let mut path = TestPath::new_recorded(V3, PLAIN, Supply::Bulk);
    path.run_to_state(20.0, BbrState::ProbeBwCruise);
    let before = path.look().var;
    path.set_supply(Supply::Off);
    path.run_secs(6.0);
    let idle = path.look();
    assert_eq!(idle.in_flight, 0);
    assert!(idle.at > before.probe_rtt_min_stamp + INTERVAL);
    assert!(!idle.var.idle_restart);
    path.set_supply(Supply::Bulk);
    let restart = path.look();
    assert!(restart.in_flight > 0 && restart.var.idle_restart);
    assert!(is_near(restart.var.pacing_rate, 0.99 * restart.var.bw, 1e-6), "at the bandwidth");
    let first = path.run_to(1.0, "an acknowledgment", |now| !now.var.idle_restart);
    assert!(is_probe_bw(first.var.state));
    assert_eq!(first.var.probe_rtt_min_stamp, first.at, "the minimum is measured anew");
    path.run_secs(4.0);
    assert!(path.times_of(BbrState::ProbeRtt).is_empty());
    // Without idleness, ProbeRTT would have been due in the same time.
    let mut busy = TestPath::new_recorded(V3, PLAIN, Supply::Bulk);
    busy.run_until(path.now.since(hopline_core::Instant::ZERO).as_secs_f64());
    assert!(!busy.times_of(BbrState::ProbeRtt).is_empty());
}

#[test]
fn case_20_probe_rtt_during_startup_returns_to_startup() {
    // The application is the limit: STARTUP lasts.
    let mut path = TestPath::new_recorded(V3, PLAIN, Supply::Off);
    path.limit_application(2_000_000);
    let start = path.run_to_state(10.0, BbrState::ProbeRtt);
    assert!(!start.var.full_bw_reached);
    assert!(start.at.as_secs_f64() > 5.0);
    let end = path.run_to(2.0, "the end of PROBE_RTT", |now| now.var.state != BbrState::ProbeRtt);
    assert_eq!(end.var.state, BbrState::Startup);
    assert!((end.var.pacing_gain - 2.77).abs() < 1e-9 && (end.var.cwnd_gain - 2.0).abs() < 1e-9);
    let since = end.at.since(start.at);
    assert!(since > HOLD && since < HOLD + Duration::from_millis(100), "{since:?}");
    // With data it goes on to find the bandwidth.
    assert!(end.var.max_bw < 0.5 * data_rate(PLAIN), "{}", end.var.max_bw);
    path.set_supply(Supply::Bulk);
    let drain = path.run_to_state(3.0, BbrState::Drain);
    assert!(is_near(drain.var.max_bw, data_rate(PLAIN), 0.02));
}
