//! R1 and R2.

use super::{ALL, in_flight, out_of_order, stats, with_door};
use crate::tcp::tests::script::{Script, SegmentBuilder, segment};
use crate::tcp::{
    Config, DisabledRetransmissions, DoorConfig, HeldTimerBackoff, HeldVariables, RecoveryPhase,
    RepeatedEvent, UndoReach, Variant,
};
use hopline_core::{Duration, StateMachine};
use hopline_wire::tcp::DoorReport;

fn td(t1: f64) -> DoorConfig {
    DoorConfig::temporary_disabling(t1)
}

fn ir(t2: f64) -> DoorConfig {
    DoorConfig::instant_recovery(t2)
}

/// An ACK that tells of late data and acknowledges nothing.
fn late_data_feedback() -> SegmentBuilder {
    segment(1).ack(1).door(out_of_order())
}

/// Three duplicates that report 1001:2001, 1001:3001, 1001:4001.
fn three_duplicates(s: &mut Script) {
    for right in [2001, 3001, 4001] {
        s.receive(segment(1).ack(1).sack(1001, right));
    }
}

/// `cwnd`, `ssthresh`, RTO in milliseconds.
fn state(s: &Script) -> (u32, u32, u64) {
    (s.endpoint.cwnd(), s.endpoint.ssthresh(), s.endpoint.rto().as_millis())
}

const UNTOUCHED: (u32, u32, u64) = (10_000, 1 << 30, 300);

// ---- R1 ----

#[test]
fn duplicates_during_t1_change_nothing_and_the_segment_is_resent() {
    let mut s = in_flight(with_door(td(2.0)), ALL);
    s.receive(late_data_feedback());
    three_duplicates(&mut s);
    assert!(s.transmits().starts_with(". 1:1001 ack 1"));
    assert_eq!((state(&s), s.endpoint.phase()), (UNTOUCHED, RecoveryPhase::Recovery));
    assert_eq!((stats(&s).disable_periods, stats(&s).held_fast_retransmits), (1, 1));
}

#[test]
fn a_timeout_during_t1_changes_nothing_and_the_segments_are_resent() {
    let mut s = in_flight(with_door(td(4.0)), ALL);
    s.receive(late_data_feedback());
    let said = s.run_until(400);
    assert!(said.starts_with("400: . 1:1001 ack 1") && said.contains(". 9001:10001 ack 1"), "{said}");
    assert_eq!((state(&s), s.endpoint.backoff()), (UNTOUCHED, 1));
    assert!(s.run_until(700).starts_with("700: . 1:1001 ack 1"), "after as long again");
    assert_eq!((state(&s), stats(&s).held_timeouts), (UNTOUCHED, 2));
}

#[test]
fn t1_is_a_multiple_of_the_rto_and_then_ends() {
    for (t1, spared) in [(1.0, 0), (1.01, 1), (2.0, 1), (2.01, 2), (4.0, 3)] {
        let mut s = in_flight(with_door(td(t1)), ALL);
        s.receive(late_data_feedback());
        s.run_until(3000);
        // The timer expires at 400, 700, 1000 while the back-off stays, T1 begins at 100.
        assert_eq!(stats(&s).held_timeouts, spared, "T1 {t1}");
        assert!(s.endpoint.backoff() > 1 && s.endpoint.cwnd() == 1000);
    }
}

#[test]
fn the_unit_is_the_rto_without_back_off() {
    let mut s = in_flight(with_door(td(2.0)), ALL);
    s.run_until(1100);
    assert_eq!((s.endpoint.backoff(), s.endpoint.rto()), (4, Duration::from_millis(1200)));
    s.receive(late_data_feedback());
    s.run_until(1699);
    three_duplicates(&mut s);
    s.receive(segment(1).ack(1001));
    assert_eq!(s.endpoint.cwnd(), 1000, "held until 1700");
    s.run_until(1701);
    s.receive(segment(1).ack(2001));
    assert_eq!(s.endpoint.cwnd(), 2000);
}

