//! Renewals of routes to neighbours that are not in the table yet.
//!
//! In a flood a node receives the same request from every neighbour, and each copy extends a route's lifetime (RFC 3561
//! §6.5). In a large network the table has left the caches by then. The renewals here lie beside the agent's other state,
//! and go into the table when the route is next looked up.

use hopline_core::Instant;
use std::net::Ipv4Addr;

/// Capacity: somewhat more than most nodes have neighbours.
const CAPACITY: usize = 16;

/// Neighbours with a valid route, and the expiry times. The routes have not been looked up since.
#[derive(Clone, Debug)]
pub(super) struct NeighbourCache {
    /// Stored apart from the times: a neighbour found here is mostly in the first cache line. Free places are unspecified.
    neighbours: [Ipv4Addr; CAPACITY],
    expiries: [Instant; CAPACITY],
    /// Place to be taken next.
    next_slot: usize,
}

impl NeighbourCache {
    pub(super) const fn new() -> Self {
        Self {
            neighbours: [Ipv4Addr::UNSPECIFIED; CAPACITY],
            expiries: [Instant::ZERO; CAPACITY],
            next_slot: 0,
        }
    }

    /// Extends the lifetime of the route to `neighbour` to at least `until`. Returns `false` if it is not here, or expired
    /// at `now`.
    pub(super) fn extend(&mut self, now: Instant, neighbour: Ipv4Addr, until: Instant) -> bool {
        let place = self.slot_of(neighbour).filter(|&place| self.expiries[place] > now);
        if let Some(place) = place {
            self.expiries[place] = self.expiries[place].max(until);
        }
        place.is_some()
    }

    /// Inserts a valid route that expires at `until` and is not here. Returns the entry that it replaces, if any, for the
    /// caller to put into the table.
    pub(super) fn insert(&mut self, neighbour: Ipv4Addr, until: Instant) -> Option<(Ipv4Addr, Instant)> {
        let place = self.slot_of(Ipv4Addr::UNSPECIFIED).unwrap_or(self.next_slot);
        self.next_slot = (place + 1) % CAPACITY;
        let replaced = (self.neighbours[place], self.expiries[place]);
        (self.neighbours[place], self.expiries[place]) = (neighbour, until);
        Some(replaced).filter(|(other, _)| !other.is_unspecified())
    }

    /// Returns the expiry time of the route to `neighbour`, if it is here.
    pub(super) fn get(&self, neighbour: Ipv4Addr) -> Option<Instant> {
        self.slot_of(neighbour).map(|place| self.expiries[place])
    }

    /// Removes the route to `neighbour` and returns its expiry time.
    pub(super) fn take(&mut self, neighbour: Ipv4Addr) -> Option<Instant> {
        let place = self.slot_of(neighbour)?;
        self.neighbours[place] = Ipv4Addr::UNSPECIFIED;
        Some(self.expiries[place])
    }

    /// Removes and returns all routes.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = (Ipv4Addr, Instant)> {
        let Self { neighbours, expiries: until, .. } = core::mem::replace(self, Self::new());
        neighbours.into_iter().zip(until).filter(|(neighbour, _)| !neighbour.is_unspecified())
    }

    fn slot_of(&self, neighbour: Ipv4Addr) -> Option<usize> {
        self.neighbours.iter().position(|other| *other == neighbour)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

    fn at(secs: u64) -> Instant {
        Instant::from_secs(secs)
    }

    #[test]
    fn a_renewal_never_shortens_a_lifetime_and_expired_routes_are_not_renewed() {
        let mut r = NeighbourCache::new();
        assert!(!r.extend(at(0), A, at(3)), "not here");
        assert_eq!(r.insert(A, at(3)), None);
        assert!(r.extend(at(1), A, at(4)));
        assert!(r.extend(at(1), A, at(2)));
        assert_eq!(r.get(A), Some(at(4)));
        assert!(!r.extend(at(4), A, at(9)), "expired");
        assert_eq!((r.take(A), r.take(A)), (Some(at(4)), None));
    }

    #[test]
    fn a_full_cache_returns_the_oldest_entry() {
        let neighbour = |n: usize| Ipv4Addr::from_bits(n as u32 + 1);
        let mut r = NeighbourCache::new();
        assert!((0..CAPACITY).all(|n| r.insert(neighbour(n), at(n as u64)).is_none()));
        assert_eq!(r.insert(neighbour(CAPACITY), at(99)), Some((neighbour(0), at(0))));
        assert_eq!(r.take(neighbour(5)), Some(at(5)));
        assert_eq!(r.insert(neighbour(0), at(0)), None, "a free place comes first");
        assert_eq!(r.take_all().count(), CAPACITY);
        assert_eq!(r.take_all().count(), 0);
    }
}
