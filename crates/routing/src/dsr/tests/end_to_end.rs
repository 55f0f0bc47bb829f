//! Small networks.

use super::harness::{path, with_cache};
use super::network::Network;
use crate::dsr::config::{
    CachedReplies, GratuitousReplies, NoCache, NoCacheRelays, NoCacheSalvage, RouteCache, Tap, TargetReplies,
};
use crate::dsr::*;
use crate::tests::operations::{Op, connected_links, op, packet_operations};
use crate::tests::{ms, node_address};
use core::num::NonZeroU8;
use hopline_wire::dsr::DsrOption;
use proptest::prelude::*;

fn is_request(option: &DsrOption) -> bool {
    matches!(option, DsrOption::Request(_))
}

fn without_cache() -> Config {
    Config::rfc4728().without_cache()
}

#[test]
fn a_route_over_a_chain_is_found_and_used_again() {
    let mut net = Network::chain(5, Config::rfc4728());
    net.send(0, 4, 1);
    net.run(ms(1000));
    assert_eq!((net.hops(1), net.found.as_slice()), (Some(4), [(0, node_address(4), 4)].as_slice()));
    assert_eq!(net.route(0, 4), Some(path(&[1, 2, 3, 4])));
    assert_eq!(net.route(4, 0), Some(path(&[3, 2, 1, 0])), "the target learns the way back");
    let requests = net.count(is_request);
    net.send(0, 4, 2);
    net.send(4, 0, 3);
    net.send(2, 4, 4);
    net.run(ms(10));
    assert_eq!((net.hops(2), net.hops(3), net.hops(4)), (Some(4), Some(4), Some(2)));
    assert_eq!(net.count(is_request), requests, "nobody asks again");
}

#[test]
fn without_a_cache_every_packet_starts_a_search() {
    let mut net = Network::chain(4, without_cache());
    for id in 1..=2 {
        net.send(0, 3, id);
        net.run(ms(1000));
        assert_eq!(net.hops(id), Some(3));
    }
    assert_eq!([0, 1, 2, 3].map(|node: usize| net.nodes[node].stats().searches_succeeded), [2, 0, 0, 0]);
    let cache = RouteCache::Off(NoCache { relays: NoCacheRelays::Search, ..NoCache::DOOR });
    let mut net = Network::chain(4, Config { cache, ..without_cache() });
    for id in 1..=2 {
        net.send(0, 3, id);
        net.run(ms(1000));
        assert_eq!(net.hops(id), Some(3));
    }
    let searches = |node: usize| net.nodes[node].stats().searches_succeeded;
    assert_eq!([0, 1, 2, 3].map(searches), [2, 2, 2, 0]);
    assert!(net.nodes.iter().all(|node| node.routes(net.now).count() == 0));
    assert!(net.nodes[0].has_route(net.now, node_address(3)));
    assert!(!net.nodes[1].has_route(net.now, node_address(3)), "it sends nothing of its own");
    assert_eq!(net.found, [(0, node_address(3), 3), (0, node_address(3), 3)]);
}

#[test]
fn a_broken_link_is_reported_to_the_source_which_searches_again() {
    // 0 – 1 – 2 – 3 turns into 0 – 1 – 4 – 3.
    let mut net = Network::new(5, Config::rfc4728());
    net.link_all(&[(0, 1), (1, 2), (2, 3)]);
    net.send(0, 3, 1);
    net.run(ms(1000));
    net.cut(2, 3);
    net.link(1, 4);
    net.link(4, 3);
    net.send(0, 3, 2);
    net.run(ms(1000));
    assert_eq!(net.dropped, [(2, 2, DropReason::NoRoute)]);
    assert_eq!(net.lost, [(0, node_address(3))]);
    assert_eq!((net.nodes[2].stats().errors_sent, net.route(0, 3)), (1, None));
    net.send(0, 3, 3);
    net.run(ms(1000));
    assert_eq!((net.hops(3), net.route(0, 3)), (Some(3), Some(path(&[1, 4, 3]))));
    assert_eq!(net.found, [(0, node_address(3), 3), (0, node_address(3), 3)]);
}

#[test]
fn a_relay_with_another_path_salvages_the_packet() {
    // 0 – 1 – 2 – 3, and later 1 – 4 – 3.
    let mut net = Network::new(5, Config::rfc4728());
    net.link_all(&[(0, 1), (1, 2), (2, 3)]);
    net.send(0, 3, 1);
    net.run(ms(1000));
    net.link(1, 4);
    net.link(4, 3);
    net.send(4, 3, 2);
    net.run(ms(1000));
    net.cut(1, 2);
    net.send(0, 3, 3);
    net.run(ms(1000));
    assert_eq!((net.hops(3), net.dropped.len()), (Some(3), 0));
    assert_eq!((net.nodes[1].stats().salvaged, net.nodes[1].stats().errors_sent), (1, 1));
    assert_eq!(net.lost, [(0, node_address(3))]);
}

