//! Forwarding at a node: owners of addresses, and whether a route is a matter of the routing agent, of a
//! table, or of a gateway.

use crate::routes;
use crate::spec::{HostRoute, NodeSpec, RoutingSpec, Spec};
use hopline_core::NodeId;
use hopline_routing::static_routes::StaticRoutes;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// The forwarding tables of all nodes.
#[derive(Debug)]
pub(crate) struct Forwarding {
    directory: Directory,
    /// Tables, by node.
    tables: Vec<ForwardingTable>,
    /// The shortest routes: over all links if no node has an agent and none moves between cells, else over
    /// wires.
    routes: StaticRoutes,
    /// Members of each multicast group.
    groups: BTreeMap<Ipv4Addr, BTreeSet<NodeId>>,
}

/// Forwarding table of one node.
#[derive(Clone, Debug)]
struct ForwardingTable {
    route_source: RouteSource,
    hosts: Vec<HostRoute>,
}

/// Source of the routes from a node, and to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RouteSource {
    /// The shortest routes.
    Static,
    /// Its routing agent; beyond the nodes that have one, this gateway.
    Agent { gateway: Option<NodeId> },
    /// It moves between cells: this station has the route from it, its home agent the route to it.
    Mobile { home: NodeId, station: Option<NodeId> },
}

/// Next hop of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextHop {
    /// To this neighbour.
    Neighbour(NodeId),
    /// The agent forwards it to this node.
    Agent { destination: Ipv4Addr },
    /// To the mobile host, by its home agent, which is here.
    HomeAgent,
    /// To all members of a group.
    Group,
    /// There is no route.
    None,
}

impl Forwarding {
    pub(crate) fn new(spec: &Spec) -> Self {
        let has_agent = |node: NodeId| spec.has_agent(node);
        let gateways = gateways(spec, has_agent);
        let table = |(node, of): (NodeId, &NodeSpec)| {
            let gateway = gateways[node.index()];
            let way = match &spec.cells {
                Some(cells) if cells.mobiles.iter().any(|mobile| mobile.node == node) => {
                    RouteSource::Mobile { home: cells.home_agent, station: None }
                }
                _ if has_agent(node) => RouteSource::Agent { gateway },
                _ => RouteSource::Static,
            };
            ForwardingTable { route_source: way, hosts: of.routes.clone() }
        };
        Self {
            directory: Directory::new(spec),
            tables: (0..).map(NodeId).zip(&spec.nodes).map(table).collect(),
            routes: match spec.routing {
                RoutingSpec::Static => match &spec.cells {
                    None => routes::shortest(spec),
                    Some(cells) => {
                        let mut ends = routes::endpoints(spec);
                        ends.extend(cells.stations.iter().chain([&cells.home_agent]));
                        ends.sort_unstable();
                        ends.dedup();
                        routes::wired_routes(spec, &ends)
                    }
                },
                _ if spec.links.is_empty() => routes::wired_routes(spec, &[]),
                _ => {
                    let mut ends = routes::endpoints(spec);
                    ends.retain(|&end| !has_agent(end));
                    ends.extend(gateways.iter().flatten());
                    ends.sort_unstable();
                    ends.dedup();
                    routes::wired_routes(spec, &ends)
                }
            },
            groups: BTreeMap::new(),
        }
    }

    /// Records that a mobile host turns to a station, or has none.
    pub(crate) fn attach(&mut self, mobile: NodeId, to: Option<NodeId>) {
        if let RouteSource::Mobile { station, .. } = &mut self.tables[mobile.index()].route_source {
            *station = to;
        }
    }

    /// Returns whether `node` is the home agent of a mobile host.
    pub(crate) fn is_home_of(&self, node: NodeId, host: NodeId) -> bool {
        matches!(self.tables[host.index()].route_source, RouteSource::Mobile { home, .. } if home == node)
    }

    /// Records that a node joins a multicast group.
    pub(crate) fn join(&mut self, node: NodeId, group: Ipv4Addr) {
        self.groups.entry(group).or_default().insert(node);
    }

    /// Records that a node leaves a multicast group.
    pub(crate) fn leave(&mut self, node: NodeId, group: Ipv4Addr) {
        if let Some(members) = self.groups.get_mut(&group) {
            members.remove(&node);
        }
    }

