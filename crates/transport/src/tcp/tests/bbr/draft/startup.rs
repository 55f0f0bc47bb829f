//! Cases 1 to 4 and 7: STARTUP and DRAIN.

use super::super::{Fate, Link, PLAIN, Supply, TestPath};
use super::{BbrState, LONG, V3, data_rate, drop_every, is_near, is_probe_bw, without_probe_rtt};
use hopline_core::Duration;

#[test]
fn case_01_startup_ends_on_a_bandwidth_plateau() {
    let slow = Link { bits_per_sec: 1_000_000, round_trip: Duration::from_millis(300), queue: 200, ..PLAIN };
    let fast = Link { bits_per_sec: 500_000_000, round_trip: Duration::from_millis(2), queue: 400, ..PLAIN };
    for link in [PLAIN, LONG, slow, fast] {
        let mut path = TestPath::new_recorded(V3, link, Supply::Bulk);
        let end = path.run_to(20.0, "the end of STARTUP", |now| now.var.state != BbrState::Startup);
        assert_eq!(end.var.state, BbrState::Drain);
        assert!(end.var.full_bw_now && end.var.full_bw_reached);
        assert_eq!(end.var.full_bw_count, 3);
        assert!(is_near(end.var.max_bw, data_rate(link), 0.02), "{link:?}: {}", end.var.max_bw);
        let startup: Vec<_> =
            path.acks().iter().filter(|ack| ack.var.state == BbrState::Startup).map(|ack| ack.var).collect();
        assert!(startup.iter().all(|var| !var.full_bw_now && !var.full_bw_reached));
        // One round after another without growth; the third one is that of the end.
        let mut rounds: Vec<_> = startup.iter().map(|var| (var.round_count, var.full_bw_count)).collect();
        rounds.dedup_by_key(|(round, _)| *round);
        rounds.push((end.var.round_count, end.var.full_bw_count));
        let last: Vec<_> = rounds[rounds.len() - 4..].to_vec();
        let first = last[0].0;
        assert_eq!(last, [(first, 0), (first + 1, 1), (first + 2, 2), (first + 3, 3)], "{link:?}");
        // The rates of these rounds stay within a quarter, and those of the rounds before grew by more.
        let rate_at = |round| startup.iter().rfind(|var| var.round_count == round).unwrap().max_bw;
        assert!(end.var.max_bw < 1.25 * rate_at(first));
        assert!(rate_at(first - 1) > 1.25 * rate_at(first - 2), "{link:?}");
        assert_eq!(path.a.stats().retransmissions, 0);
    }
}

#[test]
fn case_02_startup_ends_on_loss_while_the_application_is_the_limit() {
    let run = |link: Link, bits_per_sec, fates: Vec<Fate>| {
        let mut path = TestPath::new_recorded(V3, link, Supply::Off);
        path.limit_application(bits_per_sec);
        path.run_secs(2.0);
        assert_eq!(path.look().var.state, BbrState::Startup);
        path.treat_next(fates);
        let acks = path.run_secs(2.0);
        (path, acks)
    };
    // 8 Mb/s over 80 ms: 55 segments a round. One of eight is more than six ranges and more than 2 %.
    let (_, acks) = run(LONG, 8_000_000, drop_every(8, 1200).collect());
    let mut startup = acks.iter().filter(|ack| ack.var.state == BbrState::Startup);
    assert!(startup.all(|ack| ack.var.full_bw_count == 0), "all rounds are application-limited");
    let first = acks.iter().position(|ack| ack.var.state != BbrState::Startup).expect("STARTUP has ended");
    let (before, end) = (acks[first - 1].var, acks[first].var);
    assert_eq!((before.full_bw_now, before.full_bw_reached), (false, false));
    assert_eq!((end.full_bw_now, end.full_bw_reached), (true, true));
    // Little is in flight, so DRAIN may be over with the same acknowledgment.
    assert!(end.state == BbrState::Drain || is_probe_bw(end.state), "{:?}", end.state);
    let bound = end.bounds.inflight_longterm.expect("a safe volume in flight");
    assert!(bound >= end.bdp, "{bound} of {}", end.bdp);
    // One run of ten is above 2 %, but is one range. One of 80, in rounds of 690 segments, is more than six ranges, but
    // is below 2 %.
    let fast = Link { bits_per_sec: 200_000_000, queue: 3000, ..LONG };
    for (link, bits_per_sec, fates) in
        [(LONG, 8_000_000, vec![Fate::Drop; 10]), (fast, 100_000_000, drop_every(80, 10_000).collect())]
    {
        let (path, _) = run(link, bits_per_sec, fates);
        assert!(path.a.stats().retransmissions >= 10);
        assert_eq!(path.look().var.state, BbrState::Startup, "{link:?}");
    }
}

