//! "DSR-Cache-off" (TCP-DOOR paper, §4.2).

use super::harness::*;
use crate::dsr::config::{NoCache, NoCacheRelays, NoCacheSalvage, NoCacheSearches, RouteCache};
use crate::dsr::*;

/// Relays look for routes as sources do.
fn searching_relays() -> Config {
    no_cache(NoCache { relays: NoCacheRelays::Search, ..NoCache::DOOR })
}

/// Relays follow source routes.
fn following_relays() -> Config {
    Config::rfc4728().without_cache()
}

fn no_cache(uncached: NoCache) -> Config {
    Config { cache: RouteCache::Off(uncached), ..Config::rfc4728() }
}

#[test]
fn the_first_reply_serves_all_buffered_packets_and_is_not_cached() {
    let mut node = TestNode::new(searching_relays());
    node.send(9, 1);
    assert_eq!(node.send(9, 2), [], "it joins the search");
    let sent = node.receive(1, reply(9, &[2, 1], 0, 0, &[1, 2, 9]));
    assert_eq!(sent.iter().map(|sent| sent.packet.payload).collect::<Vec<_>>(), [Some(1), Some(2)]);
    assert!(sent.iter().all(|sent| sent.packet.header.options.as_slice() == [source_route(0, &[1, 2], 2)]));
    assert_eq!(node.events(), [Event::RouteFound { destination: node_address(9), hops: 3 }]);
    assert!(node.dsr.has_route(node.now, node_address(9)));
    assert_eq!(node.routes(), [] as [hopline_wire::dsr::Addresses; 0]);
    assert_eq!(node.receive(3, reply(9, &[3], 0, 0, &[3, 9])), [], "too late, though shorter");
    assert_eq!(node.ignored(IgnoredReason::StaleReply), 1);
    assert_eq!(only_request(&node.send(9, 3)).1, 1, "the next packet asks again");
}

#[test]
fn a_reply_for_another_target_releases_nothing() {
    let mut node = TestNode::new(searching_relays());
    node.send(9, 1);
    assert_eq!(node.receive(1, reply(8, &[9, 1], 0, 0, &[1, 9, 8])), []);
    assert_eq!((node.dsr.buffered(), node.ignored(IgnoredReason::StaleReply)), (1, 1));
}

#[test]
fn a_forwarded_packet_gets_a_new_route_from_here() {
    let mut node = TestNode::new(searching_relays());
    let sent = node.receive(5, data(4, &[5, 0, 6], 2, 9, 77));
    assert_eq!(only_request(&sent).0.target, node_address(9));
    assert_eq!(node.dsr.buffered(), 1);
    let sent = node.receive(1, reply(9, &[2, 1], 0, 0, &[1, 2, 9]));
    let (packet, next_hop) = only_packet(&sent);
    assert_eq!((packet.source, packet.destination, packet.ttl), (node_address(4), node_address(9), 63));
    assert_eq!((packet.payload, next_hop), (Some(77), node_address(1)));
    assert_eq!(packet.header.options.as_slice(), [source_route(0, &[0, 1, 2], 2)]);
    assert_eq!(node.events(), [], "it is not this node's own");
    assert!(!node.dsr.has_route(node.now, node_address(9)));
}

#[test]
fn a_packet_routed_by_another_relay_is_accepted() {
    let mut node = TestNode::new(searching_relays());
    // 4 sent it to 5, which found 5 – 0 – 4 – 9: back over its source.
    node.receive(5, data(4, &[5, 0, 4], 2, 9, 77));
    assert_eq!(node.dsr.buffered(), 1);
    let mut source = TestNode::new(searching_relays());
    source.receive(5, data(0, &[5, 0, 4], 2, 9, 78));
    assert_eq!(source.dsr.buffered(), 1, "the source itself passes it on like any other");
}

#[test]
fn a_packet_for_this_node_is_delivered() {
    let mut node = TestNode::new(searching_relays());
    assert_eq!(node.receive(5, data(4, &[5], 0, 0, 77)), []);
    assert_eq!(node.events(), [Event::Deliver { packet: 77, ttl: 64 }]);
}

