//! Round-trip time, route changes and the retransmission timeout (TPA §3.4).

use super::config::RtoConfig;
use hopline_core::Duration;

/// Estimator and back-off of one connection's retransmission timeout.
#[derive(Clone, Debug)]
pub(super) struct RtoEstimator {
    config: RtoConfig,
    estimate: Option<RttEstimate>,
    /// Back-off factor, a power of two.
    backoff_factor: u32,
    /// Number of consecutive samples outside the interval, on one side.
    consecutive: u8,
    side: SampleSide,
    /// Number of remaining updates with the greater weights.
    quick_updates: u8,
}

/// Mean and deviation, nanoseconds.
#[derive(Clone, Copy, Debug)]
struct RttEstimate {
    ertt: f64,
    dev: f64,
}

/// Position of a sample relative to the interval mean ± deviation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SampleSide {
    Early,
    Inside,
    Late,
}

/// Result of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SampleResult {
    Normal,
    RouteChange,
}

impl RtoEstimator {
    pub(super) fn new(config: RtoConfig) -> Self {
        Self {
            config,
            estimate: None,
            backoff_factor: 1,
            consecutive: 0,
            side: SampleSide::Inside,
            quick_updates: 0,
        }
    }

    /// Adds a round-trip time sample.
    pub(super) fn sample(&mut self, rtt: Duration) -> SampleResult {
        let r = rtt.as_nanos() as f64;
        let Some(before) = self.estimate else {
            self.estimate = Some(RttEstimate { ertt: r, dev: r / 2.0 }); // RFC 6298 §2.2
            return SampleResult::Normal;
        };
        let told = self.count_side(before.side_of(r));
        let (g, h) = self.weights();
        self.estimate = Some(RttEstimate {
            ertt: (1.0 - g) * before.ertt + g * r,
            dev: (1.0 - h) * before.dev + h * (r - before.ertt).abs(),
        });
        told
    }

    /// Processes a route change: the following samples have a greater weight.
    pub(super) fn on_route_change(&mut self) {
        self.quick_updates = self.config.n_rc;
        self.consecutive = 0;
    }

    /// Returns the timeout to set now.
    pub(super) fn timeout(&self) -> Duration {
        let base = match self.estimate {
            Some(e) => Duration::from_nanos((e.ertt + 4.0 * e.dev) as u64),
            None => self.config.initial,
        };
        base.max(self.config.min).saturating_mul(u64::from(self.backoff_factor)).min(self.config.max)
    }

    /// Doubles the timeout.
    pub(super) fn back_off(&mut self) {
        if self.timeout() < self.config.max {
            self.backoff_factor = self.backoff_factor.saturating_mul(2);
        }
    }

    pub(super) fn end_back_off(&mut self) {
        self.backoff_factor = 1;
    }

    pub(super) fn backoff_factor(&self) -> u32 {
        self.backoff_factor
    }

    pub(super) fn ertt(&self) -> Option<Duration> {
        self.estimate.map(|e| Duration::from_nanos(e.ertt as u64))
    }

    pub(super) fn dev(&self) -> Option<Duration> {
        self.estimate.map(|e| Duration::from_nanos(e.dev as u64))
    }

    /// Counts consecutive samples on one side of the interval.
    fn count_side(&mut self, side: SampleSide) -> SampleResult {
        self.consecutive = if side == self.side { self.consecutive.saturating_add(1) } else { 1 };
        self.side = side;
        if side == SampleSide::Inside || self.consecutive < self.config.th_rc {
            return SampleResult::Normal;
        }
        self.on_route_change();
        SampleResult::RouteChange
    }

    /// Returns g and h for this update.
    fn weights(&mut self) -> (f64, f64) {
        match self.quick_updates.checked_sub(1) {
            Some(left) => {
                self.quick_updates = left;
                (self.config.g1, self.config.h1)
            }
            None => (self.config.g, self.config.h),
        }
    }
}

