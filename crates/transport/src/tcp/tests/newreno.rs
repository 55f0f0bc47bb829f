//! RFC 6582 and ns-2's reading of it.

use super::script::{Script, plain, segment};
use crate::tcp::congestion::{NewRenoConfig, NewRenoExit, NewRenoTimer, PartialAck};
use crate::tcp::{Config, LimitedTransmit, RecoveryPhase, Reduction, Variant};

/// Ten segments in flight, of which the first and the fourth are lost: seven duplicates, then a partial ACK at 3001.
fn two_losses(newreno: NewRenoConfig) -> Script {
    let config =
        Config { variant: Variant::NewReno(newreno), limited_transmit: LimitedTransmit::Off, ..plain() };
    let mut s = Script::sending(config, 1 << 40);
    s.transmits();
    s.run_until(200);
    for _ in 0..8 {
        s.receive(segment(1).ack(1));
    }
    assert_eq!(
        s.transmits(),
        ". 1:1001 ack 1; . 10001:11001 ack 1; . 11001:12001 ack 1; . 12001:13001 ack 1"
    );
    s
}

#[test]
fn a_partial_ack_resends_the_next_hole_and_deflates() {
    let mut s = two_losses(NewRenoConfig::RFC6582);
    assert_eq!(s.endpoint.cwnd(), 13_000);
    s.receive_at(300, segment(1).ack(3001));
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Recovery);
    assert_eq!(s.endpoint.cwnd(), 11_000, "3000 acknowledged, one segment back");
    assert_eq!(s.transmits(), ". 3001:4001 ack 1; . 13001:14001 ack 1");
}

#[test]
fn recovery_lasts_until_everything_sent_before_it_is_acknowledged() {
    let mut s = two_losses(NewRenoConfig::RFC6582);
    s.receive(segment(1).ack(3001));
    s.transmits();
    s.receive(segment(1).ack(10_000));
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Recovery);
    s.transmits();
    s.receive(segment(1).ack(10_001));
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Open);
}

#[test]
fn leaving_recovery() {
    for (exit, expected) in [
        // 4 segments of new data are in flight: ssthresh 5000 against 4000 + 1000.
        (NewRenoExit::FlightSize, 5000),
        (NewRenoExit::Ssthresh, 5000),
    ] {
        let mut s = two_losses(NewRenoConfig { exit, ..NewRenoConfig::RFC6582 });
        s.receive(segment(1).ack(3001));
        s.transmits();
        s.receive(segment(1).ack(10_001));
        assert_eq!(s.endpoint.cwnd(), expected, "{exit:?}");
    }
}

#[test]
fn leaving_recovery_with_little_in_flight_does_not_burst() {
    let mut s = two_losses(NewRenoConfig::RFC6582);
    s.receive(segment(1).ack(3001));
    s.transmits();
    s.receive(segment(1).ack(13_001));
    assert_eq!(s.endpoint.cwnd(), 2000, "one segment in flight and one more");
}

#[test]
fn ns2_leaves_with_what_partial_acks_left_of_the_window() {
    let config = Config {
        reduction: Reduction::Window,
        variant: Variant::NewReno(NewRenoConfig::NS2),
        limited_transmit: LimitedTransmit::Off,
        ..plain()
    };
    let mut s = Script::sending(config, 1 << 40);
    s.transmits();
    for _ in 0..3 {
        s.receive(segment(1).ack(1));
    }
    assert_eq!(s.transmits(), ". 1:1001 ack 1");
    assert_eq!(s.endpoint.cwnd(), 5000 + 3000);
    // Seven segments acknowledged: three from the inflation, four from cwnd, one comes back as inflation.
    s.receive(segment(1).ack(7001));
    assert_eq!(s.endpoint.cwnd(), 1000 + 1000);
    s.transmits();
    s.receive(segment(1).ack(10_001));
    assert_eq!(s.endpoint.cwnd(), 2000, "one segment, and one for the ACK: slow start");
}

#[test]
fn before_2003_a_partial_ack_dropped_the_inflation() {
    let mut s = two_losses(NewRenoConfig { partial_ack: PartialAck::DropInflation, ..NewRenoConfig::NS2 });
    s.receive(segment(1).ack(3001));
    assert_eq!(s.endpoint.cwnd(), 5000);
    assert_eq!(s.transmits(), ". 3001:4001 ack 1");
}

#[test]
fn only_the_first_partial_ack_restarts_an_impatient_timer() {
    for (timer, expected) in [(NewRenoTimer::Impatient, 600), (NewRenoTimer::SlowButSteady, 700)] {
        let mut s = two_losses(NewRenoConfig { timer, ..NewRenoConfig::RFC6582 });
        s.receive_at(300, segment(1).ack(3001));
        s.transmits();
        s.receive_at(400, segment(1).ack(4001));
        s.transmits();
        let said = s.run_until(1000);
        let first = said.split(':').next().unwrap();
        assert_eq!(first, expected.to_string(), "{timer:?}");
    }
}

#[test]
fn duplicates_of_data_resent_after_a_timeout_start_no_recovery() {
    // RFC 6582 §3.2 (2), (4).
    let mut s = Script::sending(plain(), 1 << 40);
    s.transmits();
    s.run_until(450);
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Loss);
    for _ in 0..5 {
        s.receive(segment(1).ack(1));
    }
    assert_eq!(s.endpoint.stats().fast_retransmits, 0);
    s.receive(segment(1).ack(10_001));
    s.transmits();
    for _ in 0..3 {
        s.receive(segment(1).ack(10_001));
    }
    assert_eq!(s.endpoint.stats().fast_retransmits, 0, "not more than recover yet");
    s.receive(segment(1).ack(11_001));
    s.transmits();
    for _ in 0..3 {
        s.receive(segment(1).ack(11_001));
    }
    assert_eq!(s.endpoint.stats().fast_retransmits, 1);
}
