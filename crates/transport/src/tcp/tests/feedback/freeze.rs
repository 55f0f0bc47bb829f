//! Freezing, common to all schemes.

use super::*;
use crate::tcp::{
    AtcpConfig, BusConfig, CloseReason, ElfnConfig, Event, FixedRtoConfig, Frto, ProbeSchedule,
    SpuriousDetection, State, TcpFConfig, Timer,
};

fn freezing() -> [(RouteFeedback, FeedbackState); 4] {
    [
        (RouteFeedback::TcpF(TcpFConfig::PAPER), FeedbackState::Snooze),
        (RouteFeedback::Elfn(ElfnConfig::PAPER), FeedbackState::StandBy),
        (RouteFeedback::Atcp(AtcpConfig::PAPER), FeedbackState::Persist),
        (RouteFeedback::Bus(BusConfig::PAPER), FeedbackState::Frozen),
    ]
}

#[test]
fn a_frozen_sender_keeps_window_threshold_and_timeout_and_has_one_timer() {
    for (feedback, frozen) in freezing() {
        let mut s = sending(feedback);
        let state = |s: &Script| (s.endpoint.cwnd(), s.endpoint.ssthresh(), s.endpoint.rto());
        let before = state(&s);
        s.lose_route_at(200);
        assert_eq!((s.feedback_state(), state(&s)), (frozen, before));
        assert_eq!(s.endpoint.poll_timeout().map(|(_, timer)| timer), Some(Timer::Route));
        assert_eq!((s.endpoint.stats().feedback.freezes, s.endpoint.stats().timeouts), (1, 0));
    }
}

#[test]
fn a_second_notification_does_not_freeze_again() {
    for (feedback, frozen) in freezing() {
        let mut s = sending(feedback);
        s.lose_route_at(200);
        let due = s.endpoint.poll_timeout();
        s.lose_route_at(250);
        assert_eq!((s.endpoint.poll_timeout(), s.feedback_state()), (due, frozen));
        assert_eq!(s.endpoint.stats().feedback.freezes, 1);
    }
}

#[test]
fn a_route_failure_without_data_in_flight_does_not_freeze() {
    for (feedback, _) in freezing() {
        let mut s = Script::connected(Config { feedback, ..plain() });
        s.signal(Signal::RouteLost);
        assert_eq!((s.feedback_state(), s.endpoint.poll_timeout()), (FeedbackState::Active, None));
        s.endpoint.send(s.now, Length(1000)).unwrap();
        assert_eq!(s.transmits(), ". 1:1001 ack 1");
    }
}

#[test]
fn signals_are_harmless_in_every_other_state() {
    for (feedback, _) in freezing() {
        for signal in [Signal::RouteLost, Signal::RouteFound] {
            let mut s = Script::new(Config { feedback, ..plain() });
            s.signal(signal);
            s.endpoint.connect(s.now).unwrap();
            s.signal(signal);
            assert_eq!(s.run_until(1000), "0: S 0; 1000: S 0", "the handshake goes on");
            s.endpoint.abort(s.now);
            s.signal(signal);
            assert_eq!((s.transmits(), s.feedback_state()), (String::new(), FeedbackState::Active));
        }
    }
}

#[test]
fn without_a_scheme_notifications_are_ignored() {
    for feedback in [RouteFeedback::None, RouteFeedback::FixedRto(FixedRtoConfig::PAPER)] {
        let mut s = sending(feedback);
        let before = s.endpoint.poll_timeout();
        s.lose_route_at(200);
        s.signal(Signal::RouteFound);
        assert_eq!((s.endpoint.poll_timeout(), s.transmits()), (before, String::new()));
    }
}

#[test]
fn acks_in_flight_are_processed_without_sending() {
    for (feedback, frozen) in freezing() {
        let mut s = sending(feedback);
        s.lose_route_at(150);
        s.receive(segment(1).ack(3001));
        assert_eq!((s.transmits(), s.feedback_state()), (String::new(), frozen));
        for _ in 0..5 {
            s.receive(segment(1).ack(3001));
        }
        assert_eq!(
            (s.transmits(), s.endpoint.stats().fast_retransmits),
            (String::new(), 0),
            "nor do duplicates"
        );
        assert_eq!(s.endpoint.poll_timeout().map(|(_, timer)| timer), Some(Timer::Route));
    }
}

#[test]
fn acks_of_all_data_end_the_freeze() {
    for (feedback, _) in freezing() {
        let mut s = sending(feedback);
        s.lose_route_at(150);
        s.receive(segment(1).ack(10_001));
        assert_eq!(s.feedback_state(), FeedbackState::Active);
        assert!(s.transmits().starts_with(". 10001:11001 ack 1"));
    }
}

