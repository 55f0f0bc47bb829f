//! Replies and lifetimes: RFC 3561 §6.2, §6.7, §6.8.

use super::dialogue::*;
use crate::aodv::config::ReplyAck;
use crate::aodv::*;
use hopline_core::{Machine, Seq32};
use hopline_wire::aodv::{Message, Rrep};

fn node() -> Node {
    Node::new(Config::rfc3561())
}

/// A relay between 8 (over 1) and 9 (over 2).
fn relay(config: Config) -> Node {
    let mut node = Node::new(config);
    node.hear(1, 5, rreq(8, 1, 9, 1));
    node.skip(ms(20));
    node
}

#[test]
fn s6_7_a_reply_opens_a_route_one_hop_longer_for_its_lifetime() {
    let mut node = node();
    node.get(1, rrep(0, 9, 7, 2));
    assert_eq!(node.valid(9), Some((n(1), 3, Some(Seq32(7)))));
    assert_eq!(node.valid(1), Some((n(1), 1, None)), "and one to the neighbour");
    node.now += ms(5_999);
    assert!(node.valid(9).is_some());
    node.now += ms(1);
    assert_eq!(node.valid(9), None);
}

#[test]
fn s6_7_a_reply_replaces_a_route_only_if_fresher_or_shorter() {
    let mut node = node();
    node.get(1, rrep(0, 9, 7, 3));
    node.get(2, rrep(0, 9, 6, 0));
    node.get(2, rrep(0, 9, 7, 3));
    assert_eq!(node.valid(9), Some((n(1), 4, Some(Seq32(7)))));
    assert_eq!(node.aodv.stats().ignored(Ignored::StaleReply), 2);
    node.get(2, rrep(0, 9, 7, 2));
    assert_eq!(node.valid(9), Some((n(2), 3, Some(Seq32(7)))));
    node.get(1, rrep(0, 9, 8, 9));
    assert_eq!(node.valid(9), Some((n(1), 10, Some(Seq32(8)))));
}

#[test]
fn s6_7_an_equal_number_revives_an_invalid_route_and_a_lower_one_does_not() {
    let mut node = node();
    node.get(1, rrep(0, 9, 7, 3));
    node.link_fails(1, Carried::Nothing);
    node.get(2, rrep(0, 9, 7, 1));
    assert_eq!(node.valid(9), None, "the break raised the number to 8");
    node.get(2, rrep(0, 9, 8, 5));
    assert_eq!(node.valid(9), Some((n(2), 6, Some(Seq32(8)))));
}

#[test]
fn s6_7_any_number_replaces_an_unknown_one() {
    let mut node = node();
    node.hear(9, 1, rreq(7, 1, 6, 0));
    assert_eq!(node.valid(9), Some((n(9), 1, None)));
    node.get(1, rrep(0, 9, 3, 4));
    assert_eq!(node.valid(9), Some((n(1), 5, Some(Seq32(3)))));
}

#[test]
fn s6_7_a_relay_passes_the_reply_on_and_remembers_who_uses_which_route() {
    let mut node = relay(Config::rfc3561());
    let before = node.entry(8).unwrap().expires;
    node.now += ms(4_000);
    let sent = node.take(n(2), ME, 20, Message::Rrep(rrep(8, 9, 7, 2)));
    let (reply, to) = only_reply(&sent);
    assert_eq!((to, reply, sent[0].ttl), (n(1), &Rrep { hop_count: 3, ..rrep(8, 9, 7, 2) }, 19));
    let now = node.now;
    assert_eq!(node.aodv.routes.get(now, n(9)).unwrap().precursors(), [n(1)]);
    assert_eq!(node.aodv.routes.get(now, n(2)).unwrap().precursors(), [n(1)], "the next hop's route too");
    let back = node.entry(8).unwrap().expires;
    assert_eq!(back, before.max(now + ms(3_000)), "the way back lives ACTIVE_ROUTE_TIMEOUT more");
}

#[test]
fn s6_7_a_reply_that_changes_nothing_is_not_passed_on_but_one_that_confirms_the_route_is() {
    let mut node = relay(Config::rfc3561());
    only_reply(&node.get(2, rrep(8, 9, 7, 2)));
    assert_eq!(node.get(3, rrep(8, 9, 7, 2)), [], "as long, over another neighbour");
    assert_eq!(node.get(3, rrep(8, 9, 6, 0)), [], "older");
    only_reply(&node.get(2, rrep(8, 9, 7, 2)));
}

