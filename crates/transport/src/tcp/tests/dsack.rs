//! RFC 2883: what arrives again is reported, once; RFC 3708: the sender counts.

use super::script::{Script, mss_1000, mss_1000_sack, plain, segment};
use crate::tcp::{Config, DsackReports};
use hopline_core::Length;

fn reporting() -> Config {
    Config { dsack: DsackReports::On, ..plain().with_sack() }
}

fn receiver(config: Config) -> Script {
    Script::connected_with(config, mss_1000_sack())
}

#[test]
fn a_segment_below_the_acknowledgment_is_reported_once() {
    // RFC 2883 §4.1.
    let mut s = receiver(reporting());
    s.receive(segment(1).ack(1).data(1000));
    s.receive(segment(1001).ack(1).data(1000));
    assert_eq!(s.transmits(), ". 1 ack 2001");
    s.receive(segment(1).ack(1).data(1000));
    assert_eq!(s.transmits(), ". 1 ack 2001 sack 1-1001");
    s.receive(segment(2001).ack(1).data(1000));
    assert_eq!(s.transmits(), ". 1 ack 3001");
    assert_eq!(s.endpoint.stats().dsacks_sent, 1);
}

#[test]
fn the_block_that_contains_a_duplicate_follows_its_report() {
    // RFC 2883 §4.1, second example.
    let mut s = receiver(reporting());
    for from in [1001, 2001, 4001] {
        s.receive(segment(from).ack(1).data(1000));
    }
    s.transmits();
    s.receive(segment(1001).ack(1).data(1000));
    assert_eq!(s.transmits(), ". 1 ack 1 sack 1001-2001 sack 1001-3001 sack 4001-5001");
}

#[test]
fn the_part_of_a_segment_that_was_known_is_reported() {
    // RFC 2883 §4.2.
    let mut s = receiver(reporting());
    s.receive(segment(1).ack(1).data(1000));
    s.receive(segment(1501).ack(1).data(500));
    s.transmits();
    s.receive(segment(501).ack(1).data(1000));
    assert_eq!(s.transmits(), ". 1 ack 2001 sack 501-1001");
    s.receive(segment(3001).ack(1).data(1000));
    s.transmits();
    s.receive(segment(2501).ack(1).data(1000));
    assert_eq!(s.transmits(), ". 1 ack 2001 sack 3001-3501 sack 2501-4001");
    s.receive(segment(2001).ack(1).data(1000));
    assert_eq!(s.transmits(), ". 1 ack 4001 sack 2501-3001", "the first part that was known");
}

#[test]
fn of_several_duplicates_in_one_ack_the_first_is_reported() {
    let mut s = receiver(reporting());
    s.receive(segment(1).ack(1).data(2000));
    s.transmits();
    s.receive(segment(1).ack(1).data(500));
    s.receive(segment(501).ack(1).data(500));
    assert_eq!(s.transmits(), ". 1 ack 2001 sack 1-501");
    assert_eq!(s.endpoint.stats().dsacks_sent, 1);
}

#[test]
fn a_dsack_report_reduces_the_data_length() {
    let mut s = receiver(reporting());
    s.receive(segment(1).ack(1).data(1000));
    s.transmits();
    s.endpoint.send(s.now, Length(1000)).unwrap();
    s.receive(segment(1).ack(1).data(1000));
    assert_eq!(s.transmits(), ". 1:989 ack 1001 sack 1-1001; . 989:1001 ack 1001");
}

#[test]
fn duplicates_are_reported_only_if_configured_and_with_sack() {
    for (config, options) in [(plain().with_sack(), mss_1000_sack()), (reporting(), mss_1000())] {
        let mut s = Script::connected_with(config, options);
        s.receive(segment(1).ack(1).data(1000));
        s.transmits();
        s.receive(segment(1).ack(1).data(1000));
        assert_eq!(s.transmits(), ". 1 ack 1001");
        assert_eq!(s.endpoint.stats().dsacks_sent, 0);
    }
}

#[test]
fn data_outside_the_stream_are_not_reported() {
    let mut s = receiver(reporting());
    s.receive(segment(1).ack(1).data(1000));
    s.transmits();
    s.receive(segment(-500).ack(1).data(1000));
    assert_eq!(s.transmits(), ". 1 ack 1001 sack 1-500", "nothing before the first byte");
    s.receive(segment(-5000).ack(1).data(1000));
    assert_eq!(s.transmits(), ". 1 ack 1001");
    s.receive(segment(1_000_000).ack(1).data(1000));
    assert_eq!(s.transmits(), ". 1 ack 1001", "nor beyond the window");
}

#[test]
fn the_sender_counts_reports_and_nothing_else() {
    let mut s = receiver(plain().with_sack());
    s.endpoint.send(s.now, Length(10_000)).unwrap();
    s.transmits();
    s.receive(segment(1).ack(3001).sack(1001, 2001));
    s.receive(segment(1).ack(3001).sack(5001, 6001).sack(5001, 7001));
    assert_eq!(s.endpoint.stats().dsacks_received, 2);
    s.receive(segment(1).ack(2001).sack(2001, 3001));
    assert_eq!(s.endpoint.stats().dsacks_received, 2, "an old ACK with a block above it");
    s.receive(segment(1).ack(3001).sack(2001, 2001));
    s.receive(segment(1).ack(3001).sack(-900, 1));
    s.receive(segment(1).ack(3001).sack(20_001, 21_001).sack(20_001, 22_001));
    assert_eq!(s.endpoint.stats().dsacks_received, 2, "nonsense");
    assert_eq!(s.endpoint.stats().dup_acks, 1);
}
