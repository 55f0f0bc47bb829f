//! State after a reduction was undone by D-SACK (RFC 3708) or Eifel (RFC 3522), with CUBIC, PRR and ECN.

use super::*;
use crate::tcp::{Frto, RecoveryPhase};

// ---- CUBIC ----

#[test]
fn a_dsack_undo_restores_cubic() {
    // RFC 9438 §4.9.2: cwnd is W(1.1 s) at 1400 ms and W(2.1 s) at 2400 ms, with W_max 50 as before.
    for config in [plain().with_sack(), plain().with_rack()] {
        let (mut s, mut una) = congestion_avoidance_after_loss(with_dsack_undo(config), 10);
        let before = s.endpoint.cwnd();
        s.receive_at(1500, segment(1).ack(una).sack(una + 1000, una + 4000));
        assert!(s.transmits().contains(&format!(". {una}:{} ack 1", una + 1000)));
        assert_eq!((s.endpoint.phase(), s.endpoint.ssthresh()), (RecoveryPhase::Recovery, 31_499));
        s.receive(segment(1).ack(una + 4000).sack(una, una + 1000));
        una += 4000;
        assert_eq!((s.endpoint.phase(), window(&s)), (RecoveryPhase::Open, (before, 35_000)));
        assert_eq!(s.endpoint.stats().spurious_recoveries, 1);
        s.transmits();
        for round in 12..=20 {
            acknowledge_flight(&mut s, 400 + 100 * round, &mut una);
        }
        assert!(cwnd_is_about(&s, 49_224), "{}", s.endpoint.cwnd());
    }
}

#[test]
fn an_eifel_undo_of_a_timeout_restores_cubic_without_a_burst() {
    let (mut s, una) = congestion_avoidance_after_loss(with_eifel(plain().with_sack()), 10);
    assert_eq!(s.endpoint.flight_size(), 45_000);
    assert!(s.run_until(1719).ends_with(&format!(": . {una}:{} ack 1", una + 1000)));
    assert_eq!((s.endpoint.stats().timeouts, window(&s)), (1, (1000, 31_499)), "0.7 of 45,000 rounded down");
    let ack = ack_of(&s, 1720, una + 1000, 1400);
    s.receive_at(1720, ack);
    // RFC 4015 §3.2: 44 in flight and one acknowledged; ssthresh is the 45 that were in flight.
    assert_eq!((s.endpoint.phase(), window(&s)), (RecoveryPhase::Open, (45_000, 45_000)));
    assert_eq!(s.endpoint.stats().spurious_timeouts, 1);
    s.transmits();
    let ack = ack_of(&s, 1820, una + 46_000, 1720);
    s.receive_at(1820, ack);
    // W(1.42 s + srtt), if the plateau is at 50 and avoidance has lasted 1.42 s; in a stage of its own it were 46. The late ACK
    // was a sample of 320 ms, of which srtt takes an eighth: 127.5 ms.
    assert!(cwnd_is_about(&s, 47_668), "{}", s.endpoint.cwnd());
}

// ---- PRR ----

