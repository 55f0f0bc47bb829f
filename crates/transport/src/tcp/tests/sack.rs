//! RFC 2018 and RFC 6675: scoreboard, pipe, next segment, reneging; ns-2's Sack1.

use super::script::{Script, mss_1000_sack, plain, segment};
use crate::tcp::congestion::SackConfig;
use crate::tcp::scoreboard::{Reneging, Scoreboard};
use crate::tcp::{Config, RecoveryPhase, Reduction, Variant};
use hopline_core::Length;

fn sack() -> Config {
    plain().with_sack()
}

/// Ten segments in flight, SACK agreed.
fn in_flight(config: Config) -> Script {
    let mut s = Script::connected_with(config, mss_1000_sack());
    s.endpoint.send(s.now, Length(1 << 40)).unwrap();
    s.transmits();
    s
}

#[test]
fn blocks_join_and_are_counted_once() {
    let mut b = Scoreboard::default();
    assert_eq!(b.add(10, 20), 10);
    assert_eq!(b.add(30, 40), 10);
    assert_eq!(b.add(15, 35), 10);
    assert_eq!(b.add(10, 40), 0);
    assert_eq!(b.add(40, 45), 5, "touching blocks are one");
    assert_eq!(b.add(5, 5), 0);
    assert_eq!((b.end(), b.skip_block(12), b.skip_block(45), b.next_hole(0)), (45, 45, 45, Some((0, 10))));
    assert_eq!(b.sacked_below(15), 5);
}

#[test]
fn the_number_of_blocks_is_bounded() {
    let mut b = Scoreboard::default();
    for i in 0..10_000u64 {
        b.add(2 * i, 2 * i + 1);
    }
    assert_eq!(b.sacked_below(u64::MAX), 256);
    assert_eq!(b.add(1, 2), 1, "what joins blocks is still taken");
}

#[test]
fn is_lost_by_blocks_or_by_bytes() {
    let mut b = Scoreboard::default();
    b.add(2000, 3000);
    b.add(4000, 5000);
    assert!(!b.is_lost(1000, 3, 1000), "two blocks, two segments");
    b.add(6000, 6001);
    assert!(b.is_lost(1000, 3, 1000), "three blocks");
    assert!(!b.is_lost(3000, 3, 1000), "only two above");
    let mut b = Scoreboard::default();
    b.add(2000, 4001);
    assert!(b.is_lost(1000, 3, 1000), "more than two segments");
}

#[test]
fn pipe_counts_what_is_neither_sacked_nor_lost_and_what_was_resent() {
    // Sent 0..10000; sacked 1000..4000 and 5000..6000; lost 0..1000 (4000 bytes above).
    let mut b = Scoreboard::default();
    b.add(1000, 4000);
    b.add(5000, 6000);
    assert_eq!(b.pipe(0, 10_000, 0, 3, 1000), 1000 + 4000);
    assert_eq!(b.pipe(0, 10_000, 1000, 3, 1000), 1000 + 1000 + 4000, "the retransmission is under way");
    assert_eq!(b.pipe(0, 10_000, 5000, 3, 1000), 1000 + 2000 + 4000, "original and retransmission");
}

#[test]
fn an_ack_inside_a_block_is_reneging() {
    let mut b = Scoreboard::default();
    b.add(1000, 2000);
    assert_eq!(b.advance(500), Reneging::No);
    assert_eq!(b.advance(1500), Reneging::Yes);
    let mut b = Scoreboard::default();
    b.add(1000, 2000);
    assert_eq!(b.advance(2000), Reneging::No);
    assert_eq!(b.end(), 0);
}

