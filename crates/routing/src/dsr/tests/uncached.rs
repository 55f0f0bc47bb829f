//! "DSR-Cache-off" (TCP-DOOR paper, §4.2).

use super::dialogue::*;
use crate::dsr::config::{RouteCache, Uncached, UncachedRelays, UncachedSalvage, UncachedSearches};
use crate::dsr::*;

/// Relays look for routes as sources do.
fn off() -> Config {
    reading(Uncached { relays: UncachedRelays::Search, ..Uncached::DOOR })
}

/// Relays follow source routes.
fn following() -> Config {
    Config::rfc4728().without_cache()
}

fn reading(uncached: Uncached) -> Config {
    Config { cache: RouteCache::Off(uncached), ..Config::rfc4728() }
}

#[test]
fn the_first_reply_takes_all_that_wait_and_is_forgotten() {
    let mut node = Node::new(off());
    node.send(9, 1);
    assert_eq!(node.send(9, 2), [], "it joins the search");
    let sent = node.get(1, reply(9, &[2, 1], 0, 0, &[1, 2, 9]));
    assert_eq!(sent.iter().map(|sent| sent.packet.carried).collect::<Vec<_>>(), [Some(1), Some(2)]);
    assert!(sent.iter().all(|sent| sent.packet.header.options.as_slice() == [route(0, &[1, 2], 2)]));
    assert_eq!(node.events(), [Event::RouteFound { destination: n(9), hops: 3 }]);
    assert!(node.dsr.has_route(node.now, n(9)));
    assert_eq!(node.routes(), [] as [hopline_wire::dsr::Addresses; 0]);
    assert_eq!(node.get(3, reply(9, &[3], 0, 0, &[3, 9])), [], "too late, though shorter");
    assert_eq!(node.ignored(Ignored::StaleReply), 1);
    assert_eq!(only_request(&node.send(9, 3)).1, 1, "the next packet asks again");
}

#[test]
fn a_reply_for_another_target_takes_nothing() {
    let mut node = Node::new(off());
    node.send(9, 1);
    assert_eq!(node.get(1, reply(8, &[9, 1], 0, 0, &[1, 9, 8])), []);
    assert_eq!((node.dsr.buffered(), node.ignored(Ignored::StaleReply)), (1, 1));
}

#[test]
fn a_packet_that_is_passed_on_gets_a_new_route_that_begins_here() {
    let mut node = Node::new(off());
    let sent = node.get(5, data(4, &[5, 0, 6], 2, 9, 77));
    assert_eq!(only_request(&sent).0.target, n(9));
    assert_eq!(node.dsr.buffered(), 1);
    let sent = node.get(1, reply(9, &[2, 1], 0, 0, &[1, 2, 9]));
    let (packet, next_hop) = only(&sent);
    assert_eq!((packet.source, packet.destination, packet.ttl), (n(4), n(9), 63));
    assert_eq!((packet.carried, next_hop), (Some(77), n(1)));
    assert_eq!(packet.header.options.as_slice(), [route(0, &[0, 1, 2], 2)]);
    assert_eq!(node.events(), [], "it is not this node's own");
    assert!(!node.dsr.has_route(node.now, n(9)));
}

#[test]
fn a_packet_that_another_relay_gave_its_route_is_taken() {
    let mut node = Node::new(off());
    // 4 sent it to 5, which found 5 – 0 – 4 – 9: back over its source.
    node.get(5, data(4, &[5, 0, 4], 2, 9, 77));
    assert_eq!(node.dsr.buffered(), 1);
    let mut source = Node::new(off());
    source.get(5, data(0, &[5, 0, 4], 2, 9, 78));
    assert_eq!(source.dsr.buffered(), 1, "the source itself passes it on like any other");
}

#[test]
fn a_packet_for_this_node_is_delivered() {
    let mut node = Node::new(off());
    assert_eq!(node.get(5, data(4, &[5], 0, 0, 77)), []);
    assert_eq!(node.events(), [Event::Deliver { packet: 77, ttl: 64 }]);
}

