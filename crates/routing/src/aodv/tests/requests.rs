//! Requests from other nodes: RFC 3561 §6.1, §6.5, §6.6.

use super::dialogue::*;
use crate::aodv::config::{PreviousHop, ReplySequence};
use crate::aodv::*;
use hopline_core::Seq32;
use hopline_wire::aodv::{Message, Rreq};
use std::net::Ipv4Addr;

fn node() -> Node {
    Node::new(Config::rfc3561())
}

#[test]
fn s6_5_a_request_leaves_a_route_back_and_one_to_the_neighbour() {
    let mut node = node();
    node.hear(1, 5, rreq(8, 1, 9, 2));
    assert_eq!(node.valid(8), Some((n(1), 3, Some(Seq32(10)))));
    assert_eq!(node.valid(1), Some((n(1), 1, None)), "a neighbour, without sequence number");
    let lifetime = |destination| node.entry(destination).unwrap().expires - node.now;
    // MinimalLifetime = 2 · 2.8 s − 2 · 3 hops · 40 ms.
    assert_eq!(lifetime(8), ms(5_600 - 240));
    assert_eq!(lifetime(1), ms(3_000));
}

#[test]
fn s6_5_a_request_is_relayed_once_after_a_jitter_one_hop_longer_and_one_hop_shorter_lived() {
    let mut node = node();
    let start = node.now;
    assert_eq!(node.hear(1, 5, rreq(8, 1, 9, 2)), []);
    let sent = node.pass(ms(10));
    assert_eq!(sent.len(), 1);
    assert!(sent[0].0 > start && sent[0].0 < start + ms(10), "jittered within 10 ms");
    let (request, ttl) = only_request(core::slice::from_ref(&sent[0].1));
    assert_eq!((request, ttl), (&Rreq { hop_count: 3, ..rreq(8, 1, 9, 2) }, 4));
    node.hear(2, 5, rreq(8, 1, 9, 2));
    assert_eq!(node.pass(ms(100)), []);
    assert_eq!(node.aodv.stats().ignored(Ignored::DuplicateRequest), 1);
}

#[test]
fn s6_5_a_request_whose_time_to_live_is_over_still_leaves_a_route_back() {
    let mut node = node();
    node.hear(1, 1, rreq(8, 1, 9, 0));
    assert_eq!(node.pass(ms(100)), []);
    assert_eq!(node.aodv.stats().ignored(Ignored::TtlExpired), 1);
    assert!(node.valid(8).is_some());
}

#[test]
fn s6_5_the_way_back_changes_only_for_a_fresher_number_or_fewer_hops() {
    let mut node = node();
    let with = |id, seq, hops| Rreq { originator_seq: Seq32(seq), ..rreq(8, id, 9, hops) };
    node.hear(1, 5, with(1, 10, 3));
    node.hear(2, 5, with(2, 9, 0));
    assert_eq!(node.valid(8), Some((n(1), 4, Some(Seq32(10)))), "older, though shorter");
    node.hear(2, 5, with(3, 10, 3));
    assert_eq!(node.valid(8), Some((n(1), 4, Some(Seq32(10)))), "as good");
    node.hear(2, 5, with(4, 10, 2));
    assert_eq!(node.valid(8), Some((n(2), 3, Some(Seq32(10)))), "shorter");
    node.hear(1, 5, with(5, 11, 9));
    assert_eq!(node.valid(8), Some((n(1), 10, Some(Seq32(11)))), "fresher");
}

#[test]
fn s6_1_fresher_is_judged_on_the_circle() {
    let mut node = node();
    let with = |id, seq| Rreq { originator_seq: Seq32(seq), ..rreq(8, id, 9, 3) };
    node.hear(1, 5, with(1, u32::MAX));
    node.hear(2, 5, with(2, 0));
    assert_eq!(node.valid(8), Some((n(2), 4, Some(Seq32(0)))));
}

