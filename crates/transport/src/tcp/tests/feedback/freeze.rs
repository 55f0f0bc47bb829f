//! Freezing, common to all schemes.

use super::*;
use crate::tcp::{
    AtcpConfig, BusConfig, CloseReason, ElfnConfig, Event, FixedRtoConfig, Frto, Probing, Spurious, State,
    TcpFConfig, Timer,
};

fn freezing() -> [(Feedback, FeedbackState); 4] {
    [
        (Feedback::TcpF(TcpFConfig::PAPER), FeedbackState::Snooze),
        (Feedback::Elfn(ElfnConfig::PAPER), FeedbackState::StandBy),
        (Feedback::Atcp(AtcpConfig::PAPER), FeedbackState::Persist),
        (Feedback::Bus(BusConfig::PAPER), FeedbackState::Frozen),
    ]
}

#[test]
fn a_frozen_sender_keeps_window_threshold_and_timeout_and_has_one_timer() {
    for (feedback, frozen) in freezing() {
        let mut s = sending(feedback);
        let state = |s: &Script| (s.endpoint.cwnd(), s.endpoint.ssthresh(), s.endpoint.rto());
        let before = state(&s);
        s.loses_route_at(200);
        assert_eq!((s.stands(), state(&s)), (frozen, before));
        assert_eq!(s.endpoint.poll_timeout().map(|(_, timer)| timer), Some(Timer::Route));
        assert_eq!((s.endpoint.stats().feedback.freezes, s.endpoint.stats().timeouts), (1, 0));
    }
}

#[test]
fn whoever_is_told_twice_is_frozen_once() {
    for (feedback, frozen) in freezing() {
        let mut s = sending(feedback);
        s.loses_route_at(200);
        let due = s.endpoint.poll_timeout();
        s.loses_route_at(250);
        assert_eq!((s.endpoint.poll_timeout(), s.stands()), (due, frozen));
        assert_eq!(s.endpoint.stats().feedback.freezes, 1);
    }
}

#[test]
fn a_route_lost_while_nothing_is_in_flight_stops_nothing() {
    for (feedback, _) in freezing() {
        let mut s = Script::connected(Config { feedback, ..plain() });
        s.told(Signal::RouteLost);
        assert_eq!((s.stands(), s.endpoint.poll_timeout()), (FeedbackState::Active, None));
        s.endpoint.send(s.now, Length(1000)).unwrap();
        assert_eq!(s.says(), ". 1:1001 ack 1");
    }
}

#[test]
fn signals_are_harmless_in_every_other_state() {
    for (feedback, _) in freezing() {
        for signal in [Signal::RouteLost, Signal::RouteFound] {
            let mut s = Script::new(Config { feedback, ..plain() });
            s.told(signal);
            s.endpoint.connect(s.now).unwrap();
            s.told(signal);
            assert_eq!(s.runs_to(1000), "0: S 0; 1000: S 0", "the handshake goes on");
            s.endpoint.abort(s.now);
            s.told(signal);
            assert_eq!((s.says(), s.stands()), (String::new(), FeedbackState::Active));
        }
    }
}

#[test]
fn who_uses_no_scheme_or_fixed_rto_hears_nothing() {
    for feedback in [Feedback::None, Feedback::FixedRto(FixedRtoConfig::PAPER)] {
        let mut s = sending(feedback);
        let before = s.endpoint.poll_timeout();
        s.loses_route_at(200);
        s.told(Signal::RouteFound);
        assert_eq!((s.endpoint.poll_timeout(), s.says()), (before, String::new()));
    }
}

#[test]
fn acknowledgments_that_were_under_way_count_and_release_nothing() {
    for (feedback, frozen) in freezing() {
        let mut s = sending(feedback);
        s.loses_route_at(150);
        s.hears(seg(1).ack(3001));
        assert_eq!((s.says(), s.stands()), (String::new(), frozen));
        for _ in 0..5 {
            s.hears(seg(1).ack(3001));
        }
        assert_eq!((s.says(), s.endpoint.stats().fast_retransmits), (String::new(), 0), "nor do duplicates");
        assert_eq!(s.endpoint.poll_timeout().map(|(_, timer)| timer), Some(Timer::Route));
    }
}

#[test]
fn if_everything_arrived_after_all_the_sender_goes_on() {
    for (feedback, _) in freezing() {
        let mut s = sending(feedback);
        s.loses_route_at(150);
        s.hears(seg(1).ack(10_001));
        assert_eq!(s.stands(), FeedbackState::Active);
        assert!(s.says().starts_with(". 10001:11001 ack 1"));
    }
}