#[test]
fn during_t1_the_window_and_rtt_estimate_are_constant_by_default() {
    for (held, expected) in
        [(HeldVariables::Everything, (10_000, 300)), (HeldVariables::Reductions, (20_000, 350))]
    {
        let mut s = in_flight(with_door(DoorConfig { held, ..td(2.0) }), ALL);
        s.receive(late_data_feedback());
        s.run_until(300);
        for n in 1..=10 {
            s.receive(segment(1).ack(1 + 1000 * n));
        }
        // One sample of 200 ms: srtt 112.5, rttvar 62.5.
        let (cwnd, _, rto) = state(&s);
        assert_eq!((cwnd, rto), (expected.0, if held == HeldVariables::Everything { 300 } else { rto }));
        assert_eq!(s.endpoint.rto() > Duration::from_millis(300), held == HeldVariables::Reductions);
    }
}

#[test]
fn with_held_reductions_the_window_may_grow() {
    let mut s = in_flight(with_door(DoorConfig { held: HeldVariables::Reductions, ..td(8.0) }), ALL);
    s.receive(late_data_feedback());
    three_duplicates(&mut s);
    s.transmits();
    assert_eq!(state(&s), UNTOUCHED);
    s.receive(segment(1).ack(10_001));
    s.transmits();
    assert_eq!(s.endpoint.ssthresh(), 1 << 30);
    s.run_until(1000);
    assert!(stats(&s).held_timeouts > 0 && s.endpoint.cwnd() >= 10_000);
}

#[test]
fn a_recovery_that_began_during_t1_ends_without_a_reduction_after_it() {
    let reno = |config: Config| Config { mss: 1008, ..config };
    for config in
        [with_door(td(1.0)), reno(with_door(td(1.0)).with_newreno()), reno(with_door(td(1.0)).with_reno())]
    {
        let mut s =
            in_flight(Config { initial_ssthresh: crate::tcp::InitialSsthresh::Segments(5), ..config }, ALL);
        assert_eq!((s.endpoint.cwnd(), s.endpoint.ssthresh()), (10_000, 5000));
        s.receive(late_data_feedback());
        three_duplicates(&mut s);
        assert_eq!(s.endpoint.phase(), RecoveryPhase::Recovery);
        s.transmits();
        s.now = hopline_core::Instant::from_millis(401);
        s.receive(segment(1).ack(5001));
        s.transmits();
        s.receive(segment(1).ack(10_001));
        assert_eq!(s.endpoint.phase(), RecoveryPhase::Open);
        assert!(s.endpoint.cwnd() >= 10_000, "{:?}: {}", s.endpoint.config().variant, s.endpoint.cwnd());
        assert_eq!(s.endpoint.ssthresh(), 5000);
    }
}

#[test]
fn after_t1_the_window_is_reduced_as_always() {
    let mut s = in_flight(with_door(td(1.0)), ALL);
    s.receive(late_data_feedback());
    s.now = hopline_core::Instant::from_millis(400);
    three_duplicates(&mut s);
    assert_eq!((s.endpoint.phase(), s.endpoint.cwnd()), (RecoveryPhase::Recovery, 5000));
}

#[test]
fn an_event_during_t1_restarts_it_by_default() {
    for (again, spared) in [(RepeatedEvent::Restart, 2), (RepeatedEvent::Continue, 1)] {
        let mut s = in_flight(with_door(DoorConfig { repeated_event: again, ..td(1.5) }), ALL);
        s.receive(late_data_feedback());
        s.run_until(390);
        s.receive(segment(1).ack(1).door(DoorReport { adsn: Some(1), ..out_of_order() }));
        s.run_until(800);
        // T1 ends at 840 or at 550; the timer expires at 400 and at 700.
        assert_eq!((stats(&s).held_timeouts, stats(&s).disable_periods), (spared, 1), "{again:?}");
    }
}

