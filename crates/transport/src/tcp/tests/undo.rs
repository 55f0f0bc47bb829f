//! Reductions are remembered and undone.

use super::script::{Script, mss_1000_sack, plain, segment};
use crate::tcp::congestion::undo::{AfterUndo, Cause, UndoSelection};
use crate::tcp::{Config, InitialSsthresh, RecoveryPhase, RepeatedTimeout};
use hopline_core::{Duration, Instant, Length, StateMachine};

fn ms(n: u64) -> Instant {
    Instant::from_millis(n)
}

/// Ten segments in flight since 100 ms.
fn in_flight(config: Config) -> Script {
    let mut s = Script::sending(config, 1 << 40);
    s.transmits();
    s
}

fn three_duplicates(s: &mut Script, una: i64) {
    for _ in 0..3 {
        s.receive(segment(1).ack(una));
    }
}

#[test]
fn an_undone_fast_retransmit_restores_the_window() {
    for config in [plain().with_reno(), plain().with_newreno()] {
        let mut s = in_flight(Config { initial_ssthresh: InitialSsthresh::Segments(20), ..config });
        three_duplicates(&mut s, 1);
        s.transmits();
        assert_eq!((s.endpoint.ssthresh(), s.endpoint.phase()), (5000, RecoveryPhase::Recovery));
        let undone =
            s.endpoint.undo_reductions(s.now, UndoSelection::Latest, AfterUndo::Retransmissions).unwrap();
        assert_eq!((undone.at, undone.state.cause), (ms(100), Cause::FastRetransmit));
        assert_eq!((s.endpoint.cwnd(), s.endpoint.ssthresh()), (10_000, 20_000));
        assert_eq!(s.endpoint.phase(), RecoveryPhase::Open);
        s.receive(segment(1).ack(10_001));
        assert_eq!(s.endpoint.cwnd(), 11_000, "an ACK like any other");
    }
}

#[test]
fn an_undone_sack_recovery_can_restart_for_remaining_losses() {
    let mut s = Script::connected_with(plain().with_sack(), mss_1000_sack());
    s.endpoint.send(s.now, Length(1 << 40)).unwrap();
    s.transmits();
    s.receive(segment(1).ack(1).sack(1001, 4001));
    assert_eq!(s.transmits(), ". 1:1001 ack 1");
    assert_eq!(s.endpoint.cwnd(), 5000);
    assert!(s.endpoint.undo_reductions(s.now, UndoSelection::Latest, AfterUndo::Retransmissions).is_some());
    assert_eq!((s.endpoint.cwnd(), s.endpoint.phase()), (10_000, RecoveryPhase::Open));
    s.receive(segment(1).ack(4001).sack(5001, 8001));
    s.transmits();
    s.receive(segment(1).ack(4001).sack(5001, 9001));
    assert!(s.transmits().starts_with(". 4001:5001 ack 1"));
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Recovery);
}

#[test]
fn an_undone_timeout_restores_window_and_timer_and_keeps_retransmitting() {
    let mut s = in_flight(plain());
    assert_eq!(s.run_until(450), "400: . 1:1001 ack 1");
    assert_eq!((s.endpoint.cwnd(), s.endpoint.backoff()), (1000, 2));
    s.receive(segment(1).ack(1001));
    assert_eq!(
        s.endpoint
            .undo_reductions(s.now, UndoSelection::Latest, AfterUndo::Retransmissions)
            .unwrap()
            .state
            .cause,
        Cause::Timeout
    );
    assert_eq!((s.endpoint.cwnd(), s.endpoint.ssthresh()), (10_000, 1 << 30));
    assert_eq!((s.endpoint.backoff(), s.endpoint.phase()), (1, RecoveryPhase::Open));
    assert_eq!(s.endpoint.poll_timeout().unwrap().0, ms(450) + Duration::from_millis(300));
    let said = s.transmits();
    assert!(said.starts_with(". 1001:2001 ack 1; . 2001:3001 ack 1"), "{said}");
    assert!(said.ends_with(". 10001:11001 ack 1"), "{said}");
    three_duplicates(&mut s, 1001);
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Open, "duplicates of what was resent mean nothing");
}

