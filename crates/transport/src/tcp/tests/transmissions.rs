//! RFC 8985 §5.2: a record for each segment, whatever sizes it is resent in.

use crate::tcp::delivery_rate::Stamp;
use crate::tcp::transmissions::{Fate, Record, Times, Transmissions, Verdict};
use hopline_core::Instant;

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

/// Ten segments of 1000 bytes from position 1, sent one a millisecond from 1 ms.
fn ten() -> Transmissions {
    let mut t = Transmissions::new(1);
    for i in 0..10 {
        t.sent(1 + i * 1000, 1001 + i * 1000, at(1 + i), Stamp::default());
    }
    t
}

fn lose(t: &mut Transmissions, ends: &[u64]) -> u64 {
    t.mark_lost(|_, r| if ends.contains(&r.end) { Verdict::Lost } else { Verdict::Leave }, |_, _| {})
}

#[test]
fn what_is_in_flight_is_neither_lost_nor_held() {
    let mut t = ten();
    assert_eq!(t.in_flight(), 10_000);
    t.sack(3001..5001, 3001..5001, |_, _| {});
    assert_eq!(lose(&mut t, &[1001, 2001, 4001]), 2, "what the peer holds is not lost");
    assert_eq!((t.in_flight(), t.first_lost()), (6000, Some(1..2001)));
    assert!(t.has_sacked_segments(2) && !t.has_sacked_segments(3));
    t.acknowledge(1501, |_, _| {});
    assert_eq!((t.in_flight(), t.first_lost()), (6000, Some(1501..2001)));
    let mut seen = Vec::new();
    t.acknowledge(7001, |r, _| seen.push(r.end));
    assert_eq!(seen, [2001, 3001, 6001, 7001], "what is new with this acknowledgment");
    assert_eq!((t.in_flight(), t.first_lost(), t.has_sacked()), (3000, None, false));
}

#[test]
fn what_is_resent_in_other_sizes_splits_records_and_joins_them() {
    let mut t = ten();
    lose(&mut t, &[1001, 2001, 3001]);
    t.sent(1, 989, at(50), Stamp::default());
    assert_eq!(t.first_lost(), Some(989..3001));
    t.sent(989, 1977, at(50), Stamp::default());
    t.sent(1977, 3001, at(51), Stamp::default());
    assert_eq!((t.first_lost(), t.in_flight()), (None, 10_000));
    let mut seen: Vec<Record> = Vec::new();
    t.acknowledge(4001, |&r, _| seen.push(r));
    let again = |end, ms| Record { end, sent: at(ms), fate: Fate::InFlight, times: Times::Again };
    assert_eq!(seen[..3], [again(989, 50), again(1977, 50), again(3001, 51)]);
    assert_eq!(seen[3], Record { end: 4001, sent: at(4), fate: Fate::InFlight, times: Times::Once });
}

#[test]
fn a_segment_is_held_when_all_of_it_is() {
    let mut t = ten();
    let mut seen = 0;
    t.sack(1501..2501, 1501..2501, |_, _| seen += 1);
    assert_eq!((seen, t.has_sacked()), (0, false));
    t.sack(2501..3001, 1501..3001, |_, _| seen += 1);
    assert_eq!((seen, t.in_flight()), (1, 9000));
    t.sack(1001..1501, 1001..3001, |_, _| seen += 1);
    assert_eq!((seen, t.in_flight()), (2, 8000));
    t.forget_sacks();
    assert_eq!((t.in_flight(), t.has_sacked()), (10_000, false));
}

#[test]
fn an_acknowledgment_beyond_what_is_recorded_empties_it() {
    // A window probe is not recorded.
    let mut t = ten();
    t.acknowledge(10_002, |_, _| {});
    assert!(t.is_empty());
    assert_eq!((t.in_flight(), t.last()), (0, None));
    t.sent(10_002, 11_002, at(99), Stamp::default());
    assert_eq!((t.in_flight(), t.last()), (1000, Some(10_002..11_002)));
}

#[test]
fn a_hole_is_resent_a_thousand_times_without_growing() {
    let mut t = ten();
    for round in 0..1000 {
        lose(&mut t, &(1..20_000).collect::<Vec<_>>());
        let size = 900 + round % 100;
        let mut from = 1;
        while from < 10_001 {
            let to = (from + size).min(10_001);
            t.sent(from, to, at(100 + round), Stamp::default());
            from = to;
        }
    }
    let mut records = 0;
    t.acknowledge(10_001, |_, _| records += 1);
    assert!(records <= 12, "{records} records of 10 segments");
}
