//! RFC 3522 and RFC 3708: reductions that were wrong are found out by timestamps and by reports of duplicates.

use super::script::{Script, mss_1000_sack, plain, seg};
use crate::tcp::{Config, Detector, Offer, Phase, Spurious};
use hopline_core::{Duration, Length};
use hopline_wire::tcp::{Options, Timestamps};

const LONG: u64 = 1 << 40;

/// Ten segments of 1000 bytes in flight since 100 ms, with timestamps: an echo of `n` is of what was sent at `n` ms.
fn stamped(config: Config) -> Script {
    let spurious = Spurious { eifel: Detector::On, ..Spurious::UNDETECTED };
    let mut s = Script::new(Config { timestamps: Offer::Yes, mss: 1012, spurious, ..config });
    s.endpoint.connect(s.now).unwrap();
    s.says();
    s.now = hopline_core::Instant::from_millis(100);
    let timestamps = Some(Timestamps { value: 5000, echo: s.peer.iss.0 });
    let options = Options { mss: Some(1012), sack_permitted: true, timestamps, ..Options::default() };
    s.hears(seg(0).syn().ack(1).options(options));
    s.endpoint.send(s.now, Length(LONG)).unwrap();
    s.says();
    s
}

/// An ACK that echoes what was sent at `ms`.
fn echo(s: &Script, ack: i64, ms: u32) -> super::script::FromPeer {
    seg(1).ack(ack).ts(5000 + ms, s.peer.iss.0.wrapping_add(ms))
}

#[test]
fn an_ack_that_echoes_the_first_transmission_undoes_the_timeout() {
    // RFC 3522 §3, steps 4 and 5; RFC 4015 §3.2.
    let mut s = stamped(plain());
    assert_eq!(s.runs_to(440), "400: . 1:1001 ack 1");
    let ack = echo(&s, 1001, 100);
    s.hears_at(450, ack);
    assert_eq!(s.says(), ". 10001:11001 ack 1", "nothing is resent");
    assert_eq!((s.endpoint.cwnd(), s.endpoint.ssthresh()), (10_000, 1 << 30));
    assert_eq!((s.endpoint.phase(), s.endpoint.backoff()), (Phase::Open, 1));
    assert_eq!(s.endpoint.stats().spurious_timeouts, 1);
    let ack = echo(&s, 2001, 100);
    s.hears_at(460, ack);
    // Step 8: 360 + 4·180.
    assert_eq!(s.endpoint.rto(), Duration::from_millis(1080), "the next such delay is waited for");
}

#[test]
fn an_ack_that_echoes_the_retransmission_does_not() {
    let mut s = stamped(plain());
    s.runs_to(440);
    let ack = echo(&s, 1001, 400);
    s.hears_at(500, ack);
    assert_eq!(s.says(), ". 1001:2001 ack 1; . 2001:3001 ack 1");
    let ack = echo(&s, 2001, 100);
    s.hears_at(510, ack);
    assert_eq!(s.endpoint.stats().spurious_timeouts, 0, "the first ACK decides");
}

#[test]
fn of_a_series_of_timeouts_the_first_retransmission_counts_and_all_are_undone() {
    // RFC 3522 §3, step 2.
    let mut s = stamped(plain());
    assert_eq!(s.runs_to(1100), "400: . 1:1001 ack 1; 1000: . 1:1001 ack 1");
    let ack = echo(&s, 1001, 100);
    s.hears_at(1200, ack);
    s.says();
    assert_eq!((s.endpoint.cwnd(), s.endpoint.backoff()), (10_000, 1));
    let mut s = stamped(plain());
    s.runs_to(1100);
    let ack = echo(&s, 1001, 400);
    s.hears_at(1200, ack);
    assert_eq!(s.endpoint.stats().spurious_timeouts, 0, "the second was, but not the first");
}

#[test]
fn a_fast_retransmit_of_what_was_only_late_is_undone() {
    for config in [plain().with_reno(), plain(), plain().with_sack(), plain().with_rack()] {
        let mut s = stamped(config);
        for n in 1..=3 {
            let ack = echo(&s, 1, 0).sack(1001, 1001 + n * 1000);
            s.hears_at(199 + n as u64, ack);
            s.says();
        }
        assert_eq!((s.endpoint.phase(), s.endpoint.stats().retransmissions), (Phase::Recovery, 1));
        let ack = echo(&s, 4001, 100);
        s.hears_at(220, ack);
        let said = s.says();
        assert!(!said.contains(". 4001:"), "{said}");
        assert_eq!((s.endpoint.phase(), s.endpoint.stats().spurious_recoveries), (Phase::Open, 1));
        assert!(s.endpoint.cwnd() >= 10_000);
        assert_eq!(s.endpoint.ssthresh(), 1 << 30);
    }
}