#[test]
fn replies_follow_their_source_routes() {
    let mut node = Node::new(off());
    let sent = node.get(1, reply(9, &[1, 0, 5], 2, 4, &[5, 0, 1, 9]));
    let (packet, next_hop) = only(&sent);
    assert_eq!((packet.ttl, next_hop), (63, n(5)));
    assert_eq!(packet.header.options.as_slice(), [route(0, &[1, 0, 5], 1), reply_option(&[5, 0, 1, 9])]);
    assert_eq!(node.dsr.buffered(), 0);
}

#[test]
fn a_relay_passes_requests_on_and_answers_none() {
    let mut node = Node::new(off());
    node.send(9, 1);
    node.get(1, reply(9, &[1], 0, 0, &[1, 9]));
    node.get(5, request(4, 1, 9, &[5]));
    let sent = node.settle();
    assert_eq!(only_request(&sent).0.path, path(&[5, 0]));
}

#[test]
fn the_source_looks_again_when_its_first_hop_fails() {
    let mut node = Node::new(off());
    node.send(9, 1);
    let sent = node.get(1, reply(9, &[1], 0, 0, &[1, 9]));
    node.events();
    let sent = node.fails(sent[0].clone());
    assert_eq!(only_request(&sent).0.target, n(9));
    let events = node.events();
    assert_eq!(events, [Event::PurgeQueue { next_hop: n(1) }, Event::RouteLost { destination: n(9) }]);
    let sent = node.get(2, reply(9, &[2], 0, 0, &[2, 9]));
    assert_eq!((only(&sent).0.carried, only(&sent).1), (Some(1), n(2)));
    assert_eq!(only(&sent).0.header.options.as_slice(), [route(0, &[2], 1)]);
    assert_eq!(node.events(), [Event::RouteFound { destination: n(9), hops: 2 }]);
}

#[test]
fn a_relay_that_follows_source_routes_looks_for_none() {
    let mut node = Node::new(following());
    let sent = node.get(5, data(4, &[5, 0, 6], 2, 9, 77));
    let (packet, next_hop) = only(&sent);
    assert_eq!((packet.source, packet.destination, packet.ttl), (n(4), n(9), 63));
    assert_eq!((packet.carried, next_hop, node.dsr.buffered()), (Some(77), n(6), 0));
    assert_eq!(packet.header.options.as_slice(), [route(0, &[5, 0, 6], 1)]);
    assert_eq!(only_request(&node.send(9, 1)).0.target, n(9), "what it sends itself needs a route still");
}

#[test]
fn a_search_for_each_packet_takes_one_and_begins_again() {
    let cache = RouteCache::Off(Uncached { searches: UncachedSearches::PerPacket, ..Uncached::DOOR });
    let mut node = Node::new(Config { cache, ..off() });
    node.send(9, 1);
    assert_eq!(node.send(9, 2), [], "one search at a time");
    let sent = node.get(1, reply(9, &[2, 1], 0, 0, &[1, 2, 9]));
    assert_eq!((sent.len(), sent[0].packet.carried), (2, Some(1)), "the older goes");
    assert_eq!(only_request(&sent[1..]).0.target, n(9));
    let sent = node.get(3, reply(9, &[3], 0, 0, &[3, 9]));
    assert_eq!((only(&sent).0.carried, only(&sent).1), (Some(2), n(3)));
    assert_eq!(node.get(1, reply(9, &[2, 1], 0, 0, &[1, 2, 9])), []);
    assert_eq!(node.ignored(Ignored::StaleReply), 1, "nobody waits any more");
}

