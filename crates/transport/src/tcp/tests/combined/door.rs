//! TCP-DOOR beside ECN, CUBIC, PRR, RACK and F-RTO (docs/protocols/tcp-door.md).

use super::*;
use crate::tcp::{DoorConfig, Frto, HeldVariables, RecoveryPhase};

fn td(t1: f64) -> DoorConfig {
    DoorConfig::temporary_disabling(t1)
}

fn ir(t2: f64) -> DoorConfig {
    DoorConfig::instant_recovery(t2)
}

fn sack(door: DoorConfig) -> Config {
    plain().with_sack().with_door(Some(door))
}

/// An ACK that tells of late data.
fn late_data_feedback(ack: i64) -> SegmentBuilder {
    segment(1).ack(ack).door(out_of_order())
}

/// Three duplicates, of what lies behind the segment at `una`.
fn three_duplicates(s: &mut Script, una: i64) {
    for n in 2..=4 {
        s.receive(segment(1).ack(una).sack(una + 1000, una + 1000 * n));
    }
}

// ---- ECN ----

#[test]
fn during_t1_a_mark_halves_the_window_once_and_a_loss_does_not() {
    let mut s = in_flight(sack(td(4.0)).with_ecn(EcnMode::Request), 10);
    s.receive(late_data_feedback(1));
    s.receive(segment(1).ack(1001).ece());
    assert_eq!(window(&s), (5000, 5000));
    three_duplicates(&mut s, 1001);
    assert_eq!((s.endpoint.phase(), window(&s)), (RecoveryPhase::Recovery, (5000, 5000)));
    assert!(s.transmits().starts_with(". 1001:2001 ack 1"));
    s.receive(segment(1).ack(10_001));
    assert_eq!(window(&s), (5000, 5000), "and nothing grows");
    assert_eq!((s.endpoint.stats().mark_reactions, s.endpoint.stats().door.held_fast_retransmits), (1, 1));
}

#[test]
fn a_mark_reduces_the_window_in_a_recovery_held_by_t1() {
    for (t1_is_over, ends) in [(false, 100), (true, 1400)] {
        let mut s = in_flight(sack(td(4.0)).with_ecn(EcnMode::Request), 10);
        s.receive(late_data_feedback(1));
        three_duplicates(&mut s, 1);
        assert_eq!((s.endpoint.phase(), window(&s)), (RecoveryPhase::Recovery, (10_000, UNLIMITED)));
        s.receive(segment(1).ack(1).ece().sack(1001, 5001));
        assert_eq!((s.endpoint.phase(), window(&s)), (RecoveryPhase::Recovery, (5000, 5000)));
        s.receive(segment(1).ack(1).ece().sack(1001, 6001));
        assert_eq!(window(&s), (5000, 5000), "once");
        s.now = Instant::from_millis(ends);
        s.receive(segment(1).ack(10_001).ece());
        assert_eq!((s.endpoint.phase(), window(&s)), (RecoveryPhase::Open, (5000, 5000)), "{t1_is_over}");
        assert!(s.transmits().starts_with("ECT W 10001:11001"));
    }
}

#[test]
fn a_mark_reduces_the_window_after_a_timeout_held_by_t1() {
    let mut s = in_flight(sack(td(4.0)).with_ecn(EcnMode::Request), 10);
    s.receive(late_data_feedback(1));
    s.run_until(450);
    assert_eq!((s.endpoint.phase(), window(&s)), (RecoveryPhase::Loss, (10_000, UNLIMITED)));
    s.receive(segment(1).ack(1001).ece());
    assert_eq!(window(&s), (5000, 5000));
    s.receive(segment(1).ack(10_001).ece());
    assert_eq!(
        (s.endpoint.phase(), window(&s)),
        (RecoveryPhase::Open, (5000, 5000)),
        "the peer has not heard yet"
    );
    assert!(s.transmits().starts_with("ECT W 10001:11001"));
    assert_eq!(s.endpoint.stats().mark_reactions, 1);
}

