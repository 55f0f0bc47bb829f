//! State of the other end: its presence, its keys, and the numbers of its messages.

use super::key::{Key, Seen};

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
