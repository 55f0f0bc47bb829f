//! Shortest paths of a static graph, computed once.

use hopline_core::NodeId;
use std::collections::VecDeque;

#[cfg(test)]
mod tests;

/// No next hop, or no table.
const NONE: u32 = u32::MAX;

/// A link out of a node: a radio neighbour or the far end of a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkEdge {
    /// The node at the far end.
    pub to: NodeId,
    /// Tie-breaker between paths of equally many hops; smaller is better. Any unit: the distance in millimetres prefers
    /// short hops, 0 everywhere leaves ties to the node id.
    pub weight: u64,
}

/// Next hops towards a list of destinations. Memory: 4 bytes per destination and node.
#[derive(Clone, Debug, Default)]
pub struct StaticRoutes {
    /// Column of each node in `next`, or `NONE` if no routes to it were requested.
    column: Vec<u32>,
    /// Tables of `column.len()` next hops, one table per destination.
    next: Vec<u32>,
}

impl StaticRoutes {
    /// Routes from each of the nodes 0 to `nodes` − 1 to each of `destinations` (duplicates do no harm), in the graph
    /// in which `links(n)` lists the links out of node `n`. Links may be one-way.
    ///
    /// A route has the fewest hops; among those the smallest total weight; among those the next hop with the lowest
    /// id. Time: O(destinations · links).
    ///
    /// # Panics
    /// If a link or a destination names a node that does not exist.
    #[must_use]
    pub fn shortest<'g>(
        nodes: usize,
        destinations: &[NodeId],
        links: impl Fn(NodeId) -> &'g [LinkEdge],
    ) -> Self {
        let reversed = ReversedGraph::new(nodes, &links);
        let mut search = BreadthFirstSearch::new(nodes);
        let mut routes = Self { column: vec![NONE; nodes], next: Vec::new() };
        let mut columns = 0;
        for &destination in destinations {
            let column = &mut routes.column[destination.index()];
            if *column == NONE {
                *column = columns;
                columns += 1;
                routes.next.extend_from_slice(search.towards(destination, &reversed, &links));
            }
        }
        routes
    }

    /// Returns the neighbour of `from` on the path to `to`. `None` if there is no path, if `from` is `to`, or if routes to
    /// `to` were not requested.
    #[must_use]
    pub fn next_hop(&self, from: NodeId, to: NodeId) -> Option<NodeId> {
        let nodes = self.column.len();
        let column = *self.column.get(to.index())?;
        if column == NONE || from.index() >= nodes {
            return None;
        }
        let next = self.next[column as usize * nodes + from.index()];
        (next != NONE).then_some(NodeId(next))
    }

    /// Returns the hops from `from` to `to`: 0 if they are the same node, `None` if [`next_hop`](Self::next_hop) has no
    /// result.
    #[must_use]
    pub fn hops(&self, from: NodeId, to: NodeId) -> Option<u32> {
        let (mut at, mut hops) = (from, 0);
        while at != to {
            at = self.next_hop(at, to)?;
            hops += 1;
        }
        Some(hops)
    }
}

/// The links into each node: the sources of the links that end in node `n` are `sources[start[n]..start[n + 1]]`.
struct ReversedGraph {
    start: Vec<usize>,
    sources: Vec<u32>,
}

impl ReversedGraph {
    fn new<'g>(nodes: usize, links: &impl Fn(NodeId) -> &'g [LinkEdge]) -> Self {
        let mut start = vec![0; nodes + 1];
        let all = || (0..nodes as u32).flat_map(|n| links(NodeId(n)).iter().map(move |edge| (n, edge.to)));
        for (_, to) in all() {
            start[to.index() + 1] += 1;
        }
        for n in 0..nodes {
            start[n + 1] += start[n];
        }
        let mut free = start.clone();
        let mut sources = vec![0; start[nodes]];
        for (from, to) in all() {
            sources[free[to.index()]] = from;
            free[to.index()] += 1;
        }
        Self { start, sources }
    }

    fn sources_of(&self, n: usize) -> &[u32] {
        &self.sources[self.start[n]..self.start[n + 1]]
    }
}

/// Working memory of one breadth-first search, reused for the next destination.
struct BreadthFirstSearch {
    hops: Vec<u32>,
    weight: Vec<u64>,
    next: Vec<u32>,
    queue: VecDeque<u32>,
}

impl BreadthFirstSearch {
    fn new(nodes: usize) -> Self {
        Self { hops: vec![0; nodes], weight: vec![0; nodes], next: vec![0; nodes], queue: VecDeque::new() }
    }

    /// The next hop of every node towards `destination`.
    fn towards<'g>(
        &mut self,
        destination: NodeId,
        reversed: &ReversedGraph,
        links: &impl Fn(NodeId) -> &'g [LinkEdge],
    ) -> &[u32] {
        self.hops.fill(NONE);
        self.next.fill(NONE);
        self.hops[destination.index()] = 0;
        self.weight[destination.index()] = 0;
        self.queue.push_back(destination.0);
        while let Some(n) = self.queue.pop_front() {
            // All nodes one hop nearer are settled when a node leaves the queue, so its best next hop is known.
            self.expand(NodeId(n), links(NodeId(n)));
            for &source in reversed.sources_of(n as usize) {
                if self.hops[source as usize] == NONE {
                    self.hops[source as usize] = self.hops[n as usize] + 1;
                    self.queue.push_back(source);
                }
            }
        }
        &self.next
    }

    fn expand(&mut self, n: NodeId, links: &[LinkEdge]) {
        let nearer = self.hops[n.index()].wrapping_sub(1);
        let best = links
            .iter()
            .filter(|edge| self.hops[edge.to.index()] == nearer)
            .map(|edge| (edge.weight.saturating_add(self.weight[edge.to.index()]), edge.to.0))
            .min();
        // The destination has hop count 0 and no node has NONE hops and a smaller neighbour: it keeps no next hop.
        if let Some((weight, next)) = best.filter(|_| nearer != NONE) {
            self.weight[n.index()] = weight;
            self.next[n.index()] = next;
        }
    }
}
