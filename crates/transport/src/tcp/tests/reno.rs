//! RFC 5681 §3.2: fast retransmit and fast recovery, and ns-2's reading of them.

use super::script::{Script, plain, segment};
use crate::tcp::congestion::{FastRetransmitGuard, RenoConfig, RenoExit};
use crate::tcp::{Config, LimitedTransmit, RecoveryPhase, Reduction, Variant};

fn reno() -> Config {
    Config { limited_transmit: LimitedTransmit::Off, ..plain().with_reno() }
}

/// Ten segments in flight.
fn in_flight(config: Config) -> Script {
    let mut s = Script::sending(config, 1 << 40);
    s.transmits();
    s
}

fn duplicates(s: &mut Script, ack: i64, n: usize) {
    for _ in 0..n {
        s.receive(segment(1).ack(ack));
    }
}

#[test]
fn the_third_duplicate_resends_and_halves() {
    let mut s = in_flight(reno());
    duplicates(&mut s, 1, 2);
    assert_eq!(s.transmits(), "");
    duplicates(&mut s, 1, 1);
    assert_eq!(s.transmits(), ". 1:1001 ack 1");
    assert_eq!(s.endpoint.ssthresh(), 5000);
    assert_eq!(s.endpoint.cwnd(), 8000, "ssthresh and three segments");
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Recovery);
    assert_eq!(s.endpoint.stats().fast_retransmits, 1);
}

#[test]
fn further_duplicates_inflate_and_release_new_data() {
    let mut s = in_flight(reno());
    duplicates(&mut s, 1, 3);
    s.transmits();
    duplicates(&mut s, 1, 2);
    assert_eq!(s.transmits(), "");
    assert_eq!(s.endpoint.cwnd(), 10_000);
    duplicates(&mut s, 1, 1);
    assert_eq!(s.transmits(), ". 10001:11001 ack 1");
}

#[test]
fn the_first_new_ack_ends_recovery() {
    let mut s = in_flight(reno());
    duplicates(&mut s, 1, 9);
    s.transmits();
    s.receive(segment(1).ack(4001));
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Open);
    assert_eq!(s.endpoint.cwnd(), 5000, "deflated to ssthresh, though the ACK is partial");
}

#[test]
fn rfc_reno_may_retransmit_again_in_the_same_window_ns2_reno_may_not() {
    for (guard, expected) in
        [(FastRetransmitGuard::None, ". 4001:5001 ack 1"), (FastRetransmitGuard::OncePerWindow, "")]
    {
        let variant = Variant::Reno(RenoConfig { guard, exit: RenoExit::Deflate });
        let mut s = in_flight(Config { variant, ..reno() });
        duplicates(&mut s, 1, 3);
        s.transmits();
        s.receive(segment(1).ack(4001));
        s.transmits();
        duplicates(&mut s, 4001, 3);
        assert_eq!(s.transmits(), expected, "{guard:?}");
    }
}

#[test]
fn ns2_halves_the_window_and_grows_on_the_way_out() {
    let mut config = reno();
    config.variant = Variant::Reno(RenoConfig::NS2);
    config.reduction = Reduction::Window;
    config.window_clamp = Some(9);
    let mut s = in_flight(config);
    duplicates(&mut s, 1, 3);
    s.transmits();
    assert_eq!(s.endpoint.ssthresh(), 4000);
    assert_eq!(s.endpoint.cwnd(), 4500 + 3000);
    s.receive(segment(1).ack(9001));
    assert_eq!(s.endpoint.cwnd(), 4500 + 222, "4.5 and one part in 4.5");
}

#[test]
fn a_timeout_ends_recovery() {
    let mut s = in_flight(reno());
    duplicates(&mut s, 1, 5);
    s.transmits();
    s.run_until(450);
    assert_eq!(s.endpoint.cwnd(), 1000);
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Loss);
}

#[test]
fn fast_retransmit_restarts_the_timer() {
    let mut s = in_flight(reno());
    assert_eq!(s.run_until(300), "");
    duplicates(&mut s, 1, 3);
    assert_eq!(s.run_until(650), "300: . 1:1001 ack 1; 600: . 1:1001 ack 1");
}
