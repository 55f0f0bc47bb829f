//! The routing table (RFC 3626 §10): a shortest path to every node, by hops.

use super::topology::TopologySet;
use super::types::{Event, Route};
use core::cmp::Reverse;
use hopline_wire::olsr::Willingness;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// Next hop and distance of every node that can be reached.
pub(super) type RoutingTable = BTreeMap<Ipv4Addr, Route>;

/// A symmetric neighbour as a next hop.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstHop {
    pub(super) address: Ipv4Addr,
    pub(super) willingness: Willingness,
    pub(super) preference: Preference,
}

/// Role of a neighbour: whether it has chosen this node as its relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Preference {
    Neighbour,
    MprSelector,
}

/// Computes the table from the sets. `reached_by`: the nodes that a neighbour advertises as reachable.
///
/// Of several paths of equal length, the one over the most willing neighbour is chosen, then over an MPR selector (§10),
/// then over the lowest address, which the RFC leaves open.
pub(super) fn compute_routing_table<I: Iterator<Item = Ipv4Addr>>(
    own: Ipv4Addr,
    mut neighbours: Vec<FirstHop>,
    reached_by: impl Fn(Ipv4Addr) -> I,
    topology: &TopologySet,
) -> RoutingTable {
    neighbours.sort_unstable_by_key(|n| (Reverse((n.willingness, n.preference)), n.address));
    let mut table = RoutingTable::new();
    for neighbour in &neighbours {
        table.insert(neighbour.address, Route { next_hop: neighbour.address, hops: 1 });
    }
    // Breadth first: earlier entries of the queue are nearer, or as near over a better first hop.
    let mut queue = VecDeque::new();
    let reach = |table: &mut RoutingTable, queue: &mut VecDeque<_>, to: Ipv4Addr, over: Route| {
        if to == own {
            return;
        }
        if let Entry::Vacant(entry) = table.entry(to) {
            let route = Route { next_hop: over.next_hop, hops: over.hops.saturating_add(1) };
            entry.insert(route);
            queue.push_back((to, route));
        }
    };
    for neighbour in neighbours.iter().filter(|n| n.willingness != Willingness::NEVER) {
        let over = Route { next_hop: neighbour.address, hops: 1 };
        for far in reached_by(neighbour.address) {
            reach(&mut table, &mut queue, far, over);
        }
    }
    while let Some((last, route)) = queue.pop_front() {
        for destination in topology.destinations_of(last) {
            reach(&mut table, &mut queue, destination, route);
        }
    }
    table
}

/// Returns the routes lost and found from one table to the next, each in the order of addresses.
pub(super) fn changes(before: &RoutingTable, after: &RoutingTable) -> impl Iterator<Item = Event> {
    let lost = before.keys().filter(|to| !after.contains_key(to));
    let found = after.iter().filter(|(to, _)| !before.contains_key(to));
    lost.map(|to| Event::RouteLost { destination: *to })
        .chain(found.map(|(to, route)| Event::RouteFound { destination: *to, hops: route.hops }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopline_core::{Instant, NodeId, Seq16};

    fn n(index: u32) -> Ipv4Addr {
        NodeId(index).ipv4()
    }

    fn neighbour(index: u32) -> FirstHop {
        let (willingness, preference) = (Willingness::DEFAULT, Preference::Neighbour);
        FirstHop { address: n(index), willingness, preference }
    }

    /// The table of node 0: destination, next hop, hops.
    fn table(neighbours: &[FirstHop], two_hops: &[(u32, u32)], links: &[(u32, u32)]) -> Vec<(u32, u32, u8)> {
        let mut topology = TopologySet::new(99);
        for (last, to) in links {
            topology.apply_tc(n(*last), Seq16(1), [n(*to)].into_iter(), Instant::FAR_FUTURE);
        }
        let reached_by = |near| two_hops.iter().filter(move |(by, _)| n(*by) == near).map(|(_, far)| n(*far));
        let table = compute_routing_table(n(0), neighbours.to_vec(), reached_by, &topology);
        let index = |address| NodeId::from_ipv4(address).unwrap().0;
        table.into_iter().map(|(to, route)| (index(to), index(route.next_hop), route.hops)).collect()
    }

    #[test]
    fn paths_are_shortest() {
        let neighbours = [neighbour(1), neighbour(2)];
        let two_hops = [(1, 3), (1, 0), (2, 4), (2, 1)];
        // 3 advertises 5 and 4, 5 advertises 6; the advertisements of 7 are out of reach.
        let links = [(3, 5), (3, 4), (5, 6), (7, 8), (5, 0)];
        assert_eq!(
            table(&neighbours, &two_hops, &links),
            [(1, 1, 1), (2, 2, 1), (3, 1, 2), (4, 2, 2), (5, 1, 3), (6, 1, 4)]
        );
    }

    #[test]
    fn ties_between_paths_are_broken_by_willingness_selectors_and_address() {
        let two_hops = [(1, 5), (2, 5)];
        let over = |neighbours: [FirstHop; 2]| table(&neighbours, &two_hops, &[(5, 6)])[3];
        let (one, two) = (neighbour(1), neighbour(2));
        assert_eq!(over([one, two]), (6, 1, 3));
        assert_eq!(over([one, FirstHop { preference: Preference::MprSelector, ..two }]), (6, 2, 3));
        let willing = FirstHop { willingness: Willingness::HIGH, ..one };
        assert_eq!(over([willing, FirstHop { preference: Preference::MprSelector, ..two }]), (6, 1, 3));
    }

    #[test]
    fn nodes_with_will_never_are_no_relays() {
        let never = FirstHop { willingness: Willingness::NEVER, ..neighbour(1) };
        assert_eq!(table(&[never], &[(1, 5)], &[]), [(1, 1, 1)]);
    }

    #[test]
    fn changes_are_the_found_and_lost_routes() {
        let route = |hops| Route { next_hop: n(1), hops };
        let before = RoutingTable::from([(n(1), route(1)), (n(2), route(2)), (n(3), route(3))]);
        let after = RoutingTable::from([(n(1), route(1)), (n(3), route(2)), (n(4), route(3))]);
        let changes: Vec<_> = changes(&before, &after).collect();
        let lost = Event::RouteLost { destination: n(2) };
        assert_eq!(changes, [lost, Event::RouteFound { destination: n(4), hops: 3 }]);
    }
}