#[test]
fn a_relay_drops_or_looks_again_as_often_as_it_may() {
    for (salvage, salvages) in [(UncachedSalvage::SourceOnly, 0), (UncachedSalvage::Everywhere, 2)] {
        let uncached = Uncached { salvage, relays: UncachedRelays::Search, ..Uncached::DOOR };
        let mut node = Node::new(Config { max_salvage: 2, ..reading(uncached) });
        node.get(5, data(4, &[5, 0], 1, 9, 77));
        for salvage in 0..=salvages {
            let sent = node.get(1, reply(9, &[1], 0, 0, &[1, 9]));
            assert_eq!(only(&sent).0.header.options.as_slice(), [route(salvage, &[0, 1], 1)]);
            assert_eq!(node.events(), []);
            let sent = node.fails(sent[0].clone());
            let purge = Event::PurgeQueue { next_hop: n(1) };
            if salvage < salvages {
                assert_eq!(only_request(&sent).0.target, n(9));
                assert_eq!(node.events(), [purge]);
            } else {
                let drop = Event::Drop { packet: 77, reason: DropReason::LinkFailure };
                assert_eq!((sent, node.events()), (vec![], vec![purge, drop]), "it gave the route itself");
            }
        }
    }
}

#[test]
fn nothing_is_learnt_of_what_others_send() {
    let mut node = Node::new(off());
    node.overhear(1, 2, data(1, &[2], 1, 9, 77));
    node.get(1, data(9, &[1, 0], 1, 5, 78));
    node.settle();
    assert!(node.routes().is_empty());
    assert_eq!(only_request(&node.send(9, 1)).0.target, n(9));
    assert_eq!(node.dsr.stats().replies_gratuitous, 0);
}

#[test]
fn a_relay_whose_packet_waits_too_long_drops_it_and_says_nothing() {
    let mut node = Node::new(off());
    node.get(5, data(4, &[5, 0], 1, 9, 77));
    node.pass(ms(30_000));
    assert_eq!(node.events(), [Event::Drop { packet: 77, reason: DropReason::BufferTimeout }]);
    assert_eq!(node.send(9, 1), [], "the interval goes on where it was");
    let sent = node.pass(ms(8000));
    assert_eq!(sent.len(), 1);
    assert_eq!(only_request(&[sent[0].1.clone()]).1, 255);
}

#[test]
fn a_relay_that_follows_source_routes_tells_the_source_of_a_link_that_fails() {
    // ns-2 sends route errors even if no node has a route cache.
    let mut node = Node::new(following());
    let sent = node.get(5, data(4, &[5, 0, 6], 2, 9, 77));
    let sent = node.fails(sent[0].clone());
    let (packet, next_hop) = only(&sent);
    assert_eq!((packet.destination, next_hop), (n(4), n(5)));
    assert_eq!(packet.header.options.as_slice(), [route(0, &[5], 1), error_option(0, 6, 4)]);
    let purge = Event::PurgeQueue { next_hop: n(6) };
    assert_eq!(node.events(), [purge, Event::Drop { packet: 77, reason: DropReason::LinkFailure }]);
}

#[test]
fn an_error_about_the_way_that_was_found_last_is_a_lost_route() {
    let mut node = Node::new(following());
    node.send(9, 1);
    node.get(1, reply(9, &[2, 1], 0, 0, &[1, 2, 9]));
    node.events();
    let error =
        |source, unreachable| packet(source, 0, &[route(0, &[1], 0), error_option(source, unreachable, 0)]);
    node.get(1, error(2, 8));
    assert_eq!(node.events(), [], "another link");
    node.get(1, error(2, 9));
    assert_eq!(node.events(), [Event::RouteLost { destination: n(9) }]);
    assert!(!node.dsr.has_route(node.now, n(9)));
    node.get(1, error(2, 9));
    assert_eq!(node.events(), [], "it is known");
    node.send(9, 2);
    node.get(3, reply(9, &[3], 0, 0, &[3, 9]));
    assert_eq!(node.events(), [Event::RouteFound { destination: n(9), hops: 2 }]);
    node.get(1, error(2, 9));
    assert_eq!(node.events(), [], "about a way that is no longer taken");
}
