//! Retransmissions during T1 (A7).

use super::{ALL, in_flight, out_of_order, stats, with_door};
use crate::tcp::tests::script::{Script, segment};
use crate::tcp::{Config, DisabledRetransmissions, DoorConfig, RecoveryPhase};

/// Sends ten segments with an RTO of 300 ms, with an event at 100 ms.
fn disabled(resends: DisabledRetransmissions, t1: f64) -> Script {
    let door = DoorConfig { retransmissions: resends, ..DoorConfig::temporary_disabling(t1) };
    let mut s = in_flight(with_door(door), ALL);
    s.receive(segment(1).ack(1).door(out_of_order()));
    s
}

/// The data that leave, by their first byte.
fn segment_starts(said: &str) -> Vec<u64> {
    let data = said.split("; ").filter_map(|segment| segment.split(". ").nth(1)?.split_once(':'));
    data.map(|(start, _)| start.parse().unwrap()).collect()
}

#[test]
fn during_t1_three_duplicates_retransmit_all_holes_or_the_first_segment() {
    for (resends, expected, phase) in [
        (
            DisabledRetransmissions::Normal,
            vec![1, 2001, 3001, 4001, 5001, 6001, 10_001, 11_001, 12_001, 13_001],
            RecoveryPhase::Recovery,
        ),
        (DisabledRetransmissions::FirstSegment, vec![1], RecoveryPhase::Open),
    ] {
        let mut s = disabled(resends, 4.0);
        s.receive(segment(1).ack(1).sack(1001, 2001));
        s.receive(segment(1).ack(1).sack(7001, 8001).sack(1001, 2001));
        s.receive(segment(1).ack(1).sack(7001, 10_001).sack(1001, 2001));
        assert_eq!((segment_starts(&s.transmits()), s.endpoint.phase()), (expected, phase), "{resends:?}");
        assert_eq!((s.endpoint.cwnd(), s.endpoint.ssthresh()), (10_000, 1 << 30));
        assert_eq!(stats(&s).held_fast_retransmits, 1);
        // What was late arrives.
        s.receive(segment(1).ack(10_001));
        assert_eq!((s.endpoint.cwnd(), s.endpoint.phase()), (10_000, RecoveryPhase::Open));
    }
}

#[test]
fn each_segment_that_is_lost_during_t1_has_three_duplicates_of_its_own() {
    let mut s = disabled(DisabledRetransmissions::FirstSegment, 8.0);
    for right in [2001, 3001, 4001, 5001] {
        s.receive(segment(1).ack(1).sack(1001, right));
    }
    assert_eq!(segment_starts(&s.transmits()), [1], "once, though a fourth follows");
    s.receive(segment(1).ack(5001));
    assert_eq!(segment_starts(&s.transmits()), [10_001, 11_001, 12_001, 13_001, 14_001]);
    for right in [7001, 8001, 9001] {
        s.receive(segment(1).ack(5001).sack(6001, right));
    }
    assert_eq!(segment_starts(&s.transmits()), [5001]);
}

#[test]
fn during_t1_a_timeout_retransmits_the_window_or_the_first_segment() {
    for resends in [DisabledRetransmissions::Normal, DisabledRetransmissions::FirstSegment] {
        let mut s = disabled(resends, 4.0);
        let resent = segment_starts(&s.run_until(750));
        let whole: Vec<u64> = (0..10).map(|n| 1 + 1000 * n).collect();
        let expected = match resends {
            DisabledRetransmissions::Normal => [whole.clone(), whole].concat(),
            DisabledRetransmissions::FirstSegment => vec![1, 1],
        };
        assert_eq!(resent, expected, "at 400 and at 700");
        assert_eq!((s.endpoint.cwnd(), s.endpoint.backoff(), stats(&s).held_timeouts), (10_000, 1, 2));
        s.receive(segment(1).ack(1001));
        assert_eq!(segment_starts(&s.transmits()), [10_001], "what is in flight is what it was");
    }
}

#[test]
fn after_t1_retransmissions_are_normal() {
    let mut s = disabled(DisabledRetransmissions::FirstSegment, 1.01);
    assert_eq!(segment_starts(&s.run_until(450)), [1], "at 400, T1 ends at 403");
    assert_eq!(segment_starts(&s.run_until(750)), [1], "at 700, the window of one segment");
    assert_eq!((s.endpoint.phase(), s.endpoint.cwnd()), (RecoveryPhase::Loss, 1000));
    s.receive(segment(1).ack(1001));
    assert_eq!(segment_starts(&s.transmits()), [1001, 2001]);
}

#[test]
fn a_recovery_that_began_before_t1_continues() {
    let door = DoorConfig {
        retransmissions: DisabledRetransmissions::FirstSegment,
        ..DoorConfig::temporary_disabling(4.0)
    };
    let mut s = in_flight(with_door(door), ALL);
    for right in [3001, 4001, 5001] {
        s.receive(segment(1).ack(1).sack(2001, right));
    }
    assert_eq!((segment_starts(&s.transmits()), s.endpoint.phase()), (vec![1], RecoveryPhase::Recovery));
    s.receive(segment(1).ack(1).sack(2001, 6001).door(out_of_order()));
    s.receive(segment(1).ack(1).sack(2001, 9001));
    assert!(segment_starts(&s.transmits()).contains(&1001), "the second hole");
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Recovery);
}

#[test]
fn retransmitting_only_the_first_segment_needs_duplicates() {
    let door =
        DoorConfig { retransmissions: DisabledRetransmissions::FirstSegment, ..DoorConfig::all(1.0, 1.0) };
    let error = Config::modern().with_rack().with_door(Some(door)).validate().unwrap_err();
    assert_eq!(error.field, "door.resends");
    assert_eq!(Config::modern().with_sack().with_door(Some(door)).validate(), Ok(()));
}
