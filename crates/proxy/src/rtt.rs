//! Smoothed round-trip time.

use hopline_core::{Duration, Instant};

/// Smoothed round-trip time and its deviation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RttEstimator {
    srtt: Duration,
    rttvar: Duration,
    /// Weights of a sample, in the mean and in the deviation.
    gains: [f64; 2],
    first_sample: FirstSample,
}

/// Effect of the first sample, and mean from which deviations are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FirstSample {
    /// The first sample initialises both (RFC 6298 §2.2).
    Initialise,
    /// The first sample is averaged in like any other; deviations are from the mean before the sample (RFC
    /// 6298 §2.3).
    Average,
    /// As `Average`, with deviations from the mean after the sample (ns-2's agent).
    AverageAsNs2,
}

impl RttEstimator {
    /// Creates an estimator with this mean, into which the first sample is averaged.
    pub(crate) const fn with_initial_mean(srtt: Duration, gain: f64) -> Self {
        Self { srtt, rttvar: Duration::ZERO, gains: [gain; 2], first_sample: FirstSample::Average }
    }

    /// Creates an estimator with mean and deviation as in ns-2's agent.
    pub(crate) const fn ns2(srtt: Duration, rttvar: Duration, gains: [f64; 2]) -> Self {
        Self { srtt, rttvar, gains, first_sample: FirstSample::AverageAsNs2 }
    }

    /// Creates an estimator with this mean until the first sample, and the weights of RFC 6298 §2.3.
    pub(crate) const fn with_initial_until_sampled(srtt: Duration) -> Self {
        Self { srtt, rttvar: Duration::ZERO, gains: [0.125, 0.25], first_sample: FirstSample::Initialise }
    }

    pub(crate) fn sample(&mut self, sample: Duration) {
        if self.first_sample == FirstSample::Initialise {
            self.first_sample = FirstSample::Average;
            (self.srtt, self.rttvar) = (sample, Duration::from_nanos(sample.as_nanos() / 2));
            return;
        }
        let [alpha, beta] = self.gains;
        let before = self.srtt;
        self.srtt = ewma(self.srtt, sample, alpha);
        let mean = if self.first_sample == FirstSample::AverageAsNs2 { self.srtt } else { before };
        self.rttvar = ewma(self.rttvar, mean.abs_diff(sample), beta);
    }

    pub(crate) const fn srtt(&self) -> Duration {
        self.srtt
    }

    pub(crate) const fn with_deviations(&self, factor: u64) -> Duration {
        Duration::from_nanos(self.srtt.as_nanos() + factor * self.rttvar.as_nanos())
    }
}

/// Windowed maximum of durations: over the current period and the one before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowedMaxDuration {
    period: Duration,
    period_start: Instant,
    current: Duration,
    previous: Duration,
}

impl WindowedMaxDuration {
    /// Creates an empty maximum. Each sample counts for one to two periods.
    pub(crate) const fn new(period: Duration) -> Self {
        Self { period, period_start: Instant::ZERO, current: Duration::ZERO, previous: Duration::ZERO }
    }

    /// Adds a sample; zero if there is none. The window advances with samples only.
    pub(crate) fn sample(&mut self, now: Instant, sample: Duration) {
        let age = now.since(self.period_start);
        if age >= self.period {
            self.previous = if age >= self.period * 2 { Duration::ZERO } else { self.current };
            (self.current, self.period_start) = (Duration::ZERO, now);
        }
        self.current = self.current.max(sample);
    }

    /// Returns the maximum; zero without samples.
    pub(crate) fn get(&self) -> Duration {
        self.current.max(self.previous)
    }
}

fn ewma(old: Duration, new: Duration, weight: f64) -> Duration {
    Duration::from_nanos(((1.0 - weight) * old.as_nanos() as f64 + weight * new.as_nanos() as f64) as u64)
}