#[test]
fn an_undone_prr_recovery_leaves_no_state() {
    let undone = |s: &mut Script| {
        for right in [2001, 3001, 4001] {
            let ack = ack_of(s, 200, 1, 0).sack(1001, right);
            s.receive(ack);
        }
        // RecoverFS = 20 − 3 + 1; sixteen in flight, and sndcnt = ⌈1 · 10/18⌉.
        assert_eq!((s.endpoint.phase(), window(s)), (RecoveryPhase::Recovery, (16_556, 10_000)));
        assert_eq!(s.transmits(), ". 1:1001 ack 1");
    };
    let mut by_reports = in_flight(with_dsack_undo(prr()), 20);
    by_reports.run_until(200);
    undone(&mut by_reports);
    by_reports.receive(segment(1).ack(4001));
    by_reports.transmits();
    assert_eq!(window(&by_reports), (16_112, 10_000), "sndcnt = ⌈2 · 10/18⌉ − 1");
    by_reports.receive(segment(1).ack(4001).sack(1, 1001));
    let mut by_echo = in_flight(with_eifel(prr()), 20);
    by_echo.run_until(200);
    undone(&mut by_echo);
    let ack = ack_of(&by_echo, 200, 4001, 100);
    by_echo.receive(ack);
    for mut s in [by_reports, by_echo] {
        assert_eq!((s.endpoint.phase(), window(&s)), (RecoveryPhase::Open, (20_000, UNLIMITED)));
        assert_eq!(s.endpoint.stats().spurious_recoveries, 1);
        assert_eq!(s.transmits().split(';').count(), 4, "sixteen are in flight");
        // The next recovery counts from nothing: again 20 − 3 + 1, sixteen in flight and one delivered.
        for right in [6001, 7001, 8001] {
            let ack = ack_of(&s, 200, 4001, 100).sack(5001, right);
            s.receive(ack);
        }
        assert_eq!((s.endpoint.phase(), window(&s)), (RecoveryPhase::Recovery, (16_556, 10_000)));
    }
}

#[test]
fn an_eifel_undo_of_prr_returns_rack_losses_to_flight() {
    let mut s = in_flight(with_eifel(prr()).with_rack(), 20);
    let ack = ack_of(&s, 200, 1, 0);
    s.receive_at(200, ack.sack(12_001, 15_001));
    assert_eq!(s.transmits(), ". 1:1001 ack 1; . 1001:2001 ack 1; . 2001:3001 ack 1");
    assert_eq!(window(&s), (8000, 10_000), "three leave for three that arrived");
    let ack = ack_of(&s, 210, 15_001, 100);
    s.receive_at(210, ack);
    assert_eq!((s.endpoint.phase(), window(&s)), (RecoveryPhase::Open, (20_000, UNLIMITED)));
    let said = s.transmits();
    assert!(said.starts_with(". 20001:21001 ack 1"), "nothing is resent: {said}");
    assert_eq!(said.split(';').count(), 15, "five are in flight");
}

// ---- ECN ----

#[test]
fn a_recovery_with_an_ecn_echo_is_not_undone() {
    // RFC 4015 §3.4. The loss may have been none; that there was congestion is certain.
    for marked in [true, false] {
        let mut s = in_flight(with_dsack_undo(plain().with_sack()).with_ecn(EcnMode::Request), 10);
        for right in [2001, 3001, 4001] {
            s.receive(segment(1).ack(1).sack(1001, right));
        }
        assert_eq!(s.transmits(), ". 1:1001 ack 1");
        let ack = segment(1).ack(1).sack(1001, 5001);
        s.receive(if marked { ack.ece() } else { ack });
        s.receive(segment(1).ack(5001).sack(1, 1001));
        let expected = if marked { (5000, 5000) } else { (10_000, UNLIMITED) };
        assert_eq!((s.endpoint.stats().spurious_recoveries, window(&s)), (u64::from(!marked), expected));
    }
}

#[test]
fn a_timestamp_echo_with_ecn_echo_undoes_nothing() {
    let mut s = in_flight(with_eifel(plain().with_sack()).with_ecn(EcnMode::Request), 10);
    assert!(s.run_until(450).starts_with("400: . 1:1001 ack 1"));
    let ack = ack_of(&s, 450, 1001, 100);
    s.receive(ack.ece());
    assert_eq!((s.endpoint.stats().spurious_timeouts, window(&s)), (0, (2000, 5000)));
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Loss);
}

#[test]
fn frto_undoes_nothing_after_a_mark() {
    let spurious = SpuriousDetection { frto: Frto::FirstTimeout, ..SpuriousDetection::NONE };
    let mut s = in_flight(Config { spurious, ..plain().with_sack() }.with_ecn(EcnMode::Request), 10);
    s.run_until(450);
    s.receive(segment(1).ack(1001).ece());
    s.transmits();
    s.receive(segment(1).ack(2001));
    assert_eq!((s.endpoint.stats().spurious_timeouts, s.endpoint.ssthresh()), (0, 5000));
}
