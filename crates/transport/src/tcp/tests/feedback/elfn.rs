//! ELFN (Holland, Vaidya 1999, §4).

use super::*;
use crate::tcp::{ElfnConfig, InFlight, Probing, Return, RtoAfter, WindowAfter};

fn elfn(change: impl FnOnce(&mut ElfnConfig)) -> Script {
    let mut config = ElfnConfig::PAPER;
    change(&mut config);
    let mut s = sending(Feedback::Elfn(config));
    s.loses_route_at(200);
    s
}

#[test]
fn in_stand_by_the_first_unacknowledged_segment_is_sent_every_two_seconds() {
    let mut s = elfn(|_| {});
    assert_eq!(s.runs_to(7000), "2200: . 1:1001 ack 1; 4200: . 1:1001 ack 1; 6200: . 1:1001 ack 1");
    assert_eq!((s.stands(), s.endpoint.stats().feedback.probes), (FeedbackState::StandBy, 3));
    assert_eq!(s.endpoint.stats().timeouts, 0);
}

#[test]
fn the_acknowledgment_of_a_probe_ends_it_with_window_and_timeout_restored() {
    let mut s = elfn(|_| {});
    s.runs_to(2250);
    s.hears(seg(1).ack(1001));
    assert_eq!(s.stands(), FeedbackState::Active);
    // Slow start goes on: one more segment, and the one acknowledged.
    assert_eq!((s.endpoint.cwnd(), s.endpoint.rto()), (11_000, ms(300)));
    assert_eq!(s.says(), ". 10001:11001 ack 1; . 11001:12001 ack 1", "and it continues as normal");
    assert_eq!(s.endpoint.poll_timeout().unwrap().0, Instant::from_millis(2550));
}

#[test]
fn a_probe_that_the_peer_had_is_answered_with_all_it_has() {
    let mut s = elfn(|_| {});
    s.runs_to(2250);
    s.hears(seg(1).ack(7001));
    assert_eq!((s.stands(), s.endpoint.flight_size()), (FeedbackState::Active, 3000));
}

#[test]
fn what_was_in_flight_may_be_resent_at_once() {
    let mut s = elfn(|c| c.in_flight = InFlight::Resent);
    s.runs_to(2250);
    s.hears(seg(1).ack(1001));
    let said = s.says();
    assert!(said.starts_with(". 1001:2001") && said.ends_with(". 11001:12001 ack 1"), "{said}");
}

#[test]
fn an_acknowledgment_before_the_first_probe_ends_nothing() {
    let mut s = elfn(|_| {});
    s.hears_at(250, seg(1).ack(1001));
    assert_eq!(s.stands(), FeedbackState::StandBy);
    assert_eq!(s.runs_to(2500), "2200: . 1001:2001 ack 1");
    s.hears(seg(1).ack(1001));
    assert_eq!(s.stands(), FeedbackState::StandBy, "nor does a duplicate");
    s.hears(seg(1).ack(2001));
    assert_eq!(s.stands(), FeedbackState::Active);
}

#[test]
fn window_and_timeout_may_start_anew() {
    let mut s = elfn(|c| (c.cwnd, c.rto) = (WindowAfter::OneSegment, RtoAfter::Initial));
    s.runs_to(2250);
    s.hears(seg(1).ack(1001));
    assert_eq!((s.endpoint.cwnd(), s.endpoint.rto(), s.endpoint.srtt()), (2000, ms(1000), None));
    assert_eq!(s.says(), "", "nine segments are in flight");
    let mut s = elfn(|c| c.cwnd = WindowAfter::Initial);
    s.runs_to(2250);
    s.hears(seg(1).ack(1001));
    assert_eq!(s.endpoint.cwnd(), 11_000);
}

#[test]
fn the_probe_interval_is_a_parameter_and_may_grow() {
    let mut s = elfn(|c| c.probing = Probing::Every(ms(500)));
    assert_eq!(s.runs_to(1300), "700: . 1:1001 ack 1; 1200: . 1:1001 ack 1");
    let mut s = elfn(|c| c.probing = Probing::PersistTimer);
    assert_eq!(s.runs_to(2400), "500: . 1:1001 ack 1; 1100: . 1:1001 ack 1; 2300: . 1:1001 ack 1");
}

#[test]
fn being_told_of_the_return_ends_it_if_asked_for_and_only_then() {
    let mut s = elfn(|_| {});
    s.told(Signal::RouteFound);
    assert_eq!((s.stands(), s.says()), (FeedbackState::StandBy, String::new()));
    let mut s = elfn(|c| (c.returns, c.in_flight) = (Return::Told, InFlight::Resent));
    s.told(Signal::RouteFound);
    assert_eq!((s.stands(), s.says().split("; ").count()), (FeedbackState::Active, 10));
}