#[test]
fn undoing_an_earlier_reduction_keeps_that_of_a_mark_during_t1() {
    let mut s = in_flight(with_dsack_undo(sack(td(4.0))).with_ecn(EcnMode::Request), 10);
    for right in [2001, 3001, 4001] {
        s.receive(segment(1).ack(1).sack(1001, right));
        s.transmits();
    }
    assert_eq!((s.endpoint.phase(), window(&s)), (RecoveryPhase::Recovery, (5000, 5000)));
    s.receive(segment(1).ack(1).sack(1001, 10_001));
    assert!(s.transmits().starts_with("ECT W 12001:13001"), "new data in recovery");
    s.receive(late_data_feedback(12_001));
    assert_eq!((s.endpoint.phase(), window(&s)), (RecoveryPhase::Open, (5000, 5000)));
    s.transmits();
    s.receive(segment(1).ack(13_001).ece());
    assert_eq!(window(&s), (2500, 2500), "of four in flight and one acknowledged");
    s.receive(segment(1).ack(13_001).sack(1, 1001));
    assert_eq!((s.endpoint.stats().spurious_recoveries, window(&s)), (0, (2500, 2500)));
}

#[test]
fn instant_recovery_undoes_no_reduction_by_or_beside_a_mark() {
    let mut s = in_flight(sack(ir(8.0)).with_ecn(EcnMode::Request), 10);
    s.receive(segment(1).ack(1001).ece());
    s.receive(late_data_feedback(1001));
    assert_eq!((s.endpoint.stats().door.instant_recoveries, window(&s)), (0, (5000, 5000)));
    let mut s = in_flight(sack(ir(8.0)).with_ecn(EcnMode::Request), 10);
    three_duplicates(&mut s, 1);
    s.receive(segment(1).ack(1).ece().sack(1001, 5001));
    s.receive(late_data_feedback(1));
    assert_eq!((s.endpoint.phase(), window(&s)), (RecoveryPhase::Recovery, (5000, 5000)));
    assert_eq!(s.endpoint.stats().door.instant_recoveries, 0);
}

#[test]
fn an_ack_with_feedback_and_ecn_echo_undoes_and_halves() {
    let mut s = in_flight(sack(DoorConfig::all(4.0, 4.0)).with_ecn(EcnMode::Request), 10);
    three_duplicates(&mut s, 1);
    assert_eq!(window(&s), (5000, 5000));
    s.receive(late_data_feedback(1).ece());
    assert_eq!((s.endpoint.phase(), window(&s)), (RecoveryPhase::Open, (5000, 5000)));
    let stats = s.endpoint.stats();
    assert_eq!((stats.door.instant_recoveries, stats.mark_reactions), (1, 1));
    s.receive(segment(1).ack(1).sack(1001, 5001));
    assert_eq!(
        (s.endpoint.phase(), window(&s)),
        (RecoveryPhase::Recovery, (5000, 5000)),
        "what is lost is resent"
    );
}

// ---- CUBIC ----

#[test]
fn instant_recovery_restores_the_state_of_cubic() {
    // RFC 9438 §4.9.2. At 1400 ms cwnd is W(1.1 s); the loss after it would make 0.85 of that the plateau.
    let (mut s, mut una) = congestion_avoidance_after_loss(sack(ir(1.0)), 10);
    let before = s.endpoint.cwnd();
    assert!(cwnd_is_about(&s, 45_461), "{before}");
    s.run_until(1500);
    three_duplicates(&mut s, una);
    assert_eq!(
        (s.endpoint.phase(), window(&s)),
        (RecoveryPhase::Recovery, (31_499, 31_499)),
        "0.7 of 45,000 rounded down"
    );
    s.receive(late_data_feedback(una));
    assert_eq!((s.endpoint.phase(), window(&s)), (RecoveryPhase::Open, (before, 35_000)));
    s.transmits();
    for round in 12..=20 {
        acknowledge_flight(&mut s, 400 + 100 * round, &mut una);
    }
    assert!(cwnd_is_about(&s, 49_224), "W(2.1 s): {}", s.endpoint.cwnd());
    assert_eq!(s.endpoint.stats().door.instant_recoveries, 1, "the loss at 200 ms is older than T2");
}

#[test]
fn time_held_by_t1_does_not_count_for_cubic() {
    let (mut s, mut una) = congestion_avoidance_after_loss(sack(td(4.0)), 5);
    assert!(cwnd_is_about(&s, 41_707), "W(0.6 s)");
    let held = window(&s);
    // The RTO is the least, 200 ms: T1 lasts until 1800 ms. Something is in flight all the time.
    for n in 10..=22 {
        una += s.endpoint.flight_size() as i64 - 1000;
        s.receive_at(100 * n, if n == 10 { late_data_feedback(una) } else { segment(1).ack(una) });
        s.transmits();
        assert_eq!(window(&s) == held, n < 18, "{n}");
    }
    // The fifth ACK of five: W(1.0 s), not W(1.9 s), which is 48,788.
    assert!(s.endpoint.cwnd().abs_diff(44_828) < 100, "{}", s.endpoint.cwnd());
}

