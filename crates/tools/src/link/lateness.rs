//! Delay of deliveries of an emulated link against their schedule, and the bound above which a run is invalid.

use hdrhistogram::Histogram;
use hopline_core::Duration;
use std::fmt;

/// Lateness beyond which a packet counts as late: the transmission time of 250 bytes at 2 Mb/s.
const LATE_THRESHOLD: Duration = Duration::from_millis(1);
/// Tolerated share of late packets.
const MAX_LATE_SHARE: f64 = 0.02;

/// Delay of deliveries relative to their schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lateness {
    /// Packets delivered.
    pub packets: u64,
    /// Mean lateness.
    pub mean: Duration,
    /// Median lateness.
    pub p50: Duration,
    /// 99th percentile of the lateness.
    pub p99: Duration,
    /// Maximum lateness.
    pub max: Duration,
    /// Share of packets that were more than 1 ms late. Range 0–1.
    pub over_1_ms: f64,
}

impl Lateness {
    /// Returns whether the host was too busy for the measurement to be valid: more than 2 % of the packets were more than
    /// 1 ms late.
    #[must_use]
    pub fn is_late(&self) -> bool {
        self.over_1_ms > MAX_LATE_SHARE
    }
}

impl fmt::Display for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |d: Duration| d.as_secs_f64() * 1e3;
        write!(
            f,
            "{} packets late by {:.3} ms in the mean, {:.3} ms at p50, {:.3} ms at p99, {:.1} ms at most, \
             {:.2} % by more than 1 ms",
            self.packets,
            ms(self.mean),
            ms(self.p50),
            ms(self.p99),
            ms(self.max),
            self.over_1_ms * 100.0
        )
    }
}

/// Collector of lateness samples.
#[derive(Debug)]
pub struct LatenessRecorder {
    nanos: Histogram<u64>,
    total: u128,
    over: u64,
    max: Duration,
}

impl Default for LatenessRecorder {
    fn default() -> Self {
        let minute = Duration::from_secs(60).as_nanos();
        let nanos = Histogram::new_with_bounds(1, minute, 2).expect("1 < a minute; 2 digits are not over 5");
        Self { nanos, total: 0, over: 0, max: Duration::ZERO }
    }
}

impl LatenessRecorder {
    /// Records that something was late by this much.
    pub fn record(&mut self, late: Duration) {
        self.nanos.saturating_record(late.as_nanos());
        self.total += u128::from(late.as_nanos());
        self.over += u64::from(late > LATE_THRESHOLD);
        self.max = self.max.max(late);
    }

    /// Returns the lateness so far.
    #[must_use]
    pub fn lateness(&self) -> Lateness {
        let packets = self.nanos.len();
        let n = packets.max(1);
        let quantile = |share| Duration::from_nanos(self.nanos.value_at_quantile(share)).min(self.max);
        Lateness {
            packets,
            mean: Duration::from_nanos((self.total / u128::from(n)) as u64),
            p50: quantile(0.5),
            p99: quantile(0.99),
            max: self.max,
            over_1_ms: self.over as f64 / n as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_link_is_not_late() {
        assert_eq!(LatenessRecorder::default().lateness(), Lateness::default());
        assert!(!Lateness::default().is_late());
    }

    #[test]
    fn three_percent_late_packets_are_too_many() {
        let mut recorder = LatenessRecorder::default();
        for n in 0..100 {
            recorder.record(if n < 3 { Duration::from_micros(1500) } else { Duration::from_micros(500) });
        }
        let lateness = recorder.lateness();
        assert_eq!((lateness.packets, lateness.mean), (100, Duration::from_micros(530)));
        assert_eq!((lateness.max, lateness.over_1_ms), (Duration::from_micros(1500), 0.03));
        assert!(lateness.p50.as_micros().abs_diff(500) <= 5, "{}", lateness.p50);
        assert!(lateness.p99.as_micros().abs_diff(1500) <= 15, "{}", lateness.p99);
        assert!(lateness.is_late());
        for _ in 0..50 {
            recorder.record(Duration::ZERO);
        }
        assert!(!recorder.lateness().is_late());
        assert_eq!(
            recorder.lateness().to_string(),
            "150 packets late by 0.353 ms in the mean, 0.502 ms at p50, 1.500 ms at p99, 1.5 ms at most, 2.00 % by more than 1 ms"
        );
    }
}
