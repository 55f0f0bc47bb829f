//! Bounded table of connections. The least recently used one, to a second, is evicted if the table is full;
//! silent ones expire.

use crate::packet::Connection;
use core::hash::{Hash, Hasher};
use hashbrown::HashTable;
use hopline_core::{Duration, Instant};
use siphasher::sip::SipHasher13;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter;
use std::net::IpAddr;

/// Limits of the connection table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Maximum number of connections, at least 1. Beyond it the one silent for longest is evicted. Default
    /// 65,536.
    pub connections: u32,
    /// Silence after which a connection expires. Default 15 minutes.
    pub idle: Duration,
    /// Key of the hash table. Choose it at random if hosts are untrusted, so that an attacker cannot choose
    /// ports that collide.
    pub hash_key: (u64, u64),
}

impl Bounds {
    /// The defaults.
    pub const DEFAULT: Self = Self { connections: 65_536, idle: Duration::from_secs(900), hash_key: (0, 0) };
}

impl Default for Bounds {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Connection table. `T`: state of a connection.
#[derive(Debug)]
pub(crate) struct Table<T> {
    bounds: Bounds,
    index: HashTable<u32>,
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    /// Slots in use, from the most to the least recently used one.
    newest: u32,
    oldest: u32,
    /// Timers of slots. Each slot has one valid entry; those of earlier connections and superseded ones are
    /// invalid.
    due: BinaryHeap<Reverse<(Instant, u32)>>,
}

/// Place of a connection in the table, valid until the next insertion or removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u32);

/// No slot.
const NONE: u32 = u32::MAX;
/// Minimum time between two moves of a connection to the front of the list, so that most packets touch no
/// other connection.
const SOON: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Slot<T> {
    heard: Instant,
    /// Time of its timer: the valid entry in `due`.
    look: Instant,
    /// Time of its last move to the front.
    linked: Instant,
    newer: u32,
    older: u32,
    connection: Connection,
    tenant: Option<T>,
}

impl<T> Table<T> {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            index: HashTable::new(),
            slots: Vec::new(),
            free: Vec::new(),
            newest: NONE,
            oldest: NONE,
            due: BinaryHeap::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    /// Returns the place of a connection of which a packet passes now.
    pub(crate) fn hear(&mut self, now: Instant, connection: &Connection) -> Option<Place> {
        let place = self.find(connection)?;
        self.hear_at(now, place);
        Some(place)
    }

    /// Records that a packet of the connection at a place passes now.
    pub(crate) fn hear_at(&mut self, now: Instant, place: Place) {
        let slot = &mut self.slots[place.0 as usize];
        slot.heard = now;
        if now.since(slot.linked) >= SOON {
            self.unlink(place.0);
            self.link(now, place.0);
        }
    }

    /// Returns the place of a connection.
    pub(crate) fn find(&self, connection: &Connection) -> Option<Place> {
        let hash = self.hash(connection);
        let is_it = |slot: &u32| self.slots[*slot as usize].connection == *connection;
        self.index.find(hash, is_it).map(|slot| Place(*slot))
    }

    /// Returns a connection for which `is_it` holds, among the `most` most recently used, to a second.
    pub(crate) fn find_among_newest(
        &self,
        most: usize,
        is_it: impl Fn(&Connection, &T) -> bool,
    ) -> Option<Place> {
        let slot = |number: u32| self.slots.get(number as usize);
        let is_it = |number: &u32| {
            slot(*number).is_some_and(|slot| {
                slot.tenant.as_ref().is_some_and(|tenant| is_it(&slot.connection, tenant))
            })
        };
        // A slot number past the end, as `NONE` is, ends the list.
        let newest_first = iter::successors(Some(self.newest), |&number| slot(number).map(|slot| slot.older));
        newest_first.take(most).find(is_it).map(Place)
    }

    /// Returns the state of the connection at a place.
    pub(crate) fn at(&mut self, place: Place) -> &mut T {
        self.slots[place.0 as usize].tenant.as_mut().expect("a place is that of a tenant")
    }

