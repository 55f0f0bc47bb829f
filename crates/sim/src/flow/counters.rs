//! Monotonic counters of a flow.

use super::gaps::GapsWithin;
use core::ops::Sub;
use hopline_transport::any::{Detected, Frozen};
use hopline_transport::tcp::DoorStats;

/// Counters since the start of the run, or, as a difference, since a later moment. Their meaning is that of the fields of
/// [`FlowOutcome`](crate::outcome::FlowOutcome).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    pub(super) bytes_received: u64,
    pub(super) segments_sent: u64,
    pub(super) retransmissions: u64,
    pub(super) duplicates: u64,
    pub(super) copies: u64,
    pub(super) timeouts: u64,
    pub(super) needless_timeouts: u64,
    pub(super) detected: Detected,
    pub(super) segments_received: u64,
    pub(super) requests: u64,
    pub(super) told: Told,
    pub(super) gaps: GapsWithin,
    pub(super) door: DoorStats,
    pub(super) frozen: Frozen,
}

/// Notifications of the network layer to the ends of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) losses: u64,
    pub(super) returns: u64,
}

impl Sub for Counters {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            bytes_received: self.bytes_received - earlier.bytes_received,
            segments_sent: self.segments_sent - earlier.segments_sent,
            retransmissions: self.retransmissions - earlier.retransmissions,
            duplicates: self.duplicates - earlier.duplicates,
            copies: self.copies - earlier.copies,
            timeouts: self.timeouts - earlier.timeouts,
            needless_timeouts: self.needless_timeouts - earlier.needless_timeouts,
            detected: self.detected - earlier.detected,
            // The segment size is agreed on in the handshake, and with it how many segments some bytes are.
            segments_received: self.segments_received.saturating_sub(earlier.segments_received),
            requests: self.requests - earlier.requests,
            told: Told {
                losses: self.told.losses - earlier.told.losses,
                returns: self.told.returns - earlier.told.returns,
            },
            gaps: self.gaps - earlier.gaps,
            door: self.door - earlier.door,
            frozen: self.frozen - earlier.frozen,
        }
    }
}
