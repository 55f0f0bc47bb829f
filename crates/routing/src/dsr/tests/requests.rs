//! Requests from other nodes (RFC 4728 §8.2.2).

use super::dialogue::*;
use crate::dsr::config::TargetReplies;
use crate::dsr::*;
use core::num::NonZeroU8;
use hopline_wire::dsr::{DsrOption, RouteRequest};

#[test]
fn a_request_is_passed_on_once_with_this_node_on_record_after_a_jitter() {
    let mut node = Node::new(Config::rfc4728());
    assert_eq!(node.get(5, request(4, 7, 9, &[6, 5])), [], "not at once");
    let sent = node.settle();
    let (request_on, ttl) = only_request(&sent);
    let expected = RouteRequest { id: 7, target: n(9), path: path(&[6, 5, 0]) };
    assert_eq!((request_on, ttl, sent[0].packet.source), (&expected, 63, n(4)));
    node.get(3, request(4, 7, 9, &[3]));
    assert_eq!((node.settle(), node.ignored(Ignored::DuplicateRequest)), (vec![], 1));
    node.get(3, request(4, 7, 8, &[3]));
    assert_eq!(node.settle().len(), 1, "another target, another request");
    node.get(3, request(4, 8, 9, &[3]));
    assert_eq!(node.settle().len(), 1);
}

#[test]
fn the_way_back_along_the_record_is_learnt() {
    let mut node = Node::new(Config::rfc4728());
    node.get(5, request(4, 7, 9, &[6, 5]));
    assert_eq!(node.routes(), [path(&[5, 6, 4])]);
    node.get(3, request(4, 7, 9, &[3]));
    assert_eq!(node.routes(), [path(&[5, 6, 4]), path(&[3, 4])], "of copies too");
}

#[test]
fn this_nodes_own_request_and_one_it_is_on_record_of_end_here() {
    let mut node = Node::new(Config::rfc4728());
    node.get(5, request(0, 1, 9, &[5]));
    node.get(5, request(4, 1, 9, &[0, 5]));
    assert_eq!((node.settle(), node.ignored(Ignored::OwnRequest)), (vec![], 2));
    assert!(node.routes().is_empty());
}

#[test]
fn a_request_ends_with_its_time_to_live_and_where_its_record_is_full() {
    let mut node = Node::new(Config { max_path: NonZeroU8::new(2).unwrap(), ..Config::rfc4728() });
    node.get(5, Packet { ttl: 1, ..request(4, 1, 9, &[5]) });
    assert_eq!((node.settle(), node.ignored(Ignored::TtlExpired)), (vec![], 1));
    node.get(5, request(4, 2, 9, &[6, 5]));
    assert_eq!((node.settle(), node.ignored(Ignored::RecordFull)), (vec![], 1));
    node.get(5, request(4, 3, 0, &[6, 5]));
    assert_eq!(node.settle().len(), 1, "the target may be one hop farther");
    node.get(5, request(4, 4, 0, &[7, 6, 5]));
    assert_eq!((node.settle(), node.ignored(Ignored::RecordFull)), (vec![], 2));
}

#[test]
fn the_target_replies_to_every_copy_the_way_it_came() {
    let mut node = Node::new(Config::rfc4728());
    node.get(5, request(4, 7, 0, &[6, 5]));
    node.get(3, request(4, 7, 0, &[3]));
    let mut sent = node.settle();
    sent.sort_by_key(|sent| sent.next_hop);
    let [short, long] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!((short.next_hop, short.packet.source, short.packet.destination), (n(3), ME, n(4)));
    assert_eq!(short.packet.header.options.as_slice(), [route(0, &[3], 1), reply_option(&[3, 0])]);
    assert_eq!(long.packet.header.options.as_slice(), [route(0, &[5, 6], 2), reply_option(&[6, 5, 0])]);
    assert_eq!((long.next_hop, long.packet.header.next), (n(5), None));
    assert_eq!(node.dsr.stats().replies_as_target, 2);
}

#[test]
fn the_target_replies_to_a_neighbour_directly() {
    let mut node = Node::new(Config::ns2());
    assert_eq!(node.get(4, Packet { ttl: 1, ..request(4, 7, 0, &[]) }), [], "after a random time, as ns-2");
    let sent = node.settle();
    assert_eq!(only(&sent).1, n(4));
    assert_eq!(only(&sent).0.header.options.as_slice(), [route(0, &[], 0), reply_option(&[0])]);
}

