//! Distributions of times: how many, how long on average, percentiles.

use hdrhistogram::Histogram;
use hopline_core::Duration;

/// Significant decimal digits of a percentile: two, so it is right to 1 %.
const SIGNIFICANT_DIGITS: u8 = 2;

/// Some times, in bounded memory: count, sum and extremes are exact, percentiles are right to 1 % or 1 µs, whichever is
/// more.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DelayStats {
    sum: Duration,
    min: Duration,
    max: Duration,
    /// In microseconds; made with the first time, and grown with the longest.
    histogram: Option<Histogram<u32>>,
}

impl DelayStats {
    /// Takes in one more.
    pub(crate) fn record(&mut self, time: Duration) {
        let histogram = self.histogram.get_or_insert_with(|| {
            self.min = Duration::MAX;
            Histogram::new(SIGNIFICANT_DIGITS).expect("the digits are between 0 and 5")
        });
        histogram.record(time.as_micros()).expect("the histogram resizes itself");
        self.sum += time;
        self.min = self.min.min(time);
        self.max = self.max.max(time);
    }

    /// Returns these and those of another one.
    ///
    /// # Panics
    /// Never: a histogram that resizes itself takes in another one.
    #[must_use]
    pub fn with(mut self, other: &Self) -> Self {
        match (&mut self.histogram, &other.histogram) {
            (_, None) => {}
            (None, Some(_)) => return other.clone(),
            (Some(ours), Some(theirs)) => {
                ours.add(theirs).expect("the histogram resizes itself");
                self.sum += other.sum;
                self.min = self.min.min(other.min);
                self.max = self.max.max(other.max);
            }
        }
        self
    }

    /// Returns the number of samples.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram.as_ref().map_or(0, Histogram::len)
    }

    /// Returns the sum of all of them.
    #[must_use]
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// Returns the mean in seconds. `None` if there are none.
    #[must_use]
    pub fn mean_s(&self) -> Option<f64> {
        self.if_any(|all| all.sum.as_nanos() as f64 / all.count() as f64 / 1e9)
    }

    /// Returns the shortest. `None` if there are none.
    #[must_use]
    pub fn min(&self) -> Option<Duration> {
        self.if_any(|all| all.min)
    }

    /// Returns the longest. `None` if there are none.
    #[must_use]
    pub fn max(&self) -> Option<Duration> {
        self.if_any(|all| all.max)
    }

    /// Returns the time that the share `q` of them, from 0 to 1, does not exceed. `None` if there are none.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        let micros = self.histogram.as_ref()?.value_at_quantile(q);
        Some(Duration::from_micros(micros).max(self.min).min(self.max))
    }

    fn if_any<T>(&self, value: impl FnOnce(&Self) -> T) -> Option<T> {
        (self.count() > 0).then(|| value(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_statistics_are_those_of_all_samples() {
        let both = of([1, 5]).with(&of([3, 9]));
        assert_eq!(both, of([1, 5, 3, 9]));
        assert_eq!(
            (DelayStats::default().with(&of([2])), of([2]).with(&DelayStats::default())),
            (of([2]), of([2]))
        );
    }

    fn of(millis: impl IntoIterator<Item = u64>) -> DelayStats {
        let mut delays = DelayStats::default();
        millis.into_iter().for_each(|ms| delays.record(Duration::from_millis(ms)));
        delays
    }

    #[test]
    fn without_samples_there_is_no_mean_or_percentile() {
        let none = of([]);
        assert_eq!((none.count(), none.sum()), (0, Duration::ZERO));
        assert_eq!((none.mean_s(), none.min(), none.max(), none.quantile(0.5)), (None, None, None, None));
    }

    #[test]
    fn count_sum_and_extremes_are_exact() {
        let mut delays = of([]);
        for nanos in [1_234_567, 890, 7_000_000_001] {
            delays.record(Duration::from_nanos(nanos));
        }
        assert_eq!((delays.count(), delays.sum()), (3, Duration::from_nanos(7_001_235_458)));
        assert_eq!(delays.min(), Some(Duration::from_nanos(890)));
        assert_eq!(delays.max(), Some(Duration::from_nanos(7_000_000_001)));
        assert_eq!(delays.quantile(1.0), delays.max());
        assert_eq!(of([1, 2, 6]).mean_s(), Some(0.003));
    }

    #[test]
    fn percentiles_are_accurate_to_one_percent() {
        let delays = of(1..=1000);
        for (q, expected_s) in [(0.5, 0.5), (0.95, 0.95), (0.99, 0.99)] {
            let found = delays.quantile(q).expect("there are some").as_secs_f64();
            assert!((found / expected_s - 1.0).abs() < 0.01, "{q}: {found}");
        }
        assert_eq!(of([5]).quantile(0.5), Some(Duration::from_millis(5)), "never beyond what was seen");
    }

    #[test]
    fn memory_is_bounded_by_the_longest_time_and_not_by_their_number() {
        let mut delays = of(0..20_000);
        let size = |delays: &DelayStats| delays.histogram.as_ref().expect("there are some").distinct_values();
        let before = size(&delays);
        (0..20_000).for_each(|ms| delays.record(Duration::from_millis(ms)));
        assert_eq!(size(&delays), before);
        delays.record(Duration::from_secs(10_000_000));
        assert!(size(&delays) < 10_000, "{}", size(&delays));
        assert_eq!(delays.count(), 40_001);
    }
}
