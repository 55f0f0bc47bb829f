//! D1 and D2: what is out of order, and what only looks like it.

use super::{ADSN, ALL, NOTHING, connected, in_flight, out_of_order, peer, stats, with_door};
use crate::tcp::tests::script::{Script, SegmentBuilder, segment};
use crate::tcp::{AckOrder, Config, DataOrder, Detection, DoorConfig, DropReason, LateRule, OptionOffer};
use hopline_wire::tcp::{DoorFeatures, DoorReport};

fn all() -> DoorConfig {
    DoorConfig::all(1.0, 1.0)
}

/// A data packet of the peer: sequence number, TPSN.
fn packet(seq: i64, tpsn: u16) -> SegmentBuilder {
    segment(seq).ack(1).data(1000).door(DoorReport { adsn: Some(0), tpsn: Some(tpsn), out_of_order: false })
}

#[test]
fn a_lower_acknowledgment_number_is_one_event() {
    let mut s = in_flight(with_door(all()), ALL);
    s.receive(segment(1).ack(3001).adsn(0));
    s.receive(segment(1).ack(2001).adsn(0));
    assert_eq!(stats(&s).ack_events, 1);
    s.receive(segment(1).ack(4001).adsn(0));
    assert_eq!(stats(&s).ack_events, 1, "what comes after it is in order");
}

#[test]
fn acknowledgment_numbers_need_no_support_by_the_peer() {
    let door = DoorConfig { detection: Detection::Sender(AckOrder::Numbers), ..all() };
    for door in [door, DoorConfig::sender_detection(1.0, 1.0)] {
        let mut s = in_flight(Config { mss: 1000, ..with_door(door) }, NOTHING);
        s.receive(segment(1).ack(3001));
        s.receive(segment(1).ack(2001));
        for _ in 0..5 {
            s.receive(segment(1).ack(3001));
        }
        assert_eq!(stats(&s).ack_events, 1, "duplicates tell nothing");
    }
}

#[test]
fn the_adsn_orders_duplicate_acks() {
    let mut s = in_flight(with_door(all()), ALL);
    for adsn in [0, 1, 2, 3, 5] {
        s.receive(segment(1).ack(1).adsn(adsn).sack(1001, 2001 + 1000 * i64::from(adsn)));
    }
    assert_eq!(stats(&s).ack_events, 0, "one may be lost");
    s.receive(segment(1).ack(1).adsn(4).sack(1001, 6001));
    assert_eq!(stats(&s).ack_events, 1);
    s.receive(segment(1).ack(7001).adsn(0));
    assert_eq!(stats(&s).ack_events, 1, "it begins anew with each number");
}

#[test]
fn an_adsn_that_wraps_around_is_in_order() {
    let mut s = in_flight(with_door(all()), ALL);
    for n in 0..600u32 {
        s.receive(segment(1).ack(1).adsn(n as u8));
    }
    assert_eq!(stats(&s).ack_events, 0);
    s.receive(segment(1).ack(1).adsn((600u32 - 2) as u8));
    assert_eq!(stats(&s).ack_events, 1);
}

#[test]
fn loss_retransmission_and_duplicates_in_order_are_no_event() {
    let mut s = in_flight(with_door(all()), ALL);
    // 1:1001 is lost, fast retransmit, all acknowledged; then all of a window is lost.
    for (adsn, right) in [(0, 2001), (1, 3001), (2, 4001), (3, 5001)] {
        s.receive(segment(1).ack(1).adsn(adsn).sack(1001, right));
    }
    assert_eq!(s.endpoint.stats().fast_retransmits, 1);
    s.transmits();
    s.receive(segment(1).ack(10_001).adsn(0));
    s.run_until(2000);
    assert!(s.endpoint.stats().timeouts > 0);
    assert_eq!(stats(&s), Default::default());
}

#[test]
fn late_data_are_one_event_reported_by_the_next_ack() {
    let mut s = connected(with_door(all()), peer(ALL));
    s.receive(packet(1, 0));
    assert_eq!(s.transmits(), ". 1 ack 1001 adsn 0");
    s.receive(packet(2001, 2));
    assert_eq!(s.transmits(), ". 1 ack 1001 sack 2001-3001 adsn 1", "a gap may be a loss");
    s.receive(packet(1001, 1));
    assert_eq!(s.transmits(), ". 1 ack 3001 adsn 0 ooo");
    assert_eq!(stats(&s).data_events, 1);
    s.receive(packet(3001, 3));
    assert_eq!(s.transmits(), ". 1 ack 4001 adsn 0", "once");
}

