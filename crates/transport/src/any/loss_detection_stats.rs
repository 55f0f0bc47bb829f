//! Counters of TCP's loss detection.

use crate::tcp::Stats;
use core::ops::Sub;

/// Losses detected by time, and spurious reductions; zeros without such schemes or without TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossDetectionStats {
    /// Segments that RACK declared lost (RFC 8985 §6).
    pub rack_losses: u64,
    /// Tail loss probes sent (RFC 8985 §7).
    pub tail_probes: u64,
    /// Time-outs, or series of them, that were spurious and undone (RFC 5682, 3522, 3708).
    pub spurious_timeouts: u64,
    /// Fast retransmits that were spurious and undone (RFC 3522, 3708).
    pub spurious_recoveries: u64,
}

impl LossDetectionStats {
    pub(super) fn from_stats(stats: &Stats) -> Self {
        Self {
            rack_losses: stats.rack_losses,
            tail_probes: stats.tail_probes,
            spurious_timeouts: stats.spurious_timeouts,
            spurious_recoveries: stats.spurious_recoveries,
        }
    }
}

impl Sub for LossDetectionStats {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            rack_losses: self.rack_losses - earlier.rack_losses,
            tail_probes: self.tail_probes - earlier.tail_probes,
            spurious_timeouts: self.spurious_timeouts - earlier.spurious_timeouts,
            spurious_recoveries: self.spurious_recoveries - earlier.spurious_recoveries,
        }
    }
}
