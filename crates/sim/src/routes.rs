//! Static routes over a network's geometry.

use crate::outage;
use crate::spec::{Blocks, Interface, Spec};
use hopline_core::{Instant, NodeId};
use hopline_radio::phy::grid::CellGrid;
use hopline_routing::static_routes::{Edge, StaticRoutes};

/// Shortest paths to every end of a flow and every tap: over the radio where the receive threshold is reached at the start
/// of the run, and over wired links. Ties go to the shorter total distance; a wired link counts as no distance. A way that an
/// outage blocks during the whole run is none; over the radio, where frames are acknowledged, neither is the way back of
/// blocked frames.
#[must_use]
pub fn shortest(spec: &Spec) -> StaticRoutes {
    let edges = neighbours(spec);
    let mut destinations: Vec<NodeId> = spec.flows.iter().flat_map(|flow| [flow.src, flow.dst]).collect();
    destinations.extend(&spec.taps);
    destinations.sort_unstable();
    destinations.dedup();
    StaticRoutes::shortest(spec.nodes.len(), &destinations, |node| &edges[node.index()])
}

fn neighbours(spec: &Spec) -> Vec<Vec<Edge>> {
    let mut edges = radio_neighbours(spec);
    for outage in outage::permanent(spec) {
        edges[outage.from.index()].retain(|edge| edge.to != outage.to);
        if outage.blocks == Blocks::Frames {
            edges[outage.to.index()].retain(|edge| edge.to != outage.from);
        }
    }
    let blocked = |from, to| outage::permanent(spec).any(|o| (o.from, o.to) == (from, to));
    for link in &spec.links {
        for (from, to) in [(link.a, link.b), (link.b, link.a)] {
            if !blocked(from, to) {
                edges[from.index()].push(Edge { to, weight: 0 });
            }
        }
    }
    edges
}

fn radio_neighbours(spec: &Spec) -> Vec<Vec<Edge>> {
    let mut edges = vec![Vec::new(); spec.nodes.len()];
    let Some(radio) = &spec.radio else { return edges };
    let range_m = radio.phy.propagation.range_for(&radio.phy.radio, radio.phy.radio.rx_threshold_w);
    if range_m <= 0.0 {
        return edges;
    }
    let mut grid = CellGrid::new(range_m);
    let wireless = (0..).map(NodeId).zip(&spec.nodes).filter(|(_, n)| n.interface == Interface::Wireless);
    let placed: Vec<_> =
        wireless.map(|(id, node)| (id, node.trajectory.position_at(Instant::ZERO))).collect();
    for &(id, position) in &placed {
        grid.place(id, position);
    }
    let mut near = Vec::new();
    for &(id, position) in &placed {
        grid.within(position, range_m, &mut near);
        for &other in near.iter().filter(|&&other| other != id) {
            let distance_m = grid.position(other).map_or(0.0, |p| p.distance_m(position));
            edges[id.index()].push(Edge { to: other, weight: (distance_m * 1000.0) as u64 });
        }
    }
    edges
}
