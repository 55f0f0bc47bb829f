//! Losses found by time and marks: those of one window count once (RFC 3168 §6.1.2).

use super::*;
use crate::tcp::RecoveryPhase;

fn rack_and_ecn() -> Config {
    plain().with_rack().with_ecn(EcnMode::Request)
}

/// Returns the number of reactions to marks, to losses, and to tail losses.
fn reactions(s: &Script) -> [u64; 3] {
    let stats = s.endpoint.stats();
    [stats.mark_reactions, stats.fast_retransmits, stats.tail_losses]
}

#[test]
fn a_mark_and_a_loss_on_one_ack_halve_once() {
    let mut s = in_flight(rack_and_ecn(), 10);
    s.receive_at(200, segment(1).ack(1001).ece().sack(2001, 5001));
    assert_eq!((s.endpoint.phase(), window(&s)), (RecoveryPhase::Recovery, (5000, 5000)));
    assert_eq!(s.transmits(), ". 1001:2001 ack 1");
    s.receive_at(300, segment(1).ack(10_001).ece());
    assert_eq!((s.endpoint.phase(), window(&s)), (RecoveryPhase::Open, (5000, 5000)));
    assert!(s.transmits().starts_with("ECT W 10001:11001"));
    assert_eq!(reactions(&s), [1, 1, 0]);
}

#[test]
fn a_loss_found_by_the_reordering_timer_after_a_mark_does_not_reduce() {
    let mut s = in_flight(rack_and_ecn(), 10);
    s.receive_at(200, segment(1).ack(1001).ece());
    assert_eq!(window(&s), (5000, 5000));
    s.receive_at(201, segment(1).ack(1001).ece().sack(2001, 3001));
    assert_eq!(s.run_until(300), "226: . 1001:2001 ack 1");
    assert_eq!((s.endpoint.phase(), window(&s)), (RecoveryPhase::Recovery, (5000, 5000)));
    s.receive_at(326, segment(1).ack(10_001).ece());
    assert_eq!((s.endpoint.phase(), window(&s)), (RecoveryPhase::Open, (5000, 5000)));
    assert_eq!(reactions(&s), [1, 1, 0]);
}

#[test]
fn a_mark_after_a_loss_does_not_reduce_in_the_same_window() {
    let mut s = in_flight(rack_and_ecn(), 10);
    s.receive_at(200, segment(1).ack(1).sack(1001, 4001));
    assert_eq!(window(&s), (5000, 5000));
    s.transmits();
    s.receive_at(210, segment(1).ack(1).ece().sack(1001, 5001));
    s.receive_at(300, segment(1).ack(10_001).ece());
    assert_eq!((s.endpoint.phase(), window(&s)), (RecoveryPhase::Open, (5000, 5000)));
    assert!(s.transmits().starts_with("ECT W 10001:11001"), "which the peer has not heard before");
    s.receive_at(400, segment(1).ack(11_001).ece());
    // Four in flight, and one acknowledged.
    assert_eq!((reactions(&s), window(&s)), ([1, 1, 0], (2500, 2500)));
}

#[test]
fn a_mark_during_a_recovery_that_followed_a_mark_does_not_reduce() {
    let mut s = in_flight(rack_and_ecn(), 10);
    s.receive_at(200, segment(1).ack(1001).ece());
    s.receive_at(210, segment(1).ack(8001).ece());
    assert_eq!(s.transmits(), "ECT W 10001:11001 ack 1; ECT . 11001:12001 ack 1; ECT . 12001:13001 ack 1");
    s.receive_at(310, segment(1).ack(8001).ece().sack(9001, 11_001).sack(12_001, 13_001));
    assert_eq!((s.endpoint.phase(), window(&s)), (RecoveryPhase::Recovery, (5000, 5000)));
    assert!(s.transmits().starts_with(". 8001:9001 ack 1; . 11001:12001 ack 1"));
    s.receive_at(410, segment(1).ack(11_001).ece().sack(12_001, 13_001));
    s.transmits();
    assert_eq!((reactions(&s), window(&s)), ([1, 1, 0], (5000, 5000)));
    s.receive_at(510, segment(1).ack(13_001).ece());
    assert_eq!((s.endpoint.phase(), window(&s)), (RecoveryPhase::Open, (5000, 5000)));
}

#[test]
fn a_mark_at_the_end_of_a_recovery_reduces_what_the_recovery_left() {
    let mut s = in_flight(rack_and_ecn(), 10);
    s.receive_at(200, segment(1).ack(1).sack(1001, 10_001));
    assert_eq!((s.endpoint.phase(), window(&s)), (RecoveryPhase::Recovery, (5000, 5000)));
    assert!(s.transmits().ends_with("13001:14001 ack 1"), "four new segments follow");
    s.receive_at(300, segment(1).ack(1).ece().sack(1001, 14_001));
    assert!(s.transmits().ends_with("17001:18001 ack 1"));
    s.receive_at(310, segment(1).ack(14_001).ece());
    assert_eq!(
        window(&s),
        (2500, 2500),
        "half of five segments, not of the seventeen that the ACK covers and leaves"
    );
}

#[test]
fn a_tail_loss_in_a_marked_window_does_not_reduce() {
    let mut s = connected(rack_and_ecn(), 10);
    s.endpoint.send(s.now, Length(10_000)).unwrap();
    s.transmits();
    s.receive_at(200, segment(1).ack(4001).ece());
    assert_eq!(window(&s), (5000, 5000));
    assert_eq!(s.run_until(410), "400: . 9001:10001 ack 1");
    s.receive_at(500, segment(1).ack(10_001).ece());
    s.endpoint.send(s.now, Length(3000)).unwrap();
    assert!(s.transmits().starts_with("ECT W 10001:11001"));
    s.receive_at(600, segment(1).ack(13_001));
    assert_eq!((reactions(&s), window(&s)), ([1, 0, 1], (5200, 5000)), "grown by an ACK of no mark");
}

#[test]
fn a_mark_on_data_in_flight_at_a_tail_loss_does_not_reduce() {
    let mut s = connected(rack_and_ecn(), 10);
    s.endpoint.send(s.now, Length(10_000)).unwrap();
    s.transmits();
    s.receive_at(200, segment(1).ack(4001));
    s.run_until(410);
    s.receive_at(500, segment(1).ack(10_001));
    s.endpoint.send(s.now, Length(10_000)).unwrap();
    s.transmits();
    s.receive_at(600, segment(1).ack(11_001));
    assert_eq!(window(&s), (3000, 3000), "half of the six that were in flight at the probe");
    s.receive_at(610, segment(1).ack(12_001).ece());
    assert_eq!((reactions(&s), window(&s)), ([0, 0, 1], (3000, 3000)));
}
