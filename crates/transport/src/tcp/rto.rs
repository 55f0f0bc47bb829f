//! Round-trip time and retransmission timeout (RFC 6298).

use super::config::{Estimator, RtoConfig, RtoFloor};
use hopline_core::{Duration, Instant};

/// RTO once data flows after a lost SYN, if the initial RTO is less (RFC 6298 §5.7).
const AFTER_LOST_SYN: Duration = Duration::from_secs(3);

/// Estimator and back-off of one connection's retransmission timeout.
#[derive(Clone, Debug)]
pub(crate) struct RtoEstimator {
    config: RtoConfig,
    smoothed: RttEstimate,
    /// RTO before limits and back-off.
    base_rto: Duration,
    /// Back-off factor.
    backoff_factor: u32,
    next_sample: SampleWeight,
}

/// Weight of the next sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SampleWeight {
    /// Usual weight.
    Normal,
    /// Full weight, if the sample is long, since a time-out was spurious (RFC 4015 §3.2).
    FullIfLong,
}

/// State of the back-off before a reduction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BackoffState {
    factor: u32,
    smoothed: RttEstimate,
}

/// Smoothed estimate, in the units of the estimator.
#[derive(Clone, Copy, Debug)]
enum RttEstimate {
    Unknown,
    /// Nanoseconds.
    Exact {
        srtt: f64,
        rttvar: f64,
    },
    /// 8·srtt and 4·rttvar, ticks.
    Ticks {
        srtt8: i64,
        rttvar4: i64,
    },
}

impl RtoEstimator {
    pub(crate) fn new(config: RtoConfig) -> Self {
        Self {
            config,
            smoothed: RttEstimate::Unknown,
            base_rto: config.initial,
            backoff_factor: 1,
            next_sample: SampleWeight::Normal,
        }
    }

    /// Adds a round-trip time sample of data sent at `sent` and acknowledged at `now`. `share`: samples per round trip
    /// (RFC 7323 appendix G); 1 if one segment is timed at a time.
    pub(crate) fn sample(&mut self, sent: Instant, now: Instant, share: u32) {
        match self.config.estimator {
            Estimator::Exact => self.sample_exact(now.since(sent), share),
            Estimator::Ticks { phase } => {
                let tick = |t: Instant| (t + phase).as_nanos() / self.config.granularity.as_nanos();
                self.sample_ticks(tick(now) - tick(sent));
            }
        }
        self.next_sample = SampleWeight::Normal;
        self.backoff_factor = 1; // RFC 6298 §5, last note: a fresh sample ends the back-off
    }

    /// Returns the timeout to set now (RFC 6298 §2, §5.5).
    pub(crate) fn timeout(&self) -> Duration {
        let rto = self.base_rto.max(self.config.min).saturating_mul(u64::from(self.backoff_factor));
        rto.min(self.config.max).max(self.config.granularity)
    }

    /// Returns the timeout without back-off.
    pub(crate) fn without_back_off(&self) -> Duration {
        self.base_rto.max(self.config.min).min(self.config.max).max(self.config.granularity)
    }

    /// Doubles the timeout (RFC 6298 §5.5).
    pub(crate) fn back_off(&mut self) {
        let more = match self.config.backoff_limit {
            Some(limit) => self.backoff_factor < limit,
            None => self.timeout() < self.config.max,
        };
        if more {
            self.backoff_factor = self.backoff_factor.saturating_mul(2);
        }
        if self.config.reset_above.is_some_and(|n| self.backoff_factor > n) {
            self.smoothed = RttEstimate::Unknown;
        }
    }

    /// Returns the state that [`Self::back_off`] may change.
    pub(crate) fn back_off_state(&self) -> BackoffState {
        BackoffState { factor: self.backoff_factor, smoothed: self.smoothed }
    }

    /// Restores the state before a back-off, unless a fresh sample did better.
    pub(crate) fn undo_back_off(&mut self, before: BackoffState) {
        self.backoff_factor = self.backoff_factor.min(before.factor);
        if matches!(self.smoothed, RttEstimate::Unknown) {
            self.smoothed = before.smoothed;
        }
    }

    /// Gives full weight to a long sample right after a spurious time-out (RFC 4015 §3.2, step 8).
    pub(crate) fn weight_next_long_sample(&mut self) {
        self.next_sample = SampleWeight::FullIfLong;
    }

