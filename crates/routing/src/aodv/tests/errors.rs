//! Broken links and route errors: RFC 3561 §6.11.

use super::harness::*;
use super::network::Network;
use crate::aodv::config::{ControlFailure, QueuePurge};
use crate::aodv::*;
use hopline_core::Seq32;
use hopline_wire::aodv::Message;
use std::net::Ipv4Addr;

fn data(packet: u32, destination: u32) -> FailedContent<u32> {
    FailedContent::Data {
        packet,
        destination: node_address(destination),
        source: node_address(8),
        travelled: 2,
    }
}

/// A relay that 8 (over 1) uses to reach 9 (over 2).
fn relay(config: Config) -> TestNode {
    let mut node = TestNode::new(config);
    node.receive_broadcast(1, 5, rreq(8, 1, 9, 1));
    node.skip(ms(20));
    node.receive_unicast(2, rrep(8, 9, 7, 2));
    node
}

#[test]
fn s6_11_a_broken_link_invalidates_routes_and_a_single_precursor_gets_a_unicast() {
    let mut node = relay(Config::rfc3561());
    let sent = node.fail_link(2, data(5, 9));
    let (error, to) = only_error(&sent);
    assert_eq!(to, node_address(1));
    assert!(!error.no_delete);
    let mut unreachable = error.unreachable.clone();
    unreachable.sort_unstable_by_key(|(address, _)| *address);
    assert_eq!(
        unreachable,
        [(node_address(2), Seq32(0)), (node_address(9), Seq32(8))],
        "the neighbour, and 7 raised by one"
    );
    let lost = |node| Event::RouteLost { destination: node_address(node) };
    let events = node.events();
    assert_eq!(events[0], Event::Drop { packet: 5, reason: DropReason::LinkFailure });
    assert_eq!(events[1], Event::PurgeQueue { next_hop: node_address(2) });
    assert!(events[2..].contains(&lost(2)) && events[2..].contains(&lost(9)) && events.len() == 4);
    assert_eq!((node.valid_route(9), node.valid_route(2)), (None, None));
    assert!(node.valid_route(8).is_some(), "the other direction stands");
    assert_eq!(node.route_view(9).unwrap().hops, 3, "the last known distance is kept for the next search");
}

#[test]
fn s6_11_several_precursors_get_one_broadcast() {
    let mut node = relay(Config::rfc3561());
    node.receive_broadcast(3, 5, rreq(7, 1, 9, 0));
    let sent = node.fail_link(2, FailedContent::Other);
    let (error, to) = only_error(&sent);
    assert_eq!(to, Ipv4Addr::BROADCAST);
    assert!(error.unreachable.contains(&(node_address(9), Seq32(8))));
}

#[test]
fn s6_11_routes_without_precursors_are_not_reported() {
    let mut node = TestNode::new(Config::rfc3561());
    node.receive_unicast(1, rrep(0, 9, 7, 2));
    assert_eq!(node.fail_link(1, data(5, 9)), []);
    assert_eq!(node.valid_route(9), None);
}

#[test]
fn s6_11_a_lost_neighbour_is_removed_from_precursors() {
    let mut node = relay(Config::rfc3561());
    node.fail_link(1, FailedContent::Other);
    assert_eq!(node.fail_link(2, FailedContent::Other), []);
}

#[test]
fn s6_11_a_packet_without_a_route_is_dropped_and_reported() {
    let mut node = TestNode::new(Config::rfc3561());
    let dropped = Decision::Dropped { reason: DropReason::NoRoute };
    assert_eq!(node.forward(8, 1, 9, 5), dropped);
    let sent = node.sent();
    let (error, to) = only_error(&sent);
    assert_eq!(
        (to, &error.unreachable[..]),
        (node_address(1), &[(node_address(9), Seq32(0))][..]),
        "the number is not known"
    );

    let mut broken = relay(Config::rfc3561());
    broken.fail_link(2, FailedContent::Other);
    assert_eq!(broken.forward(8, 1, 9, 5), dropped);
    let sent = broken.sent();
    assert_eq!(
        only_error(&sent).0.unreachable,
        [(node_address(9), Seq32(8))],
        "raised by the break, not by each packet"
    );
}

#[test]
fn s6_11_an_error_of_the_next_hop_invalidates_the_route_and_is_forwarded() {
    let mut node = relay(Config::rfc3561());
    let sent = node.receive_unicast(2, rerr(&[(9, 12), (5, 3)]));
    let (error, to) = only_error(&sent);
    assert_eq!(
        (to, &error.unreachable[..]),
        (node_address(1), &[(node_address(9), Seq32(12))][..]),
        "with the number it came with"
    );
    assert_eq!(node.valid_route(9), None);
    assert!(node.valid_route(2).is_some(), "the link itself is fine");
    assert!(node.events().contains(&Event::RouteLost { destination: node_address(9) }));
}