#[test]
fn three_duplicates_with_new_blocks_start_recovery() {
    let mut s = in_flight(sack());
    s.receive(segment(1).ack(1).sack(1001, 2001));
    assert_eq!(s.transmits(), ". 10001:11001 ack 1", "limited transmit");
    s.receive(segment(1).ack(1).sack(3001, 4001).sack(1001, 2001));
    assert_eq!(s.transmits(), ". 11001:12001 ack 1");
    s.receive(segment(1).ack(1).sack(5001, 6001).sack(3001, 4001).sack(1001, 2001));
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Recovery);
    // FlightSize 10: cwnd 5. Pipe: 2001–3001, 4001–5001 and six above are not lost. Only the first goes.
    assert_eq!(s.transmits(), ". 1:1001 ack 1");
    assert_eq!(s.endpoint.ssthresh(), 5000);
    s.receive(segment(1).ack(1).sack(5001, 12_001).sack(3001, 4001).sack(1001, 2001));
    // Everything below 5001 is lost; pipe is the one resent segment: four more may go.
    assert_eq!(
        s.transmits(),
        ". 2001:3001 ack 1; . 4001:5001 ack 1; . 12001:13001 ack 1; . 13001:14001 ack 1"
    );
}

#[test]
fn more_than_two_segments_sacked_at_once_start_recovery() {
    let mut s = in_flight(sack());
    s.receive(segment(1).ack(1).sack(1001, 4002));
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Recovery, "IsLost of the first, RFC 6675 §5 (2)");
}

#[test]
fn duplicates_without_new_blocks_do_not_count() {
    let mut s = in_flight(sack());
    for _ in 0..5 {
        s.receive(segment(1).ack(1).sack(1001, 2001));
    }
    assert_eq!(s.endpoint.stats().dup_acks, 1);
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Open);
}

#[test]
fn recovery_ends_at_the_recovery_point() {
    let mut s = in_flight(sack());
    s.receive(segment(1).ack(1).sack(1001, 5001));
    s.transmits();
    s.receive(segment(1).ack(9001));
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Recovery);
    s.transmits();
    s.receive(segment(1).ack(10_001));
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Open);
    assert_eq!(s.endpoint.cwnd(), 5000);
}

#[test]
fn a_hole_not_yet_lost_is_resent_when_there_is_no_new_data() {
    // RFC 6675 §4, NextSeg (3).
    let mut s = Script::connected_with(sack(), mss_1000_sack());
    s.endpoint.send(s.now, Length(10_000)).unwrap();
    s.transmits();
    s.receive(segment(1).ack(1).sack(1001, 5001).sack(6001, 7001).sack(8001, 10_001));
    // 5001–6001: two blocks above, 3000 bytes: lost. 7001–8001: one block, 2000 bytes: not lost.
    assert_eq!(s.transmits(), ". 1:1001 ack 1; . 5001:6001 ack 1; . 7001:8001 ack 1");
}

#[test]
fn the_tail_is_rescued_once() {
    // RFC 6675 §4, NextSeg (4).
    let mut s = Script::connected_with(sack(), mss_1000_sack());
    s.endpoint.send(s.now, Length(10_000)).unwrap();
    s.transmits();
    s.receive(segment(1).ack(1).sack(1001, 8001));
    assert_eq!(s.transmits(), ". 1:1001 ack 1; . 9001:10001 ack 1");
    s.receive(segment(1).ack(8001));
    assert_eq!(s.transmits(), "", "once per recovery");
}

#[test]
fn a_timeout_forgets_the_blocks() {
    // RFC 2018 §8.
    let mut s = in_flight(sack());
    s.receive(segment(1).ack(1).sack(2001, 4001));
    s.run_until(450);
    s.receive(segment(1).ack(1001));
    assert_eq!(s.transmits(), ". 1001:2001 ack 1; . 2001:3001 ack 1");
}

#[test]
fn blocks_that_come_after_a_timeout_are_skipped() {
    let mut s = in_flight(sack());
    s.run_until(450);
    s.receive(segment(1).ack(1001).sack(2001, 9001));
    assert_eq!(s.transmits(), ". 1001:2001 ack 1; . 9001:10001 ack 1");
}

