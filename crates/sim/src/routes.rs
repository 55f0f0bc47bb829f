//! Static routes over a network's geometry.

use crate::outage;
use crate::spec::{OutageEffect, RadioInterface, Spec, radios};
use hopline_core::{Instant, NodeId};
use hopline_radio::phy::grid::CellGrid;
use hopline_radio::phy::obstacles::Obstacles;
use hopline_routing::static_routes::{LinkEdge, StaticRoutes};

/// Returns the shortest paths to every end of a flow and every tap: over the radio where the receive
/// threshold is reached at the start of the run, and over wired links. Ties go to the shorter total distance;
/// a wired link counts as no distance. A link that an outage blocks during the whole run does not count. Over
/// the radio, where frames are acknowledged, neither does the reverse link of blocked frames.
#[must_use]
pub fn shortest(spec: &Spec) -> StaticRoutes {
    let edges = neighbours(spec);
    StaticRoutes::shortest(spec.nodes.len(), &endpoints(spec), |node| &edges[node.index()])
}

fn neighbours(spec: &Spec) -> Vec<Vec<LinkEdge>> {
    let mut edges = open_radio_neighbours(spec);
    add_wires(spec, &mut edges);
    edges
}

fn open_radio_neighbours(spec: &Spec) -> Vec<Vec<LinkEdge>> {
    let mut edges = radio_neighbours(spec);
    for outage in outage::permanent(spec) {
        edges[outage.from.index()].retain(|edge| edge.to != outage.to);
        if outage.blocks == OutageEffect::Frames {
            edges[outage.to.index()].retain(|edge| edge.to != outage.from);
        }
    }
    edges
}

fn add_wires(spec: &Spec, edges: &mut [Vec<LinkEdge>]) {
    let blocked = |from, to| outage::permanent(spec).any(|o| (o.from, o.to) == (from, to));
    for link in &spec.links {
        for (from, to) in [(link.a, link.b), (link.b, link.a)] {
            if !blocked(from, to) {
                edges[from.index()].push(LinkEdge { to, weight: 0 });
            }
        }
    }
}

fn radio_neighbours(spec: &Spec) -> Vec<Vec<LinkEdge>> {
    let mut edges = vec![Vec::new(); spec.nodes.len()];
    let Some(radio_spec) = &spec.radio else { return edges };
    let phy = &radio_spec.phy;
    let range_m = phy.propagation.range_for(&phy.radio, phy.radio.rx_threshold_w);
    let obstacles = Obstacles::new(&radio_spec.obstacles);
    if range_m <= 0.0 {
        return edges;
    }
    let mut grid = CellGrid::new(range_m);
    let radios = radios(&spec.nodes);
    // By station, which the grid takes for a node.
    for (station, radio) in (0..).map(NodeId).zip(&radios) {
        grid.place(station, spec.nodes[radio.node.index()].trajectory.position_at(Instant::ZERO));
    }
    let mut near = Vec::new();
    for (station, radio) in (0..).map(NodeId).zip(&radios) {
        let Some(position) = grid.position(station) else { continue };
        grid.within(position, range_m, &mut near);
        for &other in near.iter().filter(|&&other| other != station) {
            let RadioInterface { node: to, channel, .. } = radios[other.index()];
            let edges = &mut edges[radio.node.index()];
            if to != radio.node && channel == radio.channel && edges.iter().all(|edge| edge.to != to) {
                let there = grid.position(other).unwrap_or(position);
                let distance_m = there.distance_m(position);
                if !obstacles.is_empty() {
                    let clear_w = phy.propagation.received_w(&phy.radio, distance_m);
                    if clear_w * obstacles.gain(position, there) < phy.radio.rx_threshold_w {
                        continue;
                    }
                }
                edges.push(LinkEdge { to, weight: (distance_m * 1000.0) as u64 });
            }
        }
    }
    edges
}

/// Ways over wires alone, to `destinations`.
pub(crate) fn wired_routes(spec: &Spec, destinations: &[NodeId]) -> StaticRoutes {
    let mut edges = vec![Vec::new(); spec.nodes.len()];
    add_wires(spec, &mut edges);
    StaticRoutes::shortest(spec.nodes.len(), destinations, |node| &edges[node.index()])
}

/// Ways over the air alone, at the start of the run, to `destinations`.
pub(crate) fn radio_routes(spec: &Spec, destinations: &[NodeId]) -> StaticRoutes {
    let edges = open_radio_neighbours(spec);
    StaticRoutes::shortest(spec.nodes.len(), destinations, |node| &edges[node.index()])
}

/// Returns the nodes that send or receive, other than as a router.
pub(crate) fn endpoints(spec: &Spec) -> Vec<NodeId> {
    let mut ends: Vec<NodeId> = spec.flows.iter().flat_map(|flow| [flow.src, flow.dst]).collect();
    ends.extend(&spec.taps);
    ends.sort_unstable();
    ends.dedup();
    ends
}
