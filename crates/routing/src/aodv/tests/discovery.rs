//! Requests of this node: RFC 3561 §6.1, §6.3, §6.4.

use super::harness::*;
use super::network::Network;
use crate::aodv::config::{DiscoverySchedule, ReplyPolicy};
use crate::aodv::*;
use core::num::NonZeroU16;
use hopline_core::{Instant, Seq32, StateMachine};
use hopline_wire::aodv::Message;

fn node() -> TestNode {
    TestNode::new(Config::rfc3561())
}

/// Returns the times and reaches of unanswered requests, in ms from the first.
fn attempts(node: &mut TestNode) -> Vec<(u64, u8)> {
    let start = node.now;
    assert_eq!(node.send(9, 1), Decision::Accepted);
    let mut sent: Vec<_> = node.sent().into_iter().map(|transmit| (start, transmit)).collect();
    sent.extend(node.advance(ms(60_000)));
    let attempt = |(at, t): (Instant, Transmit)| ((at - start).as_millis(), only_request(&[t]).1);
    sent.into_iter().map(attempt).collect()
}

#[test]
fn s6_4_rings_grow_and_s6_3_network_wide_attempts_back_off() {
    let mut node = TestNode::new(Config { buffer_time: ms(120_000), ..Config::rfc3561() });
    // RING_TRAVERSAL_TIME = 2 · 40 ms · (TTL + 2); NET_TRAVERSAL_TIME = 2.8 s, doubled for each retry.
    let expected = [
        (0, 1),
        (240, 3),
        (240 + 400, 5),
        (640 + 560, 7),
        (1_200 + 720, 35),
        (1_920 + 2_800, 35),
        (4_720 + 5_600, 35),
    ];
    assert_eq!(attempts(&mut node), expected);
    assert_eq!(node.events(), [Event::Drop { packet: 1, reason: DropReason::DiscoveryFailed }]);
    assert_eq!(node.aodv.stats().searches_failed, 1);
    assert_eq!(node.aodv.poll_timeout(), None, "after a failure there is nothing to wait for");
}

#[test]
fn s6_4_a_search_for_a_lost_destination_starts_beyond_its_last_distance() {
    let mut node = node();
    node.receive_unicast(1, rrep(0, 9, 5, 2));
    node.fail_link(1, FailedContent::Other);
    let first = attempts(&mut node);
    assert_eq!(first[..3], [(0, 5), (560, 7), (1_280, 35)], "3 hops + TTL_INCREMENT");
}

#[test]
fn s6_4_a_destination_beyond_the_threshold_is_searched_network_wide() {
    let mut node = node();
    node.receive_unicast(1, rrep(0, 9, 5, 5));
    node.fail_link(1, FailedContent::Other);
    assert_eq!(attempts(&mut node)[..2], [(0, 35), (2_800, 35)]);
}

#[test]
fn s6_1_and_s6_3_every_request_has_a_new_id_and_a_higher_own_sequence_number() {
    let mut node = node();
    let _ = node.send(9, 1);
    let first = only_request(&node.sent()).0.clone();
    let second = only_request(&[node.advance(ms(240))[0].1.clone()]).0.clone();
    assert_eq!(second.id, first.id + 1);
    assert_eq!(second.originator_seq, first.originator_seq + 1);
    assert_eq!(first.destination_seq, None, "unknown: the U flag");
    assert_eq!((first.hop_count, first.originator, first.destination), (0, ME, node_address(9)));
}

#[test]
fn s6_1_the_own_sequence_number_wraps_around() {
    let mut node = node();
    node.aodv.seq = Seq32(u32::MAX);
    let _ = node.send(9, 1);
    assert_eq!(only_request(&node.sent()).0.originator_seq, Seq32(0));
}

#[test]
fn s6_3_a_request_names_the_last_known_sequence_number_raised_by_the_break() {
    let mut node = node();
    node.receive_unicast(1, rrep(0, 9, 5, 2));
    node.fail_link(1, FailedContent::Other);
    let _ = node.send(9, 1);
    assert_eq!(only_request(&node.sent()).0.destination_seq, Some(Seq32(6)));
}

