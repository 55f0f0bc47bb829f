//! Updates of the route cache (RFC 4728 §3.3.1, §8.1.4). Does nothing without a cache.

use super::config::{RouteCache, WaysLearnt};
use super::machine::Dsr;
use super::search::{Reach, Search};
use super::types::Event;
use super::way::{Way, are_distinct_hosts};
use hopline_core::Instant;
use hopline_wire::dsr::{Addresses, DsrOption, ErrorKind, Header, RouteError, RouteRequest};
use std::net::Ipv4Addr;

impl<M: Copy> Dsr<M> {
    /// Learns from all the options of a packet that neighbour `from` transmitted.
    pub(super) fn learn_from(
        &mut self,
        now: Instant,
        header: &Header,
        destination: Ipv4Addr,
        way: &Way,
        from: Ipv4Addr,
    ) {
        if self.paths.is_none() {
            return;
        }
        self.learn(now, way.nodes(), from);
        for option in &header.options {
            match option {
                DsrOption::Reply(reply) => {
                    let mut nodes = Addresses::new();
                    nodes.push(destination);
                    nodes.extend_from_slice(&reply.path);
                    if self.learns_reply(&nodes, destination, way) {
                        self.learn(now, &nodes, from);
                    }
                }
                DsrOption::Ack(ack) => {
                    self.learn(now, &[ack.source, ack.destination], from);
                }
                DsrOption::Error(error) => self.handle_error(now, error),
                _ => {}
            }
        }
    }

    /// Returns whether this node learns from a reply that leads along `nodes`.
    fn learns_reply(&self, nodes: &[Ipv4Addr], destination: Ipv4Addr, way: &Way) -> bool {
        match self.ways_learnt() {
            WaysLearnt::Both => true,
            WaysLearnt::Onward => {
                let passes_on = way.receiver() == self.address && destination != self.address;
                !passes_on && nodes.contains(&self.address)
            }
        }
    }

    fn ways_learnt(&self) -> WaysLearnt {
        match &self.config.cache {
            RouteCache::Paths(cache) => cache.ways_learnt,
            RouteCache::Off(_) => WaysLearnt::Both,
        }
    }

    /// Learns the reverse path along the record of a request (§8.1.4).
    pub(super) fn learn_record(
        &mut self,
        now: Instant,
        initiator: Ipv4Addr,
        request: &RouteRequest,
        from: Ipv4Addr,
    ) {
        if self.paths.is_none() || self.ways_learnt() == WaysLearnt::Onward {
            return;
        }
        let mut nodes = Addresses::new();
        nodes.push(initiator);
        nodes.extend_from_slice(&request.path);
        self.learn(now, &nodes, from);
    }

    /// Learns the reverse path of a message of this node to the node that it answers.
    pub(super) fn learn_way_back(&mut self, now: Instant, back: &[Ipv4Addr]) {
        if self.ways_learnt() == WaysLearnt::Onward {
            self.remember(now, back.iter());
        }
    }

    /// Learns the paths from here along `nodes`. This node is one of them, or overhears one of them, `from`.
    pub(super) fn learn(&mut self, now: Instant, nodes: &[Ipv4Addr], from: Ipv4Addr) {
        let position = |address| nodes.iter().position(|node| *node == address);
        let (before, behind) = match (position(self.address), position(from)) {
            (Some(at), _) => (&nodes[..at], &nodes[at + 1..]),
            (None, Some(at)) => (&nodes[..=at], &nodes[at..]),
            (None, None) => return,
        };
        self.remember(now, behind.iter());
        if self.ways_learnt() == WaysLearnt::Both {
            self.remember(now, before.iter().rev());
        }
    }

    /// Puts a path into the cache, cut to the greatest length, and uses it for packets that wait for a route along it.
    fn remember<'a>(&mut self, now: Instant, nodes: impl Iterator<Item = &'a Ipv4Addr>) {
        let path: Addresses = nodes.copied().take(self.max_hops()).collect();
        let Some(paths) = &mut self.paths else { return };
        if path.is_empty() || paths.confirm(now, &path) {
            return;
        }
        if path.contains(&self.address) || !are_distinct_hosts(&path) {
            return;
        }
        if !paths.insert(now, path.clone()) {
            return;
        }
        self.stats.paths_learnt += 1;
        for &node in &path {
            if self.searches.get(node).is_some_and(Search::is_wanted) {
                self.use_found_path(now, node);
            }
        }
    }

    fn use_found_path(&mut self, now: Instant, destination: Ipv4Addr) {
        let Some(path) = self.paths.as_mut().and_then(|paths| paths.take(now, destination)) else { return };
        self.found(now, destination, path.len());
        self.release(now, destination, &path);
    }

    /// Removes the link that an error names from the cache (§8.3.5). An error for this node is passed on to the neighbours.
    pub(super) fn handle_error(&mut self, now: Instant, error: &RouteError) {
        let ErrorKind::NodeUnreachable(unreachable) = error.kind else { return };
        self.forget_link(now, error.source, unreachable);
        if self.paths.is_some() && error.destination == self.address {
            self.held_error = Some(error.clone());
        }
    }

    /// Handles a broken link between `a` and `b`.
    pub(super) fn forget_link(&mut self, now: Instant, a: Ipv4Addr, b: Ipv4Addr) {
        let Some(paths) = &mut self.paths else { return };
        if !paths.remove_link(a, b, self.config.dead_link) {
            return;
        }
        for (destination, search) in self.searches.iter_mut() {
            if search.reach == Reach::Found && paths.find(now, destination).is_none() {
                search.reach = Reach::Lost;
                self.outbox.events.push_back(Event::RouteLost { destination });
            }
        }
    }
}