#[test]
fn an_undone_timeout_continues_with_new_data_if_nothing_was_lost() {
    let mut s = in_flight(plain());
    s.run_until(450);
    s.receive(segment(1).ack(1001));
    s.endpoint.undo_reductions(s.now, UndoSelection::Latest, AfterUndo::NewData).unwrap();
    assert_eq!(s.transmits(), ". 10001:11001 ack 1");
    three_duplicates(&mut s, 1001);
    assert_eq!(s.transmits(), ". 1001:2001 ack 1", "a loss after that is repaired as any other");
}

#[test]
fn blocks_reported_after_an_undone_timeout_are_not_resent() {
    let mut s = Script::connected_with(plain().with_sack(), mss_1000_sack());
    s.endpoint.send(s.now, Length(10_000)).unwrap();
    s.transmits();
    s.run_until(450);
    s.receive(segment(1).ack(1001).sack(2001, 9001));
    s.endpoint.undo_reductions(s.now, UndoSelection::Latest, AfterUndo::Retransmissions).unwrap();
    assert_eq!(s.transmits(), ". 1001:2001 ack 1; . 9001:10001 ack 1");
}

#[test]
fn the_oldest_reduction_in_the_period_is_undone_with_later_ones() {
    let config = Config { repeated_timeout: RepeatedTimeout::Reduce, ..plain() };
    let mut s = in_flight(config);
    s.run_until(1100);
    assert_eq!(s.endpoint.stats().timeouts, 2, "at 400 and 1000");
    assert_eq!((s.endpoint.ssthresh(), s.endpoint.backoff()), (2000, 4));
    let mut later = s.endpoint.clone();
    let undone = later
        .undo_reductions(s.now, UndoSelection::OldestSince(ms(401)), AfterUndo::Retransmissions)
        .unwrap();
    assert_eq!(undone.at, ms(1000));
    assert_eq!((later.cwnd(), later.ssthresh(), later.backoff()), (1000, 5000, 2), "the first one stands");
    assert!(
        later.undo_reductions(s.now, UndoSelection::Latest, AfterUndo::Retransmissions).is_some(),
        "until it is undone"
    );
    assert_eq!((later.cwnd(), later.ssthresh(), later.backoff()), (10_000, 1 << 30, 1));

    let undone = s
        .endpoint
        .undo_reductions(s.now, UndoSelection::OldestSince(ms(400)), AfterUndo::Retransmissions)
        .unwrap();
    assert_eq!(undone.at, ms(400));
    assert_eq!((s.endpoint.cwnd(), s.endpoint.ssthresh(), s.endpoint.backoff()), (10_000, 1 << 30, 1));
    assert!(
        s.endpoint.undo_reductions(s.now, UndoSelection::Latest, AfterUndo::Retransmissions).is_none(),
        "once"
    );
}

#[test]
fn a_reduction_that_is_too_old_is_not_undone() {
    let mut s = in_flight(plain());
    s.run_until(450);
    for which in [UndoSelection::LatestSince(ms(401)), UndoSelection::OldestSince(ms(401))] {
        assert!(s.endpoint.undo_reductions(s.now, which, AfterUndo::NewData).is_none());
    }
    assert_eq!((s.endpoint.cwnd(), s.endpoint.backoff(), s.endpoint.phase()), (1000, 2, RecoveryPhase::Loss));
    assert_eq!(s.endpoint.reductions.find(UndoSelection::LatestSince(ms(400))).unwrap().at, ms(400));
}

