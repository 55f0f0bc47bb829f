//! RFC 6937 and RFC 9937: what leaves during recovery.

use super::script::{Script, mss_1000_sack, plain, segment};
use crate::tcp::congestion::SackConfig;
use crate::tcp::{
    Config, EcnMode, InitialSsthresh, InitialWindow, LimitedTransmit, MarkReduction, PrrBound, RecoveryPhase,
    RecoveryReduction, Variant,
};
use hopline_core::{Instant, Length};

const BOUNDS: [PrrBound; 3] = [PrrBound::Conservative, PrrBound::SlowStart, PrrBound::SafeAck];

/// Twenty segments in flight.
fn in_flight(window: RecoveryReduction) -> Script {
    let config = Config {
        variant: Variant::Sack(SackConfig { reduction: window, ..SackConfig::RFC6675 }),
        initial_window: InitialWindow::Segments(20),
        initial_ssthresh: InitialSsthresh::Segments(20),
        limited_transmit: LimitedTransmit::Off,
        ..plain()
    };
    let mut s = Script::connected_with(config, mss_1000_sack());
    s.endpoint.send(s.now, Length(1 << 40)).unwrap();
    s.transmits();
    s
}

/// Segments sent after each of the ACKs for the segments number `sacked` (the first is 0), of which those before are lost.
fn sent_per_ack(s: &mut Script, sacked: core::ops::Range<i64>) -> Vec<usize> {
    let from = sacked.start;
    sacked
        .map(|n| {
            s.receive(segment(1).ack(1).sack(1 + 1000 * from, 1001 + 1000 * n));
            s.transmits().split_terminator(';').count()
        })
        .collect()
}

