//! The path cache (RFC 4728 §4.1).

use super::config::{LinkRemoval, PathCache};
use hopline_core::{Duration, Instant};
use hopline_wire::dsr::Addresses;
use std::net::Ipv4Addr;

/// Paths from this node, none of which is the beginning of another.
///
/// Each path serves all its nodes. Links are bidirectional: a path to this node can be reversed, and a failed link is
/// removed in both directions.
#[derive(Clone, Debug)]
pub(super) struct CachedPaths {
    /// This node.
    origin: Ipv4Addr,
    /// Sorted by the time at which they were learnt.
    paths: Vec<CachedPath>,
    /// Indices of the two paths confirmed last, or of others. Every packet of a flow confirms its path in both directions,
    /// so most need no search.
    recent: [usize; 2],
    /// Earliest expiry of a path, or an earlier time.
    next_expiry: Instant,
    capacity: usize,
    timeout: Duration,
}

#[derive(Clone, Debug)]
struct CachedPath {
    /// Nodes of the path without this node. Not empty, no node twice.
    nodes: Addresses,
    last_used: Instant,
}

impl CachedPaths {
    pub(super) fn new(origin: Ipv4Addr, config: &PathCache) -> Self {
        let capacity = usize::from(config.capacity.get());
        let (paths, recent, next_expiry) = (Vec::new(), [0; 2], Instant::ZERO);
        Self { origin, paths, recent, next_expiry, capacity, timeout: config.timeout }
    }

    /// Confirms the path along `nodes` again if it is one of the two that were confirmed last. Returns whether it is;
    /// `false` says nothing about the rest of the cache.
    pub(super) fn confirm(&mut self, now: Instant, nodes: &[Ipv4Addr]) -> bool {
        let timeout = self.timeout;
        self.recent.into_iter().any(|at| {
            let path = self.paths.get_mut(at).filter(|path| path.last_used + timeout > now);
            let known = path.filter(|path| path.nodes.starts_with(nodes));
            known.map(|path| path.last_used = now).is_some()
        })
    }

    /// Stores the path along `nodes`. Returns whether it is new.
    pub(super) fn insert(&mut self, now: Instant, nodes: Addresses) -> bool {
        if self.next_expiry <= now {
            self.expire(now);
        }
        self.insert_used(CachedPath { nodes, last_used: now })
    }

    /// Returns the shortest path to `destination`; of several, the one that was learnt first.
    pub(super) fn find(&self, now: Instant, destination: Ipv4Addr) -> Option<&[Ipv4Addr]> {
        let (path, hops) = self.position(now, destination)?;
        Some(&self.paths[path].nodes[..hops])
    }

    /// Does the same for a packet, and records the use of the path.
    pub(super) fn find_and_use(&mut self, now: Instant, destination: Ipv4Addr) -> Option<Addresses> {
        let (path, hops) = self.position(now, destination)?;
        let path = &mut self.paths[path];
        path.last_used = now;
        Some(Addresses::from_slice(&path.nodes[..hops]))
    }

    /// Removes the link between `a` and `b`: paths end before it. Returns whether a path had it.
    pub(super) fn remove_link(&mut self, a: Ipv4Addr, b: Ipv4Addr, dead: LinkRemoval) -> bool {
        let mut cut = Vec::new();
        let origin = self.origin;
        self.paths.retain(|path| {
            let mut hops = core::iter::once(&origin).chain(&path.nodes).zip(&path.nodes);
            let Some(at) = hops.position(|(&from, &to)| {
                (from, to) == (a, b) || (dead == LinkRemoval::BothWays && (from, to) == (b, a))
            }) else {
                return true;
            };
            cut.push(CachedPath {
                nodes: Addresses::from_slice(&path.nodes[..at]),
                last_used: path.last_used,
            });
            false
        });
        let any = !cut.is_empty();
        for rest in cut {
            if !rest.nodes.is_empty() {
                self.insert_used(rest);
            }
        }
        any
    }

    pub(super) fn iter(&self, now: Instant) -> impl Iterator<Item = &[Ipv4Addr]> {
        self.paths
            .iter()
            .filter(move |path| path.last_used + self.timeout > now)
            .map(|path| path.nodes.as_slice())
    }

    fn expire(&mut self, now: Instant) {
        let timeout = self.timeout;
        self.paths.retain(|path| path.last_used + timeout > now);
        let oldest = self.paths.iter().map(|path| path.last_used).min();
        self.next_expiry = oldest.unwrap_or(now) + timeout;
    }

    fn insert_used(&mut self, new: CachedPath) -> bool {
        if let Some(at) = self.paths.iter().position(|path| path.nodes.starts_with(&new.nodes)) {
            self.recent = [at, self.recent[0]];
            let longer = &mut self.paths[at];
            longer.last_used = longer.last_used.max(new.last_used);
            return false;
        }
        if let Some(shorter) = self.paths.iter_mut().find(|path| new.nodes.starts_with(&path.nodes)) {
            *shorter = CachedPath { last_used: shorter.last_used.max(new.last_used), ..new };
            return true;
        }
        if self.paths.len() >= self.capacity {
            let oldest = self.paths.iter().enumerate().min_by_key(|(_, path)| path.last_used);
            if let Some((at, _)) = oldest {
                self.paths.remove(at);
            }
        }
        self.paths.push(new);
        true
    }

