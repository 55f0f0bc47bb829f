//! State of the other end: its presence, its keys, and the numbers of its messages.

use super::key::Seen;
use super::{DProxy, Key, Released};
use hopline_core::Instant;

/// The other end.
#[derive(Debug)]
pub(super) struct Other {
    /// `true` while the other end is present. Otherwise nothing is requested and no packet waits.
    pub(super) is_there: bool,
    /// Key of messages to the other end.
    pub(super) seals: Key,
    /// Key of messages from the other end.
    pub(super) opens: Key,
    /// Number of the next message.
    pub(super) number: u64,
    pub(super) seen: Seen,
}

impl Other {
    pub(super) fn there([seals, opens]: [Key; 2]) -> Self {
        Self { is_there: true, seals, opens, number: 1, seen: Seen::default() }
    }
}

impl<K: Clone> DProxy<K> {
    /// Records that the other end is present. The first key is for messages of this end, the second for those
    /// of the other end. New keys mean another incarnation, and message numbers begin anew.
    pub fn peer_came(&mut self, now: Instant, keys: [Key; 2]) {
        self.peer_left(now);
        if [self.other.seals, self.other.opens] != keys {
            self.other = Other::there(keys);
        }
        self.other.is_there = true;
    }

    /// Records that the other end is absent. Waiting packets are forwarded, and all state is dropped. Packets
    /// pass untouched until [`DProxy::peer_came`].
    pub fn peer_left(&mut self, now: Instant) {
        self.other.is_there = false;
        for (_, tracked) in self.table.take_all(|_| true) {
            let _: Released = self.bury(now, tracked);
        }
    }
}
