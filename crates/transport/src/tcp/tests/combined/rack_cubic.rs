//! RACK-TLP finds the loss (RFC 8985), CUBIC reduces and grows (RFC 9438).

use super::*;
use crate::tcp::RecoveryPhase;

fn rack() -> Config {
    plain().with_sack().with_rack()
}

/// Ten segments and no more to send, four of them acknowledged at 200 ms, nothing of the others; the probe leaves at 400 ms.
fn probed() -> Script {
    let config = Config {
        initial_ssthresh: InitialSsthresh::Segments(10),
        growth: Growth::Bytes { limit: 2 },
        ..rack().with_cubic()
    };
    let mut s = connected(config, 10);
    s.endpoint.send(s.now, Length(10_000)).unwrap();
    s.transmits();
    s.receive_at(200, segment(1).ack(4001));
    assert_eq!(s.run_until(410), "400: . 9001:10001 ack 1", "two round trips");
    s
}

#[test]
fn a_rack_loss_reduces_to_beta_and_growth_is_cubic() {
    // RFC 9438 §4.2, §4.6: 35, and W(t + 100 ms) = 50 + 0.4·(t + 0.1 − 3.347)³ with t from 400 ms on.
    for (rounds, expected) in [(5, 41_707), (10, 45_461), (20, 49_224)] {
        let (s, _) = congestion_avoidance_after_loss(rack(), rounds);
        assert!(cwnd_is_about(&s, expected), "{} for {expected}", s.endpoint.cwnd());
        assert_eq!((s.endpoint.stats().rack_losses, s.endpoint.stats().timeouts), (1, 0));
    }
}

#[test]
fn a_loss_repaired_by_the_probe_reduces_once_to_beta() {
    // RFC 8985 §7.4.2.
    let mut s = probed();
    s.receive_at(500, segment(1).ack(10_001));
    assert_eq!(s.endpoint.stats().tail_losses, 0, "the original may have arrived");
    s.endpoint.send(s.now, Length(5000)).unwrap();
    s.transmits();
    s.receive_at(600, segment(1).ack(15_001));
    assert_eq!((s.endpoint.stats().tail_losses, s.endpoint.phase()), (1, RecoveryPhase::Open));
    assert_eq!(window(&s), (4200, 4200), "of the six that were in flight");
    s.endpoint.send(s.now, Length(4000)).unwrap();
    s.transmits();
    s.receive_at(700, segment(1).ack(19_001));
    // W_est: 4.2 + 9/17 · 4/4.2 (RFC 9438 §4.3).
    assert_eq!((s.endpoint.stats().tail_losses, window(&s)), (1, (4704, 4200)));
}

#[test]
fn losses_revealed_by_a_tail_loss_probe_reduce_once() {
    let mut s = probed();
    // The two before the probe are lost: sent 400 ms ago, and what was sent later has arrived after 100 ms.
    s.receive_at(500, segment(1).ack(7001).sack(9001, 10_001));
    assert_eq!(
        (s.endpoint.phase(), window(&s)),
        (RecoveryPhase::Recovery, (2100, 2100)),
        "of three in flight"
    );
    assert_eq!(s.transmits(), ". 7001:8001 ack 1; . 8001:9001 ack 1");
    s.receive_at(600, segment(1).ack(10_001));
    s.endpoint.send(s.now, Length(2000)).unwrap();
    s.transmits();
    s.receive_at(700, segment(1).ack(12_001));
    let stats = s.endpoint.stats();
    assert_eq!((stats.tail_losses, stats.fast_retransmits, s.endpoint.ssthresh()), (0, 1, 2100));
}
