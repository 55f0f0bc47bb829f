//! Replies from the cache (RFC 4728 §8.2.3, §8.2.5), and replies that pass through.

use super::dialogue::*;
use crate::dsr::config::CachedReplies;
use crate::dsr::*;

/// A node that knows the way over 1 and 2 to 9.
fn knowing(config: Config) -> Node {
    let mut node = Node::new(config);
    node.knows(&[1, 2, 9]);
    node
}

#[test]
fn a_node_that_knows_the_way_answers_in_place_of_passing_on() {
    let mut node = knowing(Config::rfc4728());
    node.get(5, Packet { ttl: 1, ..request(4, 7, 9, &[5]) });
    let sent = node.pass(ms(1000));
    let [(at, sent)] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!((sent.next_hop, sent.packet.destination), (n(5), n(4)));
    assert_eq!(sent.packet.header.options.as_slice(), [route(0, &[5], 1), reply_option(&[5, 0, 1, 2, 9])]);
    // H · (h − 1 + r), h = 5.
    let waited = at.since(hopline_core::Instant::from_secs(100));
    assert!(ms(40) <= waited && waited < ms(50), "{waited}");
    assert_eq!(node.dsr.stats().replies_from_cache, 1);
}

#[test]
fn it_answers_at_once_where_replies_do_not_wait() {
    let mut node = knowing(Config::ns2());
    let sent = node.get(5, request(4, 7, 9, &[5]));
    assert_eq!(only(&sent).1, n(5));
    assert_eq!(node.settle(), []);
}

#[test]
fn a_way_that_would_pass_a_node_twice_is_no_answer() {
    let mut node = knowing(Config::rfc4728());
    node.get(5, request(4, 1, 9, &[2, 5]));
    assert_eq!(only_request(&node.settle()).0.path, path(&[2, 5, 0]), "a relay twice: passed on instead");
    node.get(5, request(2, 1, 9, &[5]));
    assert_eq!(only_request(&node.settle()).0.path, path(&[5, 0]), "the initiator twice");
}

#[test]
fn a_way_longer_than_routes_may_be_is_no_answer() {
    let mut node = knowing(Config { max_path: core::num::NonZeroU8::new(3).unwrap(), ..Config::rfc4728() });
    node.get(5, request(4, 1, 9, &[5]));
    assert_eq!(only_request(&node.settle()).0.path, path(&[5, 0]));
    node.get(4, request(4, 2, 9, &[]));
    assert_eq!(node.pass(ms(100)).len(), 1);
    assert_eq!(node.dsr.stats().replies_from_cache, 1);
}

#[test]
fn nobody_answers_from_the_cache_where_that_is_off() {
    let mut node = knowing(with_cache(|cache| cache.cached_replies = CachedReplies::Off));
    node.get(5, request(4, 7, 9, &[5]));
    assert_eq!(only_request(&node.settle()).0.path, path(&[5, 0]));
}

#[test]
fn a_reply_is_not_sent_if_its_initiator_uses_a_route_as_short() {
    for (used, length, cancelled) in [(&[6, 7, 8, 3][..], 5, 1), (&[6, 7, 8, 3, 2], 6, 0)] {
        let mut node = knowing(Config::rfc4728());
        node.get(5, request(4, 7, 9, &[5]));
        assert_eq!(used.len() + 1, length);
        node.overhear(4, 6, data(4, used, used.len() as u8, 9, 1));
        assert_eq!(node.pass(ms(1000)).len(), 1 - cancelled);
        assert_eq!(node.dsr.stats().replies_cancelled, cancelled as u64);
    }
}

#[test]
fn a_salvaged_packet_does_not_say_which_route_its_source_uses() {
    let mut node = knowing(Config::rfc4728());
    node.get(5, request(4, 7, 9, &[5]));
    node.overhear(6, 9, carrying(packet(4, 9, &[route(1, &[6], 0)]), 1));
    assert_eq!((node.pass(ms(1000)).len(), node.dsr.stats().replies_cancelled), (1, 0));
}

#[test]
fn what_has_no_data_or_another_target_cancels_nothing() {
    let mut node = knowing(Config::rfc4728());
    node.get(5, request(4, 7, 9, &[5]));
    node.overhear(4, 6, packet(4, 9, &[route(0, &[6], 1)]));
    node.overhear(4, 6, data(4, &[6], 1, 8, 1));
    node.overhear(3, 6, data(3, &[6], 1, 9, 1));
    assert_eq!(node.pass(ms(1000)).len(), 1);
}

#[test]
fn a_reply_is_passed_on_and_learnt_both_ways() {
    let mut node = Node::new(Config::rfc4728());
    let sent = node.get(1, reply(9, &[1, 0, 5], 2, 4, &[5, 0, 1, 9]));
    let (packet, next_hop) = only(&sent);
    assert_eq!((packet.ttl, next_hop), (63, n(5)));
    assert_eq!(packet.header.options.as_slice(), [route(0, &[1, 0, 5], 1), reply_option(&[5, 0, 1, 9])]);
    assert_eq!(node.routes(), [path(&[5, 4]), path(&[1, 9])]);
    assert_eq!(node.dsr.stats().control_forwarded, 1);
}

#[test]
fn a_longer_path_than_routes_may_be_is_learnt_as_far_as_it_may_be_used() {
    let config = Config { max_path: core::num::NonZeroU8::new(1).unwrap(), ..Config::rfc4728() };
    let mut node = Node::new(config);
    node.knows(&[1, 2, 9]);
    assert_eq!(node.routes(), [path(&[1, 2])]);
}