#[test]
fn an_undo_keeps_a_larger_current_window() {
    let mut s = in_flight(plain());
    three_duplicates(&mut s, 1);
    s.transmits();
    s.receive(segment(1).ack(10_001));
    while s.endpoint.cwnd() < 12_000 {
        s.transmits();
        let ack = i64::from(s.last.unwrap().seq.distance_from(s.peer.iss)) + 1000;
        s.receive(segment(1).ack(ack));
    }
    let grown = s.endpoint.cwnd();
    s.endpoint.undo_reductions(s.now, UndoSelection::Latest, AfterUndo::Retransmissions).unwrap();
    assert_eq!((s.endpoint.cwnd(), s.endpoint.ssthresh()), (grown, 1 << 30));
}

#[test]
fn a_back_off_that_a_sample_has_ended_stays_ended() {
    let mut s = in_flight(plain());
    s.run_until(1100);
    s.receive(segment(1).ack(10_001));
    s.transmits();
    s.run_until(1200);
    s.receive(segment(1).ack(11_001));
    assert_eq!(s.endpoint.backoff(), 1);
    let rto = s.endpoint.rto();
    s.endpoint.undo_reductions(s.now, UndoSelection::Latest, AfterUndo::Retransmissions).unwrap();
    assert_eq!((s.endpoint.backoff(), s.endpoint.rto()), (1, rto));
}

#[test]
fn an_undo_restores_the_rtt_estimate() {
    let mut config = plain();
    config.rto.reset_above = Some(2);
    let mut s = in_flight(config);
    let srtt = s.endpoint.srtt();
    s.run_until(1100);
    assert_eq!((s.endpoint.backoff(), s.endpoint.srtt()), (4, None));
    s.endpoint.undo_reductions(s.now, UndoSelection::OldestSince(ms(0)), AfterUndo::Retransmissions).unwrap();
    assert_eq!(s.endpoint.srtt(), srtt);
}

#[test]
fn the_number_of_reductions_remembered_is_bounded() {
    let mut s = in_flight(Config { data_retries: None, ..plain() });
    s.run_until(20_000_000);
    assert!(s.endpoint.stats().timeouts > 300);
    let undone = std::iter::from_fn(|| {
        s.endpoint.undo_reductions(s.now, UndoSelection::Latest, AfterUndo::Retransmissions)
    })
    .count();
    assert_eq!(undone, 16);
    assert_eq!(s.endpoint.cwnd(), 1000, "the first ones are forgotten");
}

/// Fast retransmit at 100 ms, then a time-out.
fn fast_retransmit_and_timeout() -> Script {
    let mut s = in_flight(plain());
    three_duplicates(&mut s, 1);
    assert!(s.transmits().starts_with(". 1:1001 ack 1"));
    while s.endpoint.phase() == RecoveryPhase::Recovery {
        s.run_until(s.now.as_nanos() / 1_000_000 + 50);
    }
    s
}

#[test]
fn after_undoing_both_reductions_retransmissions_start_no_recovery() {
    // RFC 6582 §3.2 (4): "recover" is what had been sent when the timer expired, whichever of the two came first.
    let mut s = fast_retransmit_and_timeout();
    let undone = s
        .endpoint
        .undo_reductions(s.now, UndoSelection::OldestSince(ms(100)), AfterUndo::Retransmissions)
        .unwrap();
    assert_eq!(undone.state.cause, Cause::FastRetransmit);
    s.transmits();
    s.receive(segment(1).ack(1001));
    s.transmits();
    three_duplicates(&mut s, 1001);
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Open, "duplicates of what was resent");
}

#[test]
fn after_undoing_both_reductions_new_data_follow() {
    let mut s = fast_retransmit_and_timeout();
    s.endpoint.undo_reductions(s.now, UndoSelection::OldestSince(ms(100)), AfterUndo::NewData).unwrap();
    s.receive(segment(1).ack(1001));
    let said = s.transmits();
    assert!(!said.contains(". 1001:2001") && said.starts_with(". 1"), "nothing is resent: {said}");
    assert_eq!(s.endpoint.flight_size() % 1000, 0);
    assert!(s.endpoint.flight_size() >= 9000);
}