#[test]
fn s6_11_an_error_of_another_neighbour_is_ignored() {
    let mut node = relay(Config::rfc3561());
    assert_eq!(node.receive_unicast(3, rerr(&[(9, 12)])), []);
    assert!(node.valid_route(9).is_some());
}

#[test]
fn an_error_never_lowers_a_sequence_number() {
    let mut node = relay(Config::rfc3561());
    node.receive_unicast(2, rerr(&[(9, 3)]));
    assert_eq!(node.valid_route(9), None);
    assert_eq!(
        node.route_view(9).unwrap().seq,
        Some(Seq32(8)),
        "one more than before, so that no stale route returns"
    );
}

#[test]
fn s6_11_errors_respect_rerr_ratelimit() {
    let mut node = TestNode::new(Config::rfc3561());
    for packet in 0..50 {
        let _ = node.forward(8, 1, 9, packet);
        node.now += ms(10);
    }
    assert_eq!(node.sent().len(), 10);
    assert_eq!(node.aodv.stats().ignored(IgnoredReason::RateLimited), 40);
    node.now += ms(600);
    let _ = node.forward(8, 1, 9, 50);
    assert_eq!(node.sent().len(), 1);
}

#[test]
fn a_long_list_is_split_into_messages_of_255_destinations() {
    let mut node = TestNode::new(Config { rerr_rate_limit: None, ..Config::rfc3561() });
    node.receive_broadcast(1, 5, rreq(8, 1, 7, 1));
    for destination in 100..400 {
        node.receive_unicast(2, rrep(8, destination, 7, 2));
    }
    let sent = node.fail_link(2, FailedContent::Other);
    let lengths: Vec<_> =
        sent.iter().map(|t| only_error(core::slice::from_ref(t)).0.unreachable.len()).collect();
    assert_eq!(lengths, [255, 46], "300 destinations and the neighbour");
}

#[test]
fn the_queue_is_purged_as_configured() {
    let purge = Event::PurgeQueue { next_hop: node_address(2) };
    for (queue_purge, on_failure, on_error) in [
        (QueuePurge::Never, false, false),
        (QueuePurge::OnLinkFailure, true, false),
        (QueuePurge::OnLinkFailureAndRouteError, true, true),
    ] {
        let config = Config { queue_purge, ..Config::rfc3561() };
        let mut node = relay(config);
        node.events();
        node.receive_unicast(2, rerr(&[(9, 12)]));
        assert_eq!(node.events().contains(&purge), on_error);
        let mut node = relay(config);
        node.fail_link(2, FailedContent::Other);
        assert_eq!(node.events().contains(&purge), on_failure);
    }
}

#[test]
fn failed_control_messages_count_as_configured() {
    for (control_failure, broken) in [(ControlFailure::LinkBreak, true), (ControlFailure::Ignored, false)] {
        let mut node = relay(Config { control_failure, ..Config::rfc3561() });
        node.fail_link(2, FailedContent::Control);
        assert_eq!(node.valid_route(9).is_none(), broken);
    }
}

#[test]
fn a_broken_link_is_reported_to_the_source_which_finds_another_route() {
    // 0 – 1 – 2 – 3 – 4, and a detour 1 – 5 – 6 – 4.
    let mut network = Network::new(7, Config::rfc3561());
    network.link_all(&[(0, 1), (1, 2), (2, 3), (3, 4)]);
    network.send(0, 4, 1);
    network.run(ms(2_000));
    assert_eq!(network.path(0, 4), [0, 1, 2, 3, 4]);
    network.link_all(&[(1, 5), (5, 6), (6, 4)]);
    network.cut(3, 4);
    network.sent.clear();
    network.send(0, 4, 2);
    network.run(ms(100));
    assert_eq!(network.dropped, [(2, 3, DropReason::LinkFailure)]);
    assert_eq!(network.senders(|message| matches!(message, Message::Rerr(_))), [3, 2, 1]);
    assert_eq!(network.path(0, 4), [0]);
    network.send(0, 4, 3);
    network.run(ms(2_000));
    assert_eq!(network.path(0, 4), [0, 1, 5, 6, 4]);
    assert_eq!(network.delivered.iter().map(|(_, id, _)| *id).collect::<Vec<_>>(), [1, 3]);
}