#[test]
fn s6_3_packets_are_buffered_in_order_and_one_discovery_serves_all() {
    let mut node = node();
    for packet in [1, 2, 3] {
        assert_eq!(node.send(9, packet), Decision::Accepted);
    }
    assert_eq!(node.sent().len(), 1);
    node.now += ms(30);
    assert_eq!(node.receive_unicast(1, rrep(0, 9, 7, 2)), []);
    let release = |packet| Event::Release { packet, next_hop: node_address(1) };
    let found = Event::RouteFound { destination: node_address(9), hops: 3 };
    assert_eq!(node.events(), [found, release(1), release(2), release(3)]);
    assert_eq!(node.send(9, 4), Decision::Forward { next_hop: node_address(1) });
    assert_eq!(node.advance(ms(5_000)), [], "the search is over");
    assert_eq!(node.aodv.stats().searches_succeeded, 1);
}

#[test]
fn s6_3_a_request_of_the_destination_completes_the_discovery() {
    let mut node = node();
    let _ = node.send(9, 1);
    node.sent();
    node.receive_broadcast(1, 5, rreq(9, 1, 8, 1));
    assert_eq!(node.events()[1], Event::Release { packet: 1, next_hop: node_address(1) });
}

#[test]
fn a_full_buffer_drops_the_oldest_packet() {
    let mut node = TestNode::new(Config { buffer_packets: NonZeroU16::new(2).unwrap(), ..Config::rfc3561() });
    for packet in [1, 2, 3] {
        let _ = node.send(9, packet);
    }
    assert_eq!(node.events(), [Event::Drop { packet: 1, reason: DropReason::BufferFull }]);
    assert_eq!(node.aodv.buffered(), 2);
}

#[test]
fn a_packet_is_dropped_after_the_buffer_time_and_its_discovery_ends() {
    let mut node = TestNode::new(Config { buffer_time: ms(1_000), ..Config::rfc3561() });
    let _ = node.send(9, 1);
    node.sent();
    let sent = node.advance(ms(60_000));
    assert_eq!(node.events(), [Event::Drop { packet: 1, reason: DropReason::BufferTimeout }]);
    assert_eq!(sent.len(), 2, "the rings of 3 and 5 hops went out within the second, and nothing after it");
}

#[test]
fn s6_3_requests_respect_rreq_ratelimit() {
    let mut node = node();
    for destination in 0..15 {
        let _ = node.send(100 + destination, destination);
    }
    assert_eq!(node.sent().len(), 10);
    let start = node.now;
    let sent = node.advance(ms(60_000));
    let times: Vec<_> = sent.iter().map(|(at, _)| *at).collect();
    assert!(times[0] >= start + ms(1_000));
    for window in times.windows(11) {
        assert!(window[10] - window[0] >= ms(1_000), "eleven requests from {} to {}", window[0], window[10]);
    }
    assert!(node.aodv.stats().ignored(IgnoredReason::RateLimited) > 0);
}

#[test]
fn the_flags_of_a_request_select_the_replying_nodes() {
    for (answering, flags) in [
        (ReplyPolicy::Intermediate, (false, false)),
        (ReplyPolicy::IntermediateGratuitous, (true, false)),
        (ReplyPolicy::DestinationOnly, (false, true)),
    ] {
        let mut node = TestNode::new(Config { reply_policy: answering, ..Config::rfc3561() });
        let _ = node.send(9, 1);
        let sent = node.sent();
        let request = only_request(&sent).0;
        assert_eq!((request.gratuitous, request.destination_only), flags);
    }
}

#[test]
fn packets_for_invalid_addresses_and_this_node_are_not_routed() {
    let mut node = node();
    let unroutable = Decision::Dropped { reason: DropReason::Unroutable };
    assert_eq!(node.send(0, 1), unroutable);
    for address in [[255; 4], [0; 4], [224, 0, 0, 5]] {
        assert_eq!(node.aodv.route(node.now, address.into(), Origin::Local, 1), unroutable);
    }
    assert_eq!(node.forward(0, 1, 9, 1), Decision::Dropped { reason: DropReason::RoutingLoop });
    assert_eq!(node.sent(), []);
}

