//! RFC 5682: after a time-out the next two ACKs tell whether it was spurious; RFC 4015: what follows then.

use super::script::{Script, mss_1000, mss_1000_sack, plain, segment};
use crate::tcp::{Config, Frto, RecoveryPhase, SpuriousDetection};
use hopline_core::Length;

fn frto(config: Config) -> Config {
    Config { spurious: SpuriousDetection { frto: Frto::FirstTimeout, ..SpuriousDetection::NONE }, ..config }
}

/// Ten segments in flight since 100 ms, of so many bytes; the first is resent at 400.
fn timed_out(config: Config, bytes: u64) -> Script {
    let sack = config.with_sack().variant == config.variant;
    let mut s = Script::connected_with(config, if sack { mss_1000_sack() } else { mss_1000() });
    s.endpoint.send(s.now, Length(bytes)).unwrap();
    s.transmits();
    assert_eq!(s.run_until(450), "400: . 1:1001 ack 1");
    assert_eq!((s.endpoint.cwnd(), s.endpoint.ssthresh(), s.endpoint.backoff()), (1000, 5000, 2));
    s
}

const LONG: u64 = 1 << 40;

#[test]
fn acks_beyond_the_retransmission_undo_the_timeout() {
    // RFC 5682 §2.1, steps 2 b and 3 b.
    let mut s = timed_out(frto(plain()), LONG);
    s.receive_at(500, segment(1).ack(1001));
    assert_eq!(s.transmits(), ". 10001:11001 ack 1; . 11001:12001 ack 1", "new data, to find out");
    s.receive_at(510, segment(1).ack(2001));
    assert_eq!((s.endpoint.phase(), s.endpoint.cwnd()), (RecoveryPhase::Open, 10_000));
    assert_eq!((s.endpoint.ssthresh(), s.endpoint.backoff()), (1 << 30, 1));
    assert_eq!(s.transmits(), "", "ten are in flight");
    s.receive_at(520, segment(1).ack(3001));
    assert_eq!(s.transmits(), ". 12001:13001 ack 1; . 13001:14001 ack 1");
    let stats = s.endpoint.stats();
    assert_eq!((stats.spurious_timeouts, stats.timeouts, stats.retransmissions), (1, 1, 1));
}

#[test]
fn a_duplicate_after_the_new_data_goes_back_to_resending() {
    // RFC 5682 §2.1, step 3 a.
    let mut s = timed_out(frto(plain()), LONG);
    s.receive_at(500, segment(1).ack(1001));
    s.transmits();
    s.receive_at(510, segment(1).ack(1001));
    assert_eq!(s.transmits(), ". 1001:2001 ack 1; . 2001:3001 ack 1");
    assert_eq!((s.endpoint.phase(), s.endpoint.stats().spurious_timeouts), (RecoveryPhase::Loss, 0));
}

#[test]
fn a_full_ack_or_a_duplicate_is_no_evidence() {
    // RFC 5682 §2.1, step 2 a.
    let mut s = timed_out(frto(plain()), LONG);
    s.receive_at(500, segment(1).ack(10_001));
    assert_eq!(s.transmits(), ". 10001:11001 ack 1; . 11001:12001 ack 1", "cwnd is two segments");
    assert_eq!((s.endpoint.ssthresh(), s.endpoint.stats().spurious_timeouts), (5000, 0));
    let mut s = timed_out(frto(plain()), LONG);
    s.receive_at(490, segment(1).ack(1));
    s.receive_at(500, segment(1).ack(1001));
    assert_eq!(s.transmits(), ". 1001:2001 ack 1; . 2001:3001 ack 1");
}

#[test]
fn without_new_data_frto_is_undecided() {
    // RFC 5682 §2.1, step 2 b.
    let mut s = timed_out(frto(plain()), 10_000);
    s.receive_at(500, segment(1).ack(1001));
    assert_eq!(s.transmits(), ". 1001:2001 ack 1; . 2001:3001 ack 1");
}

#[test]
fn an_ack_of_part_of_the_retransmission_is_no_evidence() {
    let mut s = timed_out(frto(plain()), LONG);
    s.receive_at(500, segment(1).ack(501));
    assert_eq!(s.transmits(), ". 1001:2001 ack 1", "resent as usual");
}

