//! Cases 5, 6, 8, 9, 21 and 22: the ProbeBW cycle.

use super::super::{Link, Supply, TestPath};
use super::{BbrState, LONG, Snapshot, drop_every, is_near, without_probe_rtt};

/// Runs a flow with data until the probe of bandwidth number `probes`.
fn run_to_probe(link: Link, probes: u32) -> (TestPath, Snapshot) {
    let mut path = TestPath::new_recorded(without_probe_rtt(), link, Supply::Bulk);
    for _ in 1..probes {
        path.run_to_state(20.0, BbrState::ProbeBwUp);
        path.run_to_state(20.0, BbrState::ProbeBwDown);
    }
    let up = path.run_to_state(20.0, BbrState::ProbeBwUp);
    (path, up)
}

/// The queue overflows in STARTUP, and so sets the long-term bound.
const SHALLOW: Link = Link { queue: 60, ..LONG };

#[test]
fn case_05_probe_up_ends_on_a_bandwidth_plateau() {
    let (mut path, up) = run_to_probe(LONG, 2);
    assert!(!up.var.full_bw_now);
    let known = path.acks().len();
    let down = path.run_to(10.0, "the end of UP", |now| now.var.state != BbrState::ProbeBwUp);
    assert_eq!(down.var.state, BbrState::ProbeBwDown);
    assert!(down.var.full_bw_now);
    assert_eq!(down.var.full_bw_count, 3);
    let acks = &path.acks()[known..path.acks().len() - 1];
    let probe: Vec<_> = acks.iter().filter(|ack| ack.var.state == BbrState::ProbeBwUp).collect();
    assert!(probe.iter().all(|ack| !ack.var.full_bw_now && ack.var.full_bw_count < 3));
    assert!(probe.iter().any(|ack| ack.in_flight as f64 > 1.25 * ack.var.bdp as f64), "the pipe is full");
    for count in [1, 2] {
        assert!(probe.iter().any(|ack| ack.var.full_bw_count == count), "no round with count {count}");
    }
    let growth = down.var.max_bw / up.var.max_bw;
    assert!((0.98..1.25).contains(&growth), "{growth}");
    assert_eq!(path.a.stats().retransmissions, 0);
}

#[test]
fn case_06_probe_up_ends_on_loss_while_the_application_is_the_limit() {
    for link in [LONG, SHALLOW] {
        let (mut path, _) = run_to_probe(link, 2);
        path.limit_application(8_000_000);
        path.run_secs(1.0);
        let before = path.look().var;
        assert_eq!(before.state, BbrState::ProbeBwUp, "{link:?}");
        assert_eq!(before.bounds.inflight_longterm.is_some(), link.queue == SHALLOW.queue);
        let lost = path.a.stats().rack_losses;
        path.treat_next(drop_every(8, 80));
        let down = path.run_to(2.0, "the end of UP", |now| now.var.state != BbrState::ProbeBwUp);
        // Little is in flight, so DOWN ends with the acknowledgment of its beginning.
        assert_eq!((down.var.state, down.var.cycle_start), (BbrState::ProbeBwCruise, down.at));
        // A flight has some 55 segments: the second loss is above 2 %.
        assert!((1..=2).contains(&(path.a.stats().rack_losses - lost)));
        assert!(down.var.prev_probe_too_high && !down.var.full_bw_now, "loss is the reason");
        // §5.5.10.2: only a flow that is not application-limited lowers the bound.
        assert_eq!(down.var.bounds.inflight_longterm, before.bounds.inflight_longterm);
    }
}

#[test]
fn case_08_probe_down_ends_when_the_bytes_in_flight_have_fallen() {
    // The bound leaves headroom for more than the product, or for less.
    let tight = Link { queue: 20, ..LONG };
    for link in [LONG, SHALLOW, tight] {
        let (mut path, _) = run_to_probe(link, 1);
        let start = path.run_to_state(10.0, BbrState::ProbeBwDown);
        assert!((start.var.pacing_gain - 0.9).abs() < 1e-9);
        let known = path.acks().len();
        let end = path.run_to(10.0, "the end of DOWN", |now| now.var.state != BbrState::ProbeBwDown);
        assert_eq!(end.var.state, BbrState::ProbeBwCruise);
        let headroom = |now: &Snapshot| now.var.inflight_with_headroom.unwrap_or(u64::MAX);
        assert!(end.in_flight <= headroom(&end) && end.in_flight <= end.var.max_bw_inflight, "{end:?}");
        assert_eq!(end.var.inflight_with_headroom.is_some(), link.queue <= SHALLOW.queue);
        assert_eq!(headroom(&end) < end.var.max_bw_inflight, link.queue == tight.queue);
        let acks = &path.acks()[known..];
        let down: Vec<_> = acks.iter().filter(|ack| ack.var.state == BbrState::ProbeBwDown).collect();
        assert!(down.len() > 10, "{link:?}: {}", down.len());
        for ack in down {
            let paced = ack.var.pacing_rate / ack.var.bw;
            assert!(is_near(paced, 0.9 * 0.99, 1e-6), "{paced}");
            assert!(ack.in_flight > headroom(ack) || ack.in_flight > ack.var.max_bw_inflight, "{ack:?}");
        }
    }
}

