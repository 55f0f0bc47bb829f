//! Counters.

use crate::drops::Reason;

/// Counters of an endpoint since its creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Segments with data that were sent, retransmissions included.
    pub segments_sent: u64,
    /// Segments with data that was sent before.
    pub retransmissions: u64,
    /// Bytes of data sent, retransmissions included.
    pub bytes_sent: u64,
    /// Bytes of data that the peer acknowledged.
    pub bytes_acked: u64,
    /// Segments without data, SYN, FIN or RST that were sent.
    pub acks_sent: u64,
    /// Segments taken in, dropped ones included.
    pub segments_received: u64,
    /// Distinct bytes received in order, whether or not the user has read them.
    pub bytes_received: u64,
    /// Blocks acknowledged as a whole.
    pub blocks: u64,
    /// Segments that timed out.
    pub timeouts: u64,
    /// Times the congested state was entered; without ELFN the state that is merged with the freeze state.
    pub congested_periods: u64,
    /// Times the freeze state was entered.
    pub freezes: u64,
    /// Route changes detected (§3.4).
    pub route_changes: u64,
    /// Segments received that held only data received before.
    pub duplicates_received: u64,
    /// Segments received before one with a lower position.
    pub out_of_order: u64,
    /// Probes for the peer's window or for a sign of life.
    pub probes: u64,
    /// Segments dropped, by reason.
    pub drops: Drops,
}

/// Reason for dropping a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DropReason {
    /// Endpoint closed.
    Closed,
    /// Not expected in this state.
    Unexpected,
    /// No or wrong connection tag.
    WrongTag,
    /// Acknowledgment of segments that were never sent.
    BadAck,
    /// Acknowledgment with a wrong proof of receipt.
    BadProof,
    /// Acknowledgment of a completed block.
    OldAck,
    /// Reset that does not match the state of the connection.
    BadReset,
    /// Segment of a block that is neither the current nor the next one, or of the next one while the current one is
    /// incomplete.
    OutsideBlock,
    /// Contradiction to earlier segments of the block: two ends, or data after the end.
    Inconsistent,
    /// Segment longer than the announced maximum.
    TooLong,
    /// No room in the receive buffer.
    NoRoom,
    /// Data after the user or the peer closed.
    AfterClose,
}

impl DropReason {
    /// All reasons.
    pub const ALL: [Self; 12] = [
        Self::Closed,
        Self::Unexpected,
        Self::WrongTag,
        Self::BadAck,
        Self::BadProof,
        Self::OldAck,
        Self::BadReset,
        Self::OutsideBlock,
        Self::Inconsistent,
        Self::TooLong,
        Self::NoRoom,
        Self::AfterClose,
    ];
}

impl Reason for DropReason {
    fn index(self) -> usize {
        self as usize
    }
}

/// Dropped segments, by reason.
pub type Drops = crate::drops::Drops<DropReason, { DropReason::ALL.len() }>;