#[test]
fn replies_follow_their_source_routes() {
    let mut node = TestNode::new(searching_relays());
    let sent = node.receive(1, reply(9, &[1, 0, 5], 2, 4, &[5, 0, 1, 9]));
    let (packet, next_hop) = only_packet(&sent);
    assert_eq!((packet.ttl, next_hop), (63, node_address(5)));
    assert_eq!(
        packet.header.options.as_slice(),
        [source_route(0, &[1, 0, 5], 1), reply_option(&[5, 0, 1, 9])]
    );
    assert_eq!(node.dsr.buffered(), 0);
}

#[test]
fn a_relay_relays_requests_and_does_not_reply() {
    let mut node = TestNode::new(searching_relays());
    node.send(9, 1);
    node.receive(1, reply(9, &[1], 0, 0, &[1, 9]));
    node.receive(5, request(4, 1, 9, &[5]));
    let sent = node.advance_past_jitter();
    assert_eq!(only_request(&sent).0.path, path(&[5, 0]));
}

#[test]
fn the_source_searches_again_when_its_first_hop_fails() {
    let mut node = TestNode::new(searching_relays());
    node.send(9, 1);
    let sent = node.receive(1, reply(9, &[1], 0, 0, &[1, 9]));
    node.events();
    let sent = node.fail_transmission(sent[0].clone());
    assert_eq!(only_request(&sent).0.target, node_address(9));
    let events = node.events();
    assert_eq!(
        events,
        [Event::PurgeQueue { next_hop: node_address(1) }, Event::RouteLost { destination: node_address(9) }]
    );
    let sent = node.receive(2, reply(9, &[2], 0, 0, &[2, 9]));
    assert_eq!((only_packet(&sent).0.payload, only_packet(&sent).1), (Some(1), node_address(2)));
    assert_eq!(only_packet(&sent).0.header.options.as_slice(), [source_route(0, &[2], 1)]);
    assert_eq!(node.events(), [Event::RouteFound { destination: node_address(9), hops: 2 }]);
}

#[test]
fn a_relay_that_follows_source_routes_starts_no_search() {
    let mut node = TestNode::new(following_relays());
    let sent = node.receive(5, data(4, &[5, 0, 6], 2, 9, 77));
    let (packet, next_hop) = only_packet(&sent);
    assert_eq!((packet.source, packet.destination, packet.ttl), (node_address(4), node_address(9), 63));
    assert_eq!((packet.payload, next_hop, node.dsr.buffered()), (Some(77), node_address(6), 0));
    assert_eq!(packet.header.options.as_slice(), [source_route(0, &[5, 0, 6], 1)]);
    assert_eq!(
        only_request(&node.send(9, 1)).0.target,
        node_address(9),
        "what it sends itself needs a route still"
    );
}

#[test]
fn with_per_packet_searches_a_reply_serves_one_packet() {
    let cache = RouteCache::Off(NoCache { searches: NoCacheSearches::PerPacket, ..NoCache::DOOR });
    let mut node = TestNode::new(Config { cache, ..searching_relays() });
    node.send(9, 1);
    assert_eq!(node.send(9, 2), [], "one search at a time");
    let sent = node.receive(1, reply(9, &[2, 1], 0, 0, &[1, 2, 9]));
    assert_eq!((sent.len(), sent[0].packet.payload), (2, Some(1)), "the older goes");
    assert_eq!(only_request(&sent[1..]).0.target, node_address(9));
    let sent = node.receive(3, reply(9, &[3], 0, 0, &[3, 9]));
    assert_eq!((only_packet(&sent).0.payload, only_packet(&sent).1), (Some(2), node_address(3)));
    assert_eq!(node.receive(1, reply(9, &[2, 1], 0, 0, &[1, 2, 9])), []);
    assert_eq!(node.ignored(IgnoredReason::StaleReply), 1, "nobody waits any more");
}

