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
pub struct TableLimits {
    /// Maximum number of connections, at least 1. Beyond it the one silent for longest is evicted. Default
    /// 65,536.
    pub max_connections: u32,
    /// Silence after which a connection expires. Default 15 minutes.
    pub idle_timeout: Duration,
    /// Key of the hash table. Choose it at random if hosts are untrusted, so that an attacker cannot choose
    /// ports that collide.
    pub hash_key: (u64, u64),
}

impl TableLimits {
    /// The defaults.
    pub const DEFAULT: Self =
        Self { max_connections: 65_536, idle_timeout: Duration::from_secs(900), hash_key: (0, 0) };
}

impl Default for TableLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Connection table. `T`: state of a connection.
#[derive(Debug)]
pub(crate) struct Table<T> {
    limits: TableLimits,
    index: HashTable<u32>,
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    /// Slots in use, from the most to the least recently used one.
    most_recent: u32,
    least_recent: u32,
    /// Timers of slots. Each slot has one valid entry; those of earlier connections and superseded ones are
    /// invalid.
    timers: BinaryHeap<Reverse<(Instant, u32)>>,
}

/// Place of a connection in the table, valid until the next insertion or removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableIndex(u32);

/// No slot.
const NONE: u32 = u32::MAX;
/// Minimum time between two moves of a connection to the front of the list, so that most packets touch no
/// other connection.
const MIN_RELINK_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Slot<T> {
    last_packet: Instant,
    /// Time of its timer: the valid entry in `due`.
    timer: Instant,
    /// Time of its last move to the front.
    last_relink: Instant,
    newer: u32,
    older: u32,
    connection: Connection,
    state: Option<T>,
}

