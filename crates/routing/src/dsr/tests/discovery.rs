//! The initiator (RFC 4728 §8.1.1, §8.2.1, §8.2.6).

use super::harness::*;
use crate::dsr::config::RouteCache;
use crate::dsr::*;
use core::num::{NonZeroU8, NonZeroU16};
use hopline_core::Instant;
use hopline_wire::dsr::DsrOption;
use hopline_wire::ipv4::Protocol;

/// Returns the times and reaches of requests.
fn requests(node: &mut TestNode, millis: u64) -> Vec<(u64, u8)> {
    let start = Instant::from_secs(100);
    let sent = node.advance(ms(millis));
    sent.into_iter().map(|(at, sent)| (at.since(start).as_millis(), only_request(&[sent]).1)).collect()
}

#[test]
fn a_packet_without_a_route_waits_while_a_request_goes_out() {
    let mut node = TestNode::new(Config::rfc4728());
    let sent = node.send(9, 1);
    let (request, ttl) = only_request(&sent);
    assert_eq!((request.target, request.path.len(), ttl), (node_address(9), 0, 1));
    assert_eq!(sent[0].packet.source, ME);
    assert_eq!((sent[0].packet.header.next, sent[0].packet.payload), (None, None));
    assert_eq!((node.dsr.buffered(), node.events().len()), (1, 0));
    assert!(!node.dsr.has_route(node.now, node_address(9)));
}

#[test]
fn neighbours_are_queried_first_and_then_the_network_with_backoff() {
    let mut node = TestNode::new(Config::rfc4728());
    node.send(9, 1);
    let times = requests(&mut node, 9000);
    assert_eq!(times, [(30, 255), (530, 255), (1530, 255), (3530, 255), (7530, 255)]);
}

#[test]
fn each_request_has_an_id_of_its_own() {
    let mut node = TestNode::new(Config::rfc4728());
    let first = only_request(&node.send(9, 1)).0.id;
    let second = only_request(&node.send(8, 2)).0.id;
    let third = node.advance(ms(30)).into_iter().map(|(_, sent)| only_request(&[sent]).0.id);
    let ids: Vec<u16> = [first, second].into_iter().chain(third).collect();
    assert_eq!(ids, [1, 2, 3, 4]);
}

#[test]
fn packets_for_the_same_target_share_a_search() {
    let mut node = TestNode::new(Config::rfc4728());
    node.send(9, 1);
    assert_eq!(node.send(9, 2), []);
    let sent = node.receive(1, reply(9, &[2, 1], 0, 0, &[1, 2, 9]));
    let ids: Vec<_> = sent.iter().map(|sent| (sent.next_hop, sent.packet.payload)).collect();
    assert_eq!(ids, [(node_address(1), Some(1)), (node_address(1), Some(2))]);
    assert_eq!(node.events(), [Event::RouteFound { destination: node_address(9), hops: 3 }]);
    assert_eq!(node.dsr.buffered(), 0);
    assert_eq!(node.advance(ms(20_000)), [], "and no request is left to send");
}

#[test]
fn a_packet_carries_its_route_without_its_ends() {
    let mut node = TestNode::new(Config::rfc4728());
    node.learn_route(&[1, 2, 9]);
    let sent = node.send(9, 7);
    let (packet, next_hop) = only_packet(&sent);
    assert_eq!(
        (packet.source, packet.destination, packet.ttl, next_hop),
        (ME, node_address(9), 64, node_address(1))
    );
    assert_eq!(packet.header.options.as_slice(), [source_route(0, &[1, 2], 2)]);
    assert_eq!((packet.header.next, packet.payload), (Some(Protocol::Tcp), Some(7)));
    assert_eq!(node.events(), []);
    let sent = node.send(1, 8);
    assert_eq!(only_packet(&sent).0.header.options.as_slice(), [source_route(0, &[], 0)], "over one hop too");
    assert_eq!(only_packet(&sent).1, node_address(1));
}

#[test]
fn packets_for_an_unresponsive_target_are_dropped() {
    let config = Config {
        max_request_retries: NonZeroU8::new(3).unwrap(),
        neighbour_query_timeout: None,
        ..Config::rfc4728()
    };
    let mut node = TestNode::new(config);
    node.send(9, 1);
    assert_eq!(requests(&mut node, 3499), [(500, 255), (1500, 255)]);
    assert_eq!(node.events(), []);
    assert_eq!(node.advance(ms(1)), []);
    let events = node.events();
    let reason = DropReason::DiscoveryFailed;
    assert_eq!(
        events,
        [Event::RouteLost { destination: node_address(9) }, Event::Drop { packet: 1, reason }]
    );
    // §8.2: the interval stays long until an answer comes.
    assert_eq!(only_request(&node.send(9, 2)).1, 255);
    assert_eq!(requests(&mut node, 4000), [(7500, 255)]);
    assert_eq!(node.events(), [], "the loss was told before");
}