#[test]
fn case_09_probe_down_ends_after_the_longest_wait() {
    let tight = Link { queue: 20, ..LONG };
    for (link, percent) in [(LONG, 90), (tight, 86)] {
        let (mut path, _) = run_to_probe(link, 2);
        let start = path.run_to_state(10.0, BbrState::ProbeBwDown);
        path.link.queue = 600;
        path.set_rate(LONG.bits_per_sec * percent / 100);
        let known = path.acks().len();
        let end = path.run_to(10.0, "the end of DOWN", |now| now.var.state != BbrState::ProbeBwDown);
        assert_eq!(end.var.state, BbrState::ProbeBwRefill);
        let wait = start.var.bw_probe_wait;
        assert!((2.0..=3.0).contains(&wait.as_secs_f64()), "{wait:?}");
        assert!(end.at > start.var.cycle_start + wait);
        let acks = &path.acks()[known..];
        let down: Vec<_> = acks.iter().filter(|ack| ack.var.state == BbrState::ProbeBwDown).collect();
        assert!(
            down.iter().all(|ack| ack.at <= start.var.cycle_start + wait),
            "with the first acknowledgment"
        );
        let headroom = |ack: &Snapshot| ack.var.inflight_with_headroom.unwrap_or(ack.var.max_bw_inflight);
        assert!(down.iter().all(|ack| ack.in_flight > headroom(ack)));
    }
}

#[test]
fn case_21_loss_in_probe_up_lowers_the_longterm_bound() {
    let (mut path, _) = run_to_probe(SHALLOW, 3);
    // The queue is long from here on: only these losses end the probe.
    path.link.queue = 600;
    let up = path.run_to(10.0, "a probe that lasts", |now| {
        now.var.state == BbrState::ProbeBwUp && !now.var.prev_probe_too_high
    });
    let bound = up.var.bounds.inflight_longterm.expect("STARTUP has set it");
    path.treat_next(drop_every(10, 400));
    let down = path.run_to(10.0, "the end of UP", |now| now.var.state != BbrState::ProbeBwUp);
    assert_eq!(down.var.state, BbrState::ProbeBwDown);
    assert!(!down.var.full_bw_now && down.var.prev_probe_too_high);
    let before = path.acks().iter().rfind(|ack| ack.var.state == BbrState::ProbeBwUp).unwrap().var;
    let (old, new) = (before.bounds.inflight_longterm.unwrap(), down.var.bounds.inflight_longterm.unwrap());
    assert!(old >= bound && new < old, "{bound}, {old}, {new}");
    assert!(new as f64 >= 0.7 * before.target_inflight as f64 - 1.0, "{new} of {}", before.target_inflight);
    // The state changes with the loss that exceeds 2 %, and the later losses of the probe change nothing.
    let later = path.run_to_state(10.0, BbrState::ProbeBwCruise);
    assert!(later.var.bounds.inflight_longterm.unwrap() >= new);
}

#[test]
fn case_22_application_limited_samples_of_refill_do_not_lower_the_bandwidth() {
    let mut path = TestPath::new_recorded(without_probe_rtt(), LONG, Supply::Bulk);
    path.run_to_state(20.0, BbrState::ProbeBwUp);
    let refill = path.run_to_state(20.0, BbrState::ProbeBwRefill);
    path.limit_application(2_000_000);
    let known = path.acks().len();
    let up = path.run_to(10.0, "the end of REFILL", |now| now.var.state != BbrState::ProbeBwRefill);
    assert_eq!(up.var.state, BbrState::ProbeBwUp);
    path.run_secs(2.0);
    // The data of before the pause are delivered within four rounds.
    let acks = path.acks()[known..].iter();
    let late: Vec<_> =
        acks.filter(|ack| ack.at > refill.at + LONG.round_trip * 4).map(|ack| ack.var).collect();
    assert!(late.len() > 50);
    for var in late {
        assert!(var.bw_latest < 0.5 * var.max_bw, "samples are low: {}", var.bw_latest);
        assert!(is_near(var.max_bw, refill.var.max_bw, 0.02), "{} to {}", refill.var.max_bw, var.max_bw);
        let (cycle, newest) = var.newest_bw.unwrap();
        assert!(cycle == var.cycle_count && newest > 0.9 * var.max_bw, "{newest} in cycle {cycle}");
    }
    path.set_supply(Supply::Bulk);
    let down = path.run_to_state(10.0, BbrState::ProbeBwDown);
    assert!(down.var.full_bw_now, "the probe ends on a plateau");
    path.run_to_state(10.0, BbrState::ProbeBwUp);
    assert!(path.share_of_link(2.0) > 0.95);
}
