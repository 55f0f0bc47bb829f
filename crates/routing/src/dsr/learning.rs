//! Updates of the route cache (RFC 4728 §3.3.1, §8.1.4). Does nothing without a cache.

use super::agent::Dsr;
use super::config::{LearntDirections, RouteCache};
use super::search::{Reachability, Search};
use super::source_path::{SourcePath, are_distinct_hosts};
use super::types::Event;
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
        way: &SourcePath,
        from: Ipv4Addr,
    ) {
        if self.route_cache.is_none() {
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
    fn learns_reply(&self, nodes: &[Ipv4Addr], destination: Ipv4Addr, way: &SourcePath) -> bool {
        match self.learnt_directions() {
            LearntDirections::Both => true,
            LearntDirections::Forward => {
                let passes_on = way.receiver() == self.address && destination != self.address;
                !passes_on && nodes.contains(&self.address)
            }
        }
    }

    fn learnt_directions(&self) -> LearntDirections {
        match &self.config.cache {
            RouteCache::Paths(cache) => cache.learnt_directions,
            RouteCache::Off(_) => LearntDirections::Both,
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
        if self.route_cache.is_none() || self.learnt_directions() == LearntDirections::Forward {
            return;
        }
        let mut nodes = Addresses::new();
        nodes.push(initiator);
        nodes.extend_from_slice(&request.path);
        self.learn(now, &nodes, from);
    }

    /// Learns the reverse path of a message of this node to the node that it answers.
    pub(super) fn learn_reverse_path(&mut self, now: Instant, back: &[Ipv4Addr]) {
        if self.learnt_directions() == LearntDirections::Forward {
            self.cache_path(now, back.iter());
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
        self.cache_path(now, behind.iter());
        if self.learnt_directions() == LearntDirections::Both {
            self.cache_path(now, before.iter().rev());
        }
    }

    /// Puts a path into the cache, cut to the greatest length, and uses it for packets that wait for a route along it.
    fn cache_path<'a>(&mut self, now: Instant, nodes: impl Iterator<Item = &'a Ipv4Addr>) {
        let path: Addresses = nodes.copied().take(self.max_hops()).collect();
        let Some(paths) = &mut self.route_cache else { return };
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
        let Some(path) = self.route_cache.as_mut().and_then(|paths| paths.find_and_use(now, destination))
        else {
            return;
        };
        self.on_route_found(now, destination, path.len());
        self.send_buffered(now, destination, &path);
    }

    /// Removes the link that an error names from the cache (§8.3.5). An error for this node is passed on to the neighbours.
    pub(super) fn handle_error(&mut self, now: Instant, error: &RouteError) {
        let ErrorKind::NodeUnreachable(unreachable) = error.kind else { return };
        self.remove_link(now, error.source, unreachable);
        if self.route_cache.is_some() && error.destination == self.address {
            self.pending_error = Some(error.clone());
        }
    }

    /// Handles a broken link between `a` and `b`.
    pub(super) fn remove_link(&mut self, now: Instant, a: Ipv4Addr, b: Ipv4Addr) {
        let Some(paths) = &mut self.route_cache else { return };
        if !paths.remove_link(a, b, self.config.link_removal) {
            return;
        }
        for (destination, search) in self.searches.iter_mut() {
            if search.reachability == Reachability::Found && paths.find(now, destination).is_none() {
                search.reachability = Reachability::Lost;
                self.outbox.events.push_back(Event::RouteLost { destination });
            }
        }
    }
}
