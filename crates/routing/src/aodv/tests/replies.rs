//! Replies and lifetimes: RFC 3561 §6.2, §6.7, §6.8.

use super::harness::*;
use crate::aodv::config::ReplyAck;
use crate::aodv::*;
use hopline_core::{Seq32, StateMachine};
use hopline_wire::aodv::{Message, Rrep};

fn node() -> TestNode {
    TestNode::new(Config::rfc3561())
}

/// A relay between 8 (over 1) and 9 (over 2).
fn relay(config: Config) -> TestNode {
    let mut node = TestNode::new(config);
    node.receive_broadcast(1, 5, rreq(8, 1, 9, 1));
    node.skip(ms(20));
    node
}

#[test]
fn s6_7_a_reply_creates_a_route_for_its_lifetime() {
    let mut node = node();
    node.receive_unicast(1, rrep(0, 9, 7, 2));
    assert_eq!(node.valid_route(9), Some((node_address(1), 3, Some(Seq32(7)))));
    assert_eq!(node.valid_route(1), Some((node_address(1), 1, None)), "and one to the neighbour");
    node.now += ms(5_999);
    assert!(node.valid_route(9).is_some());
    node.now += ms(1);
    assert_eq!(node.valid_route(9), None);
}

#[test]
fn s6_7_a_reply_replaces_a_route_only_if_fresher_or_shorter() {
    let mut node = node();
    node.receive_unicast(1, rrep(0, 9, 7, 3));
    node.receive_unicast(2, rrep(0, 9, 6, 0));
    node.receive_unicast(2, rrep(0, 9, 7, 3));
    assert_eq!(node.valid_route(9), Some((node_address(1), 4, Some(Seq32(7)))));
    assert_eq!(node.aodv.stats().ignored(IgnoredReason::StaleReply), 2);
    node.receive_unicast(2, rrep(0, 9, 7, 2));
    assert_eq!(node.valid_route(9), Some((node_address(2), 3, Some(Seq32(7)))));
    node.receive_unicast(1, rrep(0, 9, 8, 9));
    assert_eq!(node.valid_route(9), Some((node_address(1), 10, Some(Seq32(8)))));
}

#[test]
fn s6_7_an_equal_number_revives_an_invalid_route_and_a_lower_one_does_not() {
    let mut node = node();
    node.receive_unicast(1, rrep(0, 9, 7, 3));
    node.fail_link(1, FailedContent::Other);
    node.receive_unicast(2, rrep(0, 9, 7, 1));
    assert_eq!(node.valid_route(9), None, "the break raised the number to 8");
    node.receive_unicast(2, rrep(0, 9, 8, 5));
    assert_eq!(node.valid_route(9), Some((node_address(2), 6, Some(Seq32(8)))));
}

#[test]
fn s6_7_any_number_replaces_an_unknown_one() {
    let mut node = node();
    node.receive_broadcast(9, 1, rreq(7, 1, 6, 0));
    assert_eq!(node.valid_route(9), Some((node_address(9), 1, None)));
    node.receive_unicast(1, rrep(0, 9, 3, 4));
    assert_eq!(node.valid_route(9), Some((node_address(1), 5, Some(Seq32(3)))));
}

#[test]
fn s6_7_a_relay_forwards_the_reply_and_records_precursors() {
    let mut node = relay(Config::rfc3561());
    let before = node.route_view(8).unwrap().expires;
    node.now += ms(4_000);
    let sent = node.receive(node_address(2), ME, 20, Message::Rrep(rrep(8, 9, 7, 2)));
    let (reply, to) = only_reply(&sent);
    assert_eq!((to, reply, sent[0].ttl), (node_address(1), &Rrep { hop_count: 3, ..rrep(8, 9, 7, 2) }, 19));
    let now = node.now;
    assert_eq!(node.aodv.routes.get(now, node_address(9)).unwrap().precursors(), [node_address(1)]);
    assert_eq!(
        node.aodv.routes.get(now, node_address(2)).unwrap().precursors(),
        [node_address(1)],
        "the next hop's route too"
    );
    let back = node.route_view(8).unwrap().expires;
    assert_eq!(back, before.max(now + ms(3_000)), "the way back lives ACTIVE_ROUTE_TIMEOUT more");
}

#[test]
fn s6_7_only_replies_that_improve_or_confirm_a_route_are_forwarded() {
    let mut node = relay(Config::rfc3561());
    only_reply(&node.receive_unicast(2, rrep(8, 9, 7, 2)));
    assert_eq!(node.receive_unicast(3, rrep(8, 9, 7, 2)), [], "as long, over another neighbour");
    assert_eq!(node.receive_unicast(3, rrep(8, 9, 6, 0)), [], "older");
    only_reply(&node.receive_unicast(2, rrep(8, 9, 7, 2)));
}

