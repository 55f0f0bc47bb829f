//! Losses found by time and marks: those of one window count once (RFC 3168 §6.1.2).

use super::*;
use crate::tcp::Phase;

fn rack_and_ecn() -> Config {
    plain().with_rack().with_ecn()
}

/// Returns the number of reactions to marks, to losses, and to tail losses.
fn reactions(s: &Script) -> [u64; 3] {
    let stats = s.endpoint.stats();
    [stats.mark_reactions, stats.fast_retransmits, stats.tail_losses]
}

#[test]
fn a_mark_and_a_loss_on_one_ack_halve_once() {
    let mut s = in_flight(rack_and_ecn(), 10);
    s.hears_at(200, seg(1).ack(1001).ece().sack(2001, 5001));
    assert_eq!((s.endpoint.phase(), window(&s)), (Phase::Recovery, (5000, 5000)));
    assert_eq!(s.says(), ". 1001:2001 ack 1");
    s.hears_at(300, seg(1).ack(10_001).ece());
    assert_eq!((s.endpoint.phase(), window(&s)), (Phase::Open, (5000, 5000)));
    assert!(s.says().starts_with("ECT W 10001:11001"));
    assert_eq!(reactions(&s), [1, 1, 0]);
}

#[test]
fn a_loss_that_the_reordering_timer_finds_behind_a_mark_is_resent_and_halves_nothing() {
    let mut s = in_flight(rack_and_ecn(), 10);
    s.hears_at(200, seg(1).ack(1001).ece());
    assert_eq!(window(&s), (5000, 5000));
    s.hears_at(201, seg(1).ack(1001).ece().sack(2001, 3001));
    assert_eq!(s.runs_to(300), "226: . 1001:2001 ack 1");
    assert_eq!((s.endpoint.phase(), window(&s)), (Phase::Recovery, (5000, 5000)));
    s.hears_at(326, seg(1).ack(10_001).ece());
    assert_eq!((s.endpoint.phase(), window(&s)), (Phase::Open, (5000, 5000)));
    assert_eq!(reactions(&s), [1, 1, 0]);
}

#[test]
fn a_mark_behind_a_loss_halves_nothing_and_the_next_window_s_mark_does() {
    let mut s = in_flight(rack_and_ecn(), 10);
    s.hears_at(200, seg(1).ack(1).sack(1001, 4001));
    assert_eq!(window(&s), (5000, 5000));
    s.says();
    s.hears_at(210, seg(1).ack(1).ece().sack(1001, 5001));
    s.hears_at(300, seg(1).ack(10_001).ece());
    assert_eq!((s.endpoint.phase(), window(&s)), (Phase::Open, (5000, 5000)));
    assert!(s.says().starts_with("ECT W 10001:11001"), "which the peer has not heard before");
    s.hears_at(400, seg(1).ack(11_001).ece());
    // Four in flight, and one acknowledged.
    assert_eq!((reactions(&s), window(&s)), ([1, 1, 0], (2500, 2500)));
}

#[test]
fn a_tail_that_was_lost_in_a_marked_window_halves_nothing() {
    let mut s = connected(rack_and_ecn(), 10);
    s.endpoint.send(s.now, Length(10_000)).unwrap();
    s.says();
    s.hears_at(200, seg(1).ack(4001).ece());
    assert_eq!(window(&s), (5000, 5000));
    assert_eq!(s.runs_to(410), "400: . 9001:10001 ack 1");
    s.hears_at(500, seg(1).ack(10_001).ece());
    s.endpoint.send(s.now, Length(3000)).unwrap();
    assert!(s.says().starts_with("ECT W 10001:11001"));
    s.hears_at(600, seg(1).ack(13_001));
    assert_eq!((reactions(&s), window(&s)), ([1, 0, 1], (5200, 5000)), "grown by an ACK of no mark");
}

#[test]
fn a_mark_on_what_was_under_way_when_a_lost_tail_was_found_halves_nothing() {
    let mut s = connected(rack_and_ecn(), 10);
    s.endpoint.send(s.now, Length(10_000)).unwrap();
    s.says();
    s.hears_at(200, seg(1).ack(4001));
    s.runs_to(410);
    s.hears_at(500, seg(1).ack(10_001));
    s.endpoint.send(s.now, Length(10_000)).unwrap();
    s.says();
    s.hears_at(600, seg(1).ack(11_001));
    assert_eq!(window(&s), (3000, 3000), "half of the six that were in flight at the probe");
    s.hears_at(610, seg(1).ack(12_001).ece());
    assert_eq!((reactions(&s), window(&s)), ([0, 0, 1], (3000, 3000)));
}
