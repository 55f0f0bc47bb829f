//! Networks of OLSR machines, and their expected routes.

use crate::olsr::*;
use crate::tests::{network, node_address};
use hopline_core::{Duration, LinkId, NodeId, Purpose, RandomStream, StateMachine};
use std::collections::VecDeque;
use std::sync::Arc;

pub(super) type Network = network::Network<Olsr>;

impl Network {
    pub(super) fn new(nodes: u32, config: Config, seed: u64) -> Self {
        let node =
            |i| Olsr::new(config, node_address(i), RandomStream::new(seed, 1, NodeId(i), Purpose::Routing));
        Self::new_network((0..nodes).map(node))
    }

    /// Node 0 – node 1 – … – node `nodes` − 1.
    pub(super) fn chain(nodes: u32, config: Config, seed: u64) -> Self {
        Self::new(nodes, config, seed).in_a_chain()
    }

    /// Runs until all routes are shortest paths, at most for `time`; returns the time that took.
    pub(super) fn run_until_converged(&mut self, time: Duration) -> Option<Duration> {
        let (start, end) = (self.now, self.now + time);
        let tables = |network: &Self| -> u64 {
            network.nodes.iter().map(|node| node.stats().table_computations).sum()
        };
        while self.wrong_routes() > 0 {
            let before = tables(self);
            while tables(self) == before {
                if !self.step(end) {
                    return None;
                }
            }
        }
        Some(self.now.since(start))
    }

    /// Returns the number of routes found or lost.
    pub(super) fn changes(&self) -> usize {
        self.found.len() + self.lost.len()
    }

    /// Returns the next hop and the hops in the table of `node`.
    pub(super) fn route(&self, node: u32, to: u32) -> Option<(u32, u8)> {
        let route = self.nodes[node as usize].route(node_address(to))?;
        Some((NodeId::from_ipv4(route.next_hop).unwrap().0, route.hops))
    }

    /// Returns the number of pairs of nodes with a route that is missing, too long, misdirected, or unexpected.
    pub(super) fn wrong_routes(&self) -> usize {
        let nodes = 0..self.nodes.len() as u32;
        let wrong = |to| {
            let hops = self.hops_towards(to);
            let right = |from: u32| match (hops[from as usize], self.route(from, to)) {
                (None, None) => true,
                (Some(best), Some((next, claimed))) => {
                    claimed == best && self.is_linked(from, next) && hops[next as usize] == Some(best - 1)
                }
                _ => false,
            };
            nodes.clone().filter(|from| *from != to && !right(*from)).count()
        };
        nodes.clone().map(wrong).sum()
    }

    /// Returns the true distance of every node to `to`, over bidirectional links.
    fn hops_towards(&self, to: u32) -> Vec<Option<u8>> {
        let mut hops = vec![None; self.nodes.len()];
        hops[to as usize] = Some(0);
        let mut queue = VecDeque::from([(to, 0)]);
        while let Some((at, distance)) = queue.pop_front() {
            for next in 0..self.nodes.len() as u32 {
                let both = self.is_linked(at, next) && self.is_linked(next, at);
                if both && hops[next as usize].is_none() {
                    hops[next as usize] = Some(distance + 1);
                    queue.push_back((next, distance + 1));
                }
            }
        }
        hops
    }
}

impl network::Agent for Olsr {
    type Arrival = Received;

    fn handle_arrival(network: &mut Network, node: u32, received: Received) {
        network.nodes[node as usize].handle_packet(network.now, LinkId::ONLY, received);
    }

    fn transmit(network: &mut Network, node: u32, transmit: Transmit) {
        let packet = Arc::new(transmit.packet);
        for other in network.receivers_of(node) {
            network.deliver_later(other, Received { packet: Arc::clone(&packet), from: transmit.source });
        }
    }

    fn handle_event(network: &mut Network, node: u32, event: Event) {
        match event {
            Event::RouteFound { destination, hops } => network.found.push((node, destination, hops)),
            Event::RouteLost { destination } => network.lost.push((node, destination)),
        }
    }
}
