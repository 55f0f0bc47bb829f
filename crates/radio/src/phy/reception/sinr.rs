//! Errors under cumulative interference: the frame in pieces, each with its own signal-to-interference ratio.

use super::Lock;
use crate::phy::awgn::ErrorRates;
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
    pub(super) fn advance(&mut self, now: Instant, lock: &Lock, disturbance_w: f64, rates: &mut ErrorRates) {
        // Counted from the start each time, so that cutting the frame into pieces loses no bits to rounding.
        let bits = self.bits_until(now, lock) - self.bits_until(self.judged_until, lock);
        self.judged_until = now;
        if bits > 0 {
            self.success *= 1.0 - rates.frame_error_rate(lock.rate, lock.power_w / disturbance_w, bits);
        }
    }

    fn bits_until(&self, at: Instant, lock: &Lock) -> u64 {
        let whole = u128::from(self.end.since(self.start).as_nanos()).max(1);
        (u128::from(lock.bits) * u128::from(at.since(self.start).as_nanos()) / whole) as u64
    }

    /// Probability that the frame is intact up to where it was accounted for.
    pub(super) const fn success(&self) -> f64 {
        self.success
    }
}