#[test]
fn state_is_held_until_the_end_of_the_restarted_t1() {
    // The second event comes at 390 ms. T1 of 450 ms ends at 550 if it goes on, and at 840 or later if it begins anew.
    let combinations = [
        (RepeatedEvent::Restart, HeldVariables::Everything, (10_000, 10_000, 1)),
        (RepeatedEvent::Restart, HeldVariables::Reductions, (11_000, 11_000, 1)),
        (RepeatedEvent::Continue, HeldVariables::Everything, (10_000, 5_000, 0)),
        (RepeatedEvent::Continue, HeldVariables::Reductions, (11_000, 5_500, 0)),
    ];
    for (again, held, expected) in combinations {
        for (resends, held_timer) in [
            (DisabledRetransmissions::Normal, HeldTimerBackoff::Constant),
            (DisabledRetransmissions::Normal, HeldTimerBackoff::Exponential),
            (DisabledRetransmissions::FirstSegment, HeldTimerBackoff::Constant),
            (DisabledRetransmissions::FirstSegment, HeldTimerBackoff::Exponential),
        ] {
            let door =
                DoorConfig { repeated_event: again, held, retransmissions: resends, held_timer, ..td(1.5) };
            let mut s = in_flight(with_door(door), ALL);
            s.receive(late_data_feedback());
            s.now = hopline_core::Instant::from_millis(350);
            s.receive(segment(1).ack(2001));
            let grown = s.endpoint.cwnd();
            s.now = hopline_core::Instant::from_millis(390);
            s.receive(segment(1).ack(2001).door(DoorReport { adsn: Some(1), ..out_of_order() }));
            s.transmits();
            s.now = hopline_core::Instant::from_millis(600);
            for right in [4001, 5001, 6001] {
                s.receive(segment(1).ack(2001).sack(3001, right));
            }
            assert!(s.transmits().contains(". 2001:3001"), "the third duplicate has it resent: {door:?}");
            let seen = (grown, s.endpoint.cwnd(), stats(&s).held_fast_retransmits);
            assert_eq!((seen, stats(&s).disable_periods), (expected, 1), "{door:?}");
        }
    }
}

#[test]
fn the_timer_backs_off_during_t1_if_configured() {
    let mut s =
        in_flight(with_door(DoorConfig { held_timer: HeldTimerBackoff::Exponential, ..td(8.0) }), ALL);
    s.receive(late_data_feedback());
    assert_eq!(s.run_until(1100).matches(": . 1:1001").count(), 2, "at 400 and 1000");
    assert_eq!((s.endpoint.backoff(), s.endpoint.cwnd()), (4, 10_000));
}

// ---- R2 ----

#[test]
fn a_halving_less_than_t2_old_is_undone() {
    for variant in [
        with_door(ir(0.5)).variant,
        Config::modern().with_newreno().variant,
        Config::modern().with_reno().variant,
    ] {
        let mut s = in_flight(Config { variant, ..with_door(ir(0.5)) }, ALL);
        three_duplicates(&mut s);
        s.transmits();
        assert_eq!(s.endpoint.ssthresh(), 5000);
        s.run_until(249);
        s.receive(late_data_feedback());
        assert_eq!(state(&s), UNTOUCHED);
        assert_eq!((s.endpoint.phase(), stats(&s).instant_recoveries), (RecoveryPhase::Open, 1));
        s.receive(late_data_feedback());
        assert_eq!(stats(&s).instant_recoveries, 1, "once");
    }
}

#[test]
fn a_halving_older_than_t2_stands() {
    let mut s = in_flight(with_door(ir(0.5)), ALL);
    three_duplicates(&mut s);
    s.transmits();
    s.run_until(251);
    s.receive(late_data_feedback());
    assert_eq!((s.endpoint.cwnd(), s.endpoint.phase()), (5000, RecoveryPhase::Recovery));
    assert_eq!(stats(&s).instant_recoveries, 0);
}

#[test]
fn a_late_duplicate_undoes_the_preceding_fast_retransmit() {
    let mut s = in_flight(with_door(DoorConfig::sender_detection(2.0, 1.0)), ALL);
    for (adsn, right) in [(0, 2001), (2, 4001), (3, 5001)] {
        s.receive(segment(1).ack(1).adsn(adsn).sack(1001, right));
    }
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Recovery);
    s.transmits();
    s.receive(segment(1).ack(1).adsn(1).sack(1001, 3001));
    assert_eq!(state(&s), UNTOUCHED);
    assert_eq!((stats(&s).ack_events, stats(&s).instant_recoveries, stats(&s).disable_periods), (1, 1, 1));
}