#[test]
fn a_relay_drops_or_searches_again_up_to_max_salvage() {
    for (salvage, salvages) in [(NoCacheSalvage::SourceOnly, 0), (NoCacheSalvage::Everywhere, 2)] {
        let uncached = NoCache { salvage, relays: NoCacheRelays::Search, ..NoCache::DOOR };
        let mut node = TestNode::new(Config { max_salvage: 2, ..no_cache(uncached) });
        node.receive(5, data(4, &[5, 0], 1, 9, 77));
        for salvage in 0..=salvages {
            let sent = node.receive(1, reply(9, &[1], 0, 0, &[1, 9]));
            assert_eq!(only_packet(&sent).0.header.options.as_slice(), [source_route(salvage, &[0, 1], 1)]);
            assert_eq!(node.events(), []);
            let sent = node.fail_transmission(sent[0].clone());
            let purge = Event::PurgeQueue { next_hop: node_address(1) };
            if salvage < salvages {
                assert_eq!(only_request(&sent).0.target, node_address(9));
                assert_eq!(node.events(), [purge]);
            } else {
                let drop = Event::Drop { packet: 77, reason: DropReason::LinkFailure };
                assert_eq!((sent, node.events()), (vec![], vec![purge, drop]), "it gave the route itself");
            }
        }
    }
}

#[test]
fn nothing_is_learnt_from_packets_of_other_nodes() {
    let mut node = TestNode::new(searching_relays());
    node.overhear(1, 2, data(1, &[2], 1, 9, 77));
    node.receive(1, data(9, &[1, 0], 1, 5, 78));
    node.advance_past_jitter();
    assert!(node.routes().is_empty());
    assert_eq!(only_request(&node.send(9, 1)).0.target, node_address(9));
    assert_eq!(node.dsr.stats().replies_gratuitous, 0);
}

#[test]
fn a_relay_drops_expired_packets_without_error() {
    let mut node = TestNode::new(searching_relays());
    node.receive(5, data(4, &[5, 0], 1, 9, 77));
    node.advance(ms(30_000));
    assert_eq!(node.events(), [Event::Drop { packet: 77, reason: DropReason::BufferTimeout }]);
    assert_eq!(node.send(9, 1), [], "the interval goes on where it was");
    let sent = node.advance(ms(8000));
    assert_eq!(sent.len(), 1);
    assert_eq!(only_request(&[sent[0].1.clone()]).1, 255);
}

#[test]
fn a_relay_that_follows_source_routes_reports_a_failed_link() {
    // ns-2 sends route errors even if no node has a route cache.
    let mut node = TestNode::new(following_relays());
    let sent = node.receive(5, data(4, &[5, 0, 6], 2, 9, 77));
    let sent = node.fail_transmission(sent[0].clone());
    let (packet, next_hop) = only_packet(&sent);
    assert_eq!((packet.destination, next_hop), (node_address(4), node_address(5)));
    assert_eq!(packet.header.options.as_slice(), [source_route(0, &[5], 1), error_option(0, 6, 4)]);
    let purge = Event::PurgeQueue { next_hop: node_address(6) };
    assert_eq!(node.events(), [purge, Event::Drop { packet: 77, reason: DropReason::LinkFailure }]);
}

#[test]
fn an_error_about_the_last_path_is_a_lost_route() {
    let mut node = TestNode::new(following_relays());
    node.send(9, 1);
    node.receive(1, reply(9, &[2, 1], 0, 0, &[1, 2, 9]));
    node.events();
    let error = |source, unreachable| {
        packet(source, 0, &[source_route(0, &[1], 0), error_option(source, unreachable, 0)])
    };
    node.receive(1, error(2, 8));
    assert_eq!(node.events(), [], "another link");
    node.receive(1, error(2, 9));
    assert_eq!(node.events(), [Event::RouteLost { destination: node_address(9) }]);
    assert!(!node.dsr.has_route(node.now, node_address(9)));
    node.receive(1, error(2, 9));
    assert_eq!(node.events(), [], "it is known");
    node.send(9, 2);
    node.receive(3, reply(9, &[3], 0, 0, &[3, 9]));
    assert_eq!(node.events(), [Event::RouteFound { destination: node_address(9), hops: 2 }]);
    node.receive(1, error(2, 9));
    assert_eq!(node.events(), [], "about a way that is no longer taken");
}