    /// Returns whether this holds for the state of the connection at a place.
    pub(crate) fn is(&self, place: Place, holds: impl FnOnce(&T) -> bool) -> bool {
        self.slots[place.0 as usize].tenant.as_ref().is_some_and(holds)
    }

    /// Returns the state of the connection at a place, if there is one; the place may have been reused.
    pub(crate) fn tenant(&mut self, place: Place) -> Option<&mut T> {
        self.slots.get_mut(place.0 as usize)?.tenant.as_mut()
    }

    /// Returns the connection at a place.
    pub(crate) fn connection(&self, place: Place) -> Connection {
        self.slots[place.0 as usize].connection
    }

    /// Returns the time of its last packet.
    pub(crate) fn heard(&self, place: Place) -> Instant {
        self.slots[place.0 as usize].heard
    }

    /// Adds or replaces a connection. Returns its place, and the state that was replaced or evicted.
    pub(crate) fn insert(
        &mut self,
        now: Instant,
        connection: Connection,
        tenant: T,
    ) -> (Place, Option<(Connection, T)>) {
        let known = self.remove(&connection).map(|tenant| (connection, tenant));
        let evicted = if known.is_none() && self.index.len() >= self.bounds.connections.max(1) as usize {
            self.take(self.oldest)
        } else {
            None
        };
        let state = Slot {
            heard: now,
            look: Instant::FAR_FUTURE,
            linked: now,
            newer: NONE,
            older: NONE,
            connection,
            tenant: Some(tenant),
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = state;
                slot
            }
            None => {
                self.slots.push(state);
                (self.slots.len() - 1) as u32
            }
        };
        let (slots, key) = (&self.slots, self.bounds.hash_key);
        let hash_of = |slot: &u32| hash(key, &slots[*slot as usize].connection);
        self.index.insert_unique(hash(key, &connection), slot, hash_of);
        self.link(now, slot);
        self.look_at(slot, now + self.bounds.idle);
        (Place(slot), known.or(evicted))
    }

    /// Removes a connection.
    pub(crate) fn remove(&mut self, connection: &Connection) -> Option<T> {
        let place = self.find(connection)?;
        self.take(place.0).map(|(_, tenant)| tenant)
    }

    /// Removes the least recently used connection, if there is one.
    pub(crate) fn take_oldest(&mut self) -> Option<(Connection, T)> {
        self.take(self.oldest)
    }

