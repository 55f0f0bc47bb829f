//! Replies from the cache (RFC 4728 §8.2.3, §8.2.5), and replies that pass through.

use super::harness::*;
use crate::dsr::config::CachedReplies;
use crate::dsr::*;

/// A node that knows the way over 1 and 2 to 9.
fn with_route(config: Config) -> TestNode {
    let mut node = TestNode::new(config);
    node.learn_route(&[1, 2, 9]);
    node
}

#[test]
fn a_node_with_a_route_replies_instead_of_relaying() {
    let mut node = with_route(Config::rfc4728());
    node.receive(5, Packet { ttl: 1, ..request(4, 7, 9, &[5]) });
    let sent = node.advance(ms(1000));
    let [(at, sent)] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!((sent.next_hop, sent.packet.destination), (node_address(5), node_address(4)));
    assert_eq!(
        sent.packet.header.options.as_slice(),
        [source_route(0, &[5], 1), reply_option(&[5, 0, 1, 2, 9])]
    );
    // H · (h − 1 + r), h = 5.
    let waited = at.since(hopline_core::Instant::from_secs(100));
    assert!(ms(40) <= waited && waited < ms(50), "{waited}");
    assert_eq!(node.dsr.stats().replies_from_cache, 1);
}

#[test]
fn cached_replies_without_delay_are_sent_at_once() {
    let mut node = with_route(Config::ns2());
    let sent = node.receive(5, request(4, 7, 9, &[5]));
    assert_eq!(only_packet(&sent).1, node_address(5));
    assert_eq!(node.advance_past_jitter(), []);
}

#[test]
fn a_route_with_a_loop_is_not_replied() {
    let mut node = with_route(Config::rfc4728());
    node.receive(5, request(4, 1, 9, &[2, 5]));
    assert_eq!(
        only_request(&node.advance_past_jitter()).0.path,
        path(&[2, 5, 0]),
        "a relay twice: passed on instead"
    );
    node.receive(5, request(2, 1, 9, &[5]));
    assert_eq!(only_request(&node.advance_past_jitter()).0.path, path(&[5, 0]), "the initiator twice");
}

#[test]
fn a_route_above_the_longest_is_not_replied() {
    let mut node =
        with_route(Config { max_path: core::num::NonZeroU8::new(3).unwrap(), ..Config::rfc4728() });
    node.receive(5, request(4, 1, 9, &[5]));
    assert_eq!(only_request(&node.advance_past_jitter()).0.path, path(&[5, 0]));
    node.receive(4, request(4, 2, 9, &[]));
    assert_eq!(node.advance(ms(100)).len(), 1);
    assert_eq!(node.dsr.stats().replies_from_cache, 1);
}

#[test]
fn without_cached_replies_relays_do_not_reply() {
    let mut node = with_route(with_cache(|cache| cache.cached_replies = CachedReplies::Off));
    node.receive(5, request(4, 7, 9, &[5]));
    assert_eq!(only_request(&node.advance_past_jitter()).0.path, path(&[5, 0]));
}

#[test]
fn a_reply_is_not_sent_if_its_initiator_uses_a_route_as_short() {
    for (used, length, cancelled) in [(&[6, 7, 8, 3][..], 5, 1), (&[6, 7, 8, 3, 2], 6, 0)] {
        let mut node = with_route(Config::rfc4728());
        node.receive(5, request(4, 7, 9, &[5]));
        assert_eq!(used.len() + 1, length);
        node.overhear(4, 6, data(4, used, used.len() as u8, 9, 1));
        assert_eq!(node.advance(ms(1000)).len(), 1 - cancelled);
        assert_eq!(node.dsr.stats().replies_cancelled, cancelled as u64);
    }
}

#[test]
fn a_salvaged_packet_cancels_no_reply() {
    let mut node = with_route(Config::rfc4728());
    node.receive(5, request(4, 7, 9, &[5]));
    node.overhear(6, 9, with_data(packet(4, 9, &[source_route(1, &[6], 0)]), 1));
    assert_eq!((node.advance(ms(1000)).len(), node.dsr.stats().replies_cancelled), (1, 0));
}

#[test]
fn packets_without_data_or_to_another_target_cancel_no_reply() {
    let mut node = with_route(Config::rfc4728());
    node.receive(5, request(4, 7, 9, &[5]));
    node.overhear(4, 6, packet(4, 9, &[source_route(0, &[6], 1)]));
    node.overhear(4, 6, data(4, &[6], 1, 8, 1));
    node.overhear(3, 6, data(3, &[6], 1, 9, 1));
    assert_eq!(node.advance(ms(1000)).len(), 1);
}

#[test]
fn a_reply_is_forwarded_and_learnt_in_both_directions() {
    let mut node = TestNode::new(Config::rfc4728());
    let sent = node.receive(1, reply(9, &[1, 0, 5], 2, 4, &[5, 0, 1, 9]));
    let (packet, next_hop) = only_packet(&sent);
    assert_eq!((packet.ttl, next_hop), (63, node_address(5)));
    assert_eq!(
        packet.header.options.as_slice(),
        [source_route(0, &[1, 0, 5], 1), reply_option(&[5, 0, 1, 9])]
    );
    assert_eq!(node.routes(), [path(&[5, 4]), path(&[1, 9])]);
    assert_eq!(node.dsr.stats().control_forwarded, 1);
}

#[test]
fn an_overlong_path_is_learnt_up_to_the_longest_route() {
    let config = Config { max_path: core::num::NonZeroU8::new(1).unwrap(), ..Config::rfc4728() };
    let mut node = TestNode::new(config);
    node.learn_route(&[1, 2, 9]);
    assert_eq!(node.routes(), [path(&[1, 2])]);
}