#[test]
fn a_frozen_sender_acknowledges_received_data() {
    for (feedback, frozen) in freezing() {
        let mut s = sending(feedback);
        s.lose_route_at(150);
        s.receive(segment(1).ack(1).data(500));
        assert_eq!((s.transmits(), s.feedback_state()), (". 10001 ack 501".to_owned(), frozen));
        assert_eq!(s.read_all(), 500);
    }
}

#[test]
fn the_time_frozen_gives_no_rtt_sample() {
    for (feedback, _) in freezing() {
        let mut s = sending(feedback);
        let srtt = s.endpoint.srtt();
        s.lose_route_at(150);
        s.run_until(2500);
        s.signal(Signal::RouteFound);
        s.receive(segment(1).ack(10_001));
        assert_eq!(s.endpoint.srtt(), srtt);
    }
}

#[test]
fn time_frozen_is_added_up() {
    let mut s = sending(RouteFeedback::TcpF(TcpFConfig::PAPER));
    s.lose_route_at(200);
    s.run_until(500);
    assert_eq!(s.endpoint.time_frozen(s.now), ms(300), "while it lasts");
    s.signal(Signal::RouteFound);
    s.transmits();
    s.receive_at(600, segment(1).ack(10_001));
    s.transmits();
    s.lose_route_at(650);
    s.run_until(700);
    s.endpoint.abort(s.now);
    assert_eq!(s.endpoint.stats().feedback.frozen, ms(350));
    assert_eq!(s.endpoint.time_frozen(Instant::from_millis(900)), ms(350));
}

#[test]
fn the_time_frozen_before_a_reset_counts() {
    let mut s = sending(RouteFeedback::TcpF(TcpFConfig::PAPER));
    s.lose_route_at(200);
    s.run_until(450);
    s.receive(segment(1).rst());
    assert_eq!((s.feedback_state(), s.endpoint.stats().feedback.frozen), (FeedbackState::Active, ms(250)));
}

#[test]
fn retransmissions_on_the_new_route_do_not_start_frto() {
    let spurious = SpuriousDetection { frto: Frto::FirstTimeout, ..SpuriousDetection::NONE };
    let feedback = RouteFeedback::TcpF(TcpFConfig::PAPER);
    let mut s = Script::sending(Config { feedback, spurious, ..plain() }, 1 << 40);
    s.transmits();
    assert_eq!(s.run_until(450), "400: . 1:1001 ack 1");
    s.receive_at(500, segment(1).ack(1001));
    assert_eq!(s.transmits(), ". 10001:11001 ack 1; . 11001:12001 ack 1", "F-RTO is at work");
    s.lose_route_at(550);
    s.signal(Signal::RouteFound);
    assert_eq!(s.transmits(), ". 1001:2001 ack 1; . 2001:3001 ack 1", "as far as the window allows");
    s.receive_at(650, segment(1).ack(3001));
    assert!(s.transmits().starts_with(". 3001:4001 ack 1"));
}

#[test]
fn a_fin_in_flight_is_probed_as_data_is() {
    let elfn = RouteFeedback::Elfn(ElfnConfig::PAPER);
    let mut s = Script::connected(Config { feedback: elfn, ..plain() });
    s.endpoint.close(s.now).unwrap();
    assert_eq!(s.transmits(), "F 1 ack 1");
    s.lose_route_at(200);
    assert_eq!(s.run_until(2500), "2200: F 1 ack 1");
    s.receive(segment(1).ack(2));
    assert_eq!((s.feedback_state(), s.state()), (FeedbackState::Active, State::FinWait2));
}

#[test]
fn probes_end_when_plain_tcp_would_have_given_up() {
    let feedback =
        RouteFeedback::Elfn(ElfnConfig { probing: ProbeSchedule::Every(ms(100)), ..ElfnConfig::PAPER });
    let config = Config { feedback, data_retries: Some(3), ..plain() };
    let mut s = Script::sending(config, 1000);
    s.transmits();
    s.lose_route_at(200);
    // 300 + 600 + 1200 + 2400 ms
    let said = s.run_until(4600);
    assert_eq!((said.matches(". 1:1001").count(), s.events()), (44, vec![]));
    s.run_until(4700);
    assert_eq!(s.events(), [Event::Closed(CloseReason::TimedOut)]);
    assert_eq!(s.endpoint.stats().feedback.frozen, ms(4500));
    assert_eq!(s.endpoint.poll_timeout(), None);
}

#[test]
fn without_a_retry_limit_probes_continue() {
    let config = Config { feedback: RouteFeedback::Elfn(ElfnConfig::PAPER), data_retries: None, ..plain() };
    let mut s = Script::sending(config, 1000);
    s.transmits();
    s.lose_route_at(200);
    assert_eq!(s.run_until(1_000_200).matches(". 1:1001").count(), 500);
}
