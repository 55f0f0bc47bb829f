//! Every node finds a shortest path to every other one, and finds it again after links break.

use super::harness::*;
use super::network::Network;
use crate::olsr::config::Hysteresis;
use crate::olsr::*;
use crate::tests::operations::connected_links;
use hopline_core::{Duration, Seq16};
use hopline_wire::olsr::Willingness;
use proptest::prelude::*;

const NODES: u32 = 8;

/// Four HELLOs advertise in turn that a neighbour exists, that it is heard, its neighbours, and its relays. Then a TC
/// message crosses the network, with jitter at every hop but the first.
fn max_discovery_time(nodes: u32) -> Duration {
    secs(4 * 2 + 5) + ms(500 * u64::from(nodes)) + ms(100)
}

/// A link is missed after NEIGHB_HOLD_TIME. HELLOs inform the neighbours, which choose other relays and advertise that, and
/// these inform the network. Entries from other nodes are forgotten after TOP_HOLD_TIME, which is no later.
fn max_repair_time(nodes: u32) -> Duration {
    secs(6 + 2 * 2 + 5) + ms(500 * u64::from(nodes)) + ms(100)
}

fn network(links: &[(u32, u32)], config: Config, seed: u64) -> Network {
    let mut network = Network::new(NODES, config, seed);
    network.link_all(links);
    network
}

#[test]
fn a_chain_converges_and_reports_its_routes() {
    let mut network = Network::chain(5, Config::rfc3626(), 1);
    let took = network.run_until_converged(max_discovery_time(5)).expect("in time");
    assert_eq!((network.route(0, 4), network.route(4, 0)), (Some((1, 4)), Some((3, 4))));
    assert_eq!(network.found.iter().filter(|found| **found == (0, node_address(4), 4)).count(), 1);
    assert!(took > secs(4), "two rounds of HELLO at least");
    // Only the nodes in the middle forward messages.
    network.run(secs(60));
    let forwards = network.nodes.iter().map(|node| node.stats().messages_forwarded > 0);
    assert_eq!(forwards.collect::<Vec<_>>(), [false, true, true, true, false]);
}

#[test]
fn an_isolated_node_sends_only_hellos() {
    let mut network = Network::new(1, Config::rfc3626(), 1);
    network.run(secs(100));
    assert!(network.sent.len() >= 49);
    assert!(network.sent.iter().all(|(_, _, sent)| sent.packet.wire_len() == 4 + 16));
    assert_eq!(network.nodes[0].routes().count(), 0);
}

#[test]
fn a_link_that_works_one_way_is_not_used() {
    let mut network = Network::new(3, Config::rfc3626(), 1);
    network.link(0, 1);
    network.link(1, 2);
    network.link(0, 2);
    network.cut_one_way(2, 0);
    network.run_until_converged(max_discovery_time(3)).expect("in time");
    assert_eq!((network.route(0, 2), network.route(2, 0)), (Some((1, 2)), Some((1, 2))));
}

#[test]
fn a_broken_chain_loses_routes_behind_the_break() {
    let mut network = Network::chain(5, Config::rfc3626(), 3);
    network.run_until_converged(max_discovery_time(5)).expect("in time");
    network.cut(2, 3);
    let took = network.run_until_converged(max_repair_time(5)).expect("in time");
    assert!(took > secs(4), "{took}: silence is noticed after NEIGHB_HOLD_TIME");
    assert_eq!((network.route(0, 2), network.route(0, 3), network.route(0, 4)), (Some((1, 2)), None, None));
    network.link(2, 3);
    network.run_until_converged(max_discovery_time(5)).expect("in time");
    assert_eq!(network.route(0, 4), Some((1, 4)));
}