#[test]
fn a_retransmission_that_fills_a_gap_is_in_order() {
    let mut s = connected(with_door(all()), peer(ALL));
    for (seq, tpsn) in [(1, 0), (2001, 2), (3001, 3), (1001, 4), (4001, 5)] {
        s.receive(packet(seq, tpsn));
        assert!(!s.transmits().contains("ooo"));
    }
    assert_eq!((stats(&s).data_events, s.read_all()), (0, 5000));
}

#[test]
fn a_late_packet_with_known_data_counts() {
    let mut s = connected(with_door(all()), peer(ALL));
    // The retransmission overtook the first transmission, which then is outside the window.
    s.receive(packet(1, 1));
    s.transmits();
    s.receive(packet(1, 0));
    assert_eq!(s.transmits(), ". 1 ack 1001 adsn 1 ooo");
    assert_eq!(s.endpoint.stats().drops.count(DropReason::OutsideWindow), 1);
}

#[test]
fn a_tpsn_that_wraps_around_is_in_order() {
    let mut s = connected(with_door(all()), peer(ALL));
    for (i, tpsn) in [65_533, 65_534, 65_535, 0, 1].into_iter().enumerate() {
        s.receive(packet(1 + 1000 * i as i64, tpsn));
    }
    assert_eq!(stats(&s).data_events, 0);
    s.receive(packet(7001, 3));
    s.receive(packet(6001, 2));
    assert_eq!(stats(&s).data_events, 1);
    s.receive(packet(9001, 5));
    s.receive(packet(8001, 65_535));
    assert_eq!(stats(&s).data_events, 1, "sent before the last event");
}

#[test]
fn a_switch_to_a_shorter_path_counts_events_by_the_configured_rule() {
    // Packets 0 to 4 went the long way, 5 and later the short one.
    let arrivals = [0, 1, 5, 2, 6, 3, 4, 7, 8];
    for (late, events) in
        [(LateRule::OncePerRouteChange, 1), (LateRule::Each, 3), (LateRule::AfterPrevious, 2)]
    {
        let mut s = connected(with_door(DoorConfig { late, ..all() }), peer(ALL));
        for n in arrivals {
            s.receive(packet(1 + 1000 * i64::from(n), n));
            s.transmits();
        }
        assert_eq!(stats(&s).data_events, events, "{late:?}");
    }
}

#[test]
fn timestamps_order_data_before_paws_drops_them() {
    let door = DoorConfig { detection: Detection::Receiver(DataOrder::Timestamps), ..all() };
    let mut options = peer(DoorFeatures { feedback: true, ..NOTHING });
    options.timestamps = Some(Default::default());
    let mut s = connected(Config { timestamps: OptionOffer::Offered, ..with_door(door) }, options);
    let data = |seq, ts| segment(seq).ack(1).data(1000).ts(ts, 0);
    s.receive(data(1, 10));
    s.receive(data(1001, 10));
    s.receive(data(3001, 30));
    s.transmits();
    assert_eq!(stats(&s).data_events, 0, "nor are equal ones out of order");
    s.receive(data(2001, 20));
    assert!(s.transmits().ends_with("ack 4001 ooo"));
    s.receive(data(4001, 40));
    s.transmits();
    s.receive(data(4001, 35));
    assert!(s.transmits().ends_with("ooo"), "the retransmission came first");
    assert_eq!(s.endpoint.stats().drops.count(DropReason::OldTimestamp), 1);
    s.receive(data(5001, u32::MAX));
    assert_eq!(stats(&s).data_events, 2, "older than the last event");
}

#[test]
fn feedback_is_an_event_of_the_sender() {
    let mut s = in_flight(with_door(DoorConfig::receiver_detection(1.0, 1.0)), ALL);
    s.receive(segment(1).ack(2001).door(out_of_order()));
    s.receive(segment(1).ack(3001).door(out_of_order()));
    assert_eq!(stats(&s).reported_events, 2);
    s.receive(segment(1).ack(1001));
    assert_eq!(stats(&s).ack_events, 0, "it does not look at acknowledgments");
}

