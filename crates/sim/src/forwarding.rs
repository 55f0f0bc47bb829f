//! Where packets go from a node: who has an address, and whether the way there is a matter of its routing agent, of a table, or
//! of a gateway.

use crate::routes;
use crate::spec::{HostRoute, NodeSpec, RoutingSpec, Spec};
use hopline_core::NodeId;
use hopline_routing::static_routes::StaticRoutes;
use std::net::Ipv4Addr;

/// The forwarding tables of all nodes.
#[derive(Debug)]
pub(crate) struct Forwarding {
    directory: Directory,
    /// By node.
    tables: Vec<Table>,
    /// The shortest ways: over everything if nobody has an agent, else over wires.
    routes: StaticRoutes,
}

/// Of one node.
#[derive(Clone, Debug)]
struct Table {
    way: Way,
    hosts: Vec<HostRoute>,
}

/// Who knows the way from a node, and to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// The shortest ways.
    Static,
    /// Its routing agent; beyond the nodes that have one, this gateway.
    Agent { gateway: Option<NodeId> },
}

/// Where a packet goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hop {
    /// To this neighbour.
    Neighbour(NodeId),
    /// Where the agent brings it on its way to this node.
    Agent { destination: Ipv4Addr },
    /// There is no way.
    None,
}

impl Forwarding {
    pub(crate) fn new(spec: &Spec) -> Self {
        let has_agent = |node: NodeId| {
            !matches!(spec.routing, RoutingSpec::Static) && spec.nodes[node.index()].is_wireless()
        };
        let gateways = gateways(spec, has_agent);
        let table = |(node, of): (NodeId, &NodeSpec)| {
            let gateway = gateways[node.index()];
            let way = if has_agent(node) { Way::Agent { gateway } } else { Way::Static };
            Table { way, hosts: of.routes.clone() }
        };
        Self {
            directory: Directory::new(spec),
            tables: (0..).map(NodeId).zip(&spec.nodes).map(table).collect(),
            routes: match spec.routing {
                RoutingSpec::Static => routes::shortest(spec),
                _ if spec.links.is_empty() => routes::over_wires(spec, &[]),
                _ => {
                    let mut ends = routes::ends(spec);
                    ends.retain(|&end| !has_agent(end));
                    ends.extend(gateways.iter().flatten());
                    ends.sort_unstable();
                    ends.dedup();
                    routes::over_wires(spec, &ends)
                }
            },
        }
    }

    /// The node that has an address.
    pub(crate) fn owner(&self, address: Ipv4Addr) -> Option<NodeId> {
        self.directory.owner(address)
    }

    /// Where a packet goes from `node` that is for somebody else.
    pub(crate) fn next(&self, node: NodeId, address: Ipv4Addr) -> Hop {
        let owner = self.owner(address);
        let Table { way, hosts } = &self.tables[node.index()];
        if !hosts.is_empty()
            && let Some(route) = hosts.iter().find(|route| Some(route.destination) == owner)
        {
            return Hop::Neighbour(route.next_hop);
        }
        match *way {
            Way::Static => self.by_table(node, owner),
            Way::Agent { gateway } => {
                let destination = self.by_agent(node, owner, gateway);
                destination.unwrap_or(Hop::Agent { destination: address })
            }
        }
    }

    /// The node to which the agent at `node` is to bring what is for `address`; `None` if that is no matter of an agent's.
    pub(crate) fn destination(&self, node: NodeId, address: Ipv4Addr) -> Option<Ipv4Addr> {
        match self.next(node, address) {
            Hop::Agent { destination } => Some(destination),
            Hop::Neighbour(_) | Hop::None => None,
        }
    }

    fn by_table(&self, node: NodeId, owner: Option<NodeId>) -> Hop {
        let towards = owner.and_then(|owner| match self.tables[owner.index()].way {
            Way::Static => Some(owner),
            Way::Agent { gateway } => gateway,
        });
        let next = towards.and_then(|towards| self.routes.next_hop(node, towards));
        next.map_or(Hop::None, Hop::Neighbour)
    }

    /// `None`: nobody knows this destination, or how to leave the network of agents; the agent may search.
    fn by_agent(&self, node: NodeId, owner: Option<NodeId>, gateway: Option<NodeId>) -> Option<Hop> {
        let owner = owner?;
        if matches!(self.tables[owner.index()].way, Way::Agent { .. }) {
            return Some(Hop::Agent { destination: owner.ipv4() });
        }
        let next = self.routes.next_hop(node, owner).map(Hop::Neighbour);
        let leave = || gateway.filter(|&gateway| gateway != node);
        next.or_else(|| leave().map(|gateway| Hop::Agent { destination: gateway.ipv4() }))
    }
}

/// By node: through which one its packets leave the network of agents.
fn gateways(spec: &Spec, has_agent: impl Fn(NodeId) -> bool) -> Vec<Option<NodeId>> {
    let wired = spec.links.iter().flat_map(|link| [link.a, link.b]);
    let mut doors: Vec<NodeId> = wired.filter(|&node| has_agent(node)).collect();
    doors.sort_unstable();
    doors.dedup();
    let ways = (!doors.is_empty()).then(|| routes::over_the_air(spec, &doors));
    let nearest = |node: NodeId| {
        let ways = ways.as_ref()?;
        let reached = doors.iter().filter_map(|&door| Some((ways.hops(node, door)?, door)));
        reached.min().map(|(_, door)| door).or(doors.first().copied())
    };
    let of = |(node, of): (NodeId, &NodeSpec)| match (has_agent(node), doors.contains(&node)) {
        (false, _) => None,
        (true, true) => Some(node),
        (true, false) => of.gateway.or_else(|| nearest(node)),
    };
    (0..).map(NodeId).zip(&spec.nodes).map(of).collect()
}

/// Who has which address.
#[derive(Debug)]
struct Directory {
    /// Nodes below this number have their default addresses.
    nodes: u32,
    /// Other addresses, sorted.
    others: Vec<(Ipv4Addr, NodeId)>,
}

impl Directory {
    fn new(spec: &Spec) -> Self {
        let others = (0..).map(NodeId).zip(&spec.nodes);
        let mut others: Vec<_> =
            others.flat_map(|(node, of)| of.addresses.iter().map(move |&address| (address, node))).collect();
        others.sort_unstable();
        Self { nodes: spec.nodes.len() as u32, others }
    }

    fn owner(&self, address: Ipv4Addr) -> Option<NodeId> {
        if let Ok(found) = self.others.binary_search_by_key(&address, |&(other, _)| other) {
            return Some(self.others[found].1);
        }
        NodeId::from_ipv4(address).filter(|node| node.0 < self.nodes)
    }
}