#[test]
fn a_timeout_is_undone_with_its_backoff_and_losses_are_retransmitted() {
    let mut s = in_flight(with_door(ir(1.0)), ALL);
    assert!(s.run_until(500).starts_with("400: . 1:1001"));
    assert_eq!((s.endpoint.cwnd(), s.endpoint.backoff()), (1000, 2));
    s.receive(segment(1).ack(1001).door(out_of_order()));
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Open);
    assert_eq!((s.endpoint.cwnd(), s.endpoint.backoff()), (11_000, 1), "and grown by this ACK");
    let said = s.transmits();
    assert!(said.starts_with(". 1001:2001 ack 1"), "{said}");
    assert!(said.contains("; . 9001:10001 ack 1"), "{said}");
}

#[test]
fn the_first_or_last_reduction_within_t2_is_undone() {
    for (reach, t2, cwnd, backoff) in
        [(UndoReach::All, 3.0, 10_000, 1), (UndoReach::All, 1.0, 1000, 2), (UndoReach::Latest, 3.0, 1000, 2)]
    {
        let mut s = in_flight(with_door(DoorConfig { reach, ..ir(t2) }), ALL);
        s.run_until(1100);
        assert_eq!(s.endpoint.stats().timeouts, 2, "at 400 and 1000");
        s.receive(late_data_feedback());
        assert_eq!((s.endpoint.cwnd(), s.endpoint.backoff()), (cwnd, backoff), "{reach:?} {t2}");
    }
}

#[test]
fn without_a_reduction_there_is_nothing_to_undo() {
    let mut s = in_flight(with_door(ir(8.0)), ALL);
    s.receive(late_data_feedback());
    assert_eq!((state(&s), stats(&s).instant_recoveries, stats(&s).disable_periods), (UNTOUCHED, 0, 0));
}

#[test]
fn the_restored_state_is_held() {
    let mut s = in_flight(with_door(DoorConfig::all(4.0, 1.0)), ALL);
    s.run_until(500);
    s.receive(late_data_feedback());
    assert_eq!(state(&s), UNTOUCHED);
    assert!(s.run_until(1000).contains("800: . 1:1001 ack 1"), "300 ms after the event");
    assert_eq!((state(&s), stats(&s).held_timeouts), (UNTOUCHED, 1));
    assert_eq!(s.endpoint.poll_timeout().unwrap().0, hopline_core::Instant::from_millis(1100));
}

#[test]
fn the_restored_window_respects_the_clamp() {
    let config = Config { window_clamp: Some(4), ..with_door(ir(8.0)) };
    let mut s = super::connected(config, super::peer(ALL));
    s.endpoint.send(s.now, hopline_core::Length(1 << 40)).unwrap();
    s.transmits();
    s.run_until(450);
    s.receive(segment(1).ack(1).door(out_of_order()));
    assert_eq!((s.endpoint.cwnd(), stats(&s).instant_recoveries), (4000, 1));
}

#[test]
fn instant_recovery_works_with_newreno() {
    let config = Config {
        variant: Variant::NewReno(crate::tcp::congestion::NewRenoConfig::RFC6582),
        ..with_door(td(2.0))
    };
    let mut s = in_flight(config, ALL);
    s.receive(late_data_feedback());
    for _ in 0..2 {
        s.receive(segment(1).ack(1));
    }
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Recovery);
    assert_eq!((s.endpoint.cwnd(), s.endpoint.ssthresh()), (13_000, 1 << 30), "three segments have left");
}

#[test]
fn events_of_both_kinds_within_a_timeout_are_matched() {
    let mut s = in_flight(with_door(DoorConfig::all(2.0, 1.0)), ALL);
    for (adsn, right) in [(0, 2001), (2, 4001), (1, 3001)] {
        s.receive(segment(1).ack(1).adsn(adsn).sack(1001, right));
    }
    assert_eq!((stats(&s).ack_events, stats(&s).matched_ack_events), (1, 0));
    s.receive(late_data_feedback());
    assert_eq!(
        (stats(&s).matched_ack_events, stats(&s).reported_events, stats(&s).matched_reported_events),
        (1, 1, 1)
    );
}
