//! Map of the network: positions, neighbours, flows and their routes.

use hopline_core::{Instant, NodeId};
use hopline_radio::mobility::Trajectory;
use hopline_sim::Spec;
use hopline_sim::spec::{Attachment, RoutingSpec};
use serde::{Deserialize, Serialize};

#[cfg(test)]
mod tests;

/// A network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Map {
    /// The nodes.
    pub nodes: Vec<MapNode>,
    /// Wired links.
    pub links: Vec<MapLink>,
    /// The flows.
    pub flows: Vec<MapFlow>,
    /// Range in metres up to which frames are decoded; the median with random shadowing. `None` without a
    /// radio.
    pub transmission_m: Option<f64>,
    /// Range in metres up to which frames make the medium busy. `None` without a radio.
    pub carrier_sense_m: Option<f64>,
    /// Virtual time of the run, in seconds.
    pub duration_s: f64,
    /// Remarks on deviations of the map from the network, in sentences.
    pub notes: Vec<String>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MapNode {
    /// Name.
    pub name: String,
    /// Kind of its interface.
    #[serde(with = "Attached")]
    pub interface: Attachment,
    /// Positions at which its velocity changes, in the order of time, joined by straight lines. At least one.
    pub path: Vec<Waypoint>,
}

/// Format of an interface in a file.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Attachment", rename_all = "lowercase")]
enum Attached {
    Wireless,
    Wired,
}

/// A position at a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Waypoint {
    /// Seconds since the start of the run.
    pub at_s: f64,
    /// Metres to the right.
    pub x_m: f64,
    /// Metres up.
    pub y_m: f64,
}

/// A wired link between two nodes, by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapLink {
    /// One end.
    pub a: usize,
    /// The other end.
    pub b: usize,
}

/// A flow between two nodes, by index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MapFlow {
    /// Name.
    pub name: String,
    /// Source of the data.
    pub src: usize,
    /// Destination of the data.
    pub dst: usize,
    /// Nodes of its route, both ends included, if it is known and never changes.
    pub route: Option<Vec<usize>>,
}

/// Maximum number of corners of all paths together: about twelve bytes each in a page.
const MAX_CORNERS: usize = 16_000;

impl Map {
    /// Returns the map of `spec`. Ranges follow from the radio's power and thresholds; routes are given if
    /// routing is static.
    #[must_use]
    pub fn of(spec: &Spec) -> Self {
        let range = |threshold: fn(&hopline_radio::phy::Config) -> f64| {
            let phy = &spec.radio.as_ref()?.phy;
            let range_m = phy.propagation.range_for(&phy.radio, threshold(phy));
            (range_m.is_finite() && range_m > 0.0).then_some(range_m)
        };
        let index = |node: NodeId| node.index();
        let mut map = Self {
            nodes: Vec::new(),
            links: spec.links.iter().map(|link| MapLink { a: index(link.a), b: index(link.b) }).collect(),
            flows: flows(spec),
            transmission_m: range(|phy| phy.radio.rx_threshold_w),
            carrier_sense_m: range(|phy| phy.radio.cs_threshold_w),
            duration_s: spec.duration.as_secs_f64(),
            notes: Vec::new(),
        };
        let corners: usize = spec.nodes.iter().map(|node| node.trajectory.corners().len()).sum();
        let samples = if corners > MAX_CORNERS {
            let each = (MAX_CORNERS / spec.nodes.len().max(1)).max(2);
            map.notes.push(format!(
                "Of the movement {each} positions of each node are kept, with straight lines between."
            ));
            Some(each)
        } else {
            None
        };
        map.nodes = spec
            .nodes
            .iter()
            .map(|node| MapNode {
                name: node.name.clone(),
                interface: node.attachment(),
                path: path(&node.trajectory, Instant::ZERO + spec.duration, samples),
            })
            .collect();
        map.spread_wired_nodes();
        map
    }

    /// Returns whether any node moves.
    #[must_use]
    pub(crate) fn is_moving(&self) -> bool {
        self.nodes.iter().any(|node| node.path.len() > 1)
    }

