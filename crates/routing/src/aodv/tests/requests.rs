//! Requests from other nodes: RFC 3561 §6.1, §6.5, §6.6.

use super::harness::*;
use crate::aodv::config::{PreviousHopRoute, ReplySequence};
use crate::aodv::*;
use hopline_core::Seq32;
use hopline_wire::aodv::{Message, Rreq};
use std::net::Ipv4Addr;

fn node() -> TestNode {
    TestNode::new(Config::rfc3561())
}

#[test]
fn s6_5_a_request_creates_a_reverse_route_and_one_to_the_neighbour() {
    let mut node = node();
    node.receive_broadcast(1, 5, rreq(8, 1, 9, 2));
    assert_eq!(node.valid_route(8), Some((node_address(1), 3, Some(Seq32(10)))));
    assert_eq!(node.valid_route(1), Some((node_address(1), 1, None)), "a neighbour, without sequence number");
    let lifetime = |destination| node.route_view(destination).unwrap().expires - node.now;
    // MinimalLifetime = 2 · 2.8 s − 2 · 3 hops · 40 ms.
    assert_eq!(lifetime(8), ms(5_600 - 240));
    assert_eq!(lifetime(1), ms(3_000));
}

#[test]
fn s6_5_a_request_is_relayed_once_after_a_jitter_one_hop_longer_and_one_hop_shorter_lived() {
    let mut node = node();
    let start = node.now;
    assert_eq!(node.receive_broadcast(1, 5, rreq(8, 1, 9, 2)), []);
    let sent = node.advance(ms(10));
    assert_eq!(sent.len(), 1);
    assert!(sent[0].0 > start && sent[0].0 < start + ms(10), "jittered within 10 ms");
    let (request, ttl) = only_request(core::slice::from_ref(&sent[0].1));
    assert_eq!((request, ttl), (&Rreq { hop_count: 3, ..rreq(8, 1, 9, 2) }, 4));
    node.receive_broadcast(2, 5, rreq(8, 1, 9, 2));
    assert_eq!(node.advance(ms(100)), []);
    assert_eq!(node.aodv.stats().ignored(IgnoredReason::DuplicateRequest), 1);
}

#[test]
fn s6_5_a_request_with_expired_ttl_still_creates_a_reverse_route() {
    let mut node = node();
    node.receive_broadcast(1, 1, rreq(8, 1, 9, 0));
    assert_eq!(node.advance(ms(100)), []);
    assert_eq!(node.aodv.stats().ignored(IgnoredReason::TtlExpired), 1);
    assert!(node.valid_route(8).is_some());
}

#[test]
fn s6_5_the_reverse_route_changes_only_for_a_fresher_number_or_fewer_hops() {
    let mut node = node();
    let with = |id, seq, hops| Rreq { originator_seq: Seq32(seq), ..rreq(8, id, 9, hops) };
    node.receive_broadcast(1, 5, with(1, 10, 3));
    node.receive_broadcast(2, 5, with(2, 9, 0));
    assert_eq!(node.valid_route(8), Some((node_address(1), 4, Some(Seq32(10)))), "older, though shorter");
    node.receive_broadcast(2, 5, with(3, 10, 3));
    assert_eq!(node.valid_route(8), Some((node_address(1), 4, Some(Seq32(10)))), "as good");
    node.receive_broadcast(2, 5, with(4, 10, 2));
    assert_eq!(node.valid_route(8), Some((node_address(2), 3, Some(Seq32(10)))), "shorter");
    node.receive_broadcast(1, 5, with(5, 11, 9));
    assert_eq!(node.valid_route(8), Some((node_address(1), 10, Some(Seq32(11)))), "fresher");
}

#[test]
fn s6_1_sequence_numbers_compare_modulo_2_32() {
    let mut node = node();
    let with = |id, seq| Rreq { originator_seq: Seq32(seq), ..rreq(8, id, 9, 3) };
    node.receive_broadcast(1, 5, with(1, u32::MAX));
    node.receive_broadcast(2, 5, with(2, 0));
    assert_eq!(node.valid_route(8), Some((node_address(2), 4, Some(Seq32(0)))));
}

