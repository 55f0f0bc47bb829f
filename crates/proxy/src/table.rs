//! A bounded table of connections: who was not heard of for longest makes room, who says nothing for long is forgotten.

use crate::packet::Connection;
use core::hash::BuildHasher;
use hopline_core::{Duration, Instant};
use indexmap::IndexMap;
use siphasher::sip::SipHasher13;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How much a machine remembers of strangers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Most connections, at least 1. One more, and the one that was silent for longest is forgotten. Default 65,536.
    pub connections: u32,
    /// A connection of which nothing passes for so long is forgotten. Default 15 minutes.
    pub idle: Duration,
    /// Key of the hash by which connections are found. Whoever faces strangers draws it: then nobody can choose ports that meet.
    pub hash_key: (u64, u64),
}

impl Default for Bounds {
    fn default() -> Self {
        Self { connections: 65_536, idle: Duration::from_secs(900), hash_key: (0, 0) }
    }
}

/// The table. `T`: what is known of a connection.
#[derive(Debug)]
pub(crate) struct Table<T> {
    bounds: Bounds,
    index: IndexMap<Connection, u32, Keyed>,
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    /// Slots that are in use, from the one heard of last to the one silent for longest.
    newest: u32,
    oldest: u32,
    /// When to look at which slot. A slot has one entry that counts; entries of earlier tenants and overtaken ones do not.
    due: BinaryHeap<Reverse<(Instant, u32)>>,
}

/// No slot.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
struct Slot<T> {
    tenant: Option<(Connection, T)>,
    heard: Instant,
    /// When it is looked at: the entry in `due` that counts.
    look: Instant,
    newer: u32,
    older: u32,
}

#[derive(Clone, Copy, Debug)]
struct Keyed((u64, u64));

impl BuildHasher for Keyed {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.0.0, self.0.1)
    }
}

impl<T> Table<T> {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            index: IndexMap::with_hasher(Keyed(bounds.hash_key)),
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

    /// What is known of a connection of which something passes now.
    pub(crate) fn hear(&mut self, now: Instant, connection: &Connection) -> Option<&mut T> {
        let slot = *self.index.get(connection)?;
        self.unlink(slot);
        self.link(slot);
        let state = &mut self.slots[slot as usize];
        state.heard = now;
        state.tenant.as_mut().map(|(_, tenant)| tenant)
    }

    /// What is known of it, whether anything passes or not.
    pub(crate) fn get(&mut self, connection: &Connection) -> Option<&mut T> {
        let slot = *self.index.get(connection)?;
        self.slots[slot as usize].tenant.as_mut().map(|(_, tenant)| tenant)
    }

    /// When something of a connection passed last.
    pub(crate) fn heard(&self, connection: &Connection) -> Instant {
        self.index.get(connection).map_or(Instant::ZERO, |slot| self.slots[*slot as usize].heard)
    }

    /// Remembers a connection anew. Returns what was known of it, or of the one that makes room.
    pub(crate) fn insert(
        &mut self,
        now: Instant,
        connection: Connection,
        tenant: T,
    ) -> Option<(Connection, T)> {
        let known = self.remove(&connection).map(|tenant| (connection, tenant));
        let evicted = if known.is_none() && self.index.len() >= self.bounds.connections.max(1) as usize {
            self.take(self.oldest)
        } else {
            None
        };
        let state = Slot {
            tenant: Some((connection, tenant)),
            heard: now,
            look: Instant::FAR_FUTURE,
            newer: NONE,
            older: NONE,
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
        self.index.insert(connection, slot);
        self.link(slot);
        self.look_at(slot, now + self.bounds.idle);
        known.or(evicted)
    }

    /// Forgets a connection.
    pub(crate) fn remove(&mut self, connection: &Connection) -> Option<T> {
        let slot = *self.index.get(connection)?;
        self.take(slot).map(|(_, tenant)| tenant)
    }

    /// The connection wants to be looked at by `at`, unless it is before that.
    pub(crate) fn look(&mut self, connection: &Connection, at: Option<Instant>) {
        if let (Some(&slot), Some(at)) = (self.index.get(connection), at) {
            self.look_at(slot, at);
        }
    }

    /// When to call [`Table::next_due`].
    pub(crate) fn next_look(&self) -> Option<Instant> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    /// A connection that is to be looked at now, if there is one: `Err` if it said nothing for too long and is forgotten.
    pub(crate) fn next_due(&mut self, now: Instant) -> Option<Result<Connection, (Connection, T)>> {
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
            let Some((connection, _)) = state.tenant else { continue };
            let end = state.heard + self.bounds.idle;
            if end <= now {
                return self.take(slot).map(Err);
            }
            self.look_at(slot, end);
            return Some(Ok(connection));
        }
    }

    fn look_at(&mut self, slot: u32, at: Instant) {
        let state = &mut self.slots[slot as usize];
        if at < state.look {
            state.look = at;
            self.due.push(Reverse((at, slot)));
            self.bound_due();
        }
    }

    /// Entries that count for nothing go when they outnumber the others: strangers who come and go leave no trace.
    fn bound_due(&mut self) {
        const SPARE: usize = 64;
        if self.due.len() > 4 * self.slots.len() + SPARE {
            let slots = &self.slots;
            self.due.retain(|Reverse((at, slot))| slots[*slot as usize].look == *at);
        }
    }

    fn take(&mut self, slot: u32) -> Option<(Connection, T)> {
        let (connection, tenant) = self.slots.get_mut(slot as usize)?.tenant.take()?;
        self.slots[slot as usize].look = Instant::FAR_FUTURE;
        self.unlink(slot);
        self.index.swap_remove(&connection);
        self.free.push(slot);
        Some((connection, tenant))
    }

    /// Puts a slot before all others.
    fn link(&mut self, slot: u32) {
        let before = core::mem::replace(&mut self.newest, slot);
        self.slots[slot as usize].older = before;
        self.slots[slot as usize].newer = NONE;
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const IDLE: Duration = Duration::from_secs(10);

    fn connection(n: u16) -> Connection {
        Connection { fixed: (Ipv4Addr::new(10, 0, 0, 1), n), mobile: (Ipv4Addr::new(10, 0, 0, 2), 9) }
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
            assert_eq!(table.insert(at(n.into()), connection(n), n), None);
        }
        assert!(table.hear(at(3), &connection(0)).is_some());
        assert_eq!(table.insert(at(4), connection(3), 3), Some((connection(1), 1)));
        assert_eq!(table.len(), 3);
        assert_eq!(table.insert(at(5), connection(0), 9), Some((connection(0), 0)), "known: none makes room");
        assert_eq!(table.get(&connection(0)), Some(&mut 9));
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
        table.look(&connection(1), Some(at(5)));
        table.insert(at(1), connection(2), 2);
        table.look(&connection(2), Some(at(7)));
        assert_eq!(table.next_due(at(5)), None);
        assert_eq!(table.next_due(at(7)), Some(Ok(connection(2))));
        assert_eq!(table.next_due(at(7)), None, "each look is wished for anew");
    }

    #[test]
    fn a_flood_of_connections_leaves_nothing_behind() {
        let mut table = table(4);
        for n in 0..10_000 {
            table.insert(at(0), connection(n), n);
            table.look(&connection(n), Some(at(1)));
        }
        assert_eq!((table.len(), table.slots.len()), (4, 4));
        assert!(table.due.len() <= 4 * 4 + 64, "{}", table.due.len());
    }
}