impl<T> Table<T> {
    pub(crate) fn new(bounds: TableLimits) -> Self {
        Self {
            limits: bounds,
            index: HashTable::new(),
            slots: Vec::new(),
            free: Vec::new(),
            most_recent: NONE,
            least_recent: NONE,
            timers: BinaryHeap::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    /// Returns the place of a connection of which a packet passes now.
    pub(crate) fn touch(&mut self, now: Instant, connection: &Connection) -> Option<TableIndex> {
        let place = self.find(connection)?;
        self.touch_at(now, place);
        Some(place)
    }

    /// Records that a packet of the connection at a place passes now.
    pub(crate) fn touch_at(&mut self, now: Instant, place: TableIndex) {
        let slot = &mut self.slots[place.0 as usize];
        slot.last_packet = now;
        if now.since(slot.last_relink) >= MIN_RELINK_INTERVAL {
            self.unlink(place.0);
            self.link(now, place.0);
        }
    }

    /// Returns the place of a connection.
    pub(crate) fn find(&self, connection: &Connection) -> Option<TableIndex> {
        let hash = self.hash(connection);
        let is_it = |slot: &u32| self.slots[*slot as usize].connection == *connection;
        self.index.find(hash, is_it).map(|slot| TableIndex(*slot))
    }

    /// Returns a connection for which `is_it` holds, among the `most` most recently used, to a second.
    pub(crate) fn find_among_recent(
        &self,
        most: usize,
        is_it: impl Fn(&Connection, &T) -> bool,
    ) -> Option<TableIndex> {
        let slot = |number: u32| self.slots.get(number as usize);
        let is_it = |number: &u32| {
            slot(*number)
                .is_some_and(|slot| slot.state.as_ref().is_some_and(|tenant| is_it(&slot.connection, tenant)))
        };
        // A slot number past the end, as `NONE` is, ends the list.
        let newest_first =
            iter::successors(Some(self.most_recent), |&number| slot(number).map(|slot| slot.older));
        newest_first.take(most).find(is_it).map(TableIndex)
    }

    /// Returns the state of the connection at a place.
    pub(crate) fn state_mut(&mut self, place: TableIndex) -> &mut T {
        self.slots[place.0 as usize].state.as_mut().expect("a place is that of a tenant")
    }

    /// Returns whether this holds for the state of the connection at a place.
    pub(crate) fn is_state(&self, place: TableIndex, holds: impl FnOnce(&T) -> bool) -> bool {
        self.slots[place.0 as usize].state.as_ref().is_some_and(holds)
    }

    /// Returns the state of the connection at a place, if there is one; the place may have been reused.
    pub(crate) fn get_mut(&mut self, place: TableIndex) -> Option<&mut T> {
        self.slots.get_mut(place.0 as usize)?.state.as_mut()
    }

    /// Returns the connection at a place.
    pub(crate) fn connection(&self, place: TableIndex) -> Connection {
        self.slots[place.0 as usize].connection
    }

    /// Returns the time of its last packet.
    pub(crate) fn last_packet(&self, place: TableIndex) -> Instant {
        self.slots[place.0 as usize].last_packet
    }

    /// Adds or replaces a connection. Returns its place, and the state that was replaced or evicted.
    pub(crate) fn insert(
        &mut self,
        now: Instant,
        connection: Connection,
        tenant: T,
    ) -> (TableIndex, Option<(Connection, T)>) {
        let known = self.remove(&connection).map(|tenant| (connection, tenant));
        let evicted = if known.is_none() && self.index.len() >= self.limits.max_connections.max(1) as usize {
            self.remove_slot(self.least_recent)
        } else {
            None
        };
        let state = Slot {
            last_packet: now,
            timer: Instant::FAR_FUTURE,
            last_relink: now,
            newer: NONE,
            older: NONE,
            connection,
            state: Some(tenant),
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
        let (slots, key) = (&self.slots, self.limits.hash_key);
        let hash_of = |slot: &u32| hash(key, &slots[*slot as usize].connection);
        self.index.insert_unique(hash(key, &connection), slot, hash_of);
        self.link(now, slot);
        self.set_slot_timer(slot, now + self.limits.idle_timeout);
        (TableIndex(slot), known.or(evicted))
    }

    /// Removes a connection.
    pub(crate) fn remove(&mut self, connection: &Connection) -> Option<T> {
        let place = self.find(connection)?;
        self.remove_slot(place.0).map(|(_, tenant)| tenant)
    }

    /// Removes the least recently used connection, if there is one.
    pub(crate) fn remove_oldest(&mut self) -> Option<(Connection, T)> {
        self.remove_slot(self.least_recent)
    }

    /// Returns the states of all connections.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|slot| slot.state.as_ref())
    }

    /// Removes and returns all connections for which `is_it` holds, in linear time.
    pub(crate) fn remove_where(&mut self, is_it: impl Fn(&Connection) -> bool) -> Vec<(Connection, T)> {
        let is_it = |slot: &Slot<T>| slot.state.is_some() && is_it(&slot.connection);
        let found: Vec<u32> =
            (0..).zip(&self.slots).filter(|(_, slot)| is_it(slot)).map(|(n, _)| n).collect();
        found.into_iter().filter_map(|slot| self.remove_slot(slot)).collect()
    }

    /// Removes all connections for which `is_over` holds, in linear time.
    pub(crate) fn discard_where(&mut self, is_over: impl Fn(&Connection) -> bool) {
        self.remove_where(is_over);
    }

    /// Sets the timer of a connection to `at`, unless it is earlier.
    pub(crate) fn set_timer(&mut self, place: TableIndex, at: Option<Instant>) {
        if let Some(at) = at {
            self.set_slot_timer(place.0, at);
        }
    }

    /// Returns the time of the next call of [`Table::next_due`].
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.timers.peek().map(|Reverse((at, _))| *at)
    }

    /// Returns a connection with a timer that is due: `Err` if it has expired and is removed.
    pub(crate) fn next_due(
        &mut self,
        now: Instant,
    ) -> Option<Result<(TableIndex, Connection), (Connection, T)>> {
        loop {
            let &Reverse((at, slot)) = self.timers.peek()?;
            if at > now {
                return None;
            }
            self.timers.pop();
            let state = &mut self.slots[slot as usize];
            if state.timer != at {
                continue;
            }
            state.timer = Instant::FAR_FUTURE;
            if state.state.is_none() {
                continue;
            }
            let (end, connection) = (state.last_packet + self.limits.idle_timeout, state.connection);
            if end <= now {
                return self.remove_slot(slot).map(Err);
            }
            self.set_slot_timer(slot, end);
            return Some(Ok((TableIndex(slot), connection)));
        }
    }

    fn hash(&self, connection: &Connection) -> u64 {
        hash(self.limits.hash_key, connection)
    }

    fn set_slot_timer(&mut self, slot: u32, at: Instant) {
        let state = &mut self.slots[slot as usize];
        if at < state.timer {
            state.timer = at;
            self.timers.push(Reverse((at, slot)));
            self.compact_timers();
        }
    }

    /// Removes invalid timer entries when they outnumber the valid ones, so that short connections leave no
    /// trace.
    fn compact_timers(&mut self) {
        const SPARE: usize = 64;
        if self.timers.len() > 4 * self.slots.len() + SPARE {
            let slots = &self.slots;
            self.timers.retain(|Reverse((at, slot))| slots[*slot as usize].timer == *at);
        }
    }

    fn remove_slot(&mut self, slot: u32) -> Option<(Connection, T)> {
        let state = self.slots.get_mut(slot as usize)?;
        let (tenant, connection) = (state.state.take()?, state.connection);
        state.timer = Instant::FAR_FUTURE;
        self.unlink(slot);
        if let Ok(entry) = self.index.find_entry(self.hash(&connection), |other| *other == slot) {
            entry.remove();
        }
        self.free.push(slot);
        Some((connection, tenant))
    }

    /// Moves a slot to the front of the list.
    fn link(&mut self, now: Instant, slot: u32) {
        let before = core::mem::replace(&mut self.most_recent, slot);
        let state = &mut self.slots[slot as usize];
        (state.older, state.newer, state.last_relink) = (before, NONE, now);
        match self.slots.get_mut(before as usize) {
            Some(older) => older.newer = slot,
            None => self.least_recent = slot,
        }
    }

    fn unlink(&mut self, slot: u32) {
        let Slot { newer, older, .. } = self.slots[slot as usize];
        match self.slots.get_mut(newer as usize) {
            Some(state) => state.older = older,
            None => self.most_recent = older,
        }
        match self.slots.get_mut(older as usize) {
            Some(state) => state.newer = newer,
            None => self.least_recent = newer,
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
        Table::new(TableLimits { max_connections: connections, idle_timeout: IDLE, hash_key: (1, 2) })
    }

    fn at(secs: u64) -> Instant {
        Instant::from_secs(secs)
    }

    #[test]
    fn least_recent_connection_is_evicted() {
        let mut table = table(3);
        for n in 0..3 {
            assert_eq!(table.insert(at(n.into()), connection(n), n).1, None);
        }
        assert!(table.touch(at(3), &connection(0)).is_some());
        assert_eq!(table.insert(at(4), connection(3), 3).1, Some((connection(1), 1)));
        assert_eq!(table.len(), 3);
        let (place, before) = table.insert(at(5), connection(0), 9);
        assert_eq!(before, Some((connection(0), 0)), "known: none makes room");
        assert_eq!((*table.state_mut(place), table.find(&connection(0))), (9, Some(place)));
    }

    #[test]
    fn ipv6_connections_differ_by_every_address_part() {
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
            assert_eq!(*table.state_mut(place), n);
        }
        let key = (1, 2);
        let hashes: BTreeSet<_> = connections.iter().map(|connection| hash(key, connection)).collect();
        assert_eq!(hashes.len(), connections.len(), "no part of an address is left out");
    }

    #[test]
    fn connections_of_one_host_are_removed_together() {
        let mut table = table(8);
        for n in 0..4 {
            table.insert(at(0), connection(n), n);
        }
        table.discard_where(|connection| connection.fixed.1 % 2 == 0);
        assert_eq!(table.len(), 2);
        assert_eq!((table.find(&connection(2)), table.find(&connection(3)).is_some()), (None, true));
        assert_eq!(table.next_due(at(9)), None);
    }

    #[test]
    fn idle_connections_expire_and_active_ones_do_not() {
        let mut table = table(8);
        table.insert(at(0), connection(1), 1);
        table.insert(at(0), connection(2), 2);
        table.touch(at(6), &connection(2));
        assert_eq!(table.poll_timeout(), Some(at(10)));
        assert_eq!(table.next_due(at(9)), None);
        let mut forgotten = Vec::new();
        for secs in [10, 15, 16] {
            while let Some(due) = table.next_due(at(secs)) {
                forgotten.extend(due.err().map(|(_, n)| (secs, n)));
            }
        }
        assert_eq!(forgotten, [(10, 1), (16, 2)]);
        assert_eq!((table.len(), table.poll_timeout()), (0, None));
    }

    #[test]
    fn reused_slot_ignores_old_timers() {
        let mut table = table(1);
        table.insert(at(0), connection(1), 1);
        let place = table.find(&connection(1)).expect("inserted");
        table.set_timer(place, Some(at(5)));
        let (place, _) = table.insert(at(1), connection(2), 2);
        table.set_timer(place, Some(at(7)));
        assert_eq!(table.next_due(at(5)), None);
        assert_eq!(table.next_due(at(7)), Some(Ok((place, connection(2)))));
        assert_eq!(table.next_due(at(7)), None, "each look is wished for anew");
    }

    #[test]
    fn connection_flood_leaves_no_state() {
        let mut table = table(4);
        for n in 0..10_000 {
            let (place, _) = table.insert(at(0), connection(n), n);
            table.set_timer(place, Some(at(1)));
        }
        assert_eq!((table.len(), table.slots.len()), (4, 4));
        assert!(table.timers.len() <= 4 * 4 + 64, "{}", table.timers.len());
    }
}