#[test]
fn s6_5_a_relayed_request_asks_for_the_freshest_number_known() {
    for (known, asked, relayed) in [(7, None, 8), (7, Some(5), 8), (7, Some(20), 20)] {
        let mut node = node();
        node.get(1, rrep(0, 9, known, 2));
        node.link_fails(1, Carried::Nothing); // known rises by one
        node.hear(2, 5, Rreq { destination_seq: asked.map(Seq32), ..rreq(8, 1, 9, 0) });
        let sent = node.pass(ms(10));
        assert_eq!(only_request(&[sent[0].1.clone()]).0.destination_seq, Some(Seq32(relayed)));
    }
}

#[test]
fn s6_5_this_nodes_own_request_is_ignored() {
    let mut node = node();
    node.hear(1, 5, rreq(0, 1, 9, 1));
    assert_eq!(node.pass(ms(100)), []);
    assert_eq!(node.entry(0), None);
    assert_eq!(node.aodv.stats().ignored(Ignored::OwnRequest), 1);
}

#[test]
fn s6_6_1_the_destination_answers_at_once_towards_the_originator() {
    let mut node = node();
    node.aodv.seq = Seq32(4);
    let sent = node.hear(1, 5, rreq(8, 1, 0, 2));
    let (reply, to) = only_reply(&sent);
    assert_eq!(to, n(1));
    assert_eq!((reply.destination, reply.originator, reply.hop_count), (ME, n(8), 0));
    assert_eq!(reply.lifetime, ms(6_000), "MY_ROUTE_TIMEOUT");
    assert_eq!(reply.destination_seq, Seq32(4));
    assert_eq!(sent[0].ttl, 35);
    assert_eq!(node.pass(ms(100)), [], "and does not relay");
}

#[test]
fn s6_6_1_the_destinations_number_rises_only_to_what_is_asked_for() {
    for (own, asked, replied) in [(4, 4, 4), (4, 5, 5), (4, 9, 9), (4, 2, 4), (u32::MAX, 0, 0)] {
        let mut node = node();
        node.aodv.seq = Seq32(own);
        let sent = node.hear(1, 5, Rreq { destination_seq: Some(Seq32(asked)), ..rreq(8, 1, 0, 2) });
        assert_eq!(only_reply(&sent).0.destination_seq, Seq32(replied), "own {own}, asked {asked}");
    }
}

#[test]
fn a_destination_that_always_advances_outdoes_its_earlier_replies() {
    let mut node = Node::new(Config { reply_sequence: ReplySequence::AlwaysAdvance, ..Config::rfc3561() });
    node.aodv.seq = Seq32(4);
    let first = node.hear(1, 5, rreq(8, 1, 0, 2));
    let second = node.hear(1, 5, Rreq { destination_seq: Some(Seq32(8)), ..rreq(8, 2, 0, 2) });
    assert_eq!(only_reply(&first).0.destination_seq, Seq32(5));
    assert_eq!(only_reply(&second).0.destination_seq, Seq32(9));
}

#[test]
fn s6_6_2_a_relay_with_a_fresh_route_answers_for_the_destination() {
    let mut node = node();
    node.get(2, rrep(0, 9, 7, 2));
    node.now += ms(1_000);
    let sent = node.hear(1, 5, Rreq { destination_seq: Some(Seq32(7)), ..rreq(8, 1, 9, 2) });
    let (reply, to) = only_reply(&sent);
    assert_eq!(to, n(1));
    assert_eq!((reply.destination, reply.destination_seq, reply.hop_count), (n(9), Seq32(7), 3));
    assert_eq!(reply.lifetime, ms(5_000), "what is left of the route");
    assert_eq!(node.pass(ms(100)), [], "and does not relay");
    let route = node.aodv.routes.get(node.now, n(9)).unwrap();
    assert_eq!(route.precursors(), [n(1)], "the neighbour that will use the route");
    let back = node.aodv.routes.get(node.now, n(8)).unwrap();
    assert_eq!(back.precursors(), [n(2)]);
}

