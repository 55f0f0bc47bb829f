//! Requests from other nodes (RFC 4728 §8.2.2).

use super::harness::*;
use crate::dsr::config::TargetReplies;
use crate::dsr::*;
use core::num::NonZeroU8;
use hopline_wire::dsr::{DsrOption, RouteRequest};

#[test]
fn a_request_is_relayed_once_with_this_node_in_its_record() {
    let mut node = TestNode::new(Config::rfc4728());
    assert_eq!(node.receive(5, request(4, 7, 9, &[6, 5])), [], "not at once");
    let sent = node.advance_past_jitter();
    let (request_on, ttl) = only_request(&sent);
    let expected = RouteRequest { id: 7, target: node_address(9), path: path(&[6, 5, 0]) };
    assert_eq!((request_on, ttl, sent[0].packet.source), (&expected, 63, node_address(4)));
    node.receive(3, request(4, 7, 9, &[3]));
    assert_eq!((node.advance_past_jitter(), node.ignored(IgnoredReason::DuplicateRequest)), (vec![], 1));
    node.receive(3, request(4, 7, 8, &[3]));
    assert_eq!(node.advance_past_jitter().len(), 1, "another target, another request");
    node.receive(3, request(4, 8, 9, &[3]));
    assert_eq!(node.advance_past_jitter().len(), 1);
}

#[test]
fn the_reverse_path_of_the_record_is_learnt() {
    let mut node = TestNode::new(Config::rfc4728());
    node.receive(5, request(4, 7, 9, &[6, 5]));
    assert_eq!(node.routes(), [path(&[5, 6, 4])]);
    node.receive(3, request(4, 7, 9, &[3]));
    assert_eq!(node.routes(), [path(&[5, 6, 4]), path(&[3, 4])], "of copies too");
}

#[test]
fn own_requests_and_requests_with_this_node_in_the_record_are_dropped() {
    let mut node = TestNode::new(Config::rfc4728());
    node.receive(5, request(0, 1, 9, &[5]));
    node.receive(5, request(4, 1, 9, &[0, 5]));
    assert_eq!((node.advance_past_jitter(), node.ignored(IgnoredReason::OwnRequest)), (vec![], 2));
    assert!(node.routes().is_empty());
}

#[test]
fn a_request_with_expired_ttl_or_full_record_is_not_relayed() {
    let mut node = TestNode::new(Config { max_path: NonZeroU8::new(2).unwrap(), ..Config::rfc4728() });
    node.receive(5, Packet { ttl: 1, ..request(4, 1, 9, &[5]) });
    assert_eq!((node.advance_past_jitter(), node.ignored(IgnoredReason::TtlExpired)), (vec![], 1));
    node.receive(5, request(4, 2, 9, &[6, 5]));
    assert_eq!((node.advance_past_jitter(), node.ignored(IgnoredReason::RecordFull)), (vec![], 1));
    node.receive(5, request(4, 3, 0, &[6, 5]));
    assert_eq!(node.advance_past_jitter().len(), 1, "the target may be one hop farther");
    node.receive(5, request(4, 4, 0, &[7, 6, 5]));
    assert_eq!((node.advance_past_jitter(), node.ignored(IgnoredReason::RecordFull)), (vec![], 2));
}

#[test]
fn the_target_replies_to_every_copy_along_its_path() {
    let mut node = TestNode::new(Config::rfc4728());
    node.receive(5, request(4, 7, 0, &[6, 5]));
    node.receive(3, request(4, 7, 0, &[3]));
    let mut sent = node.advance_past_jitter();
    sent.sort_by_key(|sent| sent.next_hop);
    let [short, long] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!(
        (short.next_hop, short.packet.source, short.packet.destination),
        (node_address(3), ME, node_address(4))
    );
    assert_eq!(short.packet.header.options.as_slice(), [source_route(0, &[3], 1), reply_option(&[3, 0])]);
    assert_eq!(
        long.packet.header.options.as_slice(),
        [source_route(0, &[5, 6], 2), reply_option(&[6, 5, 0])]
    );
    assert_eq!((long.next_hop, long.packet.header.next), (node_address(5), None));
    assert_eq!(node.dsr.stats().replies_as_target, 2);
}

#[test]
fn the_target_replies_to_a_neighbour_directly() {
    let mut node = TestNode::new(Config::ns2());
    assert_eq!(
        node.receive(4, Packet { ttl: 1, ..request(4, 7, 0, &[]) }),
        [],
        "after a random time, as ns-2"
    );
    let sent = node.advance_past_jitter();
    assert_eq!(only_packet(&sent).1, node_address(4));
    assert_eq!(only_packet(&sent).0.header.options.as_slice(), [source_route(0, &[], 0), reply_option(&[0])]);
}

