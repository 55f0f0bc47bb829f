//! RFC 8985 §6: losses told by time.

use super::script::{Script, mss_1000, mss_1000_sack, plain, segment};
use crate::tcp::rack::{Rack, RackAck, ReorderingInput};
use crate::tcp::scoreboard::Scoreboard;
use crate::tcp::{Config, RackConfig, RackRttSource, RecoveryPhase};
use hopline_core::{Duration, Instant, Length};

fn rack() -> Config {
    plain().with_rack()
}

/// Ten segments in flight since 100 ms, the round trip is 100 ms, and there is more to send.
fn in_flight() -> Script {
    let mut s = Script::connected_with(rack(), mss_1000_sack());
    s.endpoint.send(s.now, Length(1 << 40)).unwrap();
    s.transmits();
    s
}

#[test]
fn without_reordering_three_sacked_segments_show_a_loss_at_once() {
    // RFC 8985 §6.2, step 4.
    let mut s = in_flight();
    s.receive_at(200, segment(1).ack(1).sack(1001, 4001));
    assert_eq!(s.transmits(), ". 1:1001 ack 1");
    assert_eq!(
        (s.endpoint.phase(), s.endpoint.ssthresh(), s.endpoint.cwnd()),
        (RecoveryPhase::Recovery, 5000, 5000)
    );
    assert_eq!((s.endpoint.stats().rack_losses, s.endpoint.stats().fast_retransmits), (1, 1));
}

#[test]
fn one_segment_beyond_a_hole_is_a_loss_after_a_quarter_of_a_round_trip() {
    let mut s = in_flight();
    s.receive_at(200, segment(1).ack(1).sack(1001, 2001));
    assert_eq!(s.transmits(), ". 10001:11001 ack 1", "the peer holds one, another may go");
    assert_eq!(s.run_until(300), "225: . 1:1001 ack 1");
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Recovery);
    assert_eq!(s.endpoint.ssthresh(), 5000, "what was sent beyond cwnd is not FlightSize");
}

#[test]
fn a_late_segment_is_not_lost_and_shows_reordering() {
    let mut s = in_flight();
    s.receive_at(200, segment(1).ack(1).sack(1001, 2001));
    s.transmits();
    s.receive_at(220, segment(1).ack(2001));
    s.transmits();
    assert_eq!(s.endpoint.stats().retransmissions, 0);
    // From now on three segments beyond a hole are not enough, RFC 8985 §6.2, steps 3 and 4.
    s.receive_at(221, segment(1).ack(2001).sack(3001, 6001));
    assert!(!s.transmits().contains(". 2001:"));
    // Sent at 100, the latest delivered took 121, and a quarter of the least round trip is 25.
    let said = s.run_until(300);
    assert!(said.starts_with("246: . 2001:3001 ack 1"), "{said}");
}

#[test]
fn overdue_segments_are_retransmitted_in_order_as_the_pipe_allows() {
    let mut s = in_flight();
    s.receive_at(200, segment(1).ack(1).sack(8001, 10_001).sack(1001, 2001));
    // Seven of ten are lost; cwnd is 5.
    assert_eq!(
        s.transmits(),
        ". 1:1001 ack 1; . 2001:3001 ack 1; . 3001:4001 ack 1; . 4001:5001 ack 1; . 5001:6001 ack 1"
    );
    assert_eq!(s.endpoint.stats().rack_losses, 7);
    s.receive_at(300, segment(1).ack(2001).sack(8001, 10_001));
    assert_eq!(s.transmits(), ". 6001:7001 ack 1");
    s.receive_at(301, segment(1).ack(6001).sack(8001, 10_001));
    assert_eq!(
        s.transmits(),
        ". 7001:8001 ack 1; . 10001:11001 ack 1; . 11001:12001 ack 1; . 12001:13001 ack 1",
        "what is lost comes first"
    );
    s.receive_at(400, segment(1).ack(10_001));
    assert_eq!((s.endpoint.phase(), s.endpoint.cwnd()), (RecoveryPhase::Open, 5000));
    assert_eq!(s.endpoint.stats().timeouts, 0);
}

