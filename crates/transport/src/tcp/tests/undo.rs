//! Reductions are remembered and undone.

use super::script::{Script, mss_1000_sack, plain, seg};
use crate::tcp::congestion::undo::{Cause, Resume, Which};
use crate::tcp::{Config, InitialSsthresh, Phase, RepeatedTimeout};
use hopline_core::{Duration, Instant, Length, Machine};

fn ms(n: u64) -> Instant {
    Instant::from_millis(n)
}

/// Ten segments in flight since 100 ms.
fn in_flight(config: Config) -> Script {
    let mut s = Script::sending(config, 1 << 40);
    s.says();
    s
}

fn three_duplicates(s: &mut Script, una: i64) {
    for _ in 0..3 {
        s.hears(seg(1).ack(una));
    }
}

#[test]
fn an_undone_fast_retransmit_leaves_the_window_as_if_it_had_not_been() {
    for config in [plain().with_reno(), plain().with_newreno()] {
        let mut s = in_flight(Config { initial_ssthresh: InitialSsthresh::Segments(20), ..config });
        three_duplicates(&mut s, 1);
        s.says();
        assert_eq!((s.endpoint.ssthresh(), s.endpoint.phase()), (5000, Phase::Recovery));
        let undone = s.endpoint.undo(s.now, Which::Latest, Resume::Resending).unwrap();
        assert_eq!((undone.at, undone.before.cause), (ms(100), Cause::FastRetransmit));
        assert_eq!((s.endpoint.cwnd(), s.endpoint.ssthresh()), (10_000, 20_000));
        assert_eq!(s.endpoint.phase(), Phase::Open);
        s.hears(seg(1).ack(10_001));
        assert_eq!(s.endpoint.cwnd(), 11_000, "an ACK like any other");
    }
}

#[test]
fn an_undone_sack_recovery_can_begin_again_for_what_is_still_lost() {
    let mut s = Script::connected_with(plain().with_sack(), mss_1000_sack());
    s.endpoint.send(s.now, Length(1 << 40)).unwrap();
    s.says();
    s.hears(seg(1).ack(1).sack(1001, 4001));
    assert_eq!(s.says(), ". 1:1001 ack 1");
    assert_eq!(s.endpoint.cwnd(), 5000);
    assert!(s.endpoint.undo(s.now, Which::Latest, Resume::Resending).is_some());
    assert_eq!((s.endpoint.cwnd(), s.endpoint.phase()), (10_000, Phase::Open));
    s.hears(seg(1).ack(4001).sack(5001, 8001));
    s.says();
    s.hears(seg(1).ack(4001).sack(5001, 9001));
    assert!(s.says().starts_with(". 4001:5001 ack 1"));
    assert_eq!(s.endpoint.phase(), Phase::Recovery);
}

#[test]
fn an_undone_timeout_gives_back_window_and_timer_and_goes_on_resending() {
    let mut s = in_flight(plain());
    assert_eq!(s.runs_to(450), "400: . 1:1001 ack 1");
    assert_eq!((s.endpoint.cwnd(), s.endpoint.backoff()), (1000, 2));
    s.hears(seg(1).ack(1001));
    assert_eq!(
        s.endpoint.undo(s.now, Which::Latest, Resume::Resending).unwrap().before.cause,
        Cause::Timeout
    );
    assert_eq!((s.endpoint.cwnd(), s.endpoint.ssthresh()), (10_000, 1 << 30));
    assert_eq!((s.endpoint.backoff(), s.endpoint.phase()), (1, Phase::Open));
    assert_eq!(s.endpoint.poll_timeout().unwrap().0, ms(450) + Duration::from_millis(300));
    let said = s.says();
    assert!(said.starts_with(". 1001:2001 ack 1; . 2001:3001 ack 1"), "{said}");
    assert!(said.ends_with(". 10001:11001 ack 1"), "{said}");
    three_duplicates(&mut s, 1001);
    assert_eq!(s.endpoint.phase(), Phase::Open, "duplicates of what was resent mean nothing");
}

#[test]
fn an_undone_timeout_goes_on_with_new_data_if_nothing_was_lost() {
    let mut s = in_flight(plain());
    s.runs_to(450);
    s.hears(seg(1).ack(1001));
    s.endpoint.undo(s.now, Which::Latest, Resume::NewData).unwrap();
    assert_eq!(s.says(), ". 10001:11001 ack 1");
    three_duplicates(&mut s, 1001);
    assert_eq!(s.says(), ". 1001:2001 ack 1", "a loss after that is repaired as any other");
}

#[test]
fn blocks_reported_after_an_undone_timeout_are_not_resent() {
    let mut s = Script::connected_with(plain().with_sack(), mss_1000_sack());
    s.endpoint.send(s.now, Length(10_000)).unwrap();
    s.says();
    s.runs_to(450);
    s.hears(seg(1).ack(1001).sack(2001, 9001));
    s.endpoint.undo(s.now, Which::Latest, Resume::Resending).unwrap();
    assert_eq!(s.says(), ". 1001:2001 ack 1; . 9001:10001 ack 1");
}