#[test]
fn feedback_on_a_duplicated_acknowledgment_is_no_second_event() {
    let told = |adsn| DoorReport { adsn, tpsn: None, out_of_order: true };
    let mut s = in_flight(with_door(all()), ALL);
    for adsn in [0, 0, 0] {
        s.receive(segment(1).ack(2001).door(told(Some(adsn))));
    }
    assert_eq!((stats(&s).reported_events, stats(&s).disable_periods), (1, 1));
    s.receive(segment(1).ack(2001).door(told(Some(1))));
    assert_eq!(stats(&s).reported_events, 2, "another acknowledgment of the same number");
    // Without ADSN, what it reports tells one from the other.
    let mut s = in_flight(with_door(DoorConfig::receiver_detection(1.0, 1.0)), ALL);
    for right in [5001, 5001, 6001] {
        s.receive(segment(1).ack(2001).sack(3001, right).door(told(None)));
    }
    assert_eq!(stats(&s).reported_events, 2);
}

#[test]
fn a_duplicated_ack_does_not_extend_t1() {
    let mut s = in_flight(with_door(all()), ALL);
    let ack = || segment(1).ack(2001).door(DoorReport { adsn: Some(0), tpsn: None, out_of_order: true });
    s.receive(ack());
    let rto = s.endpoint.rto();
    s.transmits();
    let late = (s.now + rto - hopline_core::Duration::from_millis(10)).as_nanos() / 1_000_000;
    s.receive_at(late, ack());
    s.run_until(late + 400);
    assert!(s.endpoint.stats().timeouts > stats(&s).held_timeouts, "T1 is over after one RTO");
}

#[test]
fn unrequested_feedback_is_ignored() {
    let mut s = in_flight(with_door(DoorConfig::sender_detection(1.0, 1.0)), ADSN);
    s.receive(segment(1).ack(2001).door(out_of_order()));
    assert_eq!(stats(&s), Default::default());
}

#[test]
fn repeated_feedback_is_one_event() {
    let door = DoorConfig { feedback_acks: 3, ..all() };
    let mut s = connected(with_door(door), peer(ALL));
    for (seq, tpsn) in [(1001, 1), (1, 0), (2001, 2), (3001, 3), (4001, 4)] {
        s.receive(packet(seq, tpsn));
    }
    let mut told = Vec::new();
    for (seq, tpsn) in [(6001, 6), (5001, 5), (7001, 7), (8001, 8), (9001, 9)] {
        s.receive(packet(seq, tpsn));
        told.push(s.transmits().ends_with("ooo"));
    }
    assert_eq!(told, [true, true, true, true, false], "the first event was still being told");

    let mut s = in_flight(with_door(door), ALL);
    let ack = |n: i64, out_of_order| {
        segment(1).ack(1 + 1000 * n).door(DoorReport { adsn: Some(0), tpsn: None, out_of_order })
    };
    for (n, told) in [(1, true), (3, true), (2, true), (4, false), (5, true)] {
        s.receive(ack(n, told));
    }
    assert_eq!(stats(&s).reported_events, 2, "one is enough, and a late one tells nothing new");
}

/// Segments that the peer cannot have sent on this connection are no event.
#[test]
fn forged_segments_are_no_event() {
    let forged: [fn(&mut Script); 6] = [
        |s| s.receive(segment(1).ack(20_001).adsn(0)),
        |s| s.receive(segment(1).ack(-70_000).adsn(0)),
        |s| s.receive(segment(100_000).ack(2001).adsn(0)),
        |s| s.receive(segment(-100_000).ack(2001).adsn(0)),
        |s| s.receive(segment(100_000).ack(2001).rst().adsn(0)),
        |s| s.receive(segment(1).ack(20_001).door(out_of_order())),
    ];
    for forge in forged {
        let mut s = in_flight(with_door(all()), ALL);
        s.receive(segment(1).ack(3001).adsn(0));
        forge(&mut s);
        s.receive(segment(1).ack(3001).adsn(1));
        s.receive(segment(1).ack(4001).adsn(0));
        assert_eq!(stats(&s), Default::default());
    }
}

#[test]
fn sack_blocks_of_a_late_ack_are_used() {
    let mut s = in_flight(with_door(all()), ALL);
    s.receive(segment(1).ack(2001).adsn(0));
    s.transmits();
    s.receive(segment(1).ack(1001).adsn(0).sack(3001, 9001));
    s.run_until(90_000);
    assert!(s.endpoint.stats().timeouts > 0);
    assert_eq!(stats(&s).ack_events, 1);
    let mut s = in_flight(with_door(DoorConfig::instant_recovery(1.0)), ALL);
    s.receive(segment(1).ack(2001).adsn(0));
    s.transmits();
    s.receive(segment(1).ack(1001).adsn(0).sack(3001, 9001));
    s.receive(segment(1).ack(2001).adsn(1).sack(3001, 9501));
    assert_eq!(s.transmits().split(" ack").next(), Some(". 2001:3001"), "lost, as the late one told");
}
