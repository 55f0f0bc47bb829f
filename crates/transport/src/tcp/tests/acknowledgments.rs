//! Acknowledgments and their times: RFC 1122 §4.2.3.2, RFC 5681 §4.2, RFC 2018 §4, and reassembly.

use super::script::{Script, mss_1000_sack, plain, segment};
use crate::tcp::{AckPolicy, Config, DropReason, Event, OptionOffer};
use hopline_core::{Duration, Length};
use hopline_wire::tcp::{Options, Timestamps};

fn delayed() -> Config {
    Config { ack_policy: AckPolicy::Delayed { timer: Duration::from_millis(100) }, ..plain() }
}

fn sack() -> Script {
    let config = plain().with_sack();
    Script::connected_with(config, mss_1000_sack())
}

#[test]
fn every_segment_at_once() {
    let mut s = Script::connected(plain());
    s.receive(segment(1).ack(1).data(1000));
    assert_eq!(s.transmits(), ". 1 ack 1001");
    assert_eq!(s.events(), [Event::Readable]);
    assert_eq!(s.read_all(), 1000);
}

#[test]
fn a_single_segment_is_acknowledged_by_the_timer() {
    let mut s = Script::connected(delayed());
    s.receive(segment(1).ack(1).data(1000));
    assert_eq!(s.run_until(300), "200: . 1 ack 1001");
}

#[test]
fn the_second_segment_is_acknowledged_at_once() {
    let mut s = Script::connected(delayed());
    s.receive(segment(1).ack(1).data(1000));
    s.receive_at(150, segment(1001).ack(1).data(1000));
    assert_eq!(s.transmits(), ". 1 ack 2001");
    assert_eq!(s.run_until(1000), "", "and the timer is stopped");
}

#[test]
fn a_stretch_ack_waits_for_the_configured_number_of_segments() {
    let mut s = Script::connected(Config { ack_every: 4, ..delayed() });
    for n in 0..3 {
        s.receive(segment(1 + 1000 * n).ack(1).data(1000));
        assert_eq!(s.transmits(), "");
    }
    s.receive(segment(3001).ack(1).data(1000));
    assert_eq!(s.transmits(), ". 1 ack 4001");
    assert_eq!(s.run_until(1000), "", "and the timer is stopped");
    s.receive(segment(4001).ack(1).data(1000));
    assert_eq!(s.run_until(1200), "1100: . 1 ack 5001", "which counts from the first");
}

#[test]
fn a_stretch_of_one_is_every_segment_at_once() {
    let mut s = Script::connected(Config { ack_every: 1, ..delayed() });
    s.receive(segment(1).ack(1).data(1000));
    assert_eq!(s.transmits(), ". 1 ack 1001");
}

#[test]
fn data_carries_the_delayed_ack() {
    let mut s = Script::connected(delayed());
    s.receive(segment(1).ack(1).data(1000));
    s.endpoint.send(s.now, Length(10)).unwrap();
    assert_eq!(s.transmits(), ". 1:11 ack 1001");
    s.receive(segment(1001).ack(11));
    assert_eq!(s.run_until(1000), "");
}

#[test]
fn out_of_order_data_is_acknowledged_at_once_each_time() {
    let mut s = Script::connected(delayed());
    s.receive(segment(1001).ack(1).data(1000));
    assert_eq!(s.transmits(), ". 1 ack 1");
    s.receive(segment(2001).ack(1).data(1000));
    assert_eq!(s.transmits(), ". 1 ack 1");
    assert_eq!(s.read_all(), 0);
    assert_eq!(s.endpoint.stats().out_of_order, 2);
}

#[test]
fn filling_a_gap_is_acknowledged_at_once() {
    let mut s = Script::connected(delayed());
    s.receive(segment(1001).ack(1).data(1000));
    s.transmits();
    s.receive(segment(1).ack(1).data(500));
    assert_eq!(s.transmits(), ". 1 ack 501", "part of it");
    s.receive(segment(501).ack(1).data(500));
    assert_eq!(s.transmits(), ". 1 ack 2001", "all of it");
    assert_eq!(s.read_all(), 2000);
}

