//! RFC 3522 and RFC 3708: reductions that were wrong are found out by timestamps and by reports of duplicates.

use super::script::{Script, mss_1000_sack, plain, segment};
use crate::tcp::{Config, OptionOffer, RecoveryPhase, SpuriousDetection, SpuriousDetector};
use hopline_core::{Duration, Length};
use hopline_wire::tcp::{Options, Timestamps};

const LONG: u64 = 1 << 40;

/// Ten segments of 1000 bytes in flight since 100 ms, with timestamps: an echo of `n` is of what was sent at `n` ms.
fn with_timestamps(config: Config) -> Script {
    let spurious = SpuriousDetection { eifel: SpuriousDetector::On, ..SpuriousDetection::NONE };
    let mut s = Script::new(Config { timestamps: OptionOffer::Offered, mss: 1012, spurious, ..config });
    s.endpoint.connect(s.now).unwrap();
    s.transmits();
    s.now = hopline_core::Instant::from_millis(100);
    let timestamps = Some(Timestamps { value: 5000, echo: s.peer.iss.0 });
    let options = Options { mss: Some(1012), sack_permitted: true, timestamps, ..Options::default() };
    s.receive(segment(0).syn().ack(1).options(options));
    s.endpoint.send(s.now, Length(LONG)).unwrap();
    s.transmits();
    s
}

/// An ACK that echoes what was sent at `ms`.
fn echo(s: &Script, ack: i64, ms: u32) -> super::script::SegmentBuilder {
    segment(1).ack(ack).ts(5000 + ms, s.peer.iss.0.wrapping_add(ms))
}

#[test]
fn an_ack_that_echoes_the_first_transmission_undoes_the_timeout() {
    // RFC 3522 §3, steps 4 and 5; RFC 4015 §3.2.
    let mut s = with_timestamps(plain());
    assert_eq!(s.run_until(440), "400: . 1:1001 ack 1");
    let ack = echo(&s, 1001, 100);
    s.receive_at(450, ack);
    assert_eq!(s.transmits(), ". 10001:11001 ack 1", "nothing is resent");
    assert_eq!((s.endpoint.cwnd(), s.endpoint.ssthresh()), (10_000, 1 << 30));
    assert_eq!((s.endpoint.phase(), s.endpoint.backoff()), (RecoveryPhase::Open, 1));
    assert_eq!(s.endpoint.stats().spurious_timeouts, 1);
    let ack = echo(&s, 2001, 100);
    s.receive_at(460, ack);
    // Step 8: 360 + 4·180.
    assert_eq!(s.endpoint.rto(), Duration::from_millis(1080), "the next such delay is waited for");
}

#[test]
fn an_ack_that_echoes_the_retransmission_does_not() {
    let mut s = with_timestamps(plain());
    s.run_until(440);
    let ack = echo(&s, 1001, 400);
    s.receive_at(500, ack);
    assert_eq!(s.transmits(), ". 1001:2001 ack 1; . 2001:3001 ack 1");
    let ack = echo(&s, 2001, 100);
    s.receive_at(510, ack);
    assert_eq!(s.endpoint.stats().spurious_timeouts, 0, "the first ACK decides");
}

#[test]
fn an_echo_of_the_first_transmission_undoes_a_series_of_timeouts() {
    // RFC 3522 §3, step 2.
    let mut s = with_timestamps(plain());
    assert_eq!(s.run_until(1100), "400: . 1:1001 ack 1; 1000: . 1:1001 ack 1");
    let ack = echo(&s, 1001, 100);
    s.receive_at(1200, ack);
    s.transmits();
    assert_eq!((s.endpoint.cwnd(), s.endpoint.backoff()), (10_000, 1));
    let mut s = with_timestamps(plain());
    s.run_until(1100);
    let ack = echo(&s, 1001, 400);
    s.receive_at(1200, ack);
    assert_eq!(s.endpoint.stats().spurious_timeouts, 0, "the second was, but not the first");
}

#[test]
fn a_fast_retransmit_of_reordered_data_is_undone() {
    for config in [plain().with_reno(), plain(), plain().with_sack(), plain().with_rack()] {
        let mut s = with_timestamps(config);
        for n in 1..=3 {
            let ack = echo(&s, 1, 0).sack(1001, 1001 + n * 1000);
            s.receive_at(199 + n as u64, ack);
            s.transmits();
        }
        assert_eq!((s.endpoint.phase(), s.endpoint.stats().retransmissions), (RecoveryPhase::Recovery, 1));
        let ack = echo(&s, 4001, 100);
        s.receive_at(220, ack);
        let said = s.transmits();
        assert!(!said.contains(". 4001:"), "{said}");
        assert_eq!((s.endpoint.phase(), s.endpoint.stats().spurious_recoveries), (RecoveryPhase::Open, 1));
        assert!(s.endpoint.cwnd() >= 10_000);
        assert_eq!(s.endpoint.ssthresh(), 1 << 30);
    }
}