#[test]
fn a_chain_is_discovered_ring_by_ring() {
    let mut network = Network::chain(5, Config::rfc3561());
    network.send(0, 4, 7);
    network.run(ms(2_000));
    let own: Vec<_> = network.requests().into_iter().filter(|(_, node, _)| *node == 0).collect();
    let at = Instant::from_millis;
    assert_eq!(own, [(at(0), 0, 1), (at(240), 0, 3), (at(640), 0, 5)]);
    let delivered = &network.delivered;
    assert_eq!((delivered.len(), delivered[0].1, delivered[0].2), (1, 7, 4));
    // Four hops out with up to 10 ms of jitter at each of three relays, four hops back, four with the packet.
    assert!(delivered[0].0 >= at(640 + 12) && delivered[0].0 <= at(640 + 42), "{}", delivered[0].0);
    assert_eq!(network.path(0, 4), [0, 1, 2, 3, 4]);
    assert_eq!(network.path(4, 0), [4, 3, 2, 1, 0]);
}

#[test]
fn an_intermediate_node_with_a_fresh_route_replies() {
    let mut network = Network::chain(5, Config::rfc3561());
    network.send(1, 4, 1);
    network.run(ms(1_500));
    let before = network.nodes[4].stats().replies_as_destination;
    network.send(0, 4, 2);
    network.run(ms(200));
    assert_eq!(network.delivered.len(), 2);
    assert_eq!(network.nodes[1].stats().replies_as_relay, 1);
    assert_eq!(network.nodes[4].stats().replies_as_destination, before);
    assert_eq!(network.requests().last().unwrap().1, 0, "nobody relayed the request");
}

#[test]
fn with_the_d_flag_only_the_destination_answers() {
    let mut network =
        Network::chain(4, Config { reply_policy: ReplyPolicy::DestinationOnly, ..Config::rfc3561() });
    network.send(1, 3, 1);
    network.run(ms(1_500));
    network.send(0, 3, 2);
    network.run(ms(1_500));
    assert_eq!(network.delivered.len(), 2);
    assert_eq!(network.nodes.iter().map(|node| node.stats().replies_as_relay).sum::<u64>(), 0);
    assert_eq!(network.nodes[3].stats().replies_as_destination, 2);
}

#[test]
fn in_a_partitioned_network_discovery_fails_and_restarts_later() {
    let mut network = Network::chain(4, Config::rfc3561());
    network.cut(2, 3);
    network.send(0, 3, 1);
    network.run(ms(40_000));
    assert_eq!(network.dropped, [(1, 0, DropReason::DiscoveryFailed)]);
    network.link(2, 3);
    network.send(0, 3, 2);
    network.run(ms(1_000));
    assert_eq!(network.delivered.len(), 1);
}

#[test]
fn a_request_crosses_each_node_once() {
    // A full mesh of six: every node receives from every other.
    let mut network = Network::new(6, Config { ttl_start: 35, ..Config::rfc3561() });
    for a in 0..6 {
        for b in 0..a {
            network.link(a, b);
        }
    }
    network.send(0, 99, 1);
    network.run(ms(100));
    assert_eq!(network.senders(|message| matches!(message, Message::Rreq(_))).len(), 6);
    let duplicates: u64 =
        network.nodes.iter().map(|node| node.stats().ignored(IgnoredReason::DuplicateRequest)).sum();
    assert_eq!(
        duplicates,
        5 * 4,
        "each of five relays heard the request from the four others after the first"
    );
}

#[test]
fn the_discovery_schedule_is_configurable() {
    let mut node = TestNode::new(Config {
        discovery_schedule: DiscoverySchedule::Ns2 { longest_wait: ms(10_000) },
        ..Config::rfc3561()
    });
    let _ = node.send(9, 1);
    assert_eq!(only_request(&node.sent()).1, 35, "a destination never known is searched everywhere at once");
}