    /// Places wired nodes without a position, which all lie on the origin, in a row.
    fn spread_wired_nodes(&mut self) {
        let at = |node: &MapNode| (node.path[0].x_m, node.path[0].y_m);
        let fixed_wired = |node: &MapNode| node.interface == Attachment::Wired && node.path.len() == 1;
        let hidden = |i: usize| {
            let node = &self.nodes[i];
            fixed_wired(node)
                && self.nodes.iter().enumerate().any(|(j, other)| j != i && at(other) == at(node))
        };
        let hidden: Vec<bool> = (0..self.nodes.len()).map(hidden).collect();
        if !hidden.contains(&true) {
            return;
        }
        let order: Vec<usize> = self.along_links().into_iter().filter(|&i| hidden[i]).collect();
        let kept =
            || self.nodes.iter().zip(&hidden).filter(|(_, hidden)| !**hidden).map(|(node, _)| at(node));
        let low = |of: fn((f64, f64)) -> f64| kept().map(of).fold(f64::INFINITY, f64::min);
        let high = |of: fn((f64, f64)) -> f64| kept().map(of).fold(f64::NEG_INFINITY, f64::max);
        let (left, bottom, right) = (low(|p| p.0), low(|p| p.1), high(|p| p.0));
        let (left, bottom, right) = if left.is_finite() { (left, bottom, right) } else { (0.0, 0.0, 0.0) };
        let spacing = ((right - left) / order.len().max(1) as f64).max(100.0);
        for (place, i) in order.into_iter().enumerate() {
            let waypoint = &mut self.nodes[i].path[0];
            (waypoint.x_m, waypoint.y_m) = (left + spacing * place as f64, bottom - spacing);
        }
        self.notes.push("Wired nodes without a place of their own are drawn in a row.".into());
    }

    /// Returns the nodes in the order of a walk along the wired links that begins at an end of them.
    fn along_links(&self) -> Vec<usize> {
        let mut neighbours = vec![Vec::new(); self.nodes.len()];
        for link in &self.links {
            neighbours[link.a].push(link.b);
            neighbours[link.b].push(link.a);
        }
        let mut starts: Vec<usize> = (0..self.nodes.len()).collect();
        starts.sort_by_key(|&i| neighbours[i].len());
        let mut seen = vec![false; self.nodes.len()];
        let mut order = Vec::new();
        for start in starts {
            let mut next = vec![start];
            while let Some(node) = next.pop() {
                if !std::mem::replace(&mut seen[node], true) {
                    order.push(node);
                    next.extend(neighbours[node].iter().rev());
                }
            }
        }
        order
    }
}

fn flows(spec: &Spec) -> Vec<MapFlow> {
    let routes = matches!(spec.routing, RoutingSpec::Static).then(|| hopline_sim::routes::shortest(spec));
    let route = |src: NodeId, dst: NodeId| {
        let routes = routes.as_ref()?;
        let mut route = vec![src];
        while *route.last().expect("begins with the source") != dst {
            route.push(routes.next_hop(*route.last().expect("begins with the source"), dst)?);
        }
        Some(route.into_iter().map(NodeId::index).collect())
    };
    let flow = |flow: &hopline_sim::spec::FlowSpec| MapFlow {
        name: flow.name.clone(),
        src: flow.src.index(),
        dst: flow.dst.index(),
        route: route(flow.src, flow.dst),
    };
    spec.flows.iter().map(flow).collect()
}

/// Returns the corners of a path until `end`, or this many samples of it. A node without movement has one.
fn path(trajectory: &Trajectory, end: Instant, samples: Option<usize>) -> Vec<Waypoint> {
    let waypoint = |at: Instant| {
        let position = trajectory.position_at(at);
        Waypoint { at_s: at.since(Instant::ZERO).as_secs_f64(), x_m: position.x_m, y_m: position.y_m }
    };
    if trajectory.is_static() {
        return vec![waypoint(Instant::ZERO)];
    }
    let nanos = end.since(Instant::ZERO).as_nanos();
    let times: Vec<Instant> = match samples {
        Some(n) => (0..n as u64)
            .map(|i| Instant::ZERO + hopline_core::Duration::from_nanos(nanos / (n as u64 - 1) * i))
            .collect(),
        None => {
            let inside = trajectory.corners().map(|(at, _)| at).filter(|at| *at > Instant::ZERO && *at < end);
            std::iter::once(Instant::ZERO).chain(inside).chain([end]).collect()
        }
    };
    let mut path: Vec<Waypoint> = times.into_iter().map(waypoint).collect();
    if path.iter().all(|p| (p.x_m, p.y_m) == (path[0].x_m, path[0].y_m)) {
        path.truncate(1); // It moves only later than this run sees.
    }
    path
}
