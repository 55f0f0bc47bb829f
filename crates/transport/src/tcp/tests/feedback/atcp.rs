//! ATCP (Liu, Singh 2001, §III).

use super::*;
use crate::tcp::congestion::SackConfig;
use crate::tcp::{AtcpConfig, EcnMode, ProbeSchedule, RecoveryPhase, Variant};

fn atcp() -> RouteFeedback {
    RouteFeedback::Atcp(AtcpConfig::PAPER)
}

#[test]
fn an_unreachable_destination_puts_tcp_into_persist_mode() {
    let mut s = sending(atcp());
    s.lose_route_at(200);
    assert_eq!(s.feedback_state(), FeedbackState::Persist);
    assert_eq!(s.run_until(2400), "500: . 1:1001 ack 1; 1100: . 1:1001 ack 1; 2300: . 1:1001 ack 1");
    let every =
        RouteFeedback::Atcp(AtcpConfig { probing: ProbeSchedule::Every(ms(1000)), ..AtcpConfig::PAPER });
    let mut s = sending(every);
    s.lose_route_at(200);
    assert_eq!(s.run_until(2400), "1200: . 1:1001 ack 1; 2200: . 1:1001 ack 1");
}

#[test]
fn on_the_new_route_the_window_grows_from_one_segment() {
    let mut s = sending(atcp());
    s.lose_route_at(200);
    s.run_until(550);
    s.receive(segment(1).ack(1001));
    assert_eq!(
        (s.feedback_state(), s.endpoint.cwnd(), s.endpoint.ssthresh()),
        (FeedbackState::Active, 2000, 1 << 30)
    );
    assert_eq!(s.transmits(), ". 1001:2001 ack 1; . 2001:3001 ack 1");
}

#[test]
fn a_third_duplicate_without_a_mark_is_repaired_without_a_reduction() {
    let mut s = sending(atcp());
    let mut said = Vec::new();
    for _ in 0..3 {
        s.receive(segment(1).ack(1));
        said.push(s.transmits());
    }
    assert_eq!(said[..2], [". 10001:11001 ack 1", ". 11001:12001 ack 1"]);
    assert!(said[2].starts_with(". 1:1001 ack 1"), "{}", said[2]);
    assert_eq!((s.feedback_state(), s.endpoint.ssthresh()), (FeedbackState::Loss, 1 << 30));
    s.receive_at(200, segment(1).ack(12_001));
    s.transmits();
    assert_eq!(s.feedback_state(), FeedbackState::Active);
    assert!(s.endpoint.cwnd() >= 10_000, "{}", s.endpoint.cwnd());
    assert_eq!((s.endpoint.stats().feedback.unreduced_losses, s.endpoint.stats().fast_retransmits), (1, 1));
}

#[test]
fn several_losses_are_repaired_from_what_the_peer_reports() {
    let mut s = sending_with_sack(atcp());
    s.receive(segment(1).ack(1).sack(2001, 5001).sack(6001, 10_001));
    let said = s.transmits();
    assert!(said.starts_with(". 1:1001 ack 1; . 1001:2001 ack 1; . 5001:6001 ack 1"), "{said}");
    assert_eq!(
        (s.feedback_state(), s.endpoint.cwnd(), s.endpoint.ssthresh()),
        (FeedbackState::Loss, 10_000, 1 << 30)
    );
}

#[test]
fn a_timeout_without_a_mark_resends_with_the_window_as_it_was() {
    let mut s = sending(atcp());
    let said = s.run_until(400);
    assert!(
        said.starts_with("400: . 1:1001 ack 1; . 1001:2001") && said.ends_with(". 9001:10001 ack 1"),
        "{said}"
    );
    assert_eq!(
        (s.feedback_state(), s.endpoint.cwnd(), s.endpoint.backoff()),
        (FeedbackState::Loss, 10_000, 2)
    );
    s.receive_at(500, segment(1).ack(10_001));
    assert_eq!(
        (s.feedback_state(), s.endpoint.stats().feedback.unreduced_losses),
        (FeedbackState::Active, 1)
    );
}

