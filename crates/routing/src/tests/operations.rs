//! Operations that a test applies to a network.

use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Send { from: u32, to: u32 },
    Toggle { a: u32, b: u32 },
    Pass { millis: u64 },
}

/// Returns a strategy for any operation among this many nodes; `millis`: lengths of pauses.
pub(crate) fn op(nodes: u32, millis: impl Strategy<Value = u64>) -> impl Strategy<Value = Op> {
    let node = move || 0..nodes;
    prop_oneof![
        4 => (node(), node()).prop_map(|(from, to)| Op::Send { from, to }),
        3 => (node(), node()).prop_map(|(a, b)| Op::Toggle { a, b }),
        3 => millis.prop_map(|millis| Op::Pass { millis }),
    ]
}

/// Returns a strategy for connected networks of this many nodes: a random tree, and some more links.
pub(crate) fn connected_links(nodes: u32, most_more: usize) -> impl Strategy<Value = Vec<(u32, u32)>> {
    let parents = prop::collection::vec(any::<u32>(), nodes as usize - 1);
    let more = prop::collection::vec((0..nodes, 0..nodes), 0..=most_more);
    (parents, more).prop_map(|(parents, more)| {
        let tree = parents.iter().enumerate().map(|(i, parent)| (i as u32 + 1, parent % (i as u32 + 1)));
        tree.chain(more).filter(|(a, b)| a != b).collect()
    })
}

/// Returns a strategy for a sequence of packets without other operations.
pub(crate) fn packet_operations(nodes: u32) -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec((0..nodes, 0..nodes, 0u64..3_000), 1..12).prop_map(|packets| {
        let packets = packets.into_iter().filter(|(from, to, _)| from != to);
        packets.flat_map(|(from, to, millis)| [Op::Send { from, to }, Op::Pass { millis }]).collect()
    })
}
