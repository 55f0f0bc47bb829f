//! Counters.

/// Counters of a [`Snoop`](super::Snoop).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets with data that were cached on arrival.
    pub cached: u64,
    /// Packets with data that arrived above the high-water mark.
    pub not_cached: u64,
    /// Local retransmissions.
    pub local_retransmissions: u64,
    /// Of those, the ones by a timeout.
    pub timeouts: u64,
    /// Retransmissions of the sender that passed.
    pub sender_retransmissions: u64,
    /// Packets left to the sender: lost on the last hop more often than the limit, or refused by its queue.
    pub left_to_sender: u64,
    /// ACKs absorbed.
    pub acks_absorbed: u64,
    /// ACKs with some SACK blocks removed.
    pub acks_rewritten: u64,
    /// ACKs made on behalf of mobile hosts.
    pub acks_made: u64,
    /// ACKs of data that were never sent: forwarded and otherwise ignored.
    pub acks_of_unsent_data: u64,
    /// Announcements of a host that caches its data.
    pub announcements: u64,
    /// Negative acknowledgments that did not fit their connection.
    pub invalid_nacks: u64,
    /// Negative acknowledgments that requested more than the allowance.
    pub nacks_over_allowance: u64,
    /// Connections evicted to make room for other connections.
    pub evicted: u64,
    /// Of those, the ones evicted because all caches together were too large.
    pub evicted_for_bytes: u64,
    /// Connections that expired after silence.
    pub expired: u64,
}
