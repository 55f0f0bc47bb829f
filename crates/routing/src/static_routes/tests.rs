use super::*;
use proptest::prelude::*;

type Graph = Vec<Vec<LinkEdge>>;

fn graph(nodes: usize, links: &[(u32, u32, u64)]) -> Graph {
    let mut graph = vec![Vec::new(); nodes];
    for &(a, b, weight) in links {
        graph[a as usize].push(LinkEdge { to: NodeId(b), weight });
        graph[b as usize].push(LinkEdge { to: NodeId(a), weight });
    }
    graph
}

fn all_routes(graph: &Graph) -> StaticRoutes {
    let everyone: Vec<_> = (0..graph.len() as u32).map(NodeId).collect();
    StaticRoutes::shortest(graph.len(), &everyone, |n| &graph[n.index()])
}

fn path(routes: &StaticRoutes, from: u32, to: u32) -> Vec<u32> {
    let mut at = NodeId(from);
    let mut path = vec![from];
    while let Some(next) = routes.next_hop(at, NodeId(to)) {
        path.push(next.0);
        at = next;
    }
    path
}

#[test]
fn a_chain_is_routed_in_both_directions() {
    let routes = all_routes(&graph(4, &[(0, 1, 1), (1, 2, 1), (2, 3, 1)]));
    assert_eq!(path(&routes, 0, 3), [0, 1, 2, 3]);
    assert_eq!(path(&routes, 3, 0), [3, 2, 1, 0]);
    assert_eq!(routes.hops(NodeId(0), NodeId(3)), Some(3));
    assert_eq!(routes.hops(NodeId(2), NodeId(2)), Some(0));
    assert_eq!(routes.next_hop(NodeId(2), NodeId(2)), None);
}

#[test]
fn fewer_hops_win_over_smaller_weight() {
    let routes = all_routes(&graph(3, &[(0, 1, 1), (1, 2, 1), (0, 2, 100)]));
    assert_eq!(path(&routes, 0, 2), [0, 2]);
}

#[test]
fn among_equally_many_hops_the_smaller_total_weight_wins() {
    // The first hop over 1 is shorter, the whole path over 2 is.
    let routes = all_routes(&graph(4, &[(0, 1, 1), (1, 3, 9), (0, 2, 4), (2, 3, 4)]));
    assert_eq!(path(&routes, 0, 3), [0, 2, 3]);
}

#[test]
fn among_equals_the_lower_id_wins_whatever_the_order_of_the_links() {
    for links in [[(0, 1, 1), (1, 3, 1), (0, 2, 1), (2, 3, 1)], [(0, 2, 1), (2, 3, 1), (0, 1, 1), (1, 3, 1)]]
    {
        let routes = all_routes(&graph(4, &links));
        assert_eq!(path(&routes, 0, 3), [0, 1, 3]);
        assert_eq!(path(&routes, 3, 0), [3, 1, 0]);
    }
}

#[test]
fn there_is_no_route_to_unconnected_or_unrequested_nodes() {
    let g = graph(4, &[(0, 1, 1)]);
    let routes = StaticRoutes::shortest(4, &[NodeId(1), NodeId(1), NodeId(3)], |n| &g[n.index()]);
    assert_eq!(routes.next_hop(NodeId(0), NodeId(1)), Some(NodeId(1)));
    assert_eq!(routes.next_hop(NodeId(1), NodeId(0)), None, "not asked for");
    assert_eq!(routes.next_hop(NodeId(0), NodeId(3)), None, "an island");
    assert_eq!(routes.hops(NodeId(0), NodeId(3)), None);
    assert_eq!(routes.next_hop(NodeId(9), NodeId(1)), None, "no such node");
    assert_eq!(routes.next_hop(NodeId(0), NodeId(9)), None, "no such node");
}

#[test]
fn a_one_way_link_is_used_one_way() {
    let mut g = graph(3, &[(0, 1, 1), (1, 2, 1)]);
    g[0].push(LinkEdge { to: NodeId(2), weight: 1 });
    let routes = all_routes(&g);
    assert_eq!(path(&routes, 0, 2), [0, 2]);
    assert_eq!(path(&routes, 2, 0), [2, 1, 0]);
}

#[test]
fn a_link_of_a_node_to_itself_is_harmless() {
    let mut g = graph(2, &[(0, 1, 1)]);
    g[0].push(LinkEdge { to: NodeId(0), weight: 0 });
    assert_eq!(path(&all_routes(&g), 0, 1), [0, 1]);
}

/// (hops, weight) of the best path from every node to `to`, by Bellman and Ford.
fn reference(graph: &Graph, to: usize) -> Vec<Option<(u32, u64)>> {
    let mut best = vec![None; graph.len()];
    best[to] = Some((0, 0));
    for _ in 0..graph.len() {
        for n in 0..graph.len() {
            for edge in &graph[n] {
                if let Some((hops, weight)) = best[edge.to.index()] {
                    let via = (hops + 1, weight + edge.weight);
                    if best[n].is_none_or(|b| via < b) {
                        best[n] = Some(via);
                    }
                }
            }
        }
    }
    best
}

proptest! {
    #[test]
    fn routes_agree_with_bellman_ford(
        nodes in 1usize..12,
        links in prop::collection::vec((0u32..12, 0u32..12, 0u64..5), 0..30),
    ) {
        let mut g: Graph = vec![Vec::new(); nodes];
        for (a, b, weight) in links {
            if (a as usize) < nodes && (b as usize) < nodes {
                g[a as usize].push(LinkEdge { to: NodeId(b), weight });
            }
        }
        let routes = all_routes(&g);
        for to in 0..nodes {
            let best = reference(&g, to);
            for (from, &expected) in best.iter().enumerate() {
                let walked = path(&routes, from as u32, to as u32);
                let cost = walked.windows(2).map(|hop| {
                    let to = |edge: &&LinkEdge| edge.to.0 == hop[1];
                    g[hop[0] as usize].iter().filter(to).map(|edge| edge.weight).min().unwrap()
                });
                let reached = *walked.last().unwrap() as usize == to;
                let found = reached.then(|| (walked.len() as u32 - 1, cost.sum::<u64>()));
                prop_assert_eq!(found, expected);
            }
        }
    }
}