    /// Returns the states of all connections.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|slot| slot.tenant.as_ref())
    }

    /// Removes and returns all connections for which `is_it` holds, in linear time.
    pub(crate) fn take_all(&mut self, is_it: impl Fn(&Connection) -> bool) -> Vec<(Connection, T)> {
        let is_it = |slot: &Slot<T>| slot.tenant.is_some() && is_it(&slot.connection);
        let found: Vec<u32> =
            (0..).zip(&self.slots).filter(|(_, slot)| is_it(slot)).map(|(n, _)| n).collect();
        found.into_iter().filter_map(|slot| self.take(slot)).collect()
    }

    /// Removes all connections for which `is_over` holds, in linear time.
    pub(crate) fn forget(&mut self, is_over: impl Fn(&Connection) -> bool) {
        self.take_all(is_over);
    }

    /// Sets the timer of a connection to `at`, unless it is earlier.
    pub(crate) fn look(&mut self, place: Place, at: Option<Instant>) {
        if let Some(at) = at {
            self.look_at(place.0, at);
        }
    }

    /// Returns the time of the next call of [`Table::next_due`].
    pub(crate) fn next_look(&self) -> Option<Instant> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    /// Returns a connection with a timer that is due: `Err` if it has expired and is removed.
    pub(crate) fn next_due(&mut self, now: Instant) -> Option<Result<(Place, Connection), (Connection, T)>> {
        loop {
            let &Reverse((at, slot)) = self.due.peek()?;
            if at > now {
                return None;
            }
            self.due.pop();
            let state = &mut self.slots[slot as usize];
            if state.look != at {
                continue;
            }
            state.look = Instant::FAR_FUTURE;
            if state.tenant.is_none() {
                continue;
            }
            let (end, connection) = (state.heard + self.bounds.idle, state.connection);
            if end <= now {
                return self.take(slot).map(Err);
            }
            self.look_at(slot, end);
            return Some(Ok((Place(slot), connection)));
        }
    }

    fn hash(&self, connection: &Connection) -> u64 {
        hash(self.bounds.hash_key, connection)
    }

    fn look_at(&mut self, slot: u32, at: Instant) {
        let state = &mut self.slots[slot as usize];
        if at < state.look {
            state.look = at;
            self.due.push(Reverse((at, slot)));
            self.bound_due();
        }
    }

    /// Removes invalid timer entries when they outnumber the valid ones, so that short connections leave no
    /// trace.
    fn bound_due(&mut self) {
        const SPARE: usize = 64;
        if self.due.len() > 4 * self.slots.len() + SPARE {
            let slots = &self.slots;
            self.due.retain(|Reverse((at, slot))| slots[*slot as usize].look == *at);
        }
    }

    fn take(&mut self, slot: u32) -> Option<(Connection, T)> {
        let state = self.slots.get_mut(slot as usize)?;
        let (tenant, connection) = (state.tenant.take()?, state.connection);
        state.look = Instant::FAR_FUTURE;
        self.unlink(slot);
        if let Ok(entry) = self.index.find_entry(self.hash(&connection), |other| *other == slot) {
            entry.remove();
        }
        self.free.push(slot);
        Some((connection, tenant))
    }

    /// Moves a slot to the front of the list.
    fn link(&mut self, now: Instant, slot: u32) {
        let before = core::mem::replace(&mut self.newest, slot);
        let state = &mut self.slots[slot as usize];
        (state.older, state.newer, state.linked) = (before, NONE, now);
        match self.slots.get_mut(before as usize) {
            Some(older) => older.newer = slot,
            None => self.oldest = slot,
        }
    }

    fn unlink(&mut self, slot: u32) {
        let Slot { newer, older, .. } = self.slots[slot as usize];
        match self.slots.get_mut(newer as usize) {
            Some(state) => state.older = older,
            None => self.newest = older,
        }
        match self.slots.get_mut(older as usize) {
            Some(state) => state.newer = newer,
            None => self.oldest = newer,
        }
    }
}

