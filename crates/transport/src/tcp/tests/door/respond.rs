//! R1 and R2.

use super::{ALL, in_flight, out_of_order, stats, with};
use crate::tcp::tests::script::{FromPeer, Script, seg};
use crate::tcp::{Again, Config, DoorConfig, Held, HeldTimer, Phase, Reach, Resends, Variant};
use hopline_core::{Duration, Machine};
use hopline_wire::tcp::DoorReport;

fn td(t1: f64) -> DoorConfig {
    DoorConfig::temporary_disabling(t1)
}

fn ir(t2: f64) -> DoorConfig {
    DoorConfig::instant_recovery(t2)
}

/// An ACK that tells of late data and acknowledges nothing.
fn tells() -> FromPeer {
    seg(1).ack(1).door(out_of_order())
}

/// Three duplicates that report 1001:2001, 1001:3001, 1001:4001.
fn three_duplicates(s: &mut Script) {
    for right in [2001, 3001, 4001] {
        s.hears(seg(1).ack(1).sack(1001, right));
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
    let mut s = in_flight(with(td(2.0)), ALL);
    s.hears(tells());
    three_duplicates(&mut s);
    assert!(s.says().starts_with(". 1:1001 ack 1"));
    assert_eq!((state(&s), s.endpoint.phase()), (UNTOUCHED, Phase::Recovery));
    assert_eq!((stats(&s).disablings, stats(&s).spared_fast_retransmits), (1, 1));
}

#[test]
fn a_timeout_during_t1_changes_nothing_and_the_segments_are_resent() {
    let mut s = in_flight(with(td(4.0)), ALL);
    s.hears(tells());
    let said = s.runs_to(400);
    assert!(said.starts_with("400: . 1:1001 ack 1") && said.contains(". 9001:10001 ack 1"), "{said}");
    assert_eq!((state(&s), s.endpoint.backoff()), (UNTOUCHED, 1));
    assert!(s.runs_to(700).starts_with("700: . 1:1001 ack 1"), "after as long again");
    assert_eq!((state(&s), stats(&s).spared_timeouts), (UNTOUCHED, 2));
}

#[test]
fn t1_is_a_multiple_of_the_rto_and_then_ends() {
    for (t1, spared) in [(1.0, 0), (1.01, 1), (2.0, 1), (2.01, 2), (4.0, 3)] {
        let mut s = in_flight(with(td(t1)), ALL);
        s.hears(tells());
        s.runs_to(3000);
        // The timer expires at 400, 700, 1000 while the back-off stays, T1 begins at 100.
        assert_eq!(stats(&s).spared_timeouts, spared, "T1 {t1}");
        assert!(s.endpoint.backoff() > 1 && s.endpoint.cwnd() == 1000);
    }
}

#[test]
fn the_unit_is_the_rto_without_back_off() {
    let mut s = in_flight(with(td(2.0)), ALL);
    s.runs_to(1100);
    assert_eq!((s.endpoint.backoff(), s.endpoint.rto()), (4, Duration::from_millis(1200)));
    s.hears(tells());
    s.runs_to(1699);
    three_duplicates(&mut s);
    s.hears(seg(1).ack(1001));
    assert_eq!(s.endpoint.cwnd(), 1000, "held until 1700");
    s.runs_to(1701);
    s.hears(seg(1).ack(2001));
    assert_eq!(s.endpoint.cwnd(), 2000);
}

#[test]
fn nothing_grows_and_no_round_trip_counts_during_t1_unless_so_chosen() {
    for (held, expected) in [(Held::Everything, (10_000, 300)), (Held::Reductions, (20_000, 350))] {
        let mut s = in_flight(with(DoorConfig { held, ..td(2.0) }), ALL);
        s.hears(tells());
        s.runs_to(300);
        for n in 1..=10 {
            s.hears(seg(1).ack(1 + 1000 * n));
        }
        // One sample of 200 ms: srtt 112.5, rttvar 62.5.
        let (cwnd, _, rto) = state(&s);
        assert_eq!((cwnd, rto), (expected.0, if held == Held::Everything { 300 } else { rto }));
        assert_eq!(s.endpoint.rto() > Duration::from_millis(300), held == Held::Reductions);
    }
}

#[test]
fn reductions_are_held_off_while_the_window_may_grow() {
    let mut s = in_flight(with(DoorConfig { held: Held::Reductions, ..td(8.0) }), ALL);
    s.hears(tells());
    three_duplicates(&mut s);
    s.says();
    assert_eq!(state(&s), UNTOUCHED);
    s.hears(seg(1).ack(10_001));
    s.says();
    assert_eq!(s.endpoint.ssthresh(), 1 << 30);
    s.runs_to(1000);
    assert!(stats(&s).spared_timeouts > 0 && s.endpoint.cwnd() >= 10_000);
}

#[test]
fn a_recovery_that_began_during_t1_ends_without_a_reduction_after_it() {
    let reno = |config: Config| Config { mss: 1008, ..config };
    for config in [with(td(1.0)), reno(with(td(1.0)).with_newreno()), reno(with(td(1.0)).with_reno())] {
        let mut s =
            in_flight(Config { initial_ssthresh: crate::tcp::InitialSsthresh::Segments(5), ..config }, ALL);
        assert_eq!((s.endpoint.cwnd(), s.endpoint.ssthresh()), (10_000, 5000));
        s.hears(tells());
        three_duplicates(&mut s);
        assert_eq!(s.endpoint.phase(), Phase::Recovery);
        s.says();
        s.now = hopline_core::Instant::from_millis(401);
        s.hears(seg(1).ack(5001));
        s.says();
        s.hears(seg(1).ack(10_001));
        assert_eq!(s.endpoint.phase(), Phase::Open);
        assert!(s.endpoint.cwnd() >= 10_000, "{:?}: {}", s.endpoint.config().variant, s.endpoint.cwnd());
        assert_eq!(s.endpoint.ssthresh(), 5000);
    }
}

#[test]
fn after_t1_the_window_is_reduced_as_always() {
    let mut s = in_flight(with(td(1.0)), ALL);
    s.hears(tells());
    s.now = hopline_core::Instant::from_millis(400);
    three_duplicates(&mut s);
    assert_eq!((s.endpoint.phase(), s.endpoint.cwnd()), (Phase::Recovery, 5000));
}

#[test]
fn an_event_during_t1_begins_it_anew_unless_so_chosen() {
    for (again, spared) in [(Again::Restart, 2), (Again::Continue, 1)] {
        let mut s = in_flight(with(DoorConfig { again, ..td(1.5) }), ALL);
        s.hears(tells());
        s.runs_to(390);
        s.hears(seg(1).ack(1).door(DoorReport { adsn: Some(1), ..out_of_order() }));
        s.runs_to(800);
        // T1 ends at 840 or at 550; the timer expires at 400 and at 700.
        assert_eq!((stats(&s).spared_timeouts, stats(&s).disablings), (spared, 1), "{again:?}");
    }
}

#[test]
fn what_is_held_is_held_until_the_end_of_t1_that_the_second_event_leaves() {
    // The second event comes at 390 ms. T1 of 450 ms ends at 550 if it goes on, and at 840 or later if it begins anew.
    let combinations = [
        (Again::Restart, Held::Everything, (10_000, 10_000, 1)),
        (Again::Restart, Held::Reductions, (11_000, 11_000, 1)),
        (Again::Continue, Held::Everything, (10_000, 5_000, 0)),
        (Again::Continue, Held::Reductions, (11_000, 5_500, 0)),
    ];
    for (again, held, expected) in combinations {
        for (resends, held_timer) in [
            (Resends::AsUsual, HeldTimer::Constant),
            (Resends::AsUsual, HeldTimer::BacksOff),
            (Resends::First, HeldTimer::Constant),
            (Resends::First, HeldTimer::BacksOff),
        ] {
            let door = DoorConfig { again, held, resends, held_timer, ..td(1.5) };
            let mut s = in_flight(with(door), ALL);
            s.hears(tells());
            s.now = hopline_core::Instant::from_millis(350);
            s.hears(seg(1).ack(2001));
            let grown = s.endpoint.cwnd();
            s.now = hopline_core::Instant::from_millis(390);
            s.hears(seg(1).ack(2001).door(DoorReport { adsn: Some(1), ..out_of_order() }));
            s.says();
            s.now = hopline_core::Instant::from_millis(600);
            for right in [4001, 5001, 6001] {
                s.hears(seg(1).ack(2001).sack(3001, right));
            }
            assert!(s.says().contains(". 2001:3001"), "the third duplicate has it resent: {door:?}");
            let seen = (grown, s.endpoint.cwnd(), stats(&s).spared_fast_retransmits);
            assert_eq!((seen, stats(&s).disablings), (expected, 1), "{door:?}");
        }
    }
}

#[test]
fn the_timer_doubles_during_t1_if_so_chosen() {
    let mut s = in_flight(with(DoorConfig { held_timer: HeldTimer::BacksOff, ..td(8.0) }), ALL);
    s.hears(tells());
    assert_eq!(s.runs_to(1100).matches(": . 1:1001").count(), 2, "at 400 and 1000");
    assert_eq!((s.endpoint.backoff(), s.endpoint.cwnd()), (4, 10_000));
}

// ---- R2 ----

#[test]
fn a_halving_less_than_t2_old_is_undone() {
    for variant in
        [with(ir(0.5)).variant, Config::modern().with_newreno().variant, Config::modern().with_reno().variant]
    {
        let mut s = in_flight(Config { variant, ..with(ir(0.5)) }, ALL);
        three_duplicates(&mut s);
        s.says();
        assert_eq!(s.endpoint.ssthresh(), 5000);
        s.runs_to(249);
        s.hears(tells());
        assert_eq!(state(&s), UNTOUCHED);
        assert_eq!((s.endpoint.phase(), stats(&s).recoveries), (Phase::Open, 1));
        s.hears(tells());
        assert_eq!(stats(&s).recoveries, 1, "once");
    }
}

#[test]
fn a_halving_older_than_t2_stands() {
    let mut s = in_flight(with(ir(0.5)), ALL);
    three_duplicates(&mut s);
    s.says();
    s.runs_to(251);
    s.hears(tells());
    assert_eq!((s.endpoint.cwnd(), s.endpoint.phase()), (5000, Phase::Recovery));
    assert_eq!(stats(&s).recoveries, 0);
}

#[test]
fn a_late_duplicate_undoes_what_the_duplicates_before_it_did() {
    let mut s = in_flight(with(DoorConfig::sender_detection(2.0, 1.0)), ALL);
    for (adsn, right) in [(0, 2001), (2, 4001), (3, 5001)] {
        s.hears(seg(1).ack(1).adsn(adsn).sack(1001, right));
    }
    assert_eq!(s.endpoint.phase(), Phase::Recovery);
    s.says();
    s.hears(seg(1).ack(1).adsn(1).sack(1001, 3001));
    assert_eq!(state(&s), UNTOUCHED);
    assert_eq!((stats(&s).ack_events, stats(&s).recoveries, stats(&s).disablings), (1, 1, 1));
}

#[test]
fn a_timeout_is_undone_with_its_back_off_and_what_is_lost_is_resent() {
    let mut s = in_flight(with(ir(1.0)), ALL);
    assert!(s.runs_to(500).starts_with("400: . 1:1001"));
    assert_eq!((s.endpoint.cwnd(), s.endpoint.backoff()), (1000, 2));
    s.hears(seg(1).ack(1001).door(out_of_order()));
    assert_eq!(s.endpoint.phase(), Phase::Open);
    assert_eq!((s.endpoint.cwnd(), s.endpoint.backoff()), (11_000, 1), "and grown by this ACK");
    let said = s.says();
    assert!(said.starts_with(". 1001:2001 ack 1"), "{said}");
    assert!(said.contains("; . 9001:10001 ack 1"), "{said}");
}

#[test]
fn of_several_reductions_the_first_inside_t2_is_undone_or_the_last() {
    for (reach, t2, cwnd, backoff) in
        [(Reach::First, 3.0, 10_000, 1), (Reach::First, 1.0, 1000, 2), (Reach::Latest, 3.0, 1000, 2)]
    {
        let mut s = in_flight(with(DoorConfig { reach, ..ir(t2) }), ALL);
        s.runs_to(1100);
        assert_eq!(s.endpoint.stats().timeouts, 2, "at 400 and 1000");
        s.hears(tells());
        assert_eq!((s.endpoint.cwnd(), s.endpoint.backoff()), (cwnd, backoff), "{reach:?} {t2}");
    }
}

#[test]
fn without_a_reduction_there_is_nothing_to_undo() {
    let mut s = in_flight(with(ir(8.0)), ALL);
    s.hears(tells());
    assert_eq!((state(&s), stats(&s).recoveries, stats(&s).disablings), (UNTOUCHED, 0, 0));
}

#[test]
fn what_was_restored_is_held() {
    let mut s = in_flight(with(DoorConfig::all(4.0, 1.0)), ALL);
    s.runs_to(500);
    s.hears(tells());
    assert_eq!(state(&s), UNTOUCHED);
    assert!(s.runs_to(1000).contains("800: . 1:1001 ack 1"), "300 ms after the event");
    assert_eq!((state(&s), stats(&s).spared_timeouts), (UNTOUCHED, 1));
    assert_eq!(s.endpoint.poll_timeout().unwrap().0, hopline_core::Instant::from_millis(1100));
}

#[test]
fn a_window_clamp_bounds_what_is_restored() {
    let config = Config { window_clamp: Some(4), ..with(ir(8.0)) };
    let mut s = super::connected(config, super::peer(ALL));
    s.endpoint.send(s.now, hopline_core::Length(1 << 40)).unwrap();
    s.says();
    s.runs_to(450);
    s.hears(seg(1).ack(1).door(out_of_order()));
    assert_eq!((s.endpoint.cwnd(), stats(&s).recoveries), (4000, 1));
}

#[test]
fn without_sack_newreno_does_the_same() {
    let config =
        Config { variant: Variant::NewReno(crate::tcp::congestion::NewRenoConfig::RFC6582), ..with(td(2.0)) };
    let mut s = in_flight(config, ALL);
    s.hears(tells());
    for _ in 0..2 {
        s.hears(seg(1).ack(1));
    }
    assert_eq!(s.endpoint.phase(), Phase::Recovery);
    assert_eq!((s.endpoint.cwnd(), s.endpoint.ssthresh()), (13_000, 1 << 30), "three segments have left");
}

#[test]
fn events_in_both_orders_within_a_timeout_count_as_met() {
    let mut s = in_flight(with(DoorConfig::all(2.0, 1.0)), ALL);
    for (adsn, right) in [(0, 2001), (2, 4001), (1, 3001)] {
        s.hears(seg(1).ack(1).adsn(adsn).sack(1001, right));
    }
    assert_eq!((stats(&s).ack_events, stats(&s).met_ack_events), (1, 0));
    s.hears(tells());
    assert_eq!((stats(&s).met_ack_events, stats(&s).told_events, stats(&s).met_told_events), (1, 1, 1));
}