    /// Returns the total duration of `n` consecutive time-outs, each twice as long as the one before, and of the wait
    /// after them.
    pub(crate) fn total_time_of_timeouts(&self, n: u32) -> Duration {
        const DOUBLINGS: u32 = 40;
        let wait = |i: u32| self.timeout().saturating_mul(1 << i).min(self.config.max);
        let doubling = (0..=n.min(DOUBLINGS)).map(wait).fold(Duration::ZERO, |sum, wait| sum + wait);
        doubling + self.config.max.saturating_mul(u64::from(n.saturating_sub(DOUBLINGS)))
    }

    /// Ends the back-off without a sample.
    pub(crate) fn end_back_off(&mut self) {
        self.backoff_factor = 1;
    }

    /// Sets the timeout after a lost SYN (RFC 6298 §5.7).
    pub(crate) fn on_lost_syn(&mut self) {
        if matches!(self.smoothed, RttEstimate::Unknown) && self.config.initial < AFTER_LOST_SYN {
            self.base_rto = AFTER_LOST_SYN;
            self.backoff_factor = 1;
        }
    }

    /// Returns the smoothed round-trip time.
    pub(crate) fn srtt(&self) -> Option<Duration> {
        match self.smoothed {
            RttEstimate::Unknown => None,
            RttEstimate::Exact { srtt, .. } => Some(Duration::from_nanos(srtt as u64)),
            RttEstimate::Ticks { srtt8, .. } => Some(self.config.granularity * srtt8 as u64 / 8),
        }
    }

    /// Returns the mean deviation of the round-trip time.
    pub(crate) fn rtt_deviation(&self) -> Option<Duration> {
        match self.smoothed {
            RttEstimate::Unknown => None,
            RttEstimate::Exact { rttvar, .. } => Some(Duration::from_nanos(rttvar as u64)),
            RttEstimate::Ticks { rttvar4, .. } => Some(self.config.granularity * rttvar4 as u64 / 4),
        }
    }

    /// Returns the back-off factor: 2 to the number of doublings since the last sample.
    pub(crate) fn backoff_factor(&self) -> u32 {
        self.backoff_factor
    }

    fn sample_exact(&mut self, rtt: Duration, share: u32) {
        let r = rtt.as_nanos() as f64;
        let (srtt, rttvar) = match self.smoothed {
            RttEstimate::Exact { srtt, rttvar } => {
                // RFC 6298 §2.3, gains divided by the samples per round trip (RFC 7323 appendix G)
                let n = f64::from(share.max(1));
                let (alpha, beta) = (1.0 / 8.0 / n, 1.0 / 4.0 / n);
                let smoothed =
                    ((1.0 - alpha) * srtt + alpha * r, (1.0 - beta) * rttvar + beta * (srtt - r).abs());
                match self.next_sample {
                    SampleWeight::Normal => smoothed,
                    SampleWeight::FullIfLong => (srtt.max(r), rttvar.max(r / 2.0)),
                }
            }
            RttEstimate::Unknown | RttEstimate::Ticks { .. } => (r, r / 2.0), // §2.2
        };
        self.smoothed = RttEstimate::Exact { srtt, rttvar };
        let g = self.config.granularity;
        let least = match self.config.floor {
            RtoFloor::Rto => g,
            RtoFloor::Variance => g.max(self.config.min),
        };
        let variance = Duration::from_nanos((4.0 * rttvar) as u64).max(least);
        self.base_rto = (Duration::from_nanos(srtt as u64) + variance).round_up_to(g);
    }

    /// Updates the estimate as in Jacobson (1988), appendix A: scaled integers, truncating shifts.
    fn sample_ticks(&mut self, ticks: u64) {
        let m = ticks.clamp(1, i32::MAX as u64) as i64;
        let (srtt8, rttvar4) = match self.smoothed {
            RttEstimate::Ticks { srtt8, rttvar4 } => {
                let error = m - (srtt8 >> 3);
                let deviation = error.abs() - (rttvar4 >> 2);
                match self.next_sample {
                    SampleWeight::Normal => ((srtt8 + error).max(1), (rttvar4 + deviation).max(1)),
                    SampleWeight::FullIfLong => (srtt8.max(m << 3), rttvar4.max(m << 1)),
                }
            }
            RttEstimate::Unknown | RttEstimate::Exact { .. } => (m << 3, m << 1),
        };
        self.smoothed = RttEstimate::Ticks { srtt8, rttvar4 };
        let rto = ((rttvar4 << 3) + srtt8) >> 3;
        // Never below two ticks: a timer of one tick may fire at once.
        self.base_rto = self.config.granularity * rto.max(2) as u64;
    }
}
