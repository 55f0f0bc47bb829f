//! State of the other end: its presence, its keys, and the numbers of its messages.

use super::key::{Key, ReplayWindow};

/// The other end.
#[derive(Debug)]
pub(super) struct PeerState {
    /// `true` while the other end is present. Otherwise nothing is requested and no packet waits.
    pub(super) is_present: bool,
    /// Key of messages to the other end.
    pub(super) send_key: Key,
    /// Key of messages from the other end.
    pub(super) receive_key: Key,
    /// Number of the next message.
    pub(super) next_number: u64,
    pub(super) replay_window: ReplayWindow,
}

impl PeerState {
    pub(super) fn present([seals, opens]: [Key; 2]) -> Self {
        Self {
            is_present: true,
            send_key: seals,
            receive_key: opens,
            next_number: 1,
            replay_window: ReplayWindow::default(),
        }
    }
}
