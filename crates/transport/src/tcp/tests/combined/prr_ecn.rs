//! A mark reduces at once; losses of the marked window are recovered from in proportion, down to what the mark left
//! (RFC 9937 §6.1, RFC 3168 §6.1.2; docs/protocols/tcp.md).

use super::*;
use crate::tcp::RecoveryPhase;

/// Twenty segments in flight since 100 ms.
fn twenty() -> Script {
    in_flight(prr().with_ecn(EcnMode::Request), 20)
}

#[test]
fn a_mark_reduces_at_once_without_prr() {
    let mut s = twenty();
    s.receive(segment(1).ack(1001).ece());
    assert_eq!((s.endpoint.phase(), window(&s)), (RecoveryPhase::Open, (10_000, 10_000)));
    for ack in 2..=10 {
        s.receive(segment(1).ack(1 + 1000 * ack).ece());
        assert_eq!(s.transmits(), "", "{ack}");
    }
    s.receive(segment(1).ack(11_001).ece());
    assert_eq!(s.transmits(), "ECT W 20001:21001 ack 1");
}

#[test]
fn a_loss_in_a_marked_window_keeps_ssthresh_and_uses_prr() {
    let mut s = twenty();
    s.receive(segment(1).ack(1001).ece());
    for right in [3001, 4001, 5001] {
        s.receive(segment(1).ack(1001).ece().sack(2001, right));
    }
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Recovery);
    // RecoverFS = 19 − 3 + 1; fifteen in flight, and sndcnt = ⌈1 · 10/17⌉.
    assert_eq!(window(&s), (15_589, 10_000));
    assert_eq!(s.transmits(), ". 1001:2001 ack 1");
    let mut sent = Vec::new();
    for right in [6001, 7001, 8001, 9001] {
        s.receive(segment(1).ack(1001).ece().sack(2001, right));
        sent.push(s.transmits());
    }
    // ⌈4 · 10/17⌉ is the first that lets two leave, of which the retransmission was one.
    assert_eq!(sent, ["", "", "ECT W 20001:21001 ack 1", ""]);
    s.receive(segment(1).ack(20_001));
    assert_eq!((s.endpoint.phase(), window(&s)), (RecoveryPhase::Open, (10_000, 10_000)));
    assert_eq!((s.endpoint.stats().mark_reactions, s.endpoint.stats().fast_retransmits), (1, 1));
}

#[test]
fn a_mark_during_recovery_only_sends_cwr() {
    let mut s = twenty();
    for right in [2001, 3001, 4001] {
        s.receive(segment(1).ack(1).sack(1001, right));
    }
    // RecoverFS = 20 − 3 + 1; sixteen in flight, and sndcnt = ⌈1 · 10/18⌉.
    assert_eq!(window(&s), (16_556, 10_000));
    assert_eq!(s.transmits(), ". 1:1001 ack 1");
    let mut sent = Vec::new();
    for right in [5001, 6001, 7001] {
        s.receive(segment(1).ack(1).ece().sack(1001, right));
        sent.push(s.transmits());
    }
    assert_eq!(sent, ["", "", "ECT W 20001:21001 ack 1"]);
    assert_eq!((s.endpoint.ssthresh(), s.endpoint.stats().mark_reactions), (10_000, 0));
}
