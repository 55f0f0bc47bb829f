//! Monotonic counters of a flow.

use super::route_gaps::RouteGapTotals;
use core::ops::Sub;
use hopline_transport::any::{FreezeStats, LossDetectionStats};
use hopline_transport::tcp::DoorStats;

/// Counters since the start of the run, or, as a difference, since a later moment. Their meaning is that of the fields of
/// [`FlowOutcome`](crate::outcome::FlowOutcome).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FlowCounters {
    pub(super) bytes_received: u64,
    pub(super) segments_sent: u64,
    pub(super) retransmissions: u64,
    pub(super) duplicates: u64,
    pub(super) copies: u64,
    pub(super) timeouts: u64,
    pub(super) spurious_timeouts: u64,
    pub(super) loss_detection: LossDetectionStats,
    pub(super) segments_received: u64,
    pub(super) requests: u64,
    pub(super) notifications: RouteNotifications,
    pub(super) route_gaps: RouteGapTotals,
    pub(super) door: DoorStats,
    pub(super) frozen: FreezeStats,
}

/// Notifications of the network layer to the ends of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RouteNotifications {
    pub(super) lost: u64,
    pub(super) found: u64,
}

impl Sub for FlowCounters {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            bytes_received: self.bytes_received - earlier.bytes_received,
            segments_sent: self.segments_sent - earlier.segments_sent,
            retransmissions: self.retransmissions - earlier.retransmissions,
            duplicates: self.duplicates - earlier.duplicates,
            copies: self.copies - earlier.copies,
            timeouts: self.timeouts - earlier.timeouts,
            spurious_timeouts: self.spurious_timeouts - earlier.spurious_timeouts,
            loss_detection: self.loss_detection - earlier.loss_detection,
            // The segment size is agreed on in the handshake, and with it how many segments some bytes are.
            segments_received: self.segments_received.saturating_sub(earlier.segments_received),
            requests: self.requests - earlier.requests,
            notifications: RouteNotifications {
                lost: self.notifications.lost - earlier.notifications.lost,
                found: self.notifications.found - earlier.notifications.found,
            },
            route_gaps: self.route_gaps - earlier.route_gaps,
            door: self.door - earlier.door,
            frozen: self.frozen - earlier.frozen,
        }
    }
}