    pub(crate) fn is_member(&self, node: NodeId, group: Ipv4Addr) -> bool {
        self.groups.get(&group).is_some_and(|members| members.contains(&node))
    }

    /// Returns the neighbours to which `node` forwards packets from `source` to a group: the next hops of the
    /// members to which the shortest routes from the source lead by here.
    pub(crate) fn branches(&self, source: NodeId, node: NodeId, group: Ipv4Addr) -> BTreeSet<NodeId> {
        let members = self.groups.get(&group).into_iter().flatten().copied();
        let by_here = members.filter(|&member| {
            let mut at = source;
            while at != node && at != member {
                let Some(next) = self.routes.next_hop(at, member) else { return false };
                at = next;
            }
            at == node && member != node
        });
        by_here.filter_map(|member| self.routes.next_hop(node, member)).collect()
    }

    /// Returns the node that has an address.
    pub(crate) fn owner(&self, address: Ipv4Addr) -> Option<NodeId> {
        self.directory.owner(address)
    }

    /// Returns the next hop from `node` of a packet for another node.
    pub(crate) fn next_hop(&self, node: NodeId, address: Ipv4Addr) -> NextHop {
        let owner = self.owner(address);
        let ForwardingTable { route_source: way, hosts } = &self.tables[node.index()];
        if !hosts.is_empty()
            && let Some(route) = hosts.iter().find(|route| Some(route.destination) == owner)
        {
            return NextHop::Neighbour(route.next_hop);
        }
        match *way {
            RouteSource::Static if address.is_multicast() => NextHop::Group,
            RouteSource::Static => self.by_table(node, owner),
            RouteSource::Mobile { station, .. } => station.map_or(NextHop::None, NextHop::Neighbour),
            RouteSource::Agent { gateway } => {
                let destination = self.by_agent(node, owner, gateway);
                destination.unwrap_or(NextHop::Agent { destination: address })
            }
        }
    }

    /// Returns the node to which the agent at `node` is to bring packets for `address`; `None` if no agent
    /// routes them.
    pub(crate) fn destination(&self, node: NodeId, address: Ipv4Addr) -> Option<Ipv4Addr> {
        match self.next_hop(node, address) {
            NextHop::Agent { destination } => Some(destination),
            NextHop::Neighbour(_) | NextHop::HomeAgent | NextHop::Group | NextHop::None => None,
        }
    }

    fn by_table(&self, node: NodeId, owner: Option<NodeId>) -> NextHop {
        let towards = owner.and_then(|owner| match self.tables[owner.index()].route_source {
            RouteSource::Static => Some(owner),
            RouteSource::Agent { gateway } => gateway,
            RouteSource::Mobile { home, .. } => Some(home),
        });
        if towards == Some(node) {
            return NextHop::HomeAgent;
        }
        let next = towards.and_then(|towards| self.routes.next_hop(node, towards));
        next.map_or(NextHop::None, NextHop::Neighbour)
    }

    /// Returns `None` if no node knows this destination, or how to leave the network of agents; the agent may
    /// search.
    fn by_agent(&self, node: NodeId, owner: Option<NodeId>, gateway: Option<NodeId>) -> Option<NextHop> {
        let owner = owner?;
        if matches!(self.tables[owner.index()].route_source, RouteSource::Agent { .. }) {
            return Some(NextHop::Agent { destination: owner.ipv4() });
        }
        let next = self.routes.next_hop(node, owner).map(NextHop::Neighbour);
        let leave = || gateway.filter(|&gateway| gateway != node);
        next.or_else(|| leave().map(|gateway| NextHop::Agent { destination: gateway.ipv4() }))
    }
}

/// Returns, by node, the gateway through which its packets leave the network of agents.
fn gateways(spec: &Spec, has_agent: impl Fn(NodeId) -> bool) -> Vec<Option<NodeId>> {
    let wired = spec.links.iter().flat_map(|link| [link.a, link.b]);
    let mut doors: Vec<NodeId> = wired.filter(|&node| has_agent(node)).collect();
    doors.sort_unstable();
    doors.dedup();
    let ways = (!doors.is_empty()).then(|| routes::radio_routes(spec, &doors));
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

/// Directory of the owners of addresses.
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
