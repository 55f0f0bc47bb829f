//! TCP-BuS (Kim, Toh, Choi 2001), its essential message flow.

use super::*;
use crate::tcp::BusConfig;

fn bus() -> RouteFeedback {
    RouteFeedback::Bus(BusConfig::PAPER)
}

#[test]
fn the_ersn_resumes_with_one_query_and_doubled_timers() {
    let mut s = sending_with_sack(bus());
    s.lose_route_at(200);
    assert_eq!((s.feedback_state(), s.run_until(2000)), (FeedbackState::Frozen, String::new()));
    s.signal(Signal::RouteFound);
    assert_eq!(s.transmits(), ". 1:1001 ack 1");
    assert_eq!((s.feedback_state(), s.endpoint.cwnd()), (FeedbackState::Active, 10_000));
    assert_eq!(s.endpoint.poll_timeout().unwrap().0, Instant::from_millis(2600), "twice 300 ms");
}

#[test]
fn timers_are_doubled_only_for_data_that_were_in_flight() {
    let mut s = sending_with_sack(bus());
    s.lose_route_at(200);
    s.signal(Signal::RouteFound);
    s.transmits();
    s.receive_at(300, segment(1).ack(9001));
    s.transmits();
    assert_eq!(s.endpoint.poll_timeout().unwrap().0, Instant::from_millis(900));
    s.receive_at(400, segment(1).ack(10_001));
    s.transmits();
    let rto = s.endpoint.rto();
    assert_eq!(s.endpoint.poll_timeout().unwrap().0, Instant::from_millis(400) + rto);
}

#[test]
fn a_probe_is_sent_in_case_the_ersn_was_lost() {
    let mut s = sending_with_sack(bus());
    s.lose_route_at(200);
    assert_eq!(s.run_until(2250), "2200: . 1:1001 ack 1");
    s.receive(segment(1).ack(1001));
    assert!(s.transmits().starts_with(". 1001:2001 ack 1"));
    assert_eq!(s.feedback_state(), FeedbackState::Active);
}

#[test]
fn losses_of_the_route_failure_are_retransmitted_without_reduction() {
    let mut s = sending_with_sack(bus());
    s.lose_route_at(200);
    s.signal(Signal::RouteFound);
    s.transmits();
    s.receive_at(300, segment(1).ack(1001).sack(5001, 10_001));
    let said = s.transmits();
    assert!(said.starts_with(". 10001:11001 ack 1"), "{said}");
    s.receive_at(310, segment(1).ack(1001).sack(5001, 11_001));
    s.receive(segment(1).ack(1001).sack(5001, 12_001));
    let said = s.transmits();
    assert!(said.starts_with(". 1001:2001 ack 1; . 2001:3001 ack 1"), "{said}");
    assert!(!said.contains(". 5001:"), "the peer has that: {said}");
    assert!(s.endpoint.cwnd() >= 11_000 && s.endpoint.ssthresh() == 1 << 30);
    assert_eq!(s.endpoint.stats().feedback.unreduced_losses, 1);
}

#[test]
fn later_losses_are_congestion() {
    let mut s = sending_with_sack(bus());
    s.lose_route_at(200);
    s.signal(Signal::RouteFound);
    s.transmits();
    s.receive_at(300, segment(1).ack(10_001));
    s.transmits();
    s.receive_at(400, segment(1).ack(10_001).sack(11_001, 15_001));
    s.transmits();
    assert!(s.endpoint.ssthresh() < 10_000);
    assert_eq!(s.endpoint.stats().feedback.unreduced_losses, 0);
}
