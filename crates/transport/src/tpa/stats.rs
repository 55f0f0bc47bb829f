//! Counters.

use crate::drops::Reason;

/// What an endpoint counted since it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
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
    /// Times the congested state was entered; without ELFN the one that is the freeze state as well.
    pub congestions: u64,
    /// Times the freeze state was entered.
    pub freezes: u64,
    /// Route changes noticed (§3.4).
    pub route_changes: u64,
    /// Segments received that held only data received before.
    pub duplicates_received: u64,
    /// Segments received before one with a lower position.
    pub out_of_order: u64,
    /// Times the peer was asked for its window or a sign of life.
    pub probes: u64,
    /// Segments dropped, by reason.
    pub drops: Drops,
}

/// Why a segment was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// The endpoint is closed.
    Closed,
    /// It makes no sense in this state.
    Unexpected,
    /// It does not carry our connection tag.
    WrongTag,
    /// It acknowledges what was never sent.
    BadAck,
    /// It acknowledges what its sender cannot prove to have received.
    BadProof,
    /// It acknowledges a block that is over.
    OldAck,
    /// A reset that does not fit where the connection stands.
    BadReset,
    /// Of a block neither current nor next, or of the next while the current is not complete.
    OutsideBlock,
    /// It contradicts what was said about the block before: two ends, or data after the end.
    Inconsistent,
    /// Longer than the largest segment we announced.
    TooLong,
    /// No room in the receive buffer.
    NoRoom,
    /// Data after the user or the peer closed.
    AfterClose,
}

impl DropReason {
    /// Every reason.
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