#[test]
fn of_several_reductions_the_oldest_inside_the_time_is_undone_with_those_after_it() {
    let config = Config { repeated_timeout: RepeatedTimeout::Reduce, ..plain() };
    let mut s = in_flight(config);
    s.runs_to(1100);
    assert_eq!(s.endpoint.stats().timeouts, 2, "at 400 and 1000");
    assert_eq!((s.endpoint.ssthresh(), s.endpoint.backoff()), (2000, 4));
    let mut later = s.endpoint.clone();
    let undone = later.undo(s.now, Which::OldestSince(ms(401)), Resume::Resending).unwrap();
    assert_eq!(undone.at, ms(1000));
    assert_eq!((later.cwnd(), later.ssthresh(), later.backoff()), (1000, 5000, 2), "the first one stands");
    assert!(later.undo(s.now, Which::Latest, Resume::Resending).is_some(), "until it is undone");
    assert_eq!((later.cwnd(), later.ssthresh(), later.backoff()), (10_000, 1 << 30, 1));

    let undone = s.endpoint.undo(s.now, Which::OldestSince(ms(400)), Resume::Resending).unwrap();
    assert_eq!(undone.at, ms(400));
    assert_eq!((s.endpoint.cwnd(), s.endpoint.ssthresh(), s.endpoint.backoff()), (10_000, 1 << 30, 1));
    assert!(s.endpoint.undo(s.now, Which::Latest, Resume::Resending).is_none(), "once");
}

#[test]
fn a_reduction_that_is_too_old_stands() {
    let mut s = in_flight(plain());
    s.runs_to(450);
    for which in [Which::LatestSince(ms(401)), Which::OldestSince(ms(401))] {
        assert!(s.endpoint.undo(s.now, which, Resume::NewData).is_none());
    }
    assert_eq!((s.endpoint.cwnd(), s.endpoint.backoff(), s.endpoint.phase()), (1000, 2, Phase::Loss));
    assert_eq!(s.endpoint.reductions.find(Which::LatestSince(ms(400))).unwrap().at, ms(400));
}

#[test]
fn a_window_that_has_grown_beyond_what_it_was_is_kept() {
    let mut s = in_flight(plain());
    three_duplicates(&mut s, 1);
    s.says();
    s.hears(seg(1).ack(10_001));
    while s.endpoint.cwnd() < 12_000 {
        s.says();
        let ack = i64::from(s.last.unwrap().seq.distance_from(s.peer.iss)) + 1000;
        s.hears(seg(1).ack(ack));
    }
    let grown = s.endpoint.cwnd();
    s.endpoint.undo(s.now, Which::Latest, Resume::Resending).unwrap();
    assert_eq!((s.endpoint.cwnd(), s.endpoint.ssthresh()), (grown, 1 << 30));
}

#[test]
fn a_back_off_that_a_sample_has_ended_stays_ended() {
    let mut s = in_flight(plain());
    s.runs_to(1100);
    s.hears(seg(1).ack(10_001));
    s.says();
    s.runs_to(1200);
    s.hears(seg(1).ack(11_001));
    assert_eq!(s.endpoint.backoff(), 1);
    let rto = s.endpoint.rto();
    s.endpoint.undo(s.now, Which::Latest, Resume::Resending).unwrap();
    assert_eq!((s.endpoint.backoff(), s.endpoint.rto()), (1, rto));
}

#[test]
fn the_estimate_that_the_back_off_forgot_comes_back() {
    let mut config = plain();
    config.rto.forget_above = Some(2);
    let mut s = in_flight(config);
    let srtt = s.endpoint.srtt();
    s.runs_to(1100);
    assert_eq!((s.endpoint.backoff(), s.endpoint.srtt()), (4, None));
    s.endpoint.undo(s.now, Which::OldestSince(ms(0)), Resume::Resending).unwrap();
    assert_eq!(s.endpoint.srtt(), srtt);
}

#[test]
fn the_number_of_reductions_remembered_is_bounded() {
    let mut s = in_flight(Config { data_retries: None, ..plain() });
    s.runs_to(20_000_000);
    assert!(s.endpoint.stats().timeouts > 300);
    let undone = std::iter::from_fn(|| s.endpoint.undo(s.now, Which::Latest, Resume::Resending)).count();
    assert_eq!(undone, 16);
    assert_eq!(s.endpoint.cwnd(), 1000, "the first ones are forgotten");
}

/// Fast retransmit at 100 ms, then a time-out.
fn fast_retransmit_and_timeout() -> Script {
    let mut s = in_flight(plain());
    three_duplicates(&mut s, 1);
    assert!(s.says().starts_with(". 1:1001 ack 1"));
    while s.endpoint.phase() == Phase::Recovery {
        s.runs_to(s.now.as_nanos() / 1_000_000 + 50);
    }
    s
}

#[test]
fn what_a_timeout_after_a_fast_retransmit_resends_starts_no_recovery_once_both_are_undone() {
    // RFC 6582 §3.2 (4): "recover" is what had been sent when the timer expired, whichever of the two came first.
    let mut s = fast_retransmit_and_timeout();
    let undone = s.endpoint.undo(s.now, Which::OldestSince(ms(100)), Resume::Resending).unwrap();
    assert_eq!(undone.before.cause, Cause::FastRetransmit);
    s.says();
    s.hears(seg(1).ack(1001));
    s.says();
    three_duplicates(&mut s, 1001);
    assert_eq!(s.endpoint.phase(), Phase::Open, "duplicates of what was resent");
}

#[test]
fn new_data_follow_what_was_sent_before_a_timeout_though_a_fast_retransmit_came_first() {
    let mut s = fast_retransmit_and_timeout();
    s.endpoint.undo(s.now, Which::OldestSince(ms(100)), Resume::NewData).unwrap();
    s.hears(seg(1).ack(1001));
    let said = s.says();
    assert!(!said.contains(". 1001:2001") && said.starts_with(". 1"), "nothing is resent: {said}");
    assert_eq!(s.endpoint.flight_size() % 1000, 0);
    assert!(s.endpoint.flight_size() >= 9000);
}