fn hash((a, b): (u64, u64), connection: &Connection) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(a, b);
    let Connection { fixed, mobile } = connection;
    // Few words are hashed instead of many fields.
    match (fixed.0, mobile.0) {
        (IpAddr::V4(fixed), IpAddr::V4(mobile)) => {
            (u64::from(fixed.to_bits()) << 32 | u64::from(mobile.to_bits())).hash(&mut hasher);
        }
        (IpAddr::V6(fixed), IpAddr::V6(mobile)) => {
            fixed.to_bits().hash(&mut hasher);
            mobile.to_bits().hash(&mut hasher);
        }
        mixed => mixed.hash(&mut hasher),
    }
    (u32::from(fixed.1) << 16 | u32::from(mobile.1)).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::net::{Ipv4Addr, Ipv6Addr};

    const IDLE: Duration = Duration::from_secs(10);

    fn connection(n: u16) -> Connection {
        let [fixed, mobile] = [1, 2].map(|host| Ipv4Addr::new(10, 0, 0, host).into());
        Connection { fixed: (fixed, n), mobile: (mobile, 9) }
    }

    fn table(connections: u32) -> Table<u16> {
        Table::new(Bounds { connections, idle: IDLE, hash_key: (1, 2) })
    }

    fn at(secs: u64) -> Instant {
        Instant::from_secs(secs)
    }

    #[test]
    fn the_one_silent_for_longest_makes_room() {
        let mut table = table(3);
        for n in 0..3 {
            assert_eq!(table.insert(at(n.into()), connection(n), n).1, None);
        }
        assert!(table.hear(at(3), &connection(0)).is_some());
        assert_eq!(table.insert(at(4), connection(3), 3).1, Some((connection(1), 1)));
        assert_eq!(table.len(), 3);
        let (place, before) = table.insert(at(5), connection(0), 9);
        assert_eq!(before, Some((connection(0), 0)), "known: none makes room");
        assert_eq!((*table.at(place), table.find(&connection(0))), (9, Some(place)));
    }

    #[test]
    fn connections_over_ipv6_are_told_apart_by_every_part_of_their_addresses() {
        let mut table = table(600);
        let address = |bit: u32| IpAddr::from(Ipv6Addr::from_bits(1 << bit));
        let all = |bit| {
            let [fixed, mobile] = [address(127), address(bit)];
            [(fixed, mobile), (mobile, fixed)]
                .map(|(fixed, mobile)| Connection { fixed: (fixed, 1), mobile: (mobile, 2) })
        };
        let connections: Vec<_> = (0..127).flat_map(all).collect();
        for (n, connection) in (0..).zip(&connections) {
            assert_eq!(table.insert(at(0), *connection, n).1, None);
        }
        for (n, connection) in (0..).zip(&connections) {
            let place = table.find(connection).expect("it was inserted");
            assert_eq!(*table.at(place), n);
        }
        let key = (1, 2);
        let hashes: BTreeSet<_> = connections.iter().map(|connection| hash(key, connection)).collect();
        assert_eq!(hashes.len(), connections.len(), "no part of an address is left out");
    }

    #[test]
    fn those_of_one_host_are_forgotten_at_once() {
        let mut table = table(8);
        for n in 0..4 {
            table.insert(at(0), connection(n), n);
        }
        table.forget(|connection| connection.fixed.1 % 2 == 0);
        assert_eq!(table.len(), 2);
        assert_eq!((table.find(&connection(2)), table.find(&connection(3)).is_some()), (None, true));
        assert_eq!(table.next_due(at(9)), None);
    }

    #[test]
    fn the_silent_are_forgotten_and_those_heard_are_not() {
        let mut table = table(8);
        table.insert(at(0), connection(1), 1);
        table.insert(at(0), connection(2), 2);
        table.hear(at(6), &connection(2));
        assert_eq!(table.next_look(), Some(at(10)));
        assert_eq!(table.next_due(at(9)), None);
        let mut forgotten = Vec::new();
        for secs in [10, 15, 16] {
            while let Some(due) = table.next_due(at(secs)) {
                forgotten.extend(due.err().map(|(_, n)| (secs, n)));
            }
        }
        assert_eq!(forgotten, [(10, 1), (16, 2)]);
        assert_eq!((table.len(), table.next_look()), (0, None));
    }

    #[test]
    fn a_slot_wakes_its_tenant_of_now_alone() {
        let mut table = table(1);
        table.insert(at(0), connection(1), 1);
        let place = table.find(&connection(1)).expect("inserted");
        table.look(place, Some(at(5)));
        let (place, _) = table.insert(at(1), connection(2), 2);
        table.look(place, Some(at(7)));
        assert_eq!(table.next_due(at(5)), None);
        assert_eq!(table.next_due(at(7)), Some(Ok((place, connection(2)))));
        assert_eq!(table.next_due(at(7)), None, "each look is wished for anew");
    }

    #[test]
    fn a_flood_of_connections_leaves_nothing_behind() {
        let mut table = table(4);
        for n in 0..10_000 {
            let (place, _) = table.insert(at(0), connection(n), n);
            table.look(place, Some(at(1)));
        }
        assert_eq!((table.len(), table.slots.len()), (4, 4));
        assert!(table.due.len() <= 4 * 4 + 64, "{}", table.due.len());
    }
}
