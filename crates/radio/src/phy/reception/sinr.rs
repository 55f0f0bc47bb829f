//! Errors under cumulative interference: the frame in pieces, each with its own signal-to-interference ratio.

use super::lock::LockedFrame;
use crate::phy::awgn::ErrorRateCache;
use hopline_core::Instant;

/// Interference with the frame being received, up to now.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Interference {
    start: Instant,
    end: Instant,
    /// Up to this bit `success` accounts for the errors.
    accounted_bits: u64,
    /// Probability that no bit has erred so far.
    success: f64,
}

impl Interference {
    /// A frame that begins now and lasts until `end`.
    pub(super) fn starting(now: Instant, end: Instant) -> Self {
        Self { start: now, end, accounted_bits: 0, success: 1.0 }
    }

    /// Accounts for the time up to `now`, in which noise and interference were `disturbance_w`. The bits are taken as
    /// spread evenly over the frame, its preamble included.
    pub(super) fn advance(
        &mut self,
        now: Instant,
        lock: &LockedFrame,
        disturbance_w: f64,
        rates: &mut ErrorRateCache,
    ) {
        // Counted from the start each time, so that cutting the frame into pieces loses no bits to rounding.
        let until = self.bits_until(now, lock);
        let bits = until - self.accounted_bits;
        self.accounted_bits = until;
        if bits > 0 {
            self.success *= 1.0 - rates.frame_error_rate(lock.rate, lock.power_w / disturbance_w, bits);
        }
    }

    fn bits_until(&self, at: Instant, lock: &LockedFrame) -> u64 {
        let whole = self.end.since(self.start).as_nanos().max(1);
        let past = at.since(self.start).as_nanos();
        match u64::from(lock.bits).checked_mul(past) {
            Some(product) => product / whole,
            // Frames of seconds. Not always so: dividing by 128 bits was a twentieth of a run's time.
            None => (u128::from(lock.bits) * u128::from(past) / u128::from(whole)) as u64,
        }
    }

    /// Probability that the frame is intact up to where it was accounted for.
    pub(super) const fn success(&self) -> f64 {
        self.success
    }
}