#[test]
fn an_ack_of_a_segment_that_was_resent_before_the_reduction_tells_nothing() {
    let mut s = stamped(plain().with_sack());
    let ack = echo(&s, 1, 0).sack(1001, 4001);
    s.hears_at(200, ack);
    assert_eq!(s.says(), ". 1:1001 ack 1");
    let ack = echo(&s, 1, 0).sack(1001, 5001);
    s.hears_at(250, ack);
    // The first retransmission is not acknowledged when the timer expires.
    assert!(s.runs_to(700).contains(": . 1:1001 ack 1"));
    let ack = echo(&s, 1001, 200);
    s.hears_at(720, ack);
    assert_eq!(s.endpoint.stats().spurious_timeouts, 0);
}

/// Ten segments in flight since 100 ms, SACK in use; reports are believed.
fn reported() -> Script {
    let mut config = plain().with_sack();
    config.spurious.dsack = Detector::On;
    let mut s = Script::connected_with(config, mss_1000_sack());
    s.endpoint.send(s.now, Length(LONG)).unwrap();
    s.says();
    s
}

#[test]
fn a_recovery_of_which_everything_arrived_twice_is_undone() {
    // RFC 3708 §3.
    let mut s = reported();
    s.hears_at(200, seg(1).ack(1).sack(1001, 4001));
    assert_eq!(s.says(), ". 1:1001 ack 1");
    s.hears_at(210, seg(1).ack(10_001));
    assert_eq!((s.endpoint.phase(), s.endpoint.cwnd()), (Phase::Open, 5000));
    s.says();
    s.hears_at(300, seg(1).ack(10_001).sack(1, 1001));
    assert_eq!((s.endpoint.cwnd(), s.endpoint.ssthresh()), (10_000, 1 << 30));
    assert_eq!((s.endpoint.stats().spurious_recoveries, s.endpoint.stats().dsacks_received), (1, 1));
    s.says();
    s.hears_at(301, seg(1).ack(10_001).sack(1, 1001));
    assert_eq!(s.endpoint.stats().spurious_recoveries, 1, "once");
}

#[test]
fn a_recovery_that_repaired_one_loss_stands() {
    let mut s = reported();
    s.hears_at(200, seg(1).ack(1).sack(6001, 9001).sack(4001, 5001).sack(1001, 3001));
    assert_eq!(s.says(), ". 1:1001 ack 1; . 3001:4001 ack 1; . 5001:6001 ack 1; . 10001:11001 ack 1");
    s.hears_at(300, seg(1).ack(10_001).sack(1, 1001));
    s.says();
    s.hears_at(301, seg(1).ack(10_001).sack(5001, 6001));
    assert_eq!((s.endpoint.stats().spurious_recoveries, s.endpoint.ssthresh()), (0, 5000));
}

#[test]
fn reports_of_what_was_not_resent_then_do_not_count() {
    let mut s = reported();
    s.hears_at(150, seg(1).ack(2001));
    s.says();
    s.hears_at(200, seg(1).ack(2001).sack(3001, 6001));
    assert_eq!(s.says(), ". 2001:3001 ack 1");
    s.hears_at(201, seg(1).ack(6001).sack(1, 1001));
    s.hears_at(202, seg(1).ack(6001).sack(1001, 2001));
    assert_eq!(s.endpoint.stats().spurious_recoveries, 0);
}

#[test]
fn a_report_comes_too_late_a_window_after_recovery() {
    let mut s = reported();
    s.hears_at(200, seg(1).ack(1).sack(1001, 4001));
    s.says();
    s.hears_at(210, seg(1).ack(10_001));
    s.says();
    let end = s.endpoint.stats().bytes_sent - s.endpoint.stats().retransmissions * 1000 + 1;
    s.hears_at(310, seg(1).ack(end as i64));
    s.says();
    s.hears_at(320, seg(1).ack(end as i64).sack(1, 1001));
    assert_eq!(s.endpoint.stats().spurious_recoveries, 0);
}

#[test]
fn detectors_that_lack_what_they_go_by_are_refused() {
    let spurious = |spurious| Config { spurious, ..Config::modern() };
    assert_eq!(spurious(Spurious::ALL).validate(), Ok(()));
    let error = Config { timestamps: Offer::No, ..spurious(Spurious::ALL) }.validate().unwrap_err();
    assert_eq!(error.field, "spurious.eifel");
    let newreno = Config { variant: Config::modern().with_newreno().variant, ..spurious(Spurious::ALL) };
    assert_eq!(newreno.validate().unwrap_err().field, "spurious.dsack");
    assert_eq!(spurious(Spurious::ALL).with_newreno().validate(), Ok(()), "which does without reports");
}