#[test]
fn routes_stay_when_sequence_numbers_wrap_around() {
    let mut network = Network::chain(5, Config::rfc3626(), 1);
    for node in &mut network.nodes {
        (node.message_seq, node.outbox.packet_seq) = (Seq16(65_530), Seq16(65_530));
        node.advertising.ansn = Seq16(65_535);
    }
    network.run_until_converged(max_discovery_time(5)).expect("in time");
    let changes = network.changes();
    network.run(secs(120));
    assert!(network.nodes.iter().all(|node| node.message_seq.0 < 65_530));
    assert_eq!((network.wrong_routes(), network.changes()), (0, changes));
}

#[test]
fn a_grid_floods_over_few_mprs() {
    let mut network = Network::new(25, Config::rfc3626(), 7);
    for node in 0..25 {
        let (x, y) = (node % 5, node / 5);
        for other in node + 1..25 {
            if u32::abs_diff(x, other % 5) <= 1 && u32::abs_diff(y, other / 5) <= 1 {
                network.link(node, other);
            }
        }
    }
    network.run_until_converged(max_discovery_time(25)).expect("in time");
    network.run(secs(100));
    let sum = |count: fn(&Stats) -> u64| network.nodes.iter().map(|node| count(node.stats())).sum::<u64>();
    let (made, passed_on) = (sum(|stats| stats.tcs_sent), sum(|stats| stats.messages_forwarded));
    // Blind flooding would repeat each message at all 24 others.
    assert!(passed_on < made * 16, "{made} made, {passed_on} passed on");
}

#[test]
fn with_hysteresis_a_lossless_chain_is_found_two_hellos_later() {
    let config = Config { hysteresis: Some(Hysteresis::RFC3626), ..Config::rfc3626() };
    let mut network = Network::chain(4, config, 1);
    network.run_until_converged(max_discovery_time(4) + secs(4)).expect("in time");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn in_a_static_connected_network_routes_converge_to_shortest_paths(
        links in connected_links(NODES, 13),
        seed in any::<u64>(),
    ) {
        let mut network = network(&links, Config::rfc3626(), seed);
        prop_assert!(network.run_until_converged(max_discovery_time(NODES)).is_some(), "{} routes wrong", network.wrong_routes());
        network.run(max_discovery_time(NODES));
        let changes = network.changes();
        network.run(secs(60));
        prop_assert_eq!((network.wrong_routes(), network.changes()), (0, changes));
    }

    #[test]
    fn willingness_changes_mprs_but_not_path_lengths(
        links in connected_links(NODES, 13),
        levels in prop::collection::vec(1u8..8, NODES as usize),
        seed in any::<u64>(),
    ) {
        let mut network = network(&links, Config::rfc3626(), seed);
        for (node, level) in network.nodes.iter_mut().zip(levels) {
            let willingness = Willingness::new(level);
            node.config = Config { willingness, ..Config::rfc3626() }.into();
        }
        prop_assert!(network.run_until_converged(max_discovery_time(NODES)).is_some(), "{} routes wrong", network.wrong_routes());
    }

    #[test]
    fn routes_recover_within_the_hold_times_after_breaks(
        links in connected_links(NODES, 13),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
        seed in any::<u64>(),
    ) {
        let mut network = network(&links, Config::rfc3626(), seed);
        network.run(max_discovery_time(NODES));
        for cut in cuts {
            let (a, b) = links[cut.index(links.len())];
            network.cut(a, b);
        }
        network.run(max_repair_time(NODES));
        prop_assert_eq!(network.wrong_routes(), 0);
    }

    #[test]
    fn routes_are_found_again_after_heavy_loss(
        links in connected_links(NODES, 13),
        seed in any::<u64>(),
        p in 0.3f64..0.9,
    ) {
        let mut network = network(&links, Config::rfc3626(), seed);
        network.set_loss(seed, p);
        network.run(secs(40));
        network.set_loss(seed, 0.0);
        network.run(max_discovery_time(NODES) + max_repair_time(NODES));
        prop_assert_eq!(network.wrong_routes(), 0);
    }
}