#[test]
fn what_the_peer_sends_is_acknowledged_all_the_while() {
    for (feedback, frozen) in freezing() {
        let mut s = sending(feedback);
        s.loses_route_at(150);
        s.hears(seg(1).ack(1).data(500));
        assert_eq!((s.says(), s.stands()), (". 10001 ack 501".to_owned(), frozen));
        assert_eq!(s.reads(), 500);
    }
}

#[test]
fn the_time_without_a_route_is_no_round_trip() {
    for (feedback, _) in freezing() {
        let mut s = sending(feedback);
        let srtt = s.endpoint.srtt();
        s.loses_route_at(150);
        s.runs_to(2500);
        s.told(Signal::RouteFound);
        s.hears(seg(1).ack(10_001));
        assert_eq!(s.endpoint.srtt(), srtt);
    }
}

#[test]
fn time_frozen_is_added_up() {
    let mut s = sending(Feedback::TcpF(TcpFConfig::PAPER));
    s.loses_route_at(200);
    s.runs_to(500);
    assert_eq!(s.endpoint.time_frozen(s.now), ms(300), "while it lasts");
    s.told(Signal::RouteFound);
    s.says();
    s.hears_at(600, seg(1).ack(10_001));
    s.says();
    s.loses_route_at(650);
    s.runs_to(700);
    s.endpoint.abort(s.now);
    assert_eq!(s.endpoint.stats().feedback.frozen, ms(350));
    assert_eq!(s.endpoint.time_frozen(Instant::from_millis(900)), ms(350));
}

#[test]
fn the_time_frozen_before_a_reset_counts() {
    let mut s = sending(Feedback::TcpF(TcpFConfig::PAPER));
    s.loses_route_at(200);
    s.runs_to(450);
    s.hears(seg(1).rst());
    assert_eq!((s.stands(), s.endpoint.stats().feedback.frozen), (FeedbackState::Active, ms(250)));
}

#[test]
fn what_is_resent_on_the_new_route_is_no_question_to_f_rto() {
    let spurious = Spurious { frto: Frto::FirstTimeout, ..Spurious::UNDETECTED };
    let feedback = Feedback::TcpF(TcpFConfig::PAPER);
    let mut s = Script::sending(Config { feedback, spurious, ..plain() }, 1 << 40);
    s.says();
    assert_eq!(s.runs_to(450), "400: . 1:1001 ack 1");
    s.hears_at(500, seg(1).ack(1001));
    assert_eq!(s.says(), ". 10001:11001 ack 1; . 11001:12001 ack 1", "F-RTO is at work");
    s.loses_route_at(550);
    s.told(Signal::RouteFound);
    assert_eq!(s.says(), ". 1001:2001 ack 1; . 2001:3001 ack 1", "as far as the window allows");
    s.hears_at(650, seg(1).ack(3001));
    assert!(s.says().starts_with(". 3001:4001 ack 1"));
}

#[test]
fn a_fin_in_flight_is_probed_as_data_is() {
    let elfn = Feedback::Elfn(ElfnConfig::PAPER);
    let mut s = Script::connected(Config { feedback: elfn, ..plain() });
    s.endpoint.close(s.now).unwrap();
    assert_eq!(s.says(), "F 1 ack 1");
    s.loses_route_at(200);
    assert_eq!(s.runs_to(2500), "2200: F 1 ack 1");
    s.hears(seg(1).ack(2));
    assert_eq!((s.stands(), s.state()), (FeedbackState::Active, State::FinWait2));
}

#[test]
fn probes_end_when_plain_tcp_would_have_given_up() {
    let feedback = Feedback::Elfn(ElfnConfig { probing: Probing::Every(ms(100)), ..ElfnConfig::PAPER });
    let config = Config { feedback, data_retries: Some(3), ..plain() };
    let mut s = Script::sending(config, 1000);
    s.says();
    s.loses_route_at(200);
    // 300 + 600 + 1200 + 2400 ms
    let said = s.runs_to(4600);
    assert_eq!((said.matches(". 1:1001").count(), s.events()), (44, vec![]));
    s.runs_to(4700);
    assert_eq!(s.events(), [Event::Closed(CloseReason::TimedOut)]);
    assert_eq!(s.endpoint.stats().feedback.frozen, ms(4500));
    assert_eq!(s.endpoint.poll_timeout(), None);
}

#[test]
fn whoever_never_gives_up_probes_for_ever() {
    let config = Config { feedback: Feedback::Elfn(ElfnConfig::PAPER), data_retries: None, ..plain() };
    let mut s = Script::sending(config, 1000);
    s.says();
    s.loses_route_at(200);
    assert_eq!(s.runs_to(1_000_200).matches(". 1:1001").count(), 500);
}