#[test]
fn an_ack_of_a_segment_retransmitted_before_the_reduction_is_no_evidence() {
    let mut s = with_timestamps(plain().with_sack());
    let ack = echo(&s, 1, 0).sack(1001, 4001);
    s.receive_at(200, ack);
    assert_eq!(s.transmits(), ". 1:1001 ack 1");
    let ack = echo(&s, 1, 0).sack(1001, 5001);
    s.receive_at(250, ack);
    // The first retransmission is not acknowledged when the timer expires.
    assert!(s.run_until(700).contains(": . 1:1001 ack 1"));
    let ack = echo(&s, 1001, 200);
    s.receive_at(720, ack);
    assert_eq!(s.endpoint.stats().spurious_timeouts, 0);
}

/// Ten segments in flight since 100 ms, SACK in use; reports are believed.
fn with_dsack() -> Script {
    let mut config = plain().with_sack();
    config.spurious.dsack = SpuriousDetector::On;
    let mut s = Script::connected_with(config, mss_1000_sack());
    s.endpoint.send(s.now, Length(LONG)).unwrap();
    s.transmits();
    s
}

#[test]
fn a_recovery_with_only_duplicate_retransmissions_is_undone() {
    // RFC 3708 §3.
    let mut s = with_dsack();
    s.receive_at(200, segment(1).ack(1).sack(1001, 4001));
    assert_eq!(s.transmits(), ". 1:1001 ack 1");
    s.receive_at(210, segment(1).ack(10_001));
    assert_eq!((s.endpoint.phase(), s.endpoint.cwnd()), (RecoveryPhase::Open, 5000));
    s.transmits();
    s.receive_at(300, segment(1).ack(10_001).sack(1, 1001));
    assert_eq!((s.endpoint.cwnd(), s.endpoint.ssthresh()), (10_000, 1 << 30));
    assert_eq!((s.endpoint.stats().spurious_recoveries, s.endpoint.stats().dsacks_received), (1, 1));
    s.transmits();
    s.receive_at(301, segment(1).ack(10_001).sack(1, 1001));
    assert_eq!(s.endpoint.stats().spurious_recoveries, 1, "once");
}

#[test]
fn a_recovery_that_repaired_a_loss_is_not_undone() {
    let mut s = with_dsack();
    s.receive_at(200, segment(1).ack(1).sack(6001, 9001).sack(4001, 5001).sack(1001, 3001));
    assert_eq!(s.transmits(), ". 1:1001 ack 1; . 3001:4001 ack 1; . 5001:6001 ack 1; . 10001:11001 ack 1");
    s.receive_at(300, segment(1).ack(10_001).sack(1, 1001));
    s.transmits();
    s.receive_at(301, segment(1).ack(10_001).sack(5001, 6001));
    assert_eq!((s.endpoint.stats().spurious_recoveries, s.endpoint.ssthresh()), (0, 5000));
}

#[test]
fn dsacks_of_other_data_do_not_count() {
    let mut s = with_dsack();
    s.receive_at(150, segment(1).ack(2001));
    s.transmits();
    s.receive_at(200, segment(1).ack(2001).sack(3001, 6001));
    assert_eq!(s.transmits(), ". 2001:3001 ack 1");
    s.receive_at(201, segment(1).ack(6001).sack(1, 1001));
    s.receive_at(202, segment(1).ack(6001).sack(1001, 2001));
    assert_eq!(s.endpoint.stats().spurious_recoveries, 0);
}

#[test]
fn a_dsack_a_window_after_recovery_does_not_count() {
    let mut s = with_dsack();
    s.receive_at(200, segment(1).ack(1).sack(1001, 4001));
    s.transmits();
    s.receive_at(210, segment(1).ack(10_001));
    s.transmits();
    let end = s.endpoint.stats().bytes_sent - s.endpoint.stats().retransmissions * 1000 + 1;
    s.receive_at(310, segment(1).ack(end as i64));
    s.transmits();
    s.receive_at(320, segment(1).ack(end as i64).sack(1, 1001));
    assert_eq!(s.endpoint.stats().spurious_recoveries, 0);
}

#[test]
fn detectors_without_their_requirements_are_refused() {
    let spurious = |spurious| Config { spurious, ..Config::modern() };
    assert_eq!(spurious(SpuriousDetection::ALL).validate(), Ok(()));
    let error = Config { timestamps: OptionOffer::NotOffered, ..spurious(SpuriousDetection::ALL) }
        .validate()
        .unwrap_err();
    assert_eq!(error.field, "spurious.eifel");
    let newreno =
        Config { variant: Config::modern().with_newreno().variant, ..spurious(SpuriousDetection::ALL) };
    assert_eq!(newreno.validate().unwrap_err().field, "spurious.dsack");
    assert_eq!(
        spurious(SpuriousDetection::ALL).with_newreno().validate(),
        Ok(()),
        "which does without reports"
    );
}
