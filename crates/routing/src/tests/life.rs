//! Operations that a test applies to a network.

use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Send { from: u32, to: u32 },
    Toggle { a: u32, b: u32 },
    Pass { millis: u64 },
}

/// Anything, among so many nodes; `millis`: how long nothing does.
pub(crate) fn op(nodes: u32, millis: impl Strategy<Value = u64>) -> impl Strategy<Value = Op> {
    let node = move || 0..nodes;
    prop_oneof![
        4 => (node(), node()).prop_map(|(from, to)| Op::Send { from, to }),
        3 => (node(), node()).prop_map(|(a, b)| Op::Toggle { a, b }),
        3 => millis.prop_map(|millis| Op::Pass { millis }),
    ]
}

/// Links over which each of so many nodes can reach each other: a random tree, and some more.
pub(crate) fn connected(nodes: u32, most_more: usize) -> impl Strategy<Value = Vec<(u32, u32)>> {
    let parents = prop::collection::vec(any::<u32>(), nodes as usize - 1);
    let more = prop::collection::vec((0..nodes, 0..nodes), 0..=most_more);
    (parents, more).prop_map(|(parents, more)| {
        let tree = parents.iter().enumerate().map(|(i, parent)| (i as u32 + 1, parent % (i as u32 + 1)));
        tree.chain(more).filter(|(a, b)| a != b).collect()
    })
}

/// Some packets, one after the other, and nothing else.
pub(crate) fn packets(nodes: u32) -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec((0..nodes, 0..nodes, 0u64..3_000), 1..12).prop_map(|packets| {
        let packets = packets.into_iter().filter(|(from, to, _)| from != to);
        packets.flat_map(|(from, to, millis)| [Op::Send { from, to }, Op::Pass { millis }]).collect()
    })
}