#[test]
fn with_sack_blocks_below_the_recovery_point_are_evidence() {
    // RFC 5682 §3.1.
    let mut s = timed_out(frto(plain().with_sack()), LONG);
    s.receive_at(490, segment(1).ack(1).sack(2001, 3001));
    assert_eq!(s.transmits(), "");
    s.receive_at(500, segment(1).ack(1001).sack(2001, 3001));
    assert_eq!(s.transmits(), ". 10001:11001 ack 1; . 11001:12001 ack 1");
    s.receive_at(510, segment(1).ack(1001).sack(2001, 4001));
    assert_eq!((s.endpoint.stats().spurious_timeouts, s.endpoint.phase()), (1, RecoveryPhase::Open));
}

#[test]
fn with_sack_a_block_of_the_new_data_shows_that_the_old_were_lost() {
    // RFC 5682 §3.1, step 3 a.
    let mut s = timed_out(frto(plain().with_sack()), LONG);
    s.receive_at(500, segment(1).ack(1001));
    s.transmits();
    s.receive_at(600, segment(1).ack(1001).sack(10_001, 11_001));
    assert_eq!(s.transmits(), ". 1001:2001 ack 1; . 2001:3001 ack 1");
    s.receive_at(601, segment(1).ack(1001).sack(10_001, 12_001));
    s.receive_at(700, segment(1).ack(3001).sack(10_001, 12_001));
    s.transmits();
    assert_eq!(s.endpoint.stats().spurious_timeouts, 0);
    assert_eq!(s.endpoint.ssthresh(), 5000);
}

#[test]
fn frto_runs_on_the_first_timeout_or_on_every_one_as_configured() {
    // RFC 5682 §2.1, step 1.
    for (choice, then, undone) in [
        (Frto::FirstTimeout, ". 1001:2001 ack 1; . 2001:3001 ack 1", 0),
        (Frto::EveryTimeout, ". 10001:11001 ack 1; . 11001:12001 ack 1", 1),
    ] {
        let mut config = plain();
        config.spurious.frto = choice;
        let mut s = timed_out(config, LONG);
        assert_eq!(s.run_until(2500), "1000: . 1:1001 ack 1; 2200: . 1:1001 ack 1");
        assert_eq!(s.endpoint.backoff(), 8);
        s.receive_at(2600, segment(1).ack(1001));
        assert_eq!(s.transmits(), then);
        s.receive_at(2610, segment(1).ack(2001));
        assert_eq!(s.endpoint.stats().spurious_timeouts, undone);
        if undone == 1 {
            assert_eq!((s.endpoint.cwnd(), s.endpoint.backoff()), (10_000, 1), "all of them");
        }
    }
}

#[test]
fn a_timeout_stops_frto() {
    let mut s = timed_out(frto(plain()), LONG);
    s.receive_at(500, segment(1).ack(1001));
    s.transmits();
    let said = s.run_until(1500);
    assert!(said.ends_with(". 1001:2001 ack 1"), "{said}");
    s.receive_at(1510, segment(1).ack(2001));
    assert_eq!(s.transmits(), ". 2001:3001 ack 1; . 3001:4001 ack 1");
    assert_eq!(s.endpoint.stats().spurious_timeouts, 0);
}

#[test]
fn with_rack_a_spurious_timeout_causes_no_more_retransmissions() {
    let mut s = Script::connected_with(frto(plain().with_rack()), mss_1000_sack());
    s.endpoint.send(s.now, Length(LONG)).unwrap();
    s.transmits();
    assert_eq!(s.run_until(650), "300: . 10001:11001 ack 1; 600: . 1:1001 ack 1");
    assert_eq!(s.endpoint.stats().rack_losses, 11);
    s.receive_at(700, segment(1).ack(1001));
    assert_eq!(s.transmits(), ". 11001:12001 ack 1; . 12001:13001 ack 1");
    s.receive_at(710, segment(1).ack(2001));
    assert_eq!(s.endpoint.stats().spurious_timeouts, 1);
    s.receive_at(720, segment(1).ack(11_001));
    s.transmits();
    assert_eq!((s.endpoint.stats().retransmissions, s.endpoint.phase()), (1, RecoveryPhase::Open));
}

#[test]
fn without_detectors_a_timeout_is_not_undone() {
    let mut s = timed_out(plain(), LONG);
    s.receive_at(500, segment(1).ack(1001));
    assert_eq!(s.transmits(), ". 1001:2001 ack 1; . 2001:3001 ack 1");
}