#[test]
fn s6_6_a_relay_does_not_answer_with_a_stale_unnumbered_or_backward_route() {
    let relays = |node: &mut Node, request: Rreq| {
        assert_eq!(node.hear(1, 5, request), []);
        node.pass(ms(10)).len() == 1
    };
    let mut stale = node();
    stale.get(2, rrep(0, 9, 7, 2));
    assert!(relays(&mut stale, Rreq { destination_seq: Some(Seq32(8)), ..rreq(8, 1, 9, 2) }));

    let mut unnumbered = node();
    unnumbered.hear(9, 1, rreq(7, 1, 6, 0));
    assert_eq!(unnumbered.valid(9), Some((n(9), 1, None)));
    assert!(relays(&mut unnumbered, rreq(8, 1, 9, 2)));

    let mut backward = node();
    backward.get(1, rrep(0, 9, 7, 2));
    assert!(relays(&mut backward, rreq(8, 1, 9, 2)), "the route leads over whoever asks");

    let mut only_destination = node();
    only_destination.get(2, rrep(0, 9, 7, 2));
    assert!(relays(&mut only_destination, Rreq { destination_only: true, ..rreq(8, 1, 9, 2) }));

    let mut expired = node();
    expired.get(2, rrep(0, 9, 7, 2));
    expired.now += ms(6_000);
    assert!(relays(&mut expired, rreq(8, 1, 9, 2)));
}

#[test]
fn s6_6_3_with_the_g_flag_the_destination_learns_the_way_to_the_originator() {
    let mut node = node();
    node.get(2, rrep(0, 9, 7, 2));
    let sent = node.hear(1, 5, Rreq { gratuitous: true, ..rreq(8, 1, 9, 1) });
    let [to_originator, to_destination] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(only_reply(core::slice::from_ref(to_originator)).1, n(1));
    let (gratuitous, to) = only_reply(core::slice::from_ref(to_destination));
    assert_eq!(to, n(2));
    assert_eq!((gratuitous.destination, gratuitous.originator), (n(8), n(9)));
    assert_eq!((gratuitous.hop_count, gratuitous.destination_seq), (2, Seq32(10)));
}

#[test]
fn a_node_that_does_not_learn_neighbours_knows_the_originator_only() {
    let mut node = Node::new(Config { previous_hop: PreviousHop::Ignored, ..Config::rfc3561() });
    node.hear(1, 5, rreq(8, 1, 9, 2));
    assert_eq!(node.entry(1), None);
    assert!(node.valid(8).is_some());
}

#[test]
fn requests_with_impossible_contents_are_counted_and_ignored() {
    let mut node = node();
    node.hear(1, 5, rreq(8, 1, 9, 255));
    assert_eq!(node.aodv.stats().ignored(Ignored::BadHopCount), 1);
    node.hear(1, 5, Rreq { originator: Ipv4Addr::BROADCAST, ..rreq(8, 1, 9, 0) });
    node.hear(1, 5, rreq(9, 1, 9, 0));
    node.take(ME, ME, 5, Message::RrepAck);
    node.take(Ipv4Addr::UNSPECIFIED, ME, 5, Message::RrepAck);
    assert_eq!(node.aodv.stats().ignored(Ignored::BadAddress), 4);
    assert_eq!(node.pass(ms(100)), []);
    assert_eq!(node.entry(8), None);
}

#[test]
fn memory_for_routes_and_originators_is_bounded() {
    let mut config = Config::rfc3561();
    config.limits.routes = 3;
    let mut node = Node::new(config);
    for originator in 1..50 {
        node.hear(1, 5, rreq(originator + 1, 1, 100, 2));
    }
    assert_eq!(node.aodv.routes(node.now).count(), 3);
    assert_eq!(node.aodv.stats().ignored(Ignored::TableFull), 47);
}

#[test]
fn messages_that_wait_for_their_jitter_are_bounded() {
    let mut config = Config::rfc3561();
    config.limits.departures = 2;
    let mut node = Node::new(config);
    for originator in 2..7 {
        node.hear(1, 5, rreq(originator, 1, 100, 2));
    }
    assert_eq!(node.pass(ms(10)).len(), 2);
    assert_eq!(node.aodv.stats().ignored(Ignored::OutboxFull), 3);
}
