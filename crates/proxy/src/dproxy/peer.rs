//! State of the other end: whether it is there, its keys, and which of its messages have come.

use super::key::Seen;
use super::{DProxy, Key, Released};
use hopline_core::Instant;

/// The other end.
#[derive(Debug)]
pub(super) struct Other {
    /// While it is not there, nothing is asked for and no packet waits.
    pub(super) is_there: bool,
    /// Key of what is said to it.
    pub(super) seals: Key,
    /// Key of what it says.
    pub(super) opens: Key,
    /// The number of the next message.
    pub(super) number: u64,
    pub(super) seen: Seen,
}

impl Other {
    pub(super) fn there([seals, opens]: [Key; 2]) -> Self {
        Self { is_there: true, seals, opens, number: 1, seen: Seen::default() }
    }
}

impl<K: Clone> DProxy<K> {
    /// The other end is there from now on. The first of the keys is for what this end says, the second for what it hears. With other keys
    /// than before it is another incarnation, and numbers of messages begin anew.
    pub fn peer_came(&mut self, now: Instant, keys: [Key; 2]) {
        self.peer_left(now);
        if [self.other.seals, self.other.opens] != keys {
            self.other = Other::there(keys);
        }
        self.other.is_there = true;
    }

    /// The other end is not there any more. What waits for it goes on, and all is forgotten; packets pass untouched until
    /// [`DProxy::peer_came`].
    pub fn peer_left(&mut self, now: Instant) {
        self.other.is_there = false;
        for (_, tracked) in self.table.take_all(|_| true) {
            let _: Released = self.bury(now, tracked);
        }
    }
}
