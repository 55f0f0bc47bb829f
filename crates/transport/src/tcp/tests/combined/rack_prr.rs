//! RACK finds the loss (RFC 8985), PRR brings the window down (RFC 9937 §6.1, RFC 6937 §3).

use super::*;
use crate::tcp::{RecoveryPhase, Timer};
use hopline_core::StateMachine;

/// Twenty segments in flight since 100 ms.
fn twenty() -> Script {
    in_flight(prr().with_rack(), 20)
}

/// Segments that each of so many ACKs releases, which report one segment more after another behind the first, from the one
/// that begins at `from` on.
fn released(s: &mut Script, from: i64, acks: i64) -> Vec<usize> {
    (1..=acks)
        .map(|n| {
            s.receive(segment(1).ack(1).sack(1001, from + 1000 * n));
            s.transmits().split_terminator(';').count()
        })
        .collect()
}

#[test]
fn the_first_retransmission_ignores_the_pipe() {
    let mut s = twenty();
    s.receive_at(200, segment(1).ack(1).sack(1001, 2001));
    assert_eq!(s.transmits(), ". 20001:21001 ack 1");
    // A quarter of 100 ms after the round trip (RFC 8985 §6.2, step 4).
    assert_eq!(s.endpoint.poll_timeout(), Some((Instant::from_millis(225), Timer::Reordering)));
    assert_eq!(s.run_until(300), "225: . 1:1001 ack 1");
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Recovery);
    // The timer delivers nothing: sndcnt is 0, and cwnd the 19 that are in flight, but for "force a fast retransmit".
    assert_eq!(window(&s), (19_000, 10_000));
}

#[test]
fn prr_sends_one_segment_for_two_delivered_until_ssthresh() {
    let mut s = twenty();
    s.receive_at(200, segment(1).ack(1).sack(1001, 2001));
    s.transmits();
    s.run_until(300);
    // RecoverFS is 20: of 21 sent one was reported before. sndcnt is ⌈delivered/2⌉ less what left: the retransmission, and then
    // one at the 4th, 6th, … 14th. By the 16th ten are in flight; from the 17th on they are kept there.
    let sent = released(&mut s, 2001, 18);
    assert_eq!(sent, [0, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1]);
    s.receive(segment(1).ack(21_001));
    assert_eq!((s.endpoint.phase(), window(&s)), (RecoveryPhase::Open, (10_000, 10_000)));
}

#[test]
fn three_sacked_segments_start_prr_at_once() {
    let mut s = twenty();
    s.receive_at(200, segment(1).ack(1).sack(1001, 4001));
    // Sixteen in flight, and sndcnt = ⌈3 · 10/20⌉ of which 1.5 are whole bytes.
    assert_eq!(window(&s), (17_500, 10_000));
    assert_eq!(s.transmits(), ". 1:1001 ack 1");
    assert_eq!(released(&mut s, 4001, 5), [1, 0, 1, 0, 1], "4/2 − 1, 6/2 − 2, 8/2 − 3");
}

#[test]
fn data_acked_by_the_ack_that_shows_the_loss_count_as_flight() {
    // RFC 9937 §6.1: RecoverFS = 15 − (3 − 3) + 5.
    let mut s = twenty();
    s.receive_at(200, segment(1).ack(5001).sack(6001, 9001));
    // Half of the fifteen; eleven in flight, sndcnt = ⌈8 · 7.5/20⌉ = 3.
    assert_eq!(window(&s), (14_000, 7500));
    assert_eq!(s.transmits(), ". 5001:6001 ack 1; . 20001:21001 ack 1; . 21001:22001 ack 1");
}

#[test]
fn below_ssthresh_prr_sends_the_delivered_data_and_one_segment_per_safe_ack() {
    // Twelve are lost, and five in flight: the bound counts. RFC 9937 §6.2: an ACK of new data that shows no further loss.
    for (right, released) in [(20_001, 6), (19_001, 4)] {
        let mut s = twenty();
        s.receive_at(200, segment(1).ack(1).sack(12_001, 15_001));
        assert_eq!(s.transmits(), ". 1:1001 ack 1; . 1001:2001 ack 1; . 2001:3001 ack 1");
        s.receive_at(201, segment(1).ack(1).sack(12_001, 16_001));
        assert_eq!(s.transmits(), ". 3001:4001 ack 1");
        // Five arrive, three are in flight, and six make progress. Or four arrive, and the last one is lost: four.
        s.receive_at(300, segment(1).ack(1001).sack(12_001, right));
        assert_eq!(s.transmits().split(';').count(), released, "{right}");
    }
}