impl RttEstimate {
    fn side_of(self, r: f64) -> SampleSide {
        if r > self.ertt + self.dev {
            SampleSide::Late
        } else if r < self.ertt - self.dev {
            SampleSide::Early
        } else {
            SampleSide::Inside
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tpa::Config;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn converged_at(rtt: u64) -> RtoEstimator {
        let mut rto = RtoEstimator::new(RtoConfig { min: ms(1), ..Config::tpa(3).rto });
        for _ in 0..200 {
            rto.sample(ms(rtt));
        }
        rto
    }

    #[test]
    fn the_first_samples_follow_the_formulas_of_the_paper() {
        let mut rto = RtoEstimator::new(Config::tpa(3).rto);
        assert_eq!(rto.timeout(), ms(1000));
        rto.sample(ms(100));
        assert_eq!((rto.ertt(), rto.timeout()), (Some(ms(100)), ms(300)));
        // ERTT = 7/8·100 + 1/8·140, DEV = 3/4·50 + 1/4·40
        rto.sample(ms(140));
        assert_eq!(
            (rto.ertt(), rto.timeout()),
            (Some(ms(105)), ms(105 + 4 * 47) + Duration::from_micros(2_000))
        );
    }

    #[test]
    fn limits_hold_with_and_without_back_off() {
        let mut rto = RtoEstimator::new(RtoConfig { max: ms(1000), ..Config::tpa(3).rto });
        rto.sample(ms(1));
        assert_eq!(rto.timeout(), ms(200));
        for (factor, timeout) in [(2, 400), (4, 800), (8, 1000), (8, 1000)] {
            rto.back_off();
            assert_eq!((rto.backoff_factor(), rto.timeout()), (factor, ms(timeout)));
        }
        rto.end_back_off();
        assert_eq!(rto.timeout(), ms(200));
    }

    #[test]
    fn three_late_samples_in_a_row_are_a_route_change_and_five_updates_follow_quickly() {
        let mut rto = converged_at(50);
        let told: Vec<_> = (0..3).map(|_| rto.sample(ms(150))).collect();
        assert_eq!(told, [SampleResult::Normal, SampleResult::Normal, SampleResult::RouteChange]);
        let slow = {
            let mut slow = RtoEstimator::new(RtoConfig { th_rc: 200, ..rto.config });
            (0..200).for_each(|_| {
                slow.sample(ms(50));
            });
            (0..7).for_each(|_| {
                slow.sample(ms(150));
            });
            slow.ertt().unwrap()
        };
        (0..4).for_each(|_| {
            rto.sample(ms(150));
        });
        // Five updates with 1/2 leave 1/32 of the distance to two updates with 1/8.
        let left = 100.0 * (7.0_f64 / 8.0).powi(2) / 32.0;
        assert_eq!(rto.ertt().unwrap().as_nanos(), ((150.0 - left) * 1e6) as u64);
        assert!(slow < ms(115));
        assert_eq!(rto.quick_updates, 0);
    }

    #[test]
    fn early_samples_count_too_and_a_change_of_side_resets_the_count() {
        let mut rto = converged_at(100);
        assert_eq!(rto.sample(ms(20)), SampleResult::Normal);
        let mut rto = RtoEstimator { consecutive: 0, ..rto };
        rto.estimate = Some(RttEstimate { ertt: 100e6, dev: 1e6 });
        assert_eq!(rto.sample(ms(20)), SampleResult::Normal);
        rto.estimate = Some(RttEstimate { ertt: 100e6, dev: 1e6 });
        assert_eq!(rto.sample(ms(200)), SampleResult::Normal);
        let told: Vec<_> = (0..3)
            .map(|_| {
                rto.estimate = Some(RttEstimate { ertt: 100e6, dev: 1e6 });
                rto.sample(ms(20))
            })
            .collect();
        assert_eq!(told, [SampleResult::Normal, SampleResult::Normal, SampleResult::RouteChange]);
    }
}