#[test]
fn a_reply_is_not_passed_on_without_a_way_back_nor_back_to_its_sender_nor_past_its_time() {
    let mut no_way = node();
    assert_eq!(no_way.get(2, rrep(8, 9, 7, 2)), []);
    let mut bounced = relay(Config::rfc3561());
    assert_eq!(bounced.get(1, rrep(8, 9, 7, 2)), []);
    for node in [no_way, bounced] {
        assert_eq!(node.aodv.stats().ignored(Ignored::NoWayBack), 1);
        assert!(node.valid(9).is_some(), "the route itself is good");
    }
    let mut old = relay(Config::rfc3561());
    assert_eq!(old.take(n(2), ME, 1, Message::Rrep(rrep(8, 9, 7, 2))), []);
    assert_eq!(old.aodv.stats().ignored(Ignored::TtlExpired), 1);
}

#[test]
fn a_reply_about_this_node_itself_is_ignored() {
    let mut node = node();
    node.get(1, rrep(8, 0, 7, 2));
    assert_eq!(node.entry(0), None);
    assert_eq!(node.aodv.stats().ignored(Ignored::BadAddress), 1);
}

#[test]
fn s6_2_data_renew_the_routes_to_both_ends_and_both_neighbours() {
    let mut node = relay(Config::rfc3561());
    node.get(2, rrep(8, 9, 7, 2));
    node.now += ms(2_500);
    node.sent();
    assert_eq!(node.forward(8, 1, 9, 1), Decision::Forward { next_hop: n(2) });
    for destination in [8, 1, 2] {
        assert_eq!(node.entry(destination).unwrap().expires, node.now + ms(3_000), "to {destination}");
    }
    assert_eq!(node.entry(9).unwrap().expires - node.now, ms(3_500), "renewing never shortens a life");
}

#[test]
fn s6_2_a_route_that_is_used_lives_on_and_one_that_is_not_expires() {
    let mut node = node();
    node.get(1, rrep(0, 9, 7, 2));
    for packet in 0..10 {
        node.now += ms(2_900);
        assert_eq!(node.send(9, packet), Decision::Forward { next_hop: n(1) });
    }
    node.now += ms(6_000);
    assert_eq!(node.send(9, 10), Decision::Taken);
    assert_eq!(node.entry(9).unwrap().seq, Some(Seq32(8)), "§6.1: expiry raises the number");
}

#[test]
fn s6_1_an_expired_route_is_forgotten_after_delete_period() {
    let mut node = node();
    node.get(1, rrep(0, 9, 7, 2));
    node.skip(ms(6_000 + 14_999));
    assert_eq!(node.entry(9).unwrap().state, RouteState::Invalid);
    node.skip(ms(10_000));
    assert_eq!(node.entry(9), None);
    assert_eq!(node.aodv.poll_timeout(), None, "an empty table needs no timer");
}

#[test]
fn s6_8_a_reply_that_asks_for_it_is_confirmed() {
    let mut node = node();
    let sent = node.get(1, Rrep { ack_required: true, ..rrep(0, 9, 7, 2) });
    assert_eq!(sent.len(), 1);
    assert_eq!((&sent[0].message, sent[0].next_hop), (&Message::RrepAck, n(1)));
}

#[test]
fn s6_8_a_neighbour_that_does_not_confirm_is_not_listened_to_for_a_while() {
    let mut node = Node::new(Config { reply_ack: ReplyAck::Always, ..Config::rfc3561() });
    let sent = node.hear(1, 5, rreq(8, 1, 0, 0));
    assert!(only_reply(&sent).0.ack_required);
    node.pass(ms(50)); // NEXT_HOP_WAIT
    assert_eq!(node.hear(1, 5, rreq(8, 2, 0, 0)), []);
    assert_eq!(node.aodv.stats().ignored(Ignored::Blacklisted), 1);
    node.pass(ms(5_600));
    only_reply(&node.hear(1, 5, rreq(8, 3, 0, 0)));
}

#[test]
fn s6_8_a_neighbour_that_confirms_is_listened_to() {
    let mut node = Node::new(Config { reply_ack: ReplyAck::Always, ..Config::rfc3561() });
    node.hear(1, 5, rreq(8, 1, 0, 0));
    node.now += ms(40);
    node.get(1, Message::RrepAck);
    node.pass(ms(50));
    only_reply(&node.hear(1, 5, rreq(8, 2, 0, 0)));
}

#[test]
fn s6_8_a_reply_that_the_link_layer_gives_up_betrays_a_one_way_link() {
    let mut node = node();
    let sent = node.hear(1, 5, rreq(8, 1, 0, 0));
    let carried = Carried::message(&sent[0].message);
    node.link_fails(1, carried);
    assert_eq!(node.hear(1, 5, rreq(8, 2, 0, 0)), []);
    only_reply(&node.hear(2, 5, rreq(8, 2, 0, 1)));
}