#[test]
fn a_source_gets_a_gratuitous_reply_with_a_shorter_path() {
    // 3 comes near to 1, and hears it send to 2.
    let mut net = Network::chain(4, Config::rfc4728());
    net.send(0, 3, 1);
    net.run(ms(1000));
    net.link(1, 3);
    net.send(0, 3, 2);
    net.run(ms(1000));
    assert_eq!((net.hops(2), net.nodes[3].stats().replies_gratuitous), (Some(3), 1));
    net.send(0, 3, 3);
    net.run(ms(1000));
    assert_eq!(net.hops(3), Some(2));
}

#[test]
fn without_replies_packets_are_dropped() {
    for config in [Config::rfc4728(), without_cache()] {
        let config = Config { max_request_retries: NonZeroU8::new(3).unwrap(), ..config };
        let mut net = Network::chain(3, config);
        net.cut(1, 2);
        net.send(0, 2, 1);
        net.run(ms(20_000));
        assert_eq!(net.dropped, [(1, 0, DropReason::DiscoveryFailed)]);
        assert_eq!(net.lost, [(0, node_address(2))]);
        assert_eq!(net.nodes[0].stats().requests_originated, 3);
    }
}

#[test]
fn the_example_of_the_door_paper() {
    for config in [Config::rfc4728(), without_cache()] {
        let [early, late] = [true, false].map(|early| {
            // 0 – 2 – 3 – 4 – 1; later also 0 – 5 – 1.
            let mut net = Network::new(6, config);
            net.link_all(&[(0, 2), (2, 3), (3, 4), (4, 1)]);
            if early {
                net.send(0, 1, 1);
            }
            net.run(ms(2000));
            net.link(0, 5);
            net.link(5, 1);
            net.send(0, 1, 2);
            net.run(ms(2000));
            net.hops(2).unwrap()
        });
        let expected = if matches!(config.cache, RouteCache::Off(_)) { (2, 2) } else { (4, 2) };
        assert_eq!((early, late), expected);
    }
}

const NODES: u32 = 6;

fn config() -> impl Strategy<Value = Config> {
    let quiet = |cache: &mut crate::dsr::config::PathCache| {
        cache.tap = Tap::Off;
        cache.cached_replies = CachedReplies::Off;
        cache.gratuitous_replies = GratuitousReplies::Off;
    };
    let searching = NoCache { relays: NoCacheRelays::Search, ..NoCache::DOOR };
    let cache = RouteCache::Off(NoCache { salvage: NoCacheSalvage::Everywhere, ..searching });
    let everywhere = Config { cache, ..without_cache() };
    prop_oneof![
        Just(Config::rfc4728()),
        Just(Config::ns2()),
        Just(with_cache(quiet)),
        Just(without_cache()),
        Just(Config { target_replies: TargetReplies::First, ..everywhere }),
    ]
}

/// Runs `ops` on a network and returns it, with the fate of every packet and all transmissions.
fn run_operations(config: Config, links: &[(u32, u32)], ops: &[Op], loss: (u64, f64)) -> Network {
    let mut net = Network::new(NODES, config);
    net.link_all(links);
    net.set_loss(loss.0, loss.1);
    for (id, &op) in ops.iter().enumerate() {
        match op {
            Op::Send { from, to } => net.send(from, to, id as u32),
            Op::Toggle { a, b } => net.toggle(a, b),
            Op::Pass { millis } => net.run(ms(millis)),
        }
    }
    // A packet waits 30 s for a route at each node, and its source may try again as often as links fail.
    net.set_loss(loss.0, 0.0);
    net.run(ms(400_000));
    net
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_packet_arrives_or_is_dropped_once_deterministically(
        config in config(),
        links in prop::collection::vec((0..NODES, 0..NODES), 4..14),
        ops in prop::collection::vec(op(NODES, prop_oneof![0u64..20, 100u64..2_000]), 1..40),
        seed in any::<u64>(),
        p in 0.0f64..0.3,
    ) {
        let net = run_operations(config, &links, &ops, (seed, p));
        let sent = (0..ops.len() as u32).filter(|id| matches!(ops[*id as usize], Op::Send { .. }));
        let delivered = net.delivered.iter().map(|(_, id, _)| *id);
        let mut ended: Vec<u32> = delivered.chain(net.dropped.iter().map(|(id, _, _)| *id)).collect();
        ended.sort_unstable();
        prop_assert_eq!(ended, sent.collect::<Vec<_>>());
        let again = run_operations(config, &links, &ops, (seed, p));
        prop_assert_eq!(net.sent, again.sent);
    }

    /// No packet is lost if all links hold and the network is connected.
    #[test]
    fn in_a_static_connected_network_every_packet_arrives(
        config in config(),
        links in connected_links(NODES, 5),
        ops in packet_operations(NODES),
    ) {
        let net = run_operations(config, &links, &ops, (1, 0.0));
        prop_assert_eq!(net.delivered.len(), ops.len() / 2);
        prop_assert_eq!(net.dropped, []);
        prop_assert!(net.nodes.iter().all(|node| node.stats().frames_failed == 0));
    }
}
