//! Period of ACK bursts, and number of ACKs in a burst.

use super::config::Config;
use hopline_core::{Duration, Instant};

/// Rhythm of the ACKs of a connection.
#[derive(Debug, Default)]
pub(super) struct BurstEstimator {
    /// Arrival time of the last ACK.
    last_arrival: Option<Instant>,
    /// Time at which the current burst began.
    burst_start: Instant,
    /// ACKs in the current burst.
    burst_acks: u32,
    smoothed: Option<BurstAverages>,
}

/// Averages over complete bursts. Their ratio is the time from one ACK to the next.
#[derive(Clone, Copy, Debug)]
struct BurstAverages {
    /// Time from the beginning of a burst to the beginning of the next.
    period: Duration,
    /// ACKs of a burst, times [`FIXED_POINT_ONE`].
    acks: u64,
}

/// Position of an ACK in its burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BurstPosition {
    First,
    Later,
}

/// Fixed-point scale of the average number of ACKs.
const FIXED_POINT_ONE: u64 = 256;
/// Divisor of the weight of a new burst in the averages.
const GAIN_DIVISOR: u64 = 4;

impl BurstEstimator {
    /// Records the arrival of an ACK.
    pub(super) fn on_ack(&mut self, now: Instant, config: &Config) -> BurstPosition {
        let heard = match self.last_arrival.replace(now) {
            Some(last) if now.since(last) <= config.burst_gap => BurstPosition::Later,
            _ => BurstPosition::First,
        };
        let lasted = now.since(self.burst_start);
        // A burst that does not end is cut at the longest holding time.
        if heard == BurstPosition::First || lasted >= config.max_delay {
            if self.burst_acks > 0 {
                self.end_burst(lasted.min(config.max_delay));
            }
            (self.burst_start, self.burst_acks) = (now, 0);
        }
        self.burst_acks += 1;
        heard
    }

    /// Returns the time between two forwarded ACKs, so that all are forwarded before the next burst: for the
    /// average burst, or for `crowd` ACKs if these are more. Zero until a burst has ended.
    pub(super) fn release_interval(&self, crowd: usize) -> Duration {
        let Some(BurstAverages { period, acks }) = self.smoothed else { return Duration::ZERO };
        let acks = acks.max(FIXED_POINT_ONE.saturating_mul(crowd as u64));
        Duration::from_nanos(period.as_nanos().saturating_mul(FIXED_POINT_ONE) / acks)
    }

    fn end_burst(&mut self, period: Duration) {
        let acks = u64::from(self.burst_acks) * FIXED_POINT_ONE;
        self.smoothed = Some(match self.smoothed {
            None => BurstAverages { period, acks },
            Some(before) => BurstAverages {
                period: Duration::from_nanos(ewma(before.period.as_nanos(), period.as_nanos())),
                acks: ewma(before.acks, acks),
            },
        });
    }
}

/// Returns the average after one more sample.
const fn ewma(average: u64, sample: u64) -> u64 {
    if sample >= average {
        average + (sample - average) / GAIN_DIVISOR
    } else {
        average - (average - sample) / GAIN_DIVISOR
    }
}