#[test]
fn after_a_mark_losses_are_congestion_until_the_flight_is_acked() {
    let mut s = sending(atcp());
    s.endpoint.on_congestion_mark(s.now);
    assert_eq!(s.feedback_state(), FeedbackState::Congested);
    for _ in 0..3 {
        s.receive(segment(1).ack(1));
    }
    s.transmits();
    assert_eq!((s.feedback_state(), s.endpoint.ssthresh()), (FeedbackState::Congested, 5000));
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Recovery);
    s.receive_at(200, segment(1).ack(10_001));
    assert_eq!((s.feedback_state(), s.endpoint.phase()), (FeedbackState::Active, RecoveryPhase::Open));
}

#[test]
fn other_schemes_and_frozen_senders_ignore_marks() {
    let mut s = sending(RouteFeedback::None);
    s.endpoint.on_congestion_mark(s.now);
    assert_eq!(s.feedback_state(), FeedbackState::Active);
    let mut s = sending(atcp());
    s.lose_route_at(200);
    s.endpoint.on_congestion_mark(s.now);
    assert_eq!(s.feedback_state(), FeedbackState::Persist);
}

/// Ten segments in flight since 100 ms, over a path that may mark; SACK.
fn over_a_path_that_marks(config: Config) -> Script {
    let mut s = Script::new(config.with_feedback(atcp()).with_ecn(EcnMode::Request));
    s.endpoint.connect(s.now).unwrap();
    s.transmits();
    s.now = Instant::from_millis(100);
    s.receive(segment(0).syn().ack(1).ece().options(mss_1000_sack()));
    s.endpoint.send(s.now, Length(1 << 40)).unwrap();
    s.transmits();
    s
}

/// `cwnd` and `ssthresh`.
fn window(s: &Script) -> (u32, u32) {
    (s.endpoint.cwnd(), s.endpoint.ssthresh())
}

#[test]
fn a_mark_while_a_loss_is_repaired_halves_the_window_at_once() {
    for config in [plain().with_sack(), plain(), plain().with_reno()] {
        let mut s = over_a_path_that_marks(config);
        for right in [2001, 3001, 4001] {
            s.receive(segment(1).ack(1).sack(1001, right));
        }
        assert_eq!((s.feedback_state(), s.endpoint.ssthresh()), (FeedbackState::Loss, 1 << 30));
        s.receive(segment(1).ack(1).ece().sack(1001, 5001));
        assert_eq!((s.feedback_state(), s.endpoint.ssthresh()), (FeedbackState::Congested, 5000));
        s.receive(segment(1).ack(1).ece().sack(1001, 6001));
        s.receive(segment(1).ack(10_001));
        assert_eq!((s.feedback_state(), s.endpoint.phase()), (FeedbackState::Active, RecoveryPhase::Open));
        assert!(s.endpoint.cwnd() <= 5000 && s.endpoint.ssthresh() == 5000, "{:?}", window(&s));
        assert!(s.transmits().starts_with("ECT W 10001:11001"));
        assert_eq!(s.endpoint.stats().mark_reactions, 1);
    }
}

#[test]
fn a_held_prr_recovery_ends_with_its_initial_window() {
    let mut s = over_a_path_that_marks(Config { variant: Variant::Sack(SackConfig::RFC9937), ..plain() });
    for right in [2001, 3001, 4001] {
        s.receive(segment(1).ack(1).sack(1001, right));
    }
    assert_eq!((s.feedback_state(), window(&s)), (FeedbackState::Loss, (10_000, 1 << 30)));
    s.receive(segment(1).ack(10_001));
    assert_eq!((s.feedback_state(), window(&s)), (FeedbackState::Active, (10_000, 1 << 30)));
}
