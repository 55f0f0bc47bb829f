//! Map keyed by address: dense entries in insertion order under an open-addressing index.
//!
//! A flood makes every node look up the originator of every request that it receives, and with thousands of nodes each
//! look-up misses the cache. This map costs two misses, and a tree one per level. It iterates over its entries in memory
//! order. The order depends on the insertions alone, so it is the same in every run.

use std::net::Ipv4Addr;

const EMPTY: u32 = u32::MAX;
const SMALLEST_INDEX: usize = 8;

/// Map of at most `limit` values by address.
#[derive(Clone, Debug)]
pub(crate) struct AddressMap<V> {
    entries: Vec<(Ipv4Addr, V)>,
    /// Positions in `entries`; a power of two of them, at most three quarters used. Collisions go to the next slot.
    index: Vec<u32>,
    limit: u32,
}

impl<V> AddressMap<V> {
    pub(crate) fn new(limit: u32) -> Self {
        Self { entries: Vec::new(), index: Vec::new(), limit }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.entries.len() >= self.limit as usize
    }

    /// Makes room before memory would grow: removes entries for which `keep` does not hold, and grows only if that freed
    /// little.
    pub(crate) fn make_room(&mut self, keep: impl FnMut(Ipv4Addr, &mut V) -> bool) {
        if self.entries.len() < self.entries.capacity() && !self.is_full() {
            return;
        }
        self.retain(keep);
        if self.entries.len() * 4 > self.entries.capacity() * 3 {
            self.entries.reserve(self.entries.len().max(4));
        }
    }

    pub(crate) fn get(&self, address: Ipv4Addr) -> Option<&V> {
        self.position(address).map(|at| &self.entries[at].1)
    }

    pub(crate) fn get_mut(&mut self, address: Ipv4Addr) -> Option<&mut V> {
        self.position(address).map(|at| &mut self.entries[at].1)
    }

    /// Adds a value under an address that is not in the map. Returns `false` if the map is full.
    pub(crate) fn insert_new(&mut self, address: Ipv4Addr, value: V) -> bool {
        debug_assert!(self.position(address).is_none(), "an address has one entry");
        if self.is_full() {
            return false;
        }
        self.entries.push((address, value));
        if self.entries.len() * 4 > self.index.len() * 3 {
            self.rebuild((self.index.len() * 2).max(SMALLEST_INDEX));
        } else {
            let slot = self.free_slot(address);
            self.index[slot] = (self.entries.len() - 1) as u32;
        }
        true
    }

    /// Keeps the entries for which `keep` holds, in their order.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(Ipv4Addr, &mut V) -> bool) {
        let before = self.entries.len();
        self.entries.retain_mut(|(address, value)| keep(*address, value));
        if self.entries.len() != before {
            self.rebuild(self.index.len());
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Ipv4Addr, &V)> {
        self.entries.iter().map(|(address, value)| (*address, value))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (Ipv4Addr, &mut V)> {
        self.entries.iter_mut().map(|(address, value)| (*address, value))
    }

    fn position(&self, address: Ipv4Addr) -> Option<usize> {
        if self.index.is_empty() {
            return None;
        }
        let mut slot = self.preferred_slot(address);
        loop {
            match self.index[slot] {
                EMPTY => return None,
                at if self.entries[at as usize].0 == address => return Some(at as usize),
                _ => slot = (slot + 1) & (self.index.len() - 1),
            }
        }
    }

    fn free_slot(&self, address: Ipv4Addr) -> usize {
        let mut slot = self.preferred_slot(address);
        while self.index[slot] != EMPTY {
            slot = (slot + 1) & (self.index.len() - 1);
        }
        slot
    }

    /// Multiplicative hashing (2³² over the golden ratio): consecutive addresses spread evenly.
    fn preferred_slot(&self, address: Ipv4Addr) -> usize {
        let hash = address.to_bits().wrapping_mul(0x9e37_79b1);
        (hash >> (32 - self.index.len().trailing_zeros())) as usize
    }

    fn rebuild(&mut self, slots: usize) {
        self.index.clear();
        self.index.resize(slots, EMPTY);
        for at in 0..self.entries.len() {
            let slot = self.free_slot(self.entries[at].0);
            self.index[slot] = at as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_full_map_rejects_insertions() {
        let mut map = AddressMap::new(2);
        assert!(map.insert_new(Ipv4Addr::new(10, 0, 0, 1), 1));
        assert!(map.insert_new(Ipv4Addr::new(10, 0, 0, 2), 2));
        assert!(!map.insert_new(Ipv4Addr::new(10, 0, 0, 3), 3));
        assert_eq!(map.get_mut(Ipv4Addr::new(10, 0, 0, 3)), None);
        assert_eq!(map.iter().count(), 2);
    }

    proptest! {
        /// Few bits in the addresses, so that there are many hits and collisions.
        #[test]
        fn it_agrees_with_a_tree_map(ops in prop::collection::vec((0u32..3, any::<u8>(), 0u32..4), 0..300)) {
            let mut map = AddressMap::new(1_000);
            let mut tree = BTreeMap::new();
            for (step, (op, low, high)) in ops.into_iter().enumerate() {
                let address = Ipv4Addr::from_bits(high << 30 | u32::from(low));
                match op {
                    0 | 1 if map.get_mut(address).is_none() => {
                        prop_assert!(map.insert_new(address, step));
                        tree.insert(address, step);
                    }
                    0 | 1 => *map.get_mut(address).unwrap() = *tree.entry(address).and_modify(|v| *v = step).or_default(),
                    _ => {
                        map.retain(|_, v| *v % 3 != 0);
                        tree.retain(|_, v| *v % 3 != 0);
                    }
                }
                prop_assert_eq!(map.get_mut(address), tree.get_mut(&address));
                prop_assert_eq!(map.iter().count(), tree.len());
            }
            let mut all: Vec<_> = map.iter().map(|(a, v)| (a, *v)).collect();
            all.sort_unstable();
            prop_assert_eq!(all, tree.into_iter().collect::<Vec<_>>());
        }
    }
}