#[test]
fn a_retransmission_that_is_lost_is_sent_again_without_a_timeout() {
    // RFC 8985 §3.4: what was sent after it has arrived.
    let mut s = in_flight();
    s.receive_at(200, segment(1).ack(1).sack(1001, 7001));
    assert_eq!(s.transmits(), ". 1:1001 ack 1; . 10001:11001 ack 1");
    s.receive_at(250, segment(1).ack(1).sack(1001, 8001));
    assert_eq!(s.transmits(), ". 11001:12001 ack 1");
    s.receive_at(300, segment(1).ack(1).sack(1001, 8001).sack(10_001, 11_001));
    assert_eq!(s.transmits(), ". 1:1001 ack 1; . 8001:9001 ack 1; . 9001:10001 ack 1; . 12001:13001 ack 1");
    assert_eq!((s.endpoint.stats().fast_retransmits, s.endpoint.stats().timeouts), (1, 0));
    assert_eq!(s.endpoint.cwnd(), 5000, "one reduction for one window");
}

#[test]
fn an_ack_below_the_min_rtt_does_not_cover_the_retransmission() {
    // RFC 8985 §6.2, step 2: it is for the first transmission.
    let mut s = in_flight();
    s.receive_at(200, segment(1).ack(1).sack(1001, 4001));
    assert_eq!(s.transmits(), ". 1:1001 ack 1");
    s.receive_at(210, segment(1).ack(4001));
    let said = s.transmits();
    assert!(!said.contains(". 4001:"), "not everything sent before the retransmission is lost: {said}");
}

#[test]
fn two_dsacks_of_one_round_widen_the_window_once() {
    // RFC 8985 §6.2, step 4.
    let mut s = in_flight();
    s.receive_at(200, segment(1).ack(1).sack(1001, 2001));
    s.transmits();
    s.receive_at(210, segment(1).ack(2001));
    s.transmits();
    s.receive_at(211, segment(1).ack(2001).sack(1, 1001));
    s.receive_at(212, segment(1).ack(2001).sack(1, 1001));
    s.transmits();
    // Two quarters of 100 ms, not three: both reports are of one round.
    s.receive_at(220, segment(1).ack(2001).sack(3001, 4001));
    s.transmits();
    let said = s.run_until(320);
    assert!(said.starts_with("270: . 2001:3001 ack 1"), "{said}");
}

/// Returns the milliseconds after its sending at which a segment is lost. Another segment sent then took 100 ms, and the
/// smoothed round-trip time is 120 ms. `rounds` rounds had a D-SACK, and then `recoveries` recoveries had none.
fn lost_after(rounds: u64, recoveries: usize) -> u64 {
    let ms = Instant::from_millis;
    let mut rack = Rack::new(RackConfig::RFC8985, 1);
    rack.on_sent(1, 1001, ms(1000));
    rack.on_sent(1001, 2001, ms(1000));
    for round in 0..rounds {
        rack.on_dsack(round, round + 1);
        rack.on_dsack(round, round + 1);
    }
    (0..recoveries).for_each(|_| rack.on_recovery_over());
    let mut board = Scoreboard::default();
    board.add(1001, 2001);
    let blocks = &[(1001, 2001)];
    rack.on_ack(RackAck { now: ms(1100), una: 1, scoreboard: &board, blocks, echoed_send_time: None });
    let srtt = Some(Duration::from_millis(120));
    let found = rack.detect(ms(1100), ReorderingInput { phase: RecoveryPhase::Open, srtt, dup_thresh: 3 });
    assert_eq!(found.lost, 0);
    found.recheck_at.unwrap().as_nanos() / 1_000_000 - 1000
}

#[test]
fn the_reordering_window_grows_with_dsacks_up_to_srtt_and_shrinks_again() {
    // RFC 8985 §6.2, step 4.
    assert_eq!([0, 1, 2, 3, 4, 20].map(|rounds| lost_after(rounds, 0)), [125, 150, 175, 200, 220, 220]);
    assert_eq!([15, 16, 99].map(|recoveries| lost_after(3, recoveries)), [200, 125, 125]);
}

#[test]
fn a_timeout_marks_only_overdue_segments_lost() {
    // RFC 8985 §6.3.
    let mut config = rack();
    config.loss_detection = no_probe();
    let mut s = Script::connected_with(config, mss_1000_sack());
    s.endpoint.send(s.now, Length(3000)).unwrap();
    s.transmits();
    s.run_until(390);
    s.endpoint.send(s.now, Length(1000)).unwrap();
    assert_eq!(s.transmits(), ". 3001:4001 ack 1");
    // The timer was set at 100 to 300 ms.
    assert_eq!(s.run_until(450), "400: . 1:1001 ack 1");
    assert_eq!((s.endpoint.phase(), s.endpoint.cwnd()), (RecoveryPhase::Loss, 1000));
    assert_eq!(s.endpoint.stats().rack_losses, 3);
    s.receive_at(490, segment(1).ack(1).sack(3001, 4001));
    assert_eq!(s.transmits(), "", "cwnd is one segment, and the first is under way");
    s.receive_at(500, segment(1).ack(1001).sack(3001, 4001));
    assert_eq!(s.transmits(), ". 1001:2001 ack 1; . 2001:3001 ack 1");
    s.receive_at(600, segment(1).ack(4001));
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Open);
    assert_eq!(s.endpoint.stats().retransmissions, 3);
}

