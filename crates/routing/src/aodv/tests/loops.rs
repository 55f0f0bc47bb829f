//! Next hops never form a loop (RFC 3561 §1), whatever breaks. The ns-2 variants are exceptions.

use super::network::Network;
use crate::aodv::config::{LocalRepair, PreviousHopRoute, RepairEnd, RepairSequence};
use crate::aodv::*;
use crate::tests::ms;
use crate::tests::operations::{Op, connected_links, op, packet_operations};
use proptest::prelude::*;

const NODES: u32 = 7;

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let millis = prop_oneof![0u64..20, 100u64..2_000, 2_000u64..20_000];
    prop::collection::vec(op(NODES, millis), 1..40)
}

/// Presets and variants that raise the sequence number with each break.
fn loop_free_config() -> impl Strategy<Value = Config> {
    let advanced =
        LocalRepair::PastHalfway { number: RepairSequence::Advanced, end: RepairEnd::Ns2AbsoluteTimer };
    prop_oneof![
        Just(Config::rfc3561()),
        Just(Config::rfc3561_hello()),
        Just(Config { previous_hop: PreviousHopRoute::Ignored, ..Config::rfc3561() }),
        Just(Config { local_repair: LocalRepair::Rfc { max_hops: 10, add_ttl: 2 }, ..Config::rfc3561() }),
        Just(Config { local_repair: advanced, ..Config::ns2_235() }),
        Just(Config::aodv_uu()),
    ]
}

fn run_operations(config: Config, links: &[(u32, u32)], ops: &[Op], loss: Option<(u64, f64)>) -> Network {
    let mut network = Network::new(NODES, config);
    network.link_all(links);
    if let Some((seed, p)) = loss {
        network.set_loss(seed, p);
    }
    for (id, &op) in ops.iter().enumerate() {
        match op {
            Op::Send { from, to } if from != to => network.send(from, to, id as u32),
            Op::Send { .. } => {}
            Op::Toggle { a, b } => network.toggle(a, b),
            Op::Pass { millis } => {
                let end = network.now + ms(millis);
                while network.step(end) {
                    network.assert_loop_free();
                }
                network.run(end - network.now);
            }
        }
        network.assert_loop_free();
    }
    network
}

/// ns-2 keeps the number of a route that it repairs, and answers requests with it meanwhile. The node before the break may
/// therefore be offered its own route back.
#[test]
#[should_panic(expected = "a loop towards 3")]
fn ns2_forms_a_loop_when_a_kept_repair_returns_to_its_node() {
    let links = [(4, 0), (3, 1), (5, 4), (6, 0), (6, 1)];
    let ops = [
        Op::Send { from: 4, to: 3 },
        Op::Pass { millis: 100 },
        Op::Send { from: 5, to: 3 },
        Op::Toggle { a: 1, b: 3 },
        Op::Pass { millis: 5_902 },
    ];
    run_operations(Config::ns2_235(), &links, &ops, None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn broken_links_cause_no_loop(
        config in loop_free_config(),
        links in prop::collection::vec((0..NODES, 0..NODES), 4..16),
        ops in ops(),
    ) {
        run_operations(config, &links, &ops, None);
    }

    #[test]
    fn lost_messages_cause_no_loop(
        config in loop_free_config(),
        links in prop::collection::vec((0..NODES, 0..NODES), 6..20),
        ops in ops(),
        seed in any::<u64>(),
        p in 0.05f64..0.5,
    ) {
        run_operations(config, &links, &ops, Some((seed, p)));
    }

    /// In a connected network without loss, every discovery succeeds and packets arrive. The exception, which lifetimes
    /// cannot rule out: the route of a relay ends a moment before that of the node that sends over it.
    #[test]
    fn in_a_static_connected_network_every_packet_arrives(
        config in prop_oneof![4 => loop_free_config(), 1 => Just(Config::ns2_235())],
        links in connected_links(NODES, 5),
        mut ops in packet_operations(NODES),
    ) {
        ops.push(Op::Pass { millis: 20_000 });
        let first = ops.iter().position(|op| matches!(op, Op::Send { .. })).unwrap_or(0) as u32;
        let network = run_operations(config, &links, &ops, None);
        let sent = ops.iter().filter(|op| matches!(op, Op::Send { .. })).count();
        prop_assert_eq!(network.delivered.len() + network.dropped.len(), sent);
        for (packet, node, reason) in network.dropped {
            prop_assert!(reason == DropReason::NoRoute && packet > first, "{packet} at {node}: {reason}");
        }
    }
}
