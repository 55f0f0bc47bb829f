//! Counters of a host.

use hopline_secure::{Counts, DropReason, Refusals};

/// Reason that a host dropped a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dropped {
    /// Shorter than anything that has a meaning, or of a kind that is not known.
    Malformed,
    /// The datagram belongs to no existing connection. If this host has a [`ResetKey`](crate::ResetKey), the
    /// sender was notified, unless too many were.
    Unknown,
    /// Sealed, for a connection with a handshake that is not over.
    Early,
    /// It could not be opened: forged, damaged, repeated, too old.
    /// [`Conn::rejections`](crate::Conn::rejections) knows which.
    Unopened,
    /// The peer has sealed what makes no sense.
    Senseless,
    /// The responder has refused it: [`HostStats::refusals`] knows why.
    Refused,
    /// A handshake's message for an initiator that is done, or of which it made nothing.
    Late,
    /// An initiator calls, and this host does not listen.
    NotListening,
    /// An initiator calls, and the backlog of accepted connections is full.
    Backlog,
    /// An initiator calls, and the number of connections is at its limit.
    Connections,
    /// It says that a connection is not known any more, without the token that would show it.
    Unproven,
    /// Its answer found no room among the answers that have not been fetched.
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
    /// Connections, whatever their state.
    pub connections: usize,
    /// Handshakes in progress that peers have begun.
    pub half_open: usize,
    /// Accepted connections that have not been picked yet.
    pub backlog: usize,
    /// Bytes of memory that received data take, the overhead of their pieces included.
    pub receive_memory: u64,
    /// Connections that peers have opened.
    pub accepted: u64,
    /// Connections that we have opened.
    pub opened: u64,
    /// Connections that we have not been able to open.
    pub failed: u64,
    /// Moves of peers to other addresses.
    pub moved: u64,
    /// Number of peers that were notified that a connection is not known any more.
    pub resets_sent: u64,
    /// Datagrams that came.
    pub datagrams_received: u64,
    /// Bytes in them.
    pub bytes_received: u64,
    /// Datagrams that left.
    pub datagrams_sent: u64,
    /// Bytes in them.
    pub bytes_sent: u64,
    /// Datagrams of which nothing was made.
    pub drops: Drops,
    /// Numbers of datagrams that the responder refused, by reason.
    pub refusals: Refusals,
}
