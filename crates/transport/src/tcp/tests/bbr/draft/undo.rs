//! Cases 18 and 19: losses that turn out to be spurious.

use super::super::{Fate, Supply, TestPath};
use super::{BbrState, LONG, Snapshot, without_probe_rtt};
use crate::tcp::congestion::bbr::UndoState;
use hopline_core::Duration;

/// Runs to the second probe, and treats the next data packets so. Returns the states before and after the loss.
fn lose_in_probe_up(fates: Vec<Fate>) -> (TestPath, Snapshot, Snapshot) {
    let mut path = TestPath::new_recorded(without_probe_rtt(), LONG, Supply::Bulk);
    path.run_to_state(20.0, BbrState::ProbeBwUp);
    path.run_to_state(20.0, BbrState::ProbeBwDown);
    path.run_to_state(20.0, BbrState::ProbeBwUp);
    path.treat_next(fates);
    let lost = path.run_to(5.0, "the end of UP", |now| now.var.state != BbrState::ProbeBwUp);
    let before = *path.acks().iter().rfind(|ack| ack.var.state == BbrState::ProbeBwUp).unwrap();
    (path, before, lost)
}

/// Checks that the loss ended the probe and saved the state before, and that its undoing leads back to the probe.
fn check_undo(path: &mut TestPath, before: &Snapshot, lost: &Snapshot) {
    assert!(!before.var.full_bw_now);
    assert_eq!(lost.var.state, BbrState::ProbeBwDown);
    assert!(lost.var.bounds.inflight_longterm.is_some(), "the loss has set a bound");
    assert_eq!(lost.var.undo_state, Some(UndoState::Up));
    assert_eq!(lost.var.undo_bounds, before.var.bounds);
    let undone = path.run_to(5.0, "the undoing", |now| now.var.undo_state.is_none());
    assert_eq!(undone.var.state, BbrState::ProbeBwRefill, "the way back to a probe");
    assert_eq!(undone.var.bounds, before.var.bounds);
    assert!(undone.var.cwnd >= before.var.cwnd.min(2 * undone.var.bdp), "{before:?} {undone:?}");
    let up = path.run_to(5.0, "the end of REFILL", |now| now.var.state != BbrState::ProbeBwRefill);
    assert_eq!(up.var.state, BbrState::ProbeBwUp);
}

#[test]
fn case_18_a_spurious_fast_recovery_is_undone() {
    // Ten segments arrive 60 ms later, behind 200 that were sent after them.
    let (mut path, before, lost) = lose_in_probe_up(vec![Fate::Delay(Duration::from_millis(60)); 10]);
    check_undo(&mut path, &before, &lost);
    assert_eq!((path.a.stats().timeouts, path.a.stats().spurious_recoveries), (0, 1));
}

#[test]
fn case_19_a_spurious_timeout_is_undone() {
    // All that is sent until the timer expires arrives 900 ms later, the retransmission included.
    let (mut path, before, lost) = lose_in_probe_up(vec![Fate::Delay(Duration::from_millis(900)); 3000]);
    path.fates.clear();
    assert_eq!(path.a.stats().timeouts, 1);
    check_undo(&mut path, &before, &lost);
    assert_eq!(path.a.stats().spurious_timeouts, 1);
}
