//! ELFN (Holland, Vaidya 1999, §4).

use super::*;
use crate::tcp::{
    CwndAfterFreeze, ElfnConfig, InFlightAfterFreeze, ProbeSchedule, RouteReturn, RtoAfterFreeze,
};

fn elfn(change: impl FnOnce(&mut ElfnConfig)) -> Script {
    let mut config = ElfnConfig::PAPER;
    change(&mut config);
    let mut s = sending(RouteFeedback::Elfn(config));
    s.lose_route_at(200);
    s
}

#[test]
fn in_stand_by_the_first_unacknowledged_segment_is_sent_every_two_seconds() {
    let mut s = elfn(|_| {});
    assert_eq!(s.run_until(7000), "2200: . 1:1001 ack 1; 4200: . 1:1001 ack 1; 6200: . 1:1001 ack 1");
    assert_eq!((s.feedback_state(), s.endpoint.stats().feedback.probes), (FeedbackState::StandBy, 3));
    assert_eq!(s.endpoint.stats().timeouts, 0);
}

#[test]
fn an_ack_of_a_probe_ends_the_freeze_and_restores_window_and_rto() {
    let mut s = elfn(|_| {});
    s.run_until(2250);
    s.receive(segment(1).ack(1001));
    assert_eq!(s.feedback_state(), FeedbackState::Active);
    // Slow start goes on: one more segment, and the one acknowledged.
    assert_eq!((s.endpoint.cwnd(), s.endpoint.rto()), (11_000, ms(300)));
    assert_eq!(s.transmits(), ". 10001:11001 ack 1; . 11001:12001 ack 1", "and it continues as normal");
    assert_eq!(s.endpoint.poll_timeout().unwrap().0, Instant::from_millis(2550));
}

#[test]
fn a_duplicate_probe_is_answered_with_the_cumulative_ack() {
    let mut s = elfn(|_| {});
    s.run_until(2250);
    s.receive(segment(1).ack(7001));
    assert_eq!((s.feedback_state(), s.endpoint.flight_size()), (FeedbackState::Active, 3000));
}

#[test]
fn data_in_flight_may_be_retransmitted_at_once() {
    let mut s = elfn(|c| c.in_flight = InFlightAfterFreeze::Retransmitted);
    s.run_until(2250);
    s.receive(segment(1).ack(1001));
    let said = s.transmits();
    assert!(said.starts_with(". 1001:2001") && said.ends_with(". 11001:12001 ack 1"), "{said}");
}

#[test]
fn an_acknowledgment_before_the_first_probe_ends_nothing() {
    let mut s = elfn(|_| {});
    s.receive_at(250, segment(1).ack(1001));
    assert_eq!(s.feedback_state(), FeedbackState::StandBy);
    assert_eq!(s.run_until(2500), "2200: . 1001:2001 ack 1");
    s.receive(segment(1).ack(1001));
    assert_eq!(s.feedback_state(), FeedbackState::StandBy, "nor does a duplicate");
    s.receive(segment(1).ack(2001));
    assert_eq!(s.feedback_state(), FeedbackState::Active);
}

#[test]
fn window_and_rto_may_be_reset() {
    let mut s = elfn(|c| (c.cwnd, c.rto) = (CwndAfterFreeze::OneSegment, RtoAfterFreeze::Initial));
    s.run_until(2250);
    s.receive(segment(1).ack(1001));
    assert_eq!((s.endpoint.cwnd(), s.endpoint.rto(), s.endpoint.srtt()), (2000, ms(1000), None));
    assert_eq!(s.transmits(), "", "nine segments are in flight");
    let mut s = elfn(|c| c.cwnd = CwndAfterFreeze::Initial);
    s.run_until(2250);
    s.receive(segment(1).ack(1001));
    assert_eq!(s.endpoint.cwnd(), 11_000);
}

#[test]
fn the_probe_interval_is_a_parameter_and_may_grow() {
    let mut s = elfn(|c| c.probing = ProbeSchedule::Every(ms(500)));
    assert_eq!(s.run_until(1300), "700: . 1:1001 ack 1; 1200: . 1:1001 ack 1");
    let mut s = elfn(|c| c.probing = ProbeSchedule::PersistTimer);
    assert_eq!(s.run_until(2400), "500: . 1:1001 ack 1; 1100: . 1:1001 ack 1; 2300: . 1:1001 ack 1");
}

#[test]
fn a_route_notification_ends_the_freeze_if_configured() {
    let mut s = elfn(|_| {});
    s.signal(Signal::RouteFound);
    assert_eq!((s.feedback_state(), s.transmits()), (FeedbackState::StandBy, String::new()));
    let mut s = elfn(|c| {
        (c.route_return, c.in_flight) = (RouteReturn::ByNotification, InFlightAfterFreeze::Retransmitted)
    });
    s.signal(Signal::RouteFound);
    assert_eq!((s.feedback_state(), s.transmits().split("; ").count()), (FeedbackState::Active, 10));
}