#[test]
fn s6_5_a_relayed_request_contains_the_freshest_known_number() {
    for (known, asked, relayed) in [(7, None, 8), (7, Some(5), 8), (7, Some(20), 20)] {
        let mut node = node();
        node.receive_unicast(1, rrep(0, 9, known, 2));
        node.fail_link(1, FailedContent::Other); // known rises by one
        node.receive_broadcast(2, 5, Rreq { destination_seq: asked.map(Seq32), ..rreq(8, 1, 9, 0) });
        let sent = node.advance(ms(10));
        assert_eq!(only_request(&[sent[0].1.clone()]).0.destination_seq, Some(Seq32(relayed)));
    }
}

#[test]
fn s6_5_this_nodes_own_request_is_ignored() {
    let mut node = node();
    node.receive_broadcast(1, 5, rreq(0, 1, 9, 1));
    assert_eq!(node.advance(ms(100)), []);
    assert_eq!(node.route_view(0), None);
    assert_eq!(node.aodv.stats().ignored(IgnoredReason::OwnRequest), 1);
}

#[test]
fn s6_6_1_the_destination_answers_at_once_towards_the_originator() {
    let mut node = node();
    node.aodv.seq = Seq32(4);
    let sent = node.receive_broadcast(1, 5, rreq(8, 1, 0, 2));
    let (reply, to) = only_reply(&sent);
    assert_eq!(to, node_address(1));
    assert_eq!((reply.destination, reply.originator, reply.hop_count), (ME, node_address(8), 0));
    assert_eq!(reply.lifetime, ms(6_000), "MY_ROUTE_TIMEOUT");
    assert_eq!(reply.destination_seq, Seq32(4));
    assert_eq!(sent[0].ttl, 35);
    assert_eq!(node.advance(ms(100)), [], "and does not relay");
}

#[test]
fn s6_6_1_the_destinations_number_rises_only_to_the_requested_one() {
    for (own, asked, replied) in [(4, 4, 4), (4, 5, 5), (4, 9, 9), (4, 2, 4), (u32::MAX, 0, 0)] {
        let mut node = node();
        node.aodv.seq = Seq32(own);
        let sent =
            node.receive_broadcast(1, 5, Rreq { destination_seq: Some(Seq32(asked)), ..rreq(8, 1, 0, 2) });
        assert_eq!(only_reply(&sent).0.destination_seq, Seq32(replied), "own {own}, asked {asked}");
    }
}

#[test]
fn an_always_advancing_destination_supersedes_its_earlier_replies() {
    let mut node =
        TestNode::new(Config { reply_sequence: ReplySequence::AlwaysAdvance, ..Config::rfc3561() });
    node.aodv.seq = Seq32(4);
    let first = node.receive_broadcast(1, 5, rreq(8, 1, 0, 2));
    let second = node.receive_broadcast(1, 5, Rreq { destination_seq: Some(Seq32(8)), ..rreq(8, 2, 0, 2) });
    assert_eq!(only_reply(&first).0.destination_seq, Seq32(5));
    assert_eq!(only_reply(&second).0.destination_seq, Seq32(9));
}

#[test]
fn s6_6_2_a_relay_with_a_fresh_route_answers_for_the_destination() {
    let mut node = node();
    node.receive_unicast(2, rrep(0, 9, 7, 2));
    node.now += ms(1_000);
    let sent = node.receive_broadcast(1, 5, Rreq { destination_seq: Some(Seq32(7)), ..rreq(8, 1, 9, 2) });
    let (reply, to) = only_reply(&sent);
    assert_eq!(to, node_address(1));
    assert_eq!((reply.destination, reply.destination_seq, reply.hop_count), (node_address(9), Seq32(7), 3));
    assert_eq!(reply.lifetime, ms(5_000), "what is left of the route");
    assert_eq!(node.advance(ms(100)), [], "and does not relay");
    let route = node.aodv.routes.get(node.now, node_address(9)).unwrap();
    assert_eq!(route.precursors(), [node_address(1)], "the neighbour that will use the route");
    let back = node.aodv.routes.get(node.now, node_address(8)).unwrap();
    assert_eq!(back.precursors(), [node_address(2)]);
}

