//! No message of a neighbour makes the machine panic, stall or grow.

use super::harness::*;
use crate::olsr::*;
use hopline_core::{LinkId, Seq16, StateMachine};
use hopline_wire::olsr::{Body, Message, Packet};
use std::net::Ipv4Addr;
use std::sync::Arc;

#[test]
fn addresses_that_are_no_hosts_are_counted_and_change_nothing() {
    let mut node = TestNode::new(without_jitter());
    let tc = node.tc(5, 1, &[6]);
    for from in [ME, Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST, Ipv4Addr::new(224, 0, 0, 1)] {
        node.receive(from, tc.clone());
    }
    assert_eq!(node.ignored(IgnoredReason::BadAddress), 4);
    node.receive_hello(1, &[(SYMMETRIC, &[0, 5])]);
    node.receive(node_address(1), Message { originator: Ipv4Addr::BROADCAST, ..tc.clone() });
    let neighbours = vec![Ipv4Addr::BROADCAST, node_address(5), node_address(6)];
    let Body::Tc(body) = &tc.body else { panic!("a TC message") };
    let body = Body::Tc(hopline_wire::olsr::Tc { neighbours, ..body.clone() });
    node.receive(node_address(1), Message { body, ..tc });
    assert_eq!(node.ignored(IgnoredReason::BadAddress), 7, "no host, and the originator itself");
    assert_eq!((node.route(5), node.route(6)), (Some((1, 2)), Some((1, 3))));
    assert_eq!(node.olsr.routes().count(), 3);
}

#[test]
fn a_hello_on_behalf_of_another_is_refused() {
    let mut node = TestNode::new(without_jitter());
    node.receive_hello(1, &[(SYMMETRIC, &[0])]);
    let hello = node.olsr.clone();
    node.receive_hello(2, &[]);
    let packet = Packet {
        seq: Seq16(1),
        messages: vec![Message { originator: node_address(3), ..hello_message(&mut node) }],
    };
    let received = Received { packet: Arc::new(packet), from: node_address(2) };
    node.olsr.handle_packet(node.now, LinkId::ONLY, received);
    assert_eq!(node.ignored(IgnoredReason::OtherInterface), 1);
    assert!(node.olsr.routes().eq(hello.routes()));
}

fn hello_message(node: &mut TestNode) -> Message {
    let interval = hopline_wire::olsr::CodedTime::at_least(secs(2));
    let willingness = hopline_wire::olsr::Willingness::ALWAYS;
    let body = Body::Hello(hopline_wire::olsr::Hello { interval, willingness, links: vec![] });
    node.message(2, secs(6), body)
}

#[test]
fn full_tables_refuse_and_count() {
    let mut config = Config::rfc3626();
    (config.limits.links, config.limits.two_hops, config.limits.topology, config.limits.duplicates) =
        (2, 3, 2, 2);
    config.limits.departures = 1;
    let mut node = TestNode::new(config);
    for neighbour in 1..=3 {
        node.receive_hello(neighbour, &[(MPR, &[0])]);
    }
    assert_eq!((node.link(3), node.ignored(IgnoredReason::TableFull)), (None, 1));
    node.receive_hello(1, &[(SYMMETRIC, &[0, 11, 12, 13, 14])]);
    assert_eq!(node.ignored(IgnoredReason::TableFull), 2);
    node.receive_tc(1, 11, 1, &[21, 22, 23]);
    node.receive_tc(1, 12, 1, &[24]);
    assert_eq!(node.ignored(IgnoredReason::TableFull), 4);
    node.receive_tc(1, 13, 1, &[25]);
    assert_eq!(node.ignored(IgnoredReason::TableFull), 5, "a message that cannot be remembered");
    assert_eq!(node.ignored(IgnoredReason::OutboxFull), 1);
    assert_eq!(node.olsr.table_sizes(), [3, 2, 2]);
    assert_eq!(node.olsr.stats().messages_forwarded, 1);
}

#[test]
fn a_far_future_does_not_overflow() {
    let mut node = TestNode::new(Config { hello_interval: hopline_core::Duration::MAX, ..without_jitter() });
    node.receive_hello(1, &[(SYMMETRIC, &[0, 5])]);
    assert_eq!(node.route(5), Some((1, 2)));
}