#[test]
fn without_prr_sending_waits_for_half_a_window_of_acks() {
    let mut s = in_flight(RecoveryReduction::AtOnce);
    assert_eq!(sent_per_ack(&mut s, 1..20), [0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
}

#[test]
fn prr_sends_one_segment_for_two_delivered_until_ssthresh() {
    for bound in [PrrBound::Conservative, PrrBound::SlowStart] {
        let mut s = in_flight(RecoveryReduction::Prr(bound));
        // 10/20 of what arrives; the retransmission is the first. Two had arrived before, and one is lost: after fourteen ACKs
        // the pipe is below ten, and is kept there.
        let sent = sent_per_ack(&mut s, 1..20);
        assert_eq!(sent, [0, 0, 1, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1, 1, 1, 1], "{bound:?}");
    }
    let mut s = in_flight(RecoveryReduction::Prr(PrrBound::SafeAck));
    // RFC 9937 §6: 10/18, for two of the twenty were reported before.
    let sent = sent_per_ack(&mut s, 1..20);
    assert_eq!(sent, [0, 0, 1, 0, 0, 1, 0, 1, 0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 1]);
}

#[test]
fn recovery_ends_with_the_window_at_ssthresh() {
    for bound in BOUNDS {
        let mut s = in_flight(RecoveryReduction::Prr(bound));
        sent_per_ack(&mut s, 1..20);
        s.receive(segment(1).ack(20_001));
        assert_eq!((s.endpoint.phase(), s.endpoint.cwnd()), (RecoveryPhase::Open, 10_000), "{bound:?}");
    }
}

#[test]
fn heavy_loss_causes_no_burst() {
    // Segments 0 to 11 are lost: at once would send all that is missing at the first ACK.
    let sent = |window| sent_per_ack(&mut in_flight(window), 12..20);
    assert_eq!(sent(RecoveryReduction::AtOnce), [0, 0, 5, 1, 1, 1, 1, 1]);
    assert_eq!(sent(RecoveryReduction::Prr(PrrBound::Conservative)), [0, 0, 1, 1, 1, 1, 1, 1]);
    assert_eq!(
        sent(RecoveryReduction::Prr(PrrBound::SafeAck)),
        [0, 0, 1, 1, 1, 1, 1, 1],
        "no new data acknowledged"
    );
    assert_eq!(sent(RecoveryReduction::Prr(PrrBound::SlowStart)), [0, 0, 2, 2, 2, 2, 1, 1], "up to ssthresh");
}

#[test]
fn a_safe_ack_allows_one_more_segment() {
    let after_partial_ack = |bound| {
        let mut s = in_flight(RecoveryReduction::Prr(bound));
        sent_per_ack(&mut s, 12..20);
        s.receive(segment(1).ack(1001).sack(12_001, 20_001));
        s.transmits().split_terminator(';').count()
    };
    assert_eq!(after_partial_ack(PrrBound::Conservative), 1);
    assert_eq!(after_partial_ack(PrrBound::SafeAck), 2);
}

#[test]
fn an_ack_that_shows_further_loss_is_not_safe() {
    // Segments 0 to 11 are lost; the ACK of the first, with three more, shows either that 16 is lost too or that it is not.
    for (block, expected) in [((17_001, 20_001), 4), ((16_001, 19_001), 5)] {
        let mut s = in_flight(RecoveryReduction::Prr(PrrBound::SafeAck));
        assert_eq!(sent_per_ack(&mut s, 12..16), [0, 0, 1, 1]);
        s.receive(segment(1).ack(1001).sack(block.0, block.1).sack(12_001, 16_001));
        assert_eq!(s.transmits().split_terminator(';').count(), expected, "{block:?}");
    }
}

#[test]
fn a_timeout_in_recovery_ends_it() {
    let mut s = in_flight(RecoveryReduction::Prr(PrrBound::SafeAck));
    sent_per_ack(&mut s, 12..16);
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Recovery);
    let said = s.run_until(2000);
    assert!(said.starts_with("400: . 1:1001 ack 1"), "{said}");
    assert_eq!((s.endpoint.phase(), s.endpoint.cwnd()), (RecoveryPhase::Loss, 1000));
}

/// Twenty segments in flight since 100 ms, with ECN, RACK and PRR.
fn marked(mark_reduction: MarkReduction) -> Script {
    let config = Config {
        initial_window: InitialWindow::Segments(20),
        initial_ssthresh: InitialSsthresh::Segments(20),
        ecn: EcnMode::Request,
        mark_reduction,
        ..plain().with_rack()
    };
    let config = Config { variant: Variant::Sack(SackConfig::RFC9937), ..config };
    let mut s = Script::new(config);
    s.endpoint.connect(s.now).unwrap();
    s.transmits();
    s.now = Instant::from_millis(100);
    s.receive(segment(0).syn().ack(1).ece().options(mss_1000_sack()));
    s.transmits();
    s.endpoint.send(s.now, Length(1 << 40)).unwrap();
    s.transmits();
    s
}

/// Segments sent after each ACK for one of twenty segments, the first with an echo.
fn sent_after_mark(s: &mut Script) -> Vec<usize> {
    s.run_until(200);
    (1..=20)
        .map(|n| {
            let ack = segment(1).ack(1 + 1000 * n);
            s.receive(if n == 1 { ack.ece() } else { ack });
            s.transmits().split_terminator(';').count()
        })
        .collect()
}

#[test]
fn after_a_mark_prr_sends_one_segment_for_two_delivered() {
    // As Linux in CWR. Below ssthresh one leaves for each delivered one, since no loss asks for more.
    let mut s = marked(MarkReduction::Proportional);
    let sent = sent_after_mark(&mut s);
    assert_eq!(sent, [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1]);
    assert_eq!((s.endpoint.ssthresh(), s.endpoint.phase()), (10_000, RecoveryPhase::Open));
    s.receive_at(300, segment(1).ack(21_001));
    assert_eq!(s.transmits().split_terminator(';').count(), 1, "ten in flight");
    assert_eq!(s.endpoint.cwnd(), 10_100, "ssthresh, and one ACK of congestion avoidance");
}

#[test]
fn by_default_a_mark_stops_the_sender_for_half_a_window() {
    let mut s = marked(MarkReduction::AtOnce);
    let sent = sent_after_mark(&mut s);
    assert_eq!(sent, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1]);
}

#[test]
fn a_loss_after_a_mark_goes_on_towards_the_same_ssthresh() {
    let mut s = marked(MarkReduction::Proportional);
    s.run_until(200);
    s.receive(segment(1).ack(1001).ece());
    for n in 3..=6 {
        s.receive(segment(1).ack(1001).sack(2001, 1 + 1000 * n));
        s.transmits();
    }
    assert_eq!((s.endpoint.phase(), s.endpoint.ssthresh()), (RecoveryPhase::Recovery, 10_000));
    s.receive_at(290, segment(1).ack(20_001));
    s.transmits();
    assert_eq!(s.endpoint.ssthresh(), 10_000);
}

#[test]
fn a_timeout_after_a_mark_ends_it() {
    let mut s = marked(MarkReduction::Proportional);
    s.run_until(200);
    s.receive(segment(1).ack(1001).ece());
    s.run_until(3000);
    assert_eq!((s.endpoint.phase(), s.endpoint.cwnd()), (RecoveryPhase::Loss, 1000));
}