#[test]
fn the_target_replies_to_the_first_copy_if_told_to() {
    let mut node = Node::new(Config { target_replies: TargetReplies::First, ..Config::rfc4728() });
    node.get(5, request(4, 7, 0, &[6, 5]));
    node.get(3, request(4, 7, 0, &[3]));
    assert_eq!((node.settle().len(), node.ignored(Ignored::DuplicateRequest)), (1, 1));
}

#[test]
fn an_error_on_a_request_is_believed_and_passed_on() {
    // §3.4.4
    let mut node = Node::new(Config::rfc4728());
    node.knows(&[1, 2, 9]);
    let mut packet = request(4, 7, 8, &[5]);
    let error = error_option(2, 9, 4);
    std::sync::Arc::make_mut(&mut packet.header).options.push(error.clone());
    node.get(5, packet);
    assert_eq!(node.routes(), [path(&[5, 4]), path(&[1, 2])]);
    let sent = node.settle();
    assert_eq!(sent[0].packet.header.options.last(), Some(&error));
}

#[test]
fn a_record_that_makes_no_sense_is_refused() {
    let cases = [
        (5, request(4, 1, 9, &[6])),       // 5 transmitted it and is not the last
        (5, request(4, 1, 9, &[])),        // nor the initiator
        (5, request(4, 1, 9, &[5, 6, 5])), // twice
        (5, request(4, 1, 9, &[4, 5])),    // the initiator twice
        (5, request(4, 1, 9, &[9, 5])),    // behind its target
        (4, request(4, 1, 4, &[])),        // looks for itself
    ];
    let mut node = Node::new(Config::rfc4728());
    for (from, packet) in cases {
        node.get(from, packet);
    }
    assert_eq!((node.settle(), node.ignored(Ignored::Malformed)), (vec![], 6));
    assert!(node.routes().is_empty());
    let nobody = Packet { source: ALL, ..request(4, 2, 9, &[5]) };
    let nowhere = Packet { destination: ALL, ..packet(4, 4, &[]) };
    let routed = packet(4, 4, &[request_option(4, 9, &[5]), route(0, &[5], 1)]);
    let twice = packet(4, 4, &[request_option(5, 9, &[5]), request_option(6, 9, &[5])]);
    let all = |packet| Packet { destination: ALL, ..packet };
    for packet in [nobody, nowhere, all(routed), all(twice)] {
        node.get(5, packet);
    }
    assert_eq!((node.settle(), node.ignored(Ignored::Malformed)), (vec![], 10));
}

#[test]
fn data_on_a_request_are_delivered_once_and_not_passed_on() {
    let mut node = Node::new(Config { target_replies: TargetReplies::First, ..Config::rfc4728() });
    node.get(5, carrying(request(4, 7, 0, &[5]), 1));
    node.get(3, carrying(request(4, 7, 0, &[3]), 2));
    node.get(3, carrying(request(4, 8, 9, &[3]), 3));
    let lost = |packet| Event::Drop { packet, reason: DropReason::BadRoute };
    assert_eq!(node.events(), [Event::Deliver { packet: 1, ttl: 64 }, lost(2), lost(3)]);
    let passed = node.settle().into_iter().find(|sent| sent.next_hop == ALL).unwrap().packet;
    assert_eq!((passed.header.next, passed.carried), (None, None));
}

#[test]
fn too_many_requests_at_once_are_counted() {
    let mut config = Config::rfc4728();
    config.limits.departures = 2;
    let mut node = Node::new(config);
    for id in 0..5 {
        node.get(5, request(4, id, 9, &[5]));
    }
    assert_eq!((node.settle().len(), node.ignored(Ignored::OutboxFull)), (2, 3));
}

#[test]
fn unknown_options_of_a_request_are_treated_as_their_types_say() {
    let with = |kind: u8| {
        let mut packet = request(4, u16::from(kind), 9, &[5]);
        let option = DsrOption::Unknown { kind, data: [1, 2].into_iter().collect() };
        std::sync::Arc::make_mut(&mut packet.header).options.push(option);
        packet
    };
    let mut node = Node::new(Config::rfc4728());
    let mut passed = |kind: u8| {
        node.get(5, with(kind));
        node.settle().first().map(|sent| sent.packet.header.options.get(1).cloned())
    };
    assert_eq!(
        passed(0x10),
        Some(Some(DsrOption::Unknown { kind: 0x10, data: [1, 2].into_iter().collect() }))
    );
    assert_eq!(passed(0x30), Some(None), "removed");
    let marked = DsrOption::Unknown { kind: 0x50, data: [0x81, 2].into_iter().collect() };
    assert_eq!(passed(0x50), Some(Some(marked)));
    assert_eq!(passed(0x70), None, "dropped");
    assert_eq!(node.ignored(Ignored::UnknownOption), 1);
}
