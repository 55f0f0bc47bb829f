//! Presence of the other end: its arrival and its absence.

use super::detect::Released;
use super::peer::Other;
use super::{DProxy, Key};
use hopline_core::Instant;

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