#[test]
fn s6_6_a_relay_does_not_answer_with_a_stale_unnumbered_or_backward_route() {
    let relays = |node: &mut TestNode, request: Rreq| {
        assert_eq!(node.receive_broadcast(1, 5, request), []);
        node.advance(ms(10)).len() == 1
    };
    let mut stale = node();
    stale.receive_unicast(2, rrep(0, 9, 7, 2));
    assert!(relays(&mut stale, Rreq { destination_seq: Some(Seq32(8)), ..rreq(8, 1, 9, 2) }));

    let mut unnumbered = node();
    unnumbered.receive_broadcast(9, 1, rreq(7, 1, 6, 0));
    assert_eq!(unnumbered.valid_route(9), Some((node_address(9), 1, None)));
    assert!(relays(&mut unnumbered, rreq(8, 1, 9, 2)));

    let mut backward = node();
    backward.receive_unicast(1, rrep(0, 9, 7, 2));
    assert!(relays(&mut backward, rreq(8, 1, 9, 2)), "the route leads over whoever asks");

    let mut only_destination = node();
    only_destination.receive_unicast(2, rrep(0, 9, 7, 2));
    assert!(relays(&mut only_destination, Rreq { destination_only: true, ..rreq(8, 1, 9, 2) }));

    let mut expired = node();
    expired.receive_unicast(2, rrep(0, 9, 7, 2));
    expired.now += ms(6_000);
    assert!(relays(&mut expired, rreq(8, 1, 9, 2)));
}

#[test]
fn s6_6_3_with_the_g_flag_the_destination_learns_the_route_to_the_originator() {
    let mut node = node();
    node.receive_unicast(2, rrep(0, 9, 7, 2));
    let sent = node.receive_broadcast(1, 5, Rreq { gratuitous: true, ..rreq(8, 1, 9, 1) });
    let [to_originator, to_destination] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(only_reply(core::slice::from_ref(to_originator)).1, node_address(1));
    let (gratuitous, to) = only_reply(core::slice::from_ref(to_destination));
    assert_eq!(to, node_address(2));
    assert_eq!((gratuitous.destination, gratuitous.originator), (node_address(8), node_address(9)));
    assert_eq!((gratuitous.hop_count, gratuitous.destination_seq), (2, Seq32(10)));
}

#[test]
fn without_previous_hop_routes_only_the_originator_is_learnt() {
    let mut node = TestNode::new(Config { previous_hop: PreviousHopRoute::Ignored, ..Config::rfc3561() });
    node.receive_broadcast(1, 5, rreq(8, 1, 9, 2));
    assert_eq!(node.route_view(1), None);
    assert!(node.valid_route(8).is_some());
}

#[test]
fn requests_with_impossible_contents_are_counted_and_ignored() {
    let mut node = node();
    node.receive_broadcast(1, 5, rreq(8, 1, 9, 255));
    assert_eq!(node.aodv.stats().ignored(IgnoredReason::BadHopCount), 1);
    node.receive_broadcast(1, 5, Rreq { originator: Ipv4Addr::BROADCAST, ..rreq(8, 1, 9, 0) });
    node.receive_broadcast(1, 5, rreq(9, 1, 9, 0));
    node.receive(ME, ME, 5, Message::RrepAck);
    node.receive(Ipv4Addr::UNSPECIFIED, ME, 5, Message::RrepAck);
    assert_eq!(node.aodv.stats().ignored(IgnoredReason::BadAddress), 4);
    assert_eq!(node.advance(ms(100)), []);
    assert_eq!(node.route_view(8), None);
}

#[test]
fn memory_for_routes_and_originators_is_bounded() {
    let mut config = Config::rfc3561();
    config.limits.routes = 3;
    let mut node = TestNode::new(config);
    for originator in 1..50 {
        node.receive_broadcast(1, 5, rreq(originator + 1, 1, 100, 2));
    }
    assert_eq!(node.aodv.routes(node.now).count(), 3);
    assert_eq!(node.aodv.stats().ignored(IgnoredReason::TableFull), 47);
}

#[test]
fn jittered_messages_are_bounded() {
    let mut config = Config::rfc3561();
    config.limits.departures = 2;
    let mut node = TestNode::new(config);
    for originator in 2..7 {
        node.receive_broadcast(1, 5, rreq(originator, 1, 100, 2));
    }
    assert_eq!(node.advance(ms(10)).len(), 2);
    assert_eq!(node.aodv.stats().ignored(IgnoredReason::OutboxFull), 3);
}
