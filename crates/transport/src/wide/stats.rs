//! Counters.

use crate::drops::Reason;
use hopline_core::Duration;

/// What an endpoint counted since it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Stats {
    /// Packets with data that were sent, retransmissions included.
    pub segments_sent: u64,
    /// Packets with data that was sent before.
    pub retransmissions: u64,
    /// Bytes of data sent, retransmissions included.
    pub bytes_sent: u64,
    /// Bytes of data that the peer acknowledged.
    pub bytes_acked: u64,
    /// Packets without data that were sent.
    pub acks_sent: u64,
    /// Packets taken in, dropped ones included.
    pub packets_received: u64,
    /// Distinct bytes received in order, whether or not the user has read them.
    pub bytes_received: u64,
    /// Packets that held only data received before.
    pub duplicates_received: u64,
    /// Transmissions taken for lost.
    pub lost: u64,
    /// Of these, those that arrived after all.
    pub late: u64,
    /// Times the path was silent for a time-out: probes that followed.
    pub timeouts: u64,
    /// Times the rate was reduced.
    pub reductions: u64,
    /// Times the path was frozen: silent, or known to be gone.
    pub freezes: u64,
    /// Probes sent while it was.
    pub probes: u64,
    /// How long it was.
    pub frozen: Duration,
    /// Packets dropped, by reason.
    pub drops: Drops,
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// The endpoint is closed.
    Closed,
    /// It makes no sense in this state.
    Unexpected,
    /// It acknowledges what was never sent.
    BadAck,
    /// It contradicts what was said of the stream before: two ends, or data after the end.
    Inconsistent,
    /// No room in the receive buffer.
    NoRoom,
    /// Data after the user or the peer closed.
    AfterClose,
}

impl DropReason {
    /// Every reason.
    pub const ALL: [Self; 6] =
        [Self::Closed, Self::Unexpected, Self::BadAck, Self::Inconsistent, Self::NoRoom, Self::AfterClose];
}

impl Reason for DropReason {
    fn index(self) -> usize {
        self as usize
    }
}

/// Dropped packets, by reason.
pub type Drops = crate::drops::Drops<DropReason, { DropReason::ALL.len() }>;