#[test]
fn a_packet_is_dropped_after_the_buffer_time_and_its_search_ends() {
    let mut node = TestNode::new(Config::rfc4728());
    node.send(9, 1);
    let sent = node.advance(ms(29_999));
    assert!(!sent.is_empty());
    assert_eq!(node.events(), []);
    node.advance(ms(1));
    assert_eq!(node.events(), [Event::Drop { packet: 1, reason: DropReason::BufferTimeout }]);
    assert_eq!(node.advance(ms(100_000)), []);
}

#[test]
fn a_full_buffer_drops_the_oldest_packet() {
    let config = Config { buffer_packets: NonZeroU16::new(2).unwrap(), ..Config::rfc4728() };
    let mut node = TestNode::new(config);
    for id in 1..=3 {
        node.send(9, id);
    }
    assert_eq!(node.events(), [Event::Drop { packet: 1, reason: DropReason::BufferFull }]);
    assert_eq!(node.dsr.buffered(), 2);
}

#[test]
fn a_full_search_table_refuses_targets() {
    let mut config = Config::rfc4728();
    config.limits.request_table = 1;
    let mut node = TestNode::new(config);
    node.send(9, 1);
    assert_eq!(node.send(8, 2), []);
    assert_eq!(node.events(), [Event::Drop { packet: 2, reason: DropReason::DiscoveryFailed }]);
    assert_eq!(node.ignored(IgnoredReason::TableFull), 1);
}

#[test]
fn packets_for_this_node_or_invalid_addresses_start_no_search() {
    let mut node = TestNode::new(Config::rfc4728());
    for destination in [ME, ALL, std::net::Ipv4Addr::UNSPECIFIED, std::net::Ipv4Addr::new(224, 0, 0, 1)] {
        node.dsr.send(node.now, destination, 64, Protocol::Udp, 1);
        assert_eq!(node.events(), [Event::Drop { packet: 1, reason: DropReason::Unroutable }]);
        assert_eq!(node.sent(), []);
    }
}

#[test]
fn a_received_error_is_piggybacked_on_the_next_request() {
    // §3.4.4
    let mut node = TestNode::new(Config::rfc4728());
    node.learn_route(&[1, 2, 9]);
    let error = error_option(1, 2, 0);
    node.receive(1, packet(1, 0, &[source_route(0, &[], 0), error.clone()]));
    let sent = node.send(9, 1);
    assert!(
        matches!(only_packet(&sent).0.header.options.as_slice(), [DsrOption::Request(_), e] if *e == error)
    );
    let next = node.advance(ms(30));
    assert_eq!(next[0].1.packet.header.options.len(), 1, "once");
}

#[test]
fn an_overheard_route_ends_a_search() {
    let mut node = TestNode::new(Config::rfc4728());
    node.send(9, 1);
    // A packet from 9 to another node passes by.
    let sent = node.receive(1, data(9, &[1, 0], 1, 5, 77));
    assert!(sent.iter().any(|sent| sent.packet.payload == Some(1) && sent.next_hop == node_address(1)));
    assert_eq!(node.events(), [Event::RouteFound { destination: node_address(9), hops: 2 }]);
    node.receive(1, packet(1, 0, &[source_route(0, &[], 0), error_option(1, 9, 0)]));
    assert_eq!(node.events(), [Event::RouteLost { destination: node_address(9) }]);
    node.learn_route(&[2]);
    node.receive(2, data(9, &[2, 0], 1, 5, 78));
    assert_eq!(node.events(), [Event::RouteFound { destination: node_address(9), hops: 2 }]);
}

#[test]
fn in_ns2_buffered_packets_are_spaced_and_may_be_overtaken() {
    for mut config in [Config::ns2(), Config::ns2().without_cache()] {
        config.request_period = ms(500);
        let mut node = TestNode::new(config);
        for id in 1..=3 {
            node.send(9, id);
        }
        let sent = node.receive(1, reply(9, &[1], 0, 0, &[1, 9]));
        assert_eq!(only_packet(&sent).0.payload, Some(1), "the first at once");
        let start = node.now;
        let cached = matches!(config.cache, RouteCache::Paths(_));
        node.advance(ms(10));
        if cached {
            assert_eq!(only_packet(&node.send(9, 4)).0.payload, Some(4), "it has a route");
        }
        let later: Vec<_> = node
            .advance(ms(60))
            .into_iter()
            .map(|(at, sent)| (at.since(start), sent.packet.payload))
            .collect();
        assert_eq!(later, [(ms(30), Some(2)), (ms(60), Some(3))]);
    }
}

#[test]
fn messages_above_the_limit_of_delayed_ones_are_dropped() {
    let mut config = Config::ns2();
    config.limits.departures = 1;
    let mut node = TestNode::new(config);
    for id in 1..=3 {
        node.send(9, id);
    }
    node.receive(1, reply(9, &[1], 0, 0, &[1, 9]));
    assert!(node.events().contains(&Event::Drop { packet: 3, reason: DropReason::BufferFull }));
    assert_eq!(node.advance(ms(30)).len(), 1);
}
