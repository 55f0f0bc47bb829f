//! No message of a neighbour makes the machine panic, stall or grow.

use super::dialogue::*;
use crate::olsr::*;
use hopline_core::{LinkId, Machine, Seq16};
use hopline_wire::olsr::{Body, Message, Packet};
use std::net::Ipv4Addr;
use std::sync::Arc;

#[test]
fn addresses_that_are_no_hosts_are_counted_and_change_nothing() {
    let mut node = Node::new(punctual());
    let tc = node.tc(5, 1, &[6]);
    for from in [ME, Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST, Ipv4Addr::new(224, 0, 0, 1)] {
        node.take(from, tc.clone());
    }
    assert_eq!(node.ignored(Ignored::BadAddress), 4);
    node.hear_hello(1, &[(SYMMETRIC, &[0, 5])]);
    node.take(n(1), Message { originator: Ipv4Addr::BROADCAST, ..tc.clone() });
    let neighbours = vec![Ipv4Addr::BROADCAST, n(5), n(6)];
    let Body::Tc(body) = &tc.body else { panic!("a TC message") };
    let body = Body::Tc(hopline_wire::olsr::Tc { neighbours, ..body.clone() });
    node.take(n(1), Message { body, ..tc });
    assert_eq!(node.ignored(Ignored::BadAddress), 7, "no host, and the originator itself");
    assert_eq!((node.route(5), node.route(6)), (Some((1, 2)), Some((1, 3))));
    assert_eq!(node.olsr.routes().count(), 3);
}

#[test]
fn a_hello_on_behalf_of_another_is_refused() {
    let mut node = Node::new(punctual());
    node.hear_hello(1, &[(SYMMETRIC, &[0])]);
    let hello = node.olsr.clone();
    node.hear_hello(2, &[]);
    let packet = Packet { seq: Seq16(1), messages: vec![Message { originator: n(3), ..a_hello(&mut node) }] };
    let received = Received { packet: Arc::new(packet), from: n(2) };
    node.olsr.handle_packet(node.now, LinkId::ONLY, received);
    assert_eq!(node.ignored(Ignored::OtherInterface), 1);
    assert!(node.olsr.routes().eq(hello.routes()));
}

fn a_hello(node: &mut Node) -> Message {
    let interval = hopline_wire::olsr::CodedTime::at_least(secs(2));
    let willingness = hopline_wire::olsr::Willingness::ALWAYS;
    let body = Body::Hello(hopline_wire::olsr::Hello { interval, willingness, links: vec![] });
    node.message(2, secs(6), body)
}

#[test]
fn tables_that_are_full_refuse_and_count() {
    let mut config = Config::rfc3626();
    (config.limits.links, config.limits.two_hops, config.limits.topology, config.limits.duplicates) =
        (2, 3, 2, 2);
    config.limits.departures = 1;
    let mut node = Node::new(config);
    for neighbour in 1..=3 {
        node.hear_hello(neighbour, &[(RELAY, &[0])]);
    }
    assert_eq!((node.link(3), node.ignored(Ignored::TableFull)), (None, 1));
    node.hear_hello(1, &[(SYMMETRIC, &[0, 11, 12, 13, 14])]);
    assert_eq!(node.ignored(Ignored::TableFull), 2);
    node.hear_tc(1, 11, 1, &[21, 22, 23]);
    node.hear_tc(1, 12, 1, &[24]);
    assert_eq!(node.ignored(Ignored::TableFull), 4);
    node.hear_tc(1, 13, 1, &[25]);
    assert_eq!(node.ignored(Ignored::TableFull), 5, "a message that cannot be remembered");
    assert_eq!(node.ignored(Ignored::OutboxFull), 1);
    assert_eq!(node.olsr.entries(), [3, 2, 2]);
    assert_eq!(node.olsr.stats().messages_forwarded, 1);
}

#[test]
fn a_far_future_does_not_overflow() {
    let mut node = Node::new(Config { hello_interval: hopline_core::Duration::MAX, ..punctual() });
    node.hear_hello(1, &[(SYMMETRIC, &[0, 5])]);
    assert_eq!(node.route(5), Some((1, 2)));
}
