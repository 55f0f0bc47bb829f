//! Errors under cumulative interference: the frame in pieces, each with its own signal-to-interference ratio.

use super::Lock;
use crate::phy::awgn::frame_error_rate;
use hopline_core::Instant;

/// How the frame being received has fared so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Interference {
    start: Instant,
    end: Instant,
    /// Up to here `success` accounts for the errors.
    judged_until: Instant,
    /// Probability that no bit has erred so far.
    success: f64,
}

impl Interference {
    /// A frame that begins now and lasts until `end`.
    pub(super) fn starting(now: Instant, end: Instant) -> Self {
        Self { start: now, end, judged_until: now, success: 1.0 }
    }

    /// Accounts for the time up to `now`, in which noise and interference were `disturbance_w`. The bits are taken as
    /// spread evenly over the frame, its preamble included.
    pub(super) fn advance(&mut self, now: Instant, lock: &Lock, disturbance_w: f64) {
        let (piece, whole) = (now.since(self.judged_until), self.end.since(self.start));
        if piece.is_zero() || whole.is_zero() {
            return;
        }
        let bits = u128::from(lock.bits) * u128::from(piece.as_nanos()) / u128::from(whole.as_nanos());
        self.success *= 1.0 - frame_error_rate(lock.rate, lock.power_w / disturbance_w, bits as u64);
        self.judged_until = now;
    }

    /// Probability that the frame is intact up to where it was accounted for.
    pub(super) const fn success(&self) -> f64 {
        self.success
    }
}