// ---- PRR ----

#[test]
fn a_recovery_held_by_t1_ends_with_its_initial_window() {
    // PRR ends a recovery at ssthresh, which nothing has set.
    for (held, ends) in
        [(HeldVariables::Everything, 401), (HeldVariables::Reductions, 401), (HeldVariables::Reductions, 200)]
    {
        let mut s = in_flight(prr().with_door(Some(DoorConfig { held, ..td(1.0) })), 10);
        s.receive(late_data_feedback(1));
        three_duplicates(&mut s, 1);
        assert!(s.transmits().starts_with(". 1:1001 ack 1"));
        assert_eq!((s.endpoint.phase(), window(&s)), (RecoveryPhase::Recovery, (10_000, UNLIMITED)));
        let end = 1 + s.endpoint.flight_size() as i64;
        s.now = Instant::from_millis(ends);
        s.receive(segment(1).ack(end));
        assert_eq!(
            (s.endpoint.phase(), window(&s)),
            (RecoveryPhase::Open, (10_000, UNLIMITED)),
            "{held:?} at {ends}"
        );
    }
}

#[test]
fn instant_recovery_during_prr_restores_the_window() {
    let mut s = in_flight(prr().with_door(Some(ir(1.0))), 20);
    three_duplicates(&mut s, 1);
    assert_eq!(window(&s), (16_556, 10_000));
    s.transmits();
    s.receive(late_data_feedback(1));
    assert_eq!((s.endpoint.phase(), window(&s)), (RecoveryPhase::Open, (20_000, UNLIMITED)));
}

// ---- RACK ----

#[test]
fn during_t1_a_rack_loss_is_retransmitted_without_reduction() {
    let mut s = in_flight(plain().with_rack().with_door(Some(td(4.0))), 10);
    s.receive_at(200, late_data_feedback(1));
    s.receive(segment(1).ack(1).sack(1001, 4001));
    assert!(s.transmits().starts_with(". 1:1001 ack 1"));
    assert_eq!((s.endpoint.phase(), window(&s)), (RecoveryPhase::Recovery, (10_000, UNLIMITED)));
    assert_eq!(s.endpoint.stats().door.held_fast_retransmits, 1);
}

// ---- F-RTO ----

/// Ten segments in flight, and the timer has expired at 400 ms.
fn timed_out(door: DoorConfig) -> Script {
    let spurious = SpuriousDetection { frto: Frto::FirstTimeout, ..SpuriousDetection::NONE };
    let mut s = in_flight(Config { spurious, ..sack(door) }, 10);
    assert!(s.run_until(450).starts_with("400: . 1:1001 ack 1"));
    assert_eq!(s.endpoint.cwnd(), 1000);
    s
}

#[test]
fn instant_recovery_of_a_timeout_stops_frto() {
    // What was sent before the change of the route may be lost with it, and is resent at the restored window (A11).
    let mut s = timed_out(ir(1.0));
    s.receive(late_data_feedback(1001));
    let said = s.transmits();
    assert!(said.starts_with(". 1001:2001 ack 1") && said.contains("; . 9001:10001 ack 1"), "{said}");
    assert_eq!((s.endpoint.phase(), window(&s)), (RecoveryPhase::Open, (11_000, UNLIMITED)));
    s.receive(segment(1).ack(1001).sack(2001, 3001));
    assert_eq!(window(&s), (11_000, UNLIMITED), "a duplicate does not show that the timeout was right");
}

#[test]
fn an_frto_undo_during_t1_is_held() {
    let mut s = timed_out(td(4.0));
    s.receive(late_data_feedback(1));
    s.receive(segment(1).ack(1001));
    assert_eq!(s.transmits().split(';').count(), 2, "new data, to find out");
    s.receive(segment(1).ack(2001));
    assert_eq!((s.endpoint.phase(), window(&s)), (RecoveryPhase::Open, (10_000, UNLIMITED)));
    assert_eq!(s.endpoint.stats().spurious_timeouts, 1);
    s.receive(segment(1).ack(3001));
    assert_eq!(window(&s), (10_000, UNLIMITED));
}
