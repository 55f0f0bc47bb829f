//! Presence of the other end: its arrival and its absence.

use super::loss_detection::Released;
use super::peer::PeerState;
use super::{DProxy, Key};
use hopline_core::Instant;

impl<K: Clone> DProxy<K> {
    /// Records that the other end is present. The first key is for messages of this end, the second for those
    /// of the other end. New keys mean another incarnation, and message numbers begin anew.
    pub fn handle_peer_present(&mut self, now: Instant, keys: [Key; 2]) {
        self.handle_peer_absent(now);
        if [self.peer.send_key, self.peer.receive_key] != keys {
            self.peer = PeerState::present(keys);
        }
        self.peer.is_present = true;
    }

    /// Records that the other end is absent. Waiting packets are forwarded, and all state is dropped. Packets
    /// pass untouched until [`DProxy::handle_peer_present`].
    pub fn handle_peer_absent(&mut self, now: Instant) {
        self.peer.is_present = false;
        for (_, tracked) in self.table.remove_where(|_| true) {
            let _: Released = self.release_state(now, tracked);
        }
    }
}