#[test]
fn a_duplicate_is_acknowledged_at_once_and_not_delivered_twice() {
    let mut s = Script::connected(delayed());
    s.receive(segment(1).ack(1).data(1000));
    s.receive(segment(1).ack(1).data(1000));
    assert_eq!(s.transmits(), ". 1 ack 1001");
    assert_eq!(s.read_all(), 1000);
    assert_eq!(s.endpoint.stats().duplicates_received, 1);
}

#[test]
fn overlapping_data_is_cut() {
    let mut s = Script::connected(plain());
    s.receive(segment(1).ack(1).data(1000));
    s.receive(segment(501).ack(1).data(1000));
    assert_eq!(s.read_all(), 1500);
    s.receive(segment(2001).ack(1).data(1000));
    s.receive(segment(1801).ack(1).data(500));
    s.receive(segment(2901).ack(1).data(300));
    s.receive(segment(1401).ack(1).data(2000));
    assert_eq!(s.read_all(), 1900);
    assert_eq!(s.endpoint.stats().bytes_received, 3400);
    assert_eq!(s.endpoint.received_unread(), 0);
}

#[test]
fn data_beyond_the_window_is_cut_off() {
    let mut config = plain();
    config.receive_buffer = 2500;
    let mut s = Script::connected(config);
    s.receive(segment(1).ack(1).data(1000));
    s.receive(segment(1001).ack(1).data(1000));
    s.transmits();
    s.receive(segment(2001).ack(1).data(1000));
    assert_eq!(s.transmits(), ". 1 ack 2501");
    assert_eq!(s.last.unwrap().window, 0);
    assert_eq!(s.read_all(), 2500);
    s.receive(segment(9001).ack(1).data(10));
    assert_eq!(s.endpoint.stats().drops.count(DropReason::OutsideWindow), 1);
}

#[test]
fn sack_reports_the_latest_block_first() {
    let mut s = sack();
    s.receive(segment(2001).ack(1).data(1000));
    assert_eq!(s.transmits(), ". 1 ack 1 sack 2001-3001");
    s.receive(segment(4001).ack(1).data(1000));
    assert_eq!(s.transmits(), ". 1 ack 1 sack 4001-5001 sack 2001-3001");
    s.receive(segment(6001).ack(1).data(1000));
    assert_eq!(s.transmits(), ". 1 ack 1 sack 6001-7001 sack 4001-5001 sack 2001-3001");
    s.receive(segment(3001).ack(1).data(1000));
    assert_eq!(s.transmits(), ". 1 ack 1 sack 2001-5001 sack 6001-7001", "joined blocks are one");
    s.receive(segment(1).ack(1).data(2000));
    assert_eq!(s.transmits(), ". 1 ack 5001 sack 6001-7001");
    s.receive(segment(5001).ack(1).data(1000));
    assert_eq!(s.transmits(), ". 1 ack 7001", "nothing is missing any more");
}

#[test]
fn sack_reports_four_blocks_or_three_beside_timestamps() {
    let mut s = sack();
    for i in 1..7 {
        s.receive(segment(2000 * i + 1).ack(1).data(1000));
    }
    s.transmits();
    assert_eq!(s.last.unwrap().options.sack.len(), 4);

    let config = Config { timestamps: OptionOffer::Offered, ..plain().with_sack() };
    let mut s = Script::new(config);
    s.endpoint.connect(s.now).unwrap();
    s.transmits();
    let ts = Some(Timestamps { value: 1, echo: s.peer.iss.0 });
    s.receive(segment(0).syn().ack(1).options(Options { timestamps: ts, ..mss_1000_sack() }));
    for i in 1..7 {
        s.receive(segment(2000 * i + 1).ack(1).data(1000).ts(1, 0));
    }
    s.transmits();
    assert_eq!(s.last.unwrap().options.sack.len(), 3);
}

#[test]
fn sack_blocks_make_room_in_data_segments() {
    let mut s = sack();
    s.receive(segment(2001).ack(1).data(1000));
    s.endpoint.send(s.now, Length(1000)).unwrap();
    assert_eq!(
        s.transmits(),
        ". 1:989 ack 1 sack 2001-3001; . 989:1001 ack 1 sack 2001-3001",
        "RFC 6691: 12 bytes of options"
    );
}

#[test]
fn without_negotiation_there_are_no_sack_blocks() {
    let mut s = Script::connected(plain().with_sack());
    s.receive(segment(2001).ack(1).data(1000));
    assert_eq!(s.transmits(), ". 1 ack 1");
}
