//! TCP-BuS (Kim, Toh, Choi 2001), its essential message flow.

use super::*;
use crate::tcp::BusConfig;

fn bus() -> Feedback {
    Feedback::Bus(BusConfig::PAPER)
}

#[test]
fn the_ersn_resumes_with_one_question_and_doubled_timers() {
    let mut s = sending_with_sack(bus());
    s.loses_route_at(200);
    assert_eq!((s.stands(), s.runs_to(2000)), (FeedbackState::Frozen, String::new()));
    s.told(Signal::RouteFound);
    assert_eq!(s.says(), ". 1:1001 ack 1");
    assert_eq!((s.stands(), s.endpoint.cwnd()), (FeedbackState::Active, 10_000));
    assert_eq!(s.endpoint.poll_timeout().unwrap().0, Instant::from_millis(2600), "twice 300 ms");
}

#[test]
fn timers_are_doubled_for_what_was_in_flight_only() {
    let mut s = sending_with_sack(bus());
    s.loses_route_at(200);
    s.told(Signal::RouteFound);
    s.says();
    s.hears_at(300, seg(1).ack(9001));
    s.says();
    assert_eq!(s.endpoint.poll_timeout().unwrap().0, Instant::from_millis(900));
    s.hears_at(400, seg(1).ack(10_001));
    s.says();
    let rto = s.endpoint.rto();
    assert_eq!(s.endpoint.poll_timeout().unwrap().0, Instant::from_millis(400) + rto);
}

#[test]
fn a_probe_asks_in_case_the_ersn_was_lost() {
    let mut s = sending_with_sack(bus());
    s.loses_route_at(200);
    assert_eq!(s.runs_to(2250), "2200: . 1:1001 ack 1");
    s.hears(seg(1).ack(1001));
    assert!(s.says().starts_with(". 1001:2001 ack 1"));
    assert_eq!(s.stands(), FeedbackState::Active);
}

#[test]
fn what_was_lost_with_the_route_is_resent_selectively_and_not_because_of_congestion() {
    let mut s = sending_with_sack(bus());
    s.loses_route_at(200);
    s.told(Signal::RouteFound);
    s.says();
    s.hears_at(300, seg(1).ack(1001).sack(5001, 10_001));
    let said = s.says();
    assert!(said.starts_with(". 10001:11001 ack 1"), "{said}");
    s.hears_at(310, seg(1).ack(1001).sack(5001, 11_001));
    s.hears(seg(1).ack(1001).sack(5001, 12_001));
    let said = s.says();
    assert!(said.starts_with(". 1001:2001 ack 1; . 2001:3001 ack 1"), "{said}");
    assert!(!said.contains(". 5001:"), "the peer has that: {said}");
    assert!(s.endpoint.cwnd() >= 11_000 && s.endpoint.ssthresh() == 1 << 30);
    assert_eq!(s.endpoint.stats().feedback.spared, 1);
}

#[test]
fn a_loss_of_what_was_sent_afterwards_is_congestion() {
    let mut s = sending_with_sack(bus());
    s.loses_route_at(200);
    s.told(Signal::RouteFound);
    s.says();
    s.hears_at(300, seg(1).ack(10_001));
    s.says();
    s.hears_at(400, seg(1).ack(10_001).sack(11_001, 15_001));
    s.says();
    assert!(s.endpoint.ssthresh() < 10_000);
    assert_eq!(s.endpoint.stats().feedback.spared, 0);
}
