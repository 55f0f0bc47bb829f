//! Counters of a host.

use hopline_secure::{Counts, DropReason, Refusals};

/// Reason that a host dropped a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dropped {
    /// It is too short, or of an unknown kind.
    Malformed,
    /// It belongs to no existing connection. If this host has a [`ResetKey`](crate::ResetKey), a stateless reset was sent,
    /// unless 1000 were sent in the same second.
    Unknown,
    /// It is encrypted, and the handshake of its connection has not ended.
    Early,
    /// It could not be decrypted: forged, damaged, repeated or too old. [`Conn::rejections`](crate::Conn::rejections) counts
    /// these reasons.
    Unopened,
    /// It could be decrypted, but its content is malformed.
    Senseless,
    /// The responder has refused it. [`HostStats::refusals`] counts the reasons.
    Refused,
    /// It is a message of a handshake for an initiator that has finished, or that does not expect it.
    Late,
    /// It would open a connection, but this host does not listen.
    NotListening,
    /// It would open a connection, but the backlog of accepted connections is full.
    Backlog,
    /// It would open a connection, but the number of connections is at its limit.
    Connections,
    /// It is a stateless reset without the right token.
    Unproven,
    /// Its answer was dropped, because too many answers wait to be sent.
    Unfetched,
}

impl DropReason for Dropped {
    const ALL: &'static [Self] = &[
        Self::Malformed,
        Self::Unknown,
        Self::Early,
        Self::Unopened,
        Self::Senseless,
        Self::Refused,
        Self::Late,
        Self::NotListening,
        Self::Backlog,
        Self::Connections,
        Self::Unproven,
        Self::Unfetched,
    ];

    fn index(self) -> usize {
        self as usize
    }
}

/// Number of dropped datagrams, by reason.
pub type Drops = Counts<Dropped, { Dropped::ALL.len() }>;

/// Counters of a host since its creation, and its current state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct HostStats {
    /// Connections in any state.
    pub connections: usize,
    /// Handshakes in progress that peers have initiated.
    pub half_open: usize,
    /// Accepted connections in the backlog, which have no user yet.
    pub backlog: usize,
    /// Memory for received data in bytes, including the overhead of each piece.
    pub receive_memory: u64,
    /// Connections that peers have opened.
    pub accepted: u64,
    /// Connections that this host has opened.
    pub opened: u64,
    /// Connections that this host has failed to open.
    pub failed: u64,
    /// Changes of the addresses of peers, each after path validation.
    pub moved: u64,
    /// Stateless resets sent.
    pub resets_sent: u64,
    /// Datagrams received.
    pub datagrams_received: u64,
    /// Bytes in them.
    pub bytes_received: u64,
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// Bytes in them.
    pub bytes_sent: u64,
    /// Dropped datagrams, by reason.
    pub drops: Drops,
    /// Numbers of datagrams that the responder refused, by reason.
    pub refusals: Refusals,
}