#[test]
fn case_03_drain_ends_when_the_bytes_in_flight_have_fallen_to_the_bdp() {
    for link in [PLAIN, LONG] {
        let mut path = TestPath::new_recorded(V3, link, Supply::Bulk);
        let start = path.run_to_state(20.0, BbrState::Drain);
        assert!((start.var.pacing_gain - 0.5).abs() < 1e-9);
        assert!(is_near(start.var.pacing_rate, 0.5 * 0.99 * start.var.bw, 1e-6));
        assert!(start.in_flight as f64 > 1.5 * start.var.inflight as f64, "STARTUP has built a queue");
        let end = path.run_to(20.0, "the end of DRAIN", |now| now.var.state != BbrState::Drain);
        assert!(is_probe_bw(end.var.state), "{:?}", end.var.state);
        assert!(end.in_flight <= end.var.inflight, "{} of {}", end.in_flight, end.var.inflight);
        assert!(end.var.round_count <= start.var.round_count + 3);
        let drain = path.acks().iter().filter(|ack| ack.var.state == BbrState::Drain);
        assert!(drain.clone().count() > 10);
        drain.for_each(|ack| assert!(ack.in_flight > ack.var.inflight, "{ack:?}"));
    }
}

#[test]
fn case_04_drain_ends_after_three_rounds() {
    // A bandwidth reduced by 10 % still drains within three rounds. At 40 %, half the estimated bandwidth is too much.
    let run = |percent: u64| {
        let mut path = TestPath::new_recorded(V3, LONG, Supply::Bulk);
        let start = path.run_to_state(20.0, BbrState::Drain);
        path.set_rate(LONG.bits_per_sec * percent / 100);
        let end = path.run_to(20.0, "the end of DRAIN", |now| now.var.state != BbrState::Drain);
        (start, end, path)
    };
    let (start, end, _) = run(90);
    assert!(end.in_flight <= end.var.inflight && end.var.round_count <= start.var.round_count + 3);
    let (start, end, path) = run(40);
    assert_eq!(start.var.drain_start_round, Some(start.var.round_count));
    assert_eq!(end.var.round_count, start.var.round_count + 4, "after three whole rounds");
    assert_eq!(end.var.state, BbrState::ProbeBwDown);
    assert!(end.in_flight > end.var.inflight, "{} of {}", end.in_flight, end.var.inflight);
    let drain = path.acks().iter().filter(|ack| ack.var.state == BbrState::Drain);
    drain.for_each(|ack| assert!(ack.in_flight > ack.var.inflight, "{ack:?}"));
}

#[test]
fn case_07_startup_and_probe_up_last_while_the_application_is_the_limit() {
    let mut path = TestPath::new_recorded(without_probe_rtt(), LONG, Supply::Off);
    path.limit_application(8_000_000);
    let acks = path.run_secs(30.0);
    assert!(acks.len() > 1000 && acks.iter().all(|ack| ack.var.state == BbrState::Startup));

    let mut path = TestPath::new_recorded(without_probe_rtt(), LONG, Supply::Bulk);
    path.run_to_state(20.0, BbrState::ProbeBwUp);
    path.limit_application(8_000_000);
    let acks = path.run_secs(30.0);
    assert!(acks.len() > 1000 && acks.iter().all(|ack| ack.var.state == BbrState::ProbeBwUp));
    assert_eq!(path.a.stats().retransmissions, 0);
    // With data again, the probe goes on and ends.
    path.set_supply(Supply::Bulk);
    path.run_to_state(2.0, BbrState::ProbeBwDown);
}