#[test]
fn the_target_replies_to_the_first_copy_if_configured() {
    let mut node = TestNode::new(Config { target_replies: TargetReplies::First, ..Config::rfc4728() });
    node.receive(5, request(4, 7, 0, &[6, 5]));
    node.receive(3, request(4, 7, 0, &[3]));
    assert_eq!((node.advance_past_jitter().len(), node.ignored(IgnoredReason::DuplicateRequest)), (1, 1));
}

#[test]
fn an_error_in_a_request_is_applied_and_relayed() {
    // §3.4.4
    let mut node = TestNode::new(Config::rfc4728());
    node.learn_route(&[1, 2, 9]);
    let mut packet = request(4, 7, 8, &[5]);
    let error = error_option(2, 9, 4);
    std::sync::Arc::make_mut(&mut packet.header).options.push(error.clone());
    node.receive(5, packet);
    assert_eq!(node.routes(), [path(&[5, 4]), path(&[1, 2])]);
    let sent = node.advance_past_jitter();
    assert_eq!(sent[0].packet.header.options.last(), Some(&error));
}

#[test]
fn invalid_records_are_refused() {
    let cases = [
        (5, request(4, 1, 9, &[6])),       // 5 transmitted it and is not the last
        (5, request(4, 1, 9, &[])),        // nor the initiator
        (5, request(4, 1, 9, &[5, 6, 5])), // twice
        (5, request(4, 1, 9, &[4, 5])),    // the initiator twice
        (5, request(4, 1, 9, &[9, 5])),    // behind its target
        (4, request(4, 1, 4, &[])),        // looks for itself
    ];
    let mut node = TestNode::new(Config::rfc4728());
    for (from, packet) in cases {
        node.receive(from, packet);
    }
    assert_eq!((node.advance_past_jitter(), node.ignored(IgnoredReason::Malformed)), (vec![], 6));
    assert!(node.routes().is_empty());
    let nobody = Packet { source: ALL, ..request(4, 2, 9, &[5]) };
    let nowhere = Packet { destination: ALL, ..packet(4, 4, &[]) };
    let routed = packet(4, 4, &[request_option(4, 9, &[5]), source_route(0, &[5], 1)]);
    let twice = packet(4, 4, &[request_option(5, 9, &[5]), request_option(6, 9, &[5])]);
    let all = |packet| Packet { destination: ALL, ..packet };
    for packet in [nobody, nowhere, all(routed), all(twice)] {
        node.receive(5, packet);
    }
    assert_eq!((node.advance_past_jitter(), node.ignored(IgnoredReason::Malformed)), (vec![], 10));
}

#[test]
fn data_in_a_request_are_delivered_once_and_not_relayed() {
    let mut node = TestNode::new(Config { target_replies: TargetReplies::First, ..Config::rfc4728() });
    node.receive(5, with_data(request(4, 7, 0, &[5]), 1));
    node.receive(3, with_data(request(4, 7, 0, &[3]), 2));
    node.receive(3, with_data(request(4, 8, 9, &[3]), 3));
    let lost = |packet| Event::Drop { packet, reason: DropReason::BadRoute };
    assert_eq!(node.events(), [Event::Deliver { packet: 1, ttl: 64 }, lost(2), lost(3)]);
    let passed = node.advance_past_jitter().into_iter().find(|sent| sent.next_hop == ALL).unwrap().packet;
    assert_eq!((passed.header.next, passed.payload), (None, None));
}

#[test]
fn too_many_requests_at_once_are_counted() {
    let mut config = Config::rfc4728();
    config.limits.departures = 2;
    let mut node = TestNode::new(config);
    for id in 0..5 {
        node.receive(5, request(4, id, 9, &[5]));
    }
    assert_eq!((node.advance_past_jitter().len(), node.ignored(IgnoredReason::OutboxFull)), (2, 3));
}

#[test]
fn unknown_options_of_a_request_are_treated_by_their_type() {
    let with = |kind: u8| {
        let mut packet = request(4, u16::from(kind), 9, &[5]);
        let option = DsrOption::Unknown { kind, data: [1, 2].into_iter().collect() };
        std::sync::Arc::make_mut(&mut packet.header).options.push(option);
        packet
    };
    let mut node = TestNode::new(Config::rfc4728());
    let mut passed = |kind: u8| {
        node.receive(5, with(kind));
        node.advance_past_jitter().first().map(|sent| sent.packet.header.options.get(1).cloned())
    };
    assert_eq!(
        passed(0x10),
        Some(Some(DsrOption::Unknown { kind: 0x10, data: [1, 2].into_iter().collect() }))
    );
    assert_eq!(passed(0x30), Some(None), "removed");
    let marked = DsrOption::Unknown { kind: 0x50, data: [0x81, 2].into_iter().collect() };
    assert_eq!(passed(0x50), Some(Some(marked)));
    assert_eq!(passed(0x70), None, "dropped");
    assert_eq!(node.ignored(IgnoredReason::UnknownOption), 1);
}
