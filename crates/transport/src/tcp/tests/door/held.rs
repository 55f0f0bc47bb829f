//! Retransmissions during T1 (A7).

use super::{ALL, in_flight, out_of_order, stats, with};
use crate::tcp::tests::script::{Script, seg};
use crate::tcp::{Config, DoorConfig, Phase, Resends};

/// Sends ten segments with an RTO of 300 ms, with an event at 100 ms.
fn disabled(resends: Resends, t1: f64) -> Script {
    let door = DoorConfig { resends, ..DoorConfig::temporary_disabling(t1) };
    let mut s = in_flight(with(door), ALL);
    s.hears(seg(1).ack(1).door(out_of_order()));
    s
}

/// The data that leave, by their first byte.
fn starts(said: &str) -> Vec<u64> {
    let data = said.split("; ").filter_map(|segment| segment.split(". ").nth(1)?.split_once(':'));
    data.map(|(start, _)| start.parse().unwrap()).collect()
}

#[test]
fn a_third_duplicate_during_t1_has_every_hole_resent_or_the_first_segment_alone() {
    for (resends, expected, phase) in [
        (
            Resends::AsUsual,
            vec![1, 2001, 3001, 4001, 5001, 6001, 10_001, 11_001, 12_001, 13_001],
            Phase::Recovery,
        ),
        (Resends::First, vec![1], Phase::Open),
    ] {
        let mut s = disabled(resends, 4.0);
        s.hears(seg(1).ack(1).sack(1001, 2001));
        s.hears(seg(1).ack(1).sack(7001, 8001).sack(1001, 2001));
        s.hears(seg(1).ack(1).sack(7001, 10_001).sack(1001, 2001));
        assert_eq!((starts(&s.says()), s.endpoint.phase()), (expected, phase), "{resends:?}");
        assert_eq!((s.endpoint.cwnd(), s.endpoint.ssthresh()), (10_000, 1 << 30));
        assert_eq!(stats(&s).spared_fast_retransmits, 1);
        // What was late arrives.
        s.hears(seg(1).ack(10_001));
        assert_eq!((s.endpoint.cwnd(), s.endpoint.phase()), (10_000, Phase::Open));
    }
}

#[test]
fn each_segment_that_is_lost_during_t1_has_three_duplicates_of_its_own() {
    let mut s = disabled(Resends::First, 8.0);
    for right in [2001, 3001, 4001, 5001] {
        s.hears(seg(1).ack(1).sack(1001, right));
    }
    assert_eq!(starts(&s.says()), [1], "once, though a fourth follows");
    s.hears(seg(1).ack(5001));
    assert_eq!(starts(&s.says()), [10_001, 11_001, 12_001, 13_001, 14_001]);
    for right in [7001, 8001, 9001] {
        s.hears(seg(1).ack(5001).sack(6001, right));
    }
    assert_eq!(starts(&s.says()), [5001]);
}

#[test]
fn a_timeout_during_t1_has_the_whole_window_resent_or_the_first_segment_alone() {
    for resends in [Resends::AsUsual, Resends::First] {
        let mut s = disabled(resends, 4.0);
        let resent = starts(&s.runs_to(750));
        let whole: Vec<u64> = (0..10).map(|n| 1 + 1000 * n).collect();
        let expected = match resends {
            Resends::AsUsual => [whole.clone(), whole].concat(),
            Resends::First => vec![1, 1],
        };
        assert_eq!(resent, expected, "at 400 and at 700");
        assert_eq!((s.endpoint.cwnd(), s.endpoint.backoff(), stats(&s).spared_timeouts), (10_000, 1, 2));
        s.hears(seg(1).ack(1001));
        assert_eq!(starts(&s.says()), [10_001], "what is in flight is what it was");
    }
}

#[test]
fn after_t1_everything_is_resent_as_usual() {
    let mut s = disabled(Resends::First, 1.01);
    assert_eq!(starts(&s.runs_to(450)), [1], "at 400, T1 ends at 403");
    assert_eq!(starts(&s.runs_to(750)), [1], "at 700, the window of one segment");
    assert_eq!((s.endpoint.phase(), s.endpoint.cwnd()), (Phase::Loss, 1000));
    s.hears(seg(1).ack(1001));
    assert_eq!(starts(&s.says()), [1001, 2001]);
}

#[test]
fn a_recovery_from_before_t1_goes_on() {
    let door = DoorConfig { resends: Resends::First, ..DoorConfig::temporary_disabling(4.0) };
    let mut s = in_flight(with(door), ALL);
    for right in [3001, 4001, 5001] {
        s.hears(seg(1).ack(1).sack(2001, right));
    }
    assert_eq!((starts(&s.says()), s.endpoint.phase()), (vec![1], Phase::Recovery));
    s.hears(seg(1).ack(1).sack(2001, 6001).door(out_of_order()));
    s.hears(seg(1).ack(1).sack(2001, 9001));
    assert!(starts(&s.says()).contains(&1001), "the second hole");
    assert_eq!(s.endpoint.phase(), Phase::Recovery);
}

#[test]
fn resending_the_first_alone_takes_duplicates() {
    let door = DoorConfig { resends: Resends::First, ..DoorConfig::all(1.0, 1.0) };
    let error = Config::modern().with_rack().with_door(door).validate().unwrap_err();
    assert_eq!(error.field, "door.resends");
    assert_eq!(Config::modern().with_sack().with_door(door).validate(), Ok(()));
}
