//! Input and verdict of the algorithms that end slow start.

use hopline_core::{Duration, Instant};

/// Input of the algorithms for an acknowledgment of new data. Positions are stream offsets.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlowStartAck {
    pub(super) now: Instant,
    /// First unacknowledged position, after this ACK.
    pub(super) una: u64,
    /// Next position to send.
    pub(super) nxt: u64,
    /// Round-trip time of the data that it acknowledges.
    pub(super) rtt: Option<Duration>,
    /// Smoothed round-trip time; zero before the first sample.
    pub(super) srtt: Duration,
    pub(super) cwnd: u32,
    pub(super) ssthresh: u32,
    pub(super) mss: u32,
    pub(super) pacing: PacingUse,
    /// Time since the beginning of CUBIC's congestion avoidance stage; `None`: there is none.
    pub(super) cubic_epoch_age: Option<Duration>,
}

impl SlowStartAck {
    pub(super) fn is_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
}

/// Pacing of the segments that the window allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacingUse {
    Paced,
    Unpaced,
}

/// Decision about slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlowStartVerdict {
    /// No change.
    Continue,
    /// Slow start ends at the present window.
    Exit,
}
