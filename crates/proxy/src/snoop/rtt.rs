//! The round trip of the last hop.

use hopline_core::Duration;

/// A smoothed round trip and its deviation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rtt {
    srtt: Duration,
    rttvar: Duration,
    /// Weights of a sample.
    gains: [f64; 2],
    /// Whether the first sample starts it anew (RFC 6298 §2.2).
    fresh: bool,
}

impl Rtt {
    /// Values that the first sample is averaged into.
    pub(crate) const fn starting(srtt: Duration, rttvar: Duration, gain: f64) -> Self {
        Self { srtt, rttvar, gains: [gain, gain], fresh: false }
    }

    /// Values until the first sample, with the weights of RFC 6298 §2.3.
    pub(crate) const fn until_sampled(srtt: Duration) -> Self {
        Self { srtt, rttvar: Duration::ZERO, gains: [0.125, 0.25], fresh: true }
    }

    pub(crate) fn sample(&mut self, sample: Duration) {
        if self.fresh {
            self.fresh = false;
            (self.srtt, self.rttvar) = (sample, Duration::from_nanos(sample.as_nanos() / 2));
            return;
        }
        let [alpha, beta] = self.gains;
        self.rttvar = mixed(self.rttvar, self.srtt.abs_diff(sample), beta);
        self.srtt = mixed(self.srtt, sample, alpha);
    }

    pub(crate) const fn srtt(&self) -> Duration {
        self.srtt
    }

    pub(crate) const fn with_deviations(&self, factor: u64) -> Duration {
        Duration::from_nanos(self.srtt.as_nanos() + factor * self.rttvar.as_nanos())
    }
}

fn mixed(old: Duration, new: Duration, weight: f64) -> Duration {
    Duration::from_nanos(((1.0 - weight) * old.as_nanos() as f64 + weight * new.as_nanos() as f64) as u64)
}
