//! Counters.

use crate::drops::Reason;
use hopline_core::Duration;

/// Counters of an endpoint since its creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
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
    /// Transmissions declared lost.
    pub lost: u64,
    /// Transmissions declared lost that arrived after all.
    pub spurious_losses: u64,
    /// Times the path was silent for a time-out, with a probe each.
    pub timeouts: u64,
    /// Times the rate was reduced.
    pub reductions: u64,
    /// Times the path was frozen: silent, or gone according to the network layer.
    pub freezes: u64,
    /// Probes sent on a frozen path.
    pub probes: u64,
    /// Total time for which the path was frozen.
    pub frozen: Duration,
    /// Packets dropped, by reason.
    pub drops: Drops,
}

/// Reason for dropping a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DropReason {
    /// Endpoint closed.
    Closed,
    /// Not expected in this state.
    Unexpected,
    /// Acknowledgment of packets that were never sent.
    BadAck,
    /// Contradiction to earlier packets: two ends of the stream, or data after the end.
    Inconsistent,
    /// No room in the receive buffer.
    NoRoom,
    /// Data after the user or the peer closed.
    AfterClose,
}

impl DropReason {
    /// All reasons.
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