    /// Returns the best path to `destination`, and the number of its nodes up to there.
    fn position(&self, now: Instant, destination: Ipv4Addr) -> Option<(usize, usize)> {
        let mut best: Option<(usize, usize)> = None;
        for (at, path) in self.paths.iter().enumerate() {
            let longest = best.map_or(path.nodes.len(), |(_, hops)| hops - 1).min(path.nodes.len());
            let hops = path.nodes[..longest].iter().position(|node| *node == destination);
            if let Some(before) = hops.filter(|_| path.last_used + self.timeout > now) {
                best = Some((at, before + 1));
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::num::NonZeroU16;
    use hopline_core::NodeId;

    const fn n(index: u32) -> Ipv4Addr {
        NodeId(index).ipv4()
    }

    fn nodes(path: &[u32]) -> Addresses {
        path.iter().map(|&index| n(index)).collect()
    }

    fn at(secs: u64) -> Instant {
        Instant::from_secs(secs)
    }

    fn paths(capacity: u16) -> CachedPaths {
        let config = PathCache { capacity: NonZeroU16::new(capacity).unwrap(), ..PathCache::RFC4728 };
        CachedPaths::new(n(0), &config)
    }

    fn found(paths: &CachedPaths, destination: u32) -> Option<Addresses> {
        paths.find(at(1), n(destination)).map(Addresses::from_slice)
    }

    #[test]
    fn a_path_serves_every_node_on_it_and_the_shortest_wins() {
        let mut p = paths(8);
        assert!(p.insert(at(0), nodes(&[1, 2, 3, 4])));
        assert_eq!(found(&p, 3), Some(nodes(&[1, 2, 3])));
        assert!(p.insert(at(0), nodes(&[5, 3])));
        assert_eq!(found(&p, 3), Some(nodes(&[5, 3])));
        assert_eq!(found(&p, 4), Some(nodes(&[1, 2, 3, 4])));
        assert_eq!(found(&p, 6), None);
    }

    #[test]
    fn of_equally_short_paths_the_first_is_used() {
        let mut p = paths(8);
        p.insert(at(0), nodes(&[1, 3]));
        p.insert(at(1), nodes(&[2, 3]));
        assert_eq!(found(&p, 3), Some(nodes(&[1, 3])));
    }

    #[test]
    fn known_paths_are_not_new_and_extensions_are_merged() {
        let mut p = paths(8);
        assert!(p.insert(at(0), nodes(&[1, 2])));
        assert!(!p.insert(at(0), nodes(&[1])));
        assert!(!p.insert(at(0), nodes(&[1, 2])));
        assert!(p.insert(at(0), nodes(&[1, 2, 3])));
        assert_eq!(p.iter(at(0)).count(), 1);
    }

    #[test]
    fn the_least_recently_used_path_is_evicted() {
        let mut p = paths(2);
        p.insert(at(0), nodes(&[1]));
        p.insert(at(1), nodes(&[2]));
        assert_eq!(p.find_and_use(at(2), n(1)), Some(nodes(&[1])));
        p.insert(at(3), nodes(&[3]));
        assert_eq!((found(&p, 1), found(&p, 2), found(&p, 3)), (Some(nodes(&[1])), None, Some(nodes(&[3]))));
    }

    #[test]
    fn unused_paths_expire() {
        let mut p = paths(8);
        p.insert(at(0), nodes(&[1, 2]));
        p.insert(at(0), nodes(&[3]));
        p.find_and_use(at(10), n(2));
        assert_eq!(p.find(at(300), n(3)), None);
        assert!(p.find(at(309), n(1)).is_some());
        assert_eq!(p.find(at(310), n(1)), None);
        assert_eq!(p.iter(at(310)).count(), 0);
        p.insert(at(310), nodes(&[4]));
        assert_eq!(p.paths.len(), 1);
    }

    #[test]
    fn a_failed_link_truncates_paths_in_both_directions() {
        let mut p = paths(8);
        p.insert(at(0), nodes(&[1, 2, 3]));
        p.insert(at(0), nodes(&[4, 3, 2, 5]));
        assert!(p.remove_link(n(2), n(3), LinkRemoval::BothWays));
        assert_eq!((found(&p, 3), found(&p, 2)), (Some(nodes(&[4, 3])), Some(nodes(&[1, 2]))));
        assert_eq!(found(&p, 5), None);
        assert!(!p.remove_link(n(2), n(3), LinkRemoval::BothWays));
        assert!(!p.remove_link(n(1), n(0), LinkRemoval::OneWay), "the other direction");
        assert!(p.remove_link(n(1), n(0), LinkRemoval::BothWays), "this node's own link");
        assert_eq!((found(&p, 1), found(&p, 2)), (None, None));
    }

    #[test]
    fn equal_remainders_of_paths_are_merged() {
        let mut p = paths(8);
        p.insert(at(0), nodes(&[1, 2, 3]));
        p.insert(at(1), nodes(&[1, 2, 4]));
        p.remove_link(n(1), n(2), LinkRemoval::BothWays);
        assert_eq!(p.iter(at(1)).collect::<Vec<_>>(), [nodes(&[1]).as_slice()]);
    }
}
