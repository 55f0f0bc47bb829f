//! Filtering database of a bridge (IEEE Std 802.1Q-2018 §8.8): the place of each address from which frames have come.

use hopline_core::{Duration, Instant, NodeId};
use hopline_wire::dot11::MacAddr;
use std::collections::BTreeMap;

/// Time after which an address is forgotten from which no frame came (IEEE Std 802.1Q-2018, Table 8-6).
const AGEING_TIME: Duration = Duration::from_secs(300);

/// Largest number of addresses. Frames for addresses beyond it are sent to all.
const CAPACITY: usize = 4096;

/// Place of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Behind this tap.
    Local,
    /// Behind the tap of this node.
    Behind(NodeId),
}

/// Addresses that a tap has learnt.
#[derive(Clone, Debug, Default)]
pub(super) struct AddressTable {
    entries: BTreeMap<MacAddr, Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    place: Place,
    /// Time of the last frame from the address.
    seen: Instant,
}

impl Entry {
    fn is_valid(&self, now: Instant) -> bool {
        now.since(self.seen) < AGEING_TIME
    }
}

impl AddressTable {
    /// Records that a frame from an address has come. The last place counts.
    pub(super) fn learn(&mut self, now: Instant, source: MacAddr, place: Place) {
        let entry = Entry { place, seen: now };
        if let Some(known) = self.entries.get_mut(&source) {
            *known = entry;
            return;
        }
        if self.entries.len() >= CAPACITY {
            self.entries.retain(|_, entry| entry.is_valid(now));
        }
        if self.entries.len() < CAPACITY {
            self.entries.insert(source, entry);
        }
    }

    /// Returns the place of an address, if it is known.
    pub(super) fn look_up(&self, now: Instant, destination: MacAddr) -> Option<Place> {
        let entry = self.entries.get(&destination).filter(|entry| entry.is_valid(now))?;
        Some(entry.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(n: u32) -> MacAddr {
        MacAddr::of_node(NodeId(1 << 24 | n))
    }

    #[test]
    fn the_last_place_counts_until_it_is_too_old() {
        let mut table = AddressTable::default();
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        assert_eq!(table.look_up(at(0), host(1)), None);
        table.learn(at(1), host(1), Place::Local);
        table.learn(at(2), host(1), Place::Behind(NodeId(3)));
        assert_eq!(table.look_up(at(301), host(1)), Some(Place::Behind(NodeId(3))));
        assert_eq!(table.look_up(at(302), host(1)), None);
        table.learn(at(400), host(1), Place::Local);
        assert_eq!(table.look_up(at(400), host(1)), Some(Place::Local));
    }

    #[test]
    fn a_flood_of_addresses_neither_grows_the_table_nor_removes_known_ones() {
        let mut table = AddressTable::default();
        let late = Instant::ZERO + AGEING_TIME;
        (0..10_000).for_each(|n| table.learn(Instant::ZERO, host(n), Place::Local));
        assert_eq!(table.entries.len(), CAPACITY);
        assert_eq!(table.look_up(Instant::ZERO, host(0)), Some(Place::Local));
        assert_eq!(table.look_up(Instant::ZERO, host(9_999)), None);
        table.learn(late, host(9_999), Place::Local);
        assert_eq!((table.entries.len(), table.look_up(late, host(9_999))), (1, Some(Place::Local)));
    }
}
