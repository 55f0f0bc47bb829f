//! RFC 8985 §5.2: a record for each segment, whatever sizes it is resent in.

use crate::tcp::delivery_rate::PacketState;
use crate::tcp::sent_segments::{LossVerdict, SegmentState, SentSegment, SentSegments, TransmissionCount};
use hopline_core::Instant;

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

/// Ten segments of 1000 bytes from position 1, sent one a millisecond from 1 ms.
fn ten_segments() -> SentSegments {
    let mut t = SentSegments::new(1);
    for i in 0..10 {
        t.on_sent(1 + i * 1000, 1001 + i * 1000, at(1 + i), PacketState::default());
    }
    t
}

fn mark_lost(t: &mut SentSegments, ends: &[u64]) -> u64 {
    t.mark_lost(|_, r| if ends.contains(&r.end) { LossVerdict::Lost } else { LossVerdict::Keep }, |_, _| {})
}

#[test]
fn bytes_in_flight_exclude_lost_and_sacked_segments() {
    let mut t = ten_segments();
    assert_eq!(t.in_flight(), 10_000);
    t.sack(3001..5001, 3001..5001, |_, _| {});
    assert_eq!(mark_lost(&mut t, &[1001, 2001, 4001]), 2, "what the peer holds is not lost");
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
fn retransmissions_of_other_sizes_split_and_join_segments() {
    let mut t = ten_segments();
    mark_lost(&mut t, &[1001, 2001, 3001]);
    t.on_sent(1, 989, at(50), PacketState::default());
    assert_eq!(t.first_lost(), Some(989..3001));
    t.on_sent(989, 1977, at(50), PacketState::default());
    t.on_sent(1977, 3001, at(51), PacketState::default());
    assert_eq!((t.first_lost(), t.in_flight()), (None, 10_000));
    let mut seen: Vec<SentSegment> = Vec::new();
    t.acknowledge(4001, |&r, _| seen.push(r));
    let again = |end, ms| SentSegment {
        end,
        sent_at: at(ms),
        state: SegmentState::InFlight,
        transmissions: TransmissionCount::Several,
    };
    assert_eq!(seen[..3], [again(989, 50), again(1977, 50), again(3001, 51)]);
    assert_eq!(
        seen[3],
        SentSegment {
            end: 4001,
            sent_at: at(4),
            state: SegmentState::InFlight,
            transmissions: TransmissionCount::Once
        }
    );
}

#[test]
fn a_segment_is_sacked_when_all_of_it_is() {
    let mut t = ten_segments();
    let mut seen = 0;
    t.sack(1501..2501, 1501..2501, |_, _| seen += 1);
    assert_eq!((seen, t.has_sacked()), (0, false));
    t.sack(2501..3001, 1501..3001, |_, _| seen += 1);
    assert_eq!((seen, t.in_flight()), (1, 9000));
    t.sack(1001..1501, 1001..3001, |_, _| seen += 1);
    assert_eq!((seen, t.in_flight()), (2, 8000));
    t.undo_sacks();
    assert_eq!((t.in_flight(), t.has_sacked()), (10_000, false));
}

#[test]
fn an_ack_beyond_all_segments_empties_the_list() {
    // A window probe is not recorded.
    let mut t = ten_segments();
    t.acknowledge(10_002, |_, _| {});
    assert!(t.is_empty());
    assert_eq!((t.in_flight(), t.last()), (0, None));
    t.on_sent(10_002, 11_002, at(99), PacketState::default());
    assert_eq!((t.in_flight(), t.last()), (1000, Some(10_002..11_002)));
}

#[test]
fn repeated_retransmissions_do_not_grow_the_list() {
    let mut t = ten_segments();
    for round in 0..1000 {
        mark_lost(&mut t, &(1..20_000).collect::<Vec<_>>());
        let size = 900 + round % 100;
        let mut from = 1;
        while from < 10_001 {
            let to = (from + size).min(10_001);
            t.on_sent(from, to, at(100 + round), PacketState::default());
            from = to;
        }
    }
    let mut records = 0;
    t.acknowledge(10_001, |_, _| records += 1);
    assert!(records <= 12, "{records} records of 10 segments");
}