#[test]
fn a_reply_is_not_forwarded_without_reverse_route_or_ttl_or_to_its_sender() {
    let mut no_way = node();
    assert_eq!(no_way.receive_unicast(2, rrep(8, 9, 7, 2)), []);
    let mut bounced = relay(Config::rfc3561());
    assert_eq!(bounced.receive_unicast(1, rrep(8, 9, 7, 2)), []);
    for node in [no_way, bounced] {
        assert_eq!(node.aodv.stats().ignored(IgnoredReason::NoReverseRoute), 1);
        assert!(node.valid_route(9).is_some(), "the route itself is good");
    }
    let mut old = relay(Config::rfc3561());
    assert_eq!(old.receive(node_address(2), ME, 1, Message::Rrep(rrep(8, 9, 7, 2))), []);
    assert_eq!(old.aodv.stats().ignored(IgnoredReason::TtlExpired), 1);
}

#[test]
fn a_reply_about_this_node_itself_is_ignored() {
    let mut node = node();
    node.receive_unicast(1, rrep(8, 0, 7, 2));
    assert_eq!(node.route_view(0), None);
    assert_eq!(node.aodv.stats().ignored(IgnoredReason::BadAddress), 1);
}

#[test]
fn s6_2_data_renew_the_routes_to_both_ends_and_both_neighbours() {
    let mut node = relay(Config::rfc3561());
    node.receive_unicast(2, rrep(8, 9, 7, 2));
    node.now += ms(2_500);
    node.sent();
    assert_eq!(node.forward(8, 1, 9, 1), Decision::Forward { next_hop: node_address(2) });
    for destination in [8, 1, 2] {
        assert_eq!(node.route_view(destination).unwrap().expires, node.now + ms(3_000), "to {destination}");
    }
    assert_eq!(node.route_view(9).unwrap().expires - node.now, ms(3_500), "renewing never shortens a life");
}

#[test]
fn s6_2_used_routes_are_renewed_and_unused_ones_expire() {
    let mut node = node();
    node.receive_unicast(1, rrep(0, 9, 7, 2));
    for packet in 0..10 {
        node.now += ms(2_900);
        assert_eq!(node.send(9, packet), Decision::Forward { next_hop: node_address(1) });
    }
    node.now += ms(6_000);
    assert_eq!(node.send(9, 10), Decision::Accepted);
    assert_eq!(node.route_view(9).unwrap().seq, Some(Seq32(8)), "§6.1: expiry raises the number");
}

#[test]
fn s6_1_an_expired_route_is_deleted_after_delete_period() {
    let mut node = node();
    node.receive_unicast(1, rrep(0, 9, 7, 2));
    node.skip(ms(6_000 + 14_999));
    assert_eq!(node.route_view(9).unwrap().state, RouteState::Invalid);
    node.skip(ms(10_000));
    assert_eq!(node.route_view(9), None);
    assert_eq!(node.aodv.poll_timeout(), None, "an empty table needs no timer");
}

#[test]
fn s6_8_a_reply_with_the_a_flag_is_acknowledged() {
    let mut node = node();
    let sent = node.receive_unicast(1, Rrep { ack_required: true, ..rrep(0, 9, 7, 2) });
    assert_eq!(sent.len(), 1);
    assert_eq!((&sent[0].message, sent[0].next_hop), (&Message::RrepAck, node_address(1)));
}

#[test]
fn s6_8_a_neighbour_that_does_not_acknowledge_is_blacklisted() {
    let mut node = TestNode::new(Config { reply_ack: ReplyAck::Always, ..Config::rfc3561() });
    let sent = node.receive_broadcast(1, 5, rreq(8, 1, 0, 0));
    assert!(only_reply(&sent).0.ack_required);
    node.advance(ms(50)); // NEXT_HOP_WAIT
    assert_eq!(node.receive_broadcast(1, 5, rreq(8, 2, 0, 0)), []);
    assert_eq!(node.aodv.stats().ignored(IgnoredReason::Blacklisted), 1);
    node.advance(ms(5_600));
    only_reply(&node.receive_broadcast(1, 5, rreq(8, 3, 0, 0)));
}

#[test]
fn s6_8_a_neighbour_that_acknowledges_is_not_blacklisted() {
    let mut node = TestNode::new(Config { reply_ack: ReplyAck::Always, ..Config::rfc3561() });
    node.receive_broadcast(1, 5, rreq(8, 1, 0, 0));
    node.now += ms(40);
    node.receive_unicast(1, Message::RrepAck);
    node.advance(ms(50));
    only_reply(&node.receive_broadcast(1, 5, rreq(8, 2, 0, 0)));
}

#[test]
fn s6_8_a_failed_reply_reveals_a_unidirectional_link() {
    let mut node = node();
    let sent = node.receive_broadcast(1, 5, rreq(8, 1, 0, 0));
    let carried = FailedContent::of_message(&sent[0].message);
    node.fail_link(1, carried);
    assert_eq!(node.receive_broadcast(1, 5, rreq(8, 2, 0, 0)), []);
    only_reply(&node.receive_broadcast(2, 5, rreq(8, 2, 0, 1)));
}