#[test]
fn sacked_segments_are_kept_at_a_timeout() {
    let mut s = in_flight();
    s.receive_at(200, segment(1).ack(1).sack(5001, 10_001));
    s.transmits();
    let said = s.run_until(1000);
    assert!(said.contains(". 1:1001 ack 1"), "{said}");
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Loss);
    for (ack, ms) in [(1001, 1001), (2001, 1101), (3001, 1201), (4001, 1301)] {
        s.receive_at(ms, segment(1).ack(ack).sack(5001, 10_001));
        let said = s.transmits();
        assert!(!said.contains(". 5001:"), "{said}");
    }
}

#[test]
fn reneged_data_are_retransmitted() {
    let mut s = in_flight();
    s.receive_at(200, segment(1).ack(1).sack(1001, 4001));
    s.transmits();
    s.receive_at(300, segment(1).ack(2001));
    assert_eq!(s.endpoint.stats().reneged, 1);
    let said = s.transmits() + &s.run_until(1000);
    assert!(said.contains(". 2001:3001 ack 1"), "{said}");
}

#[test]
fn data_and_fin_are_resent_together() {
    let mut s = Script::connected_with(rack(), mss_1000_sack());
    s.endpoint.send(s.now, Length(5000)).unwrap();
    s.endpoint.close(s.now).unwrap();
    s.transmits();
    s.receive_at(200, segment(1).ack(1).sack(1001, 4001));
    assert_eq!(s.transmits(), ". 1:1001 ack 1");
    s.receive_at(300, segment(1).ack(4001));
    let said = s.run_until(900);
    assert!(said.contains("F 4001:5001 ack 1"), "{said}");
}

#[test]
fn without_sack_duplicate_acks_are_used() {
    let mut s = Script::connected_with(rack(), mss_1000());
    s.endpoint.send(s.now, Length(1 << 40)).unwrap();
    s.transmits();
    for _ in 0..3 {
        s.receive(segment(1).ack(1));
    }
    assert_eq!((s.endpoint.phase(), s.endpoint.cwnd()), (RecoveryPhase::Recovery, 8000));
    assert_eq!(s.endpoint.stats().rack_losses, 0);
}

/// RACK without tail loss probes.
fn no_probe() -> crate::tcp::LossDetection {
    use crate::tcp::{LossDetection, TailProbe};
    LossDetection::Rack(RackConfig { tail_probe: TailProbe::Off, ..RackConfig::RFC8985 })
}

#[test]
fn after_a_partial_ack_the_round_trip_may_be_that_of_the_last_segment_in_the_stream() {
    // The ACK at 210 ms delivers the retransmission of the first segment, which took 10 ms, and the second, which took 110. The
    // fourth has been in flight for 110.
    let at = Instant::from_millis;
    for (source, lost) in [(RackRttSource::LastSent, 1), (RackRttSource::LastInStream, 0)] {
        let mut rack = Rack::new(RackConfig { rtt_source: source, ..RackConfig::RFC8985 }, 0);
        for n in 0..4 {
            rack.on_sent(1000 * n, 1000 * (n + 1), at(100));
        }
        rack.on_handshake(at(100), Duration::from_millis(10));
        let mut board = Scoreboard::default();
        board.add(2000, 3000);
        let ack = |now, una, blocks| RackAck { now, una, scoreboard: &board, blocks, echoed_send_time: None };
        let circumstances = ReorderingInput {
            phase: RecoveryPhase::Recovery,
            srtt: Some(at(100).since(at(0))),
            dup_thresh: 3,
        };
        rack.on_ack(ack(at(200), 0, &[(2000, 3000)]));
        assert_eq!(rack.detect(at(200), circumstances).lost, 2);
        rack.on_sent(0, 1000, at(200));
        rack.on_ack(ack(at(210), 2000, &[]));
        assert_eq!(rack.detect(at(210), circumstances).lost, lost, "{source:?}");
    }
}
