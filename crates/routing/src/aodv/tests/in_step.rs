//! Neighbours with applications or timers that act at the same instant (RFC 5148 §5.2).

use super::dialogue::*;
use crate::aodv::config::{Hello, HelloWhen, LinkSensing};
use crate::aodv::*;
use hopline_core::{Duration, Instant};
use hopline_wire::aodv::Message;
use std::collections::BTreeSet;

/// Returns the times, from the start, of the unanswered requests of a node.
fn requests(config: Config, number: u32) -> Vec<Duration> {
    let mut node = Node::jittered(config, number);
    let start = node.now;
    assert_eq!(node.send(9, 1), Decision::Taken);
    let at_once = node.sent().into_iter().map(|transmit| (start, transmit));
    let sent: Vec<_> = at_once.chain(node.pass(ms(20_000))).collect();
    assert!(sent.iter().all(|(_, transmit)| matches!(transmit.message, Message::Rreq(_))));
    sent.into_iter().map(|(at, _)| at - start).collect()
}

#[test]
fn each_request_waits_a_random_time_and_its_answer_is_awaited_from_then_on() {
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
fn nodes_that_look_for_a_route_at_the_same_instant_ask_at_different_ones() {
    let times = [0, 1].map(|number| requests(Config::rfc3561(), number));
    assert!(times[0].len() > 5);
    assert!(times[0].iter().zip(&times[1]).all(|(a, b)| a != b));
}

#[test]
fn requests_of_the_ns2_preset_leave_at_once() {
    let times = requests(Config::ns2_235(), 0);
    assert_eq!((times[0], &times), (Duration::ZERO, &requests(Config::ns2_235(), 1)));
}

#[test]
fn hellos_do_not_keep_their_phase() {
    let hello = Hello { when: HelloWhen::Always, ..Hello::RFC3561 };
    let config = Config { link_sensing: LinkSensing::Hello(hello), ..Config::rfc3561() };
    let mut node = Node::jittered(config, 0);
    let second = Duration::from_secs(1);
    let sent = node.pass(second * 20);
    let phases: BTreeSet<u64> = sent.iter().map(|(at, _)| at.as_nanos() % second.as_nanos()).collect();
    assert_eq!((sent.len(), phases.len()), (20, 20), "each waits another time");
    let (first, last) = (phases.first().unwrap(), phases.last().unwrap());
    assert!(last - first < ms(10).as_nanos(), "and none for long");
}

#[test]
fn an_error_for_several_users_waits_and_one_for_a_single_user_does_not() {
    let mut node = Node::jittered(Config::rfc3561(), 0);
    node.hear(1, 5, rreq(8, 1, 9, 1));
    node.skip(ms(20));
    node.get(2, rrep(8, 9, 7, 2));
    let mut single = Node { aodv: node.aodv.clone(), ..node };
    assert_eq!(single.link_fails(2, Carried::Nothing).len(), 1, "by unicast, which the MAC repeats");
    node.hear(3, 5, rreq(7, 1, 9, 0));
    let failed = node.now;
    assert_eq!(node.link_fails(2, Carried::Nothing), []);
    let sent: Vec<(Instant, Transmit)> = node.pass(ms(10));
    assert!(matches!(&sent[..], [(at, error)] if *at > failed && matches!(error.message, Message::Rerr(_))));
}
