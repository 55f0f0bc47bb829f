//! Topology set: links learnt from TC messages (RFC 3626 §4.4, §9.5).

use super::expiring_set::{ExpiringSet, InsertResult};
use hopline_core::{Instant, Seq16};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

const MIN_ADDRESS: Ipv4Addr = Ipv4Addr::UNSPECIFIED;
const MAX_ADDRESS: Ipv4Addr = Ipv4Addr::BROADCAST;

/// Links from a node to its MPR selectors.
#[derive(Clone, Debug)]
pub(super) struct TopologySet {
    /// (T_last_addr, T_dest_addr) until T_time.
    links: ExpiringSet<(Ipv4Addr, Ipv4Addr)>,
    /// T_seq, the same for all links from one node. Only of nodes that have any.
    ansns: BTreeMap<Ipv4Addr, Seq16>,
}

/// Effect of a TC message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TcEffect {
    /// None: it is older than the known entries.
    Stale,
    /// It renewed known entries.
    Renewed,
    /// Links were added or removed.
    Changed,
    /// Links were added or removed, and some did not fit.
    Overflowed,
}

impl TopologySet {
    pub(super) fn new(limit: u32) -> Self {
        Self { links: ExpiringSet::new(limit), ansns: BTreeMap::new() }
    }

    /// Applies a TC message in which `last` advertises links to `neighbours` (§9.5).
    pub(super) fn apply_tc(
        &mut self,
        last: Ipv4Addr,
        ansn: Seq16,
        neighbours: impl Iterator<Item = Ipv4Addr>,
        until: Instant,
    ) -> TcEffect {
        let mut told = TcEffect::Renewed;
        match self.ansns.get(&last) {
            Some(known) if known.after(ansn) => return TcEffect::Stale,
            Some(known)
                if known.before(ansn)
                    && self.links.remove_range((last, MIN_ADDRESS)..=(last, MAX_ADDRESS)) =>
            {
                told = TcEffect::Changed;
            }
            _ => {}
        }
        for neighbour in neighbours {
            match self.links.insert((last, neighbour), until) {
                InsertResult::Known => {}
                InsertResult::New if told == TcEffect::Renewed => told = TcEffect::Changed,
                InsertResult::New => {}
                InsertResult::Full => told = TcEffect::Overflowed,
            }
        }
        if self.destinations_of(last).next().is_some() {
            self.ansns.insert(last, ansn);
        } else {
            self.ansns.remove(&last);
        }
        told
    }

    /// Removes expired links. Returns whether there were any.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        let changed = self.links.expire(now);
        if changed {
            let links = &self.links;
            self.ansns
                .retain(|last, _| links.range((*last, MIN_ADDRESS)..=(*last, MAX_ADDRESS)).next().is_some());
        }
        changed
    }

    pub(super) const fn next_expiry(&self) -> Instant {
        self.links.next_expiry()
    }

    /// Returns the destinations of links from `last`, in order.
    pub(super) fn destinations_of(&self, last: Ipv4Addr) -> impl Iterator<Item = Ipv4Addr> {
        self.links.range((last, MIN_ADDRESS)..=(last, MAX_ADDRESS)).map(|(_, destination)| destination)
    }

    pub(super) fn len(&self) -> usize {
        self.links.len()
    }

    /// All links, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Ipv4Addr, Ipv4Addr)> {
        self.links.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const C: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);

    fn at(secs: u64) -> Instant {
        Instant::from_secs(secs)
    }

    fn apply_tc(topology: &mut TopologySet, ansn: u16, neighbours: &[Ipv4Addr], until: u64) -> TcEffect {
        topology.apply_tc(A, Seq16(ansn), neighbours.iter().copied(), at(until))
    }

    #[test]
    fn a_higher_number_replaces_known_entries() {
        let mut topology = TopologySet::new(9);
        assert_eq!(apply_tc(&mut topology, 1, &[B], 15), TcEffect::Changed);
        assert_eq!(apply_tc(&mut topology, 1, &[B], 20), TcEffect::Renewed);
        assert_eq!(apply_tc(&mut topology, 2, &[C], 20), TcEffect::Changed);
        assert_eq!(topology.destinations_of(A).collect::<Vec<_>>(), [C]);
        assert_eq!(apply_tc(&mut topology, 3, &[], 20), TcEffect::Changed, "an empty message takes all back");
        assert_eq!((topology.len(), topology.ansns.len()), (0, 0));
    }

    #[test]
    fn the_same_number_adds() {
        let mut topology = TopologySet::new(9);
        apply_tc(&mut topology, 1, &[B], 15);
        assert_eq!(
            apply_tc(&mut topology, 1, &[C], 20),
            TcEffect::Changed,
            "the rest of a message in two parts"
        );
        assert!(topology.expire(at(15)));
        assert_eq!(topology.destinations_of(A).collect::<Vec<_>>(), [C]);
    }

    #[test]
    fn a_lower_number_is_stale_also_around_the_wrap() {
        let mut topology = TopologySet::new(9);
        apply_tc(&mut topology, 65_535, &[B], 15);
        assert_eq!(apply_tc(&mut topology, 65_534, &[C], 99), TcEffect::Stale);
        assert_eq!(apply_tc(&mut topology, 0, &[C], 15), TcEffect::Changed, "0 follows 65,535");
        assert_eq!(apply_tc(&mut topology, 65_535, &[B], 99), TcEffect::Stale);
        assert!(topology.expire(at(15)));
        assert_eq!(
            apply_tc(&mut topology, 65_535, &[B], 30),
            TcEffect::Changed,
            "what expired is forgotten, its number too"
        );
    }

    #[test]
    fn entries_above_the_limit_are_refused() {
        let mut topology = TopologySet::new(1);
        assert_eq!(apply_tc(&mut topology, 1, &[B, C], 15), TcEffect::Overflowed);
        assert_eq!(topology.destinations_of(A).collect::<Vec<_>>(), [B]);
        assert_eq!(topology.apply_tc(B, Seq16(1), [C].into_iter(), at(15)), TcEffect::Overflowed);
        assert_eq!(topology.ansns.len(), 1);
    }
}
