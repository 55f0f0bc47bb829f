//! Neighbours with applications or timers that act at the same instant (RFC 5148 §5.2).

use super::harness::*;
use crate::aodv::config::{Hello, HelloSenders, LinkSensing};
use crate::aodv::*;
use hopline_core::{Duration, Instant};
use hopline_wire::aodv::Message;
use std::collections::BTreeSet;

/// Returns the times, from the start, of the unanswered requests of a node.
fn requests(config: Config, number: u32) -> Vec<Duration> {
    let mut node = TestNode::with_jitter(config, number);
    let start = node.now;
    assert_eq!(node.send(9, 1), Decision::Accepted);
    let at_once = node.sent().into_iter().map(|transmit| (start, transmit));
    let sent: Vec<_> = at_once.chain(node.advance(ms(20_000))).collect();
    assert!(sent.iter().all(|(_, transmit)| matches!(transmit.message, Message::Rreq(_))));
    sent.into_iter().map(|(at, _)| at - start).collect()
}

#[test]
fn each_request_is_jittered_and_its_timeout_starts_at_departure() {
    let times = requests(Config::rfc3561(), 0);
    let plain = requests(Config { originated_jitter: Duration::ZERO, ..Config::rfc3561() }, 0);
    assert_eq!(times.len(), plain.len());
    assert!(times[0] > Duration::ZERO && times[0] < ms(10), "{:?}", times[0]);
    for (pair, plain) in times.windows(2).zip(plain.windows(2)) {
        let (wait, least) = (pair[1] - pair[0], plain[1] - plain[0]);
        assert!(wait > least && wait < least + ms(10), "{wait:?} after {least:?}");
    }
}

#[test]
fn simultaneous_discoveries_send_at_different_times() {
    let times = [0, 1].map(|number| requests(Config::rfc3561(), number));
    assert!(times[0].len() > 5);
    assert!(times[0].iter().zip(&times[1]).all(|(a, b)| a != b));
}

#[test]
fn requests_of_the_ns2_preset_are_not_jittered() {
    let times = requests(Config::ns2_235(), 0);
    assert_eq!((times[0], &times), (Duration::ZERO, &requests(Config::ns2_235(), 1)));
}

#[test]
fn hellos_are_desynchronised() {
    let hello = Hello { senders: HelloSenders::Always, ..Hello::RFC3561 };
    let config = Config { link_sensing: LinkSensing::Hello(hello), ..Config::rfc3561() };
    let mut node = TestNode::with_jitter(config, 0);
    let second = Duration::from_secs(1);
    let sent = node.advance(second * 20);
    let phases: BTreeSet<u64> = sent.iter().map(|(at, _)| at.as_nanos() % second.as_nanos()).collect();
    assert_eq!((sent.len(), phases.len()), (20, 20), "each waits another time");
    let (first, last) = (phases.first().unwrap(), phases.last().unwrap());
    assert!(last - first < ms(10).as_nanos(), "and none for long");
}

#[test]
fn broadcast_errors_are_jittered_and_unicast_ones_are_not() {
    let mut node = TestNode::with_jitter(Config::rfc3561(), 0);
    node.receive_broadcast(1, 5, rreq(8, 1, 9, 1));
    node.skip(ms(20));
    node.receive_unicast(2, rrep(8, 9, 7, 2));
    let mut single = TestNode { aodv: node.aodv.clone(), ..node };
    assert_eq!(single.fail_link(2, FailedContent::Other).len(), 1, "by unicast, which the MAC repeats");
    node.receive_broadcast(3, 5, rreq(7, 1, 9, 0));
    let failed = node.now;
    assert_eq!(node.fail_link(2, FailedContent::Other), []);
    let sent: Vec<(Instant, Transmit)> = node.advance(ms(10));
    assert!(matches!(&sent[..], [(at, error)] if *at > failed && matches!(error.message, Message::Rerr(_))));
}