#[test]
fn no_recovery_until_data_sent_before_the_timeout_are_acked() {
    // RFC 6675 §5.1.
    let mut s = in_flight(sack());
    s.run_until(450);
    s.receive(segment(1).ack(1001).sack(2001, 3001));
    s.receive(segment(1).ack(1001).sack(2001, 4001));
    s.receive(segment(1).ack(1001).sack(2001, 5001));
    s.receive(segment(1).ack(1001).sack(2001, 6001));
    assert_eq!(s.endpoint.stats().fast_retransmits, 0);
}

#[test]
fn reneged_data_are_eventually_retransmitted() {
    let mut s = in_flight(sack());
    s.receive(segment(1).ack(1).sack(1001, 4001));
    s.transmits();
    s.receive(segment(1).ack(2001));
    assert_eq!(s.endpoint.stats().reneged, 1);
    s.transmits();
    let said = s.run_until(2000);
    assert!(said.contains(". 2001:3001 ack 1"), "{said}");
}

#[test]
fn nonsense_blocks_are_ignored() {
    let mut s = in_flight(sack());
    s.receive(segment(1).ack(1).sack(10_001, 11_001));
    s.receive(segment(1).ack(1).sack(5001, 4001));
    s.receive(segment(1).ack(1).sack(-999, 1001));
    s.receive(segment(1).ack(1).sack(1, 1001));
    assert_eq!(s.endpoint.stats().dup_acks, 0);
}

#[test]
fn ns2_counts_the_pipe_by_acks() {
    let config = Config {
        variant: Variant::Sack(SackConfig::NS2),
        reduction: Reduction::Window,
        limited_transmit: crate::tcp::LimitedTransmit::Off,
        ..plain()
    };
    let mut s = in_flight(config);
    s.receive(segment(1).ack(1).sack(1001, 2001));
    s.receive(segment(1).ack(1).sack(1001, 3001));
    s.receive(segment(1).ack(1).sack(1001, 4001));
    // cwnd 5; pipe 10 − 3, the one resent not counted.
    assert_eq!(s.transmits(), ". 1:1001 ack 1");
    s.receive(segment(1).ack(1).sack(5001, 6001).sack(1001, 4001));
    s.receive(segment(1).ack(1).sack(5001, 7001).sack(1001, 4001));
    assert_eq!(s.transmits(), "", "7, 6, 5");
    s.receive(segment(1).ack(1).sack(5001, 8001).sack(1001, 4001));
    assert_eq!(s.transmits(), ". 4001:5001 ack 1", "4: the hole, though nothing says it is lost");
    s.receive(segment(1).ack(4001).sack(5001, 8001));
    assert_eq!(s.transmits(), ". 10001:11001 ack 1; . 11001:12001 ack 1", "a partial ACK takes two off");
    s.receive(segment(1).ack(10_001));
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Open);
    assert_eq!(s.endpoint.cwnd(), 5000, "and the last ACK adds nothing");
}

#[test]
fn ns2_ignores_blocks_between_a_timeout_and_the_next_new_ack() {
    let config = Config { variant: Variant::Sack(SackConfig::NS2), ..plain() };
    let mut s = in_flight(config);
    s.run_until(450);
    s.receive(segment(1).ack(1).sack(8001, 9001));
    assert_eq!(s.endpoint.stats().dup_acks, 0);
    s.receive(segment(1).ack(1001).sack(2001, 9001));
    assert_eq!(s.transmits(), ". 1001:2001 ack 1; . 2001:3001 ack 1", "and those of new ACKs");
    s.receive(segment(1).ack(1001).sack(2001, 9001));
    assert_eq!(s.endpoint.stats().dup_acks, 1);
}

#[test]
fn without_sack_permitted_newreno_takes_over() {
    let mut s = Script::connected(sack());
    s.endpoint.send(s.now, Length(1 << 40)).unwrap();
    s.transmits();
    for _ in 0..3 {
        s.receive(segment(1).ack(1));
    }
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Recovery);
    assert_eq!(s.endpoint.cwnd(), 8000);
}
