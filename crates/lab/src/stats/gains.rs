//! Gains within pairs: their mean, their spread, and the share of positive ones.

use super::sign::SignTest;
use super::{Bootstrap, Confidence, Estimate, Interval, Statistic, share_interval};
use serde::Serialize;

/// Gain over the baseline in each pair, in percent: (ratio − 1) · 100.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gains {
    /// Gains of the pairs with a positive baseline, in order.
    pub pct: Vec<f64>,
    /// Differences of the other pairs, in the units of the metric: there is no ratio to a baseline of zero or
    /// below. Their signs count in shares only.
    pub without_ratio: Vec<f64>,
}

/// Statistic of the gains of many pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GainStatistic {
    /// Their mean, in percent. Pairs with a small baseline weigh as much as any other.
    Mean,
    /// Their standard deviation, in percentage points.
    Deviation,
    /// Their standard deviation over their mean; undefined if the mean is not positive.
    DeviationPerMean,
    /// The share of pairs with a positive gain, in percent, including those without a ratio.
    PositiveShare,
}

impl Gains {
    /// Returns mean, deviation and Student's interval of the gains.
    #[must_use]
    pub fn estimate(&self) -> Estimate {
        Estimate::of(&self.pct)
    }

    /// Returns the statistic of the gains. `None` if undefined: without gains; a deviation of one; a
    /// deviation over a mean that is not positive.
    #[must_use]
    pub fn value(&self, statistic: GainStatistic) -> Option<f64> {
        let value = match statistic.resampled() {
            None => 100.0 * self.positive() as f64 / self.signs().count() as f64,
            Some(_) if self.pct.is_empty() => return None,
            Some(Statistic::Mean) => self.estimate().mean,
            Some(_) if self.pct.len() < 2 => return None,
            Some(of) => of.of(&mut self.pct.clone()),
        };
        value.is_finite().then_some(value)
    }

    /// Returns the interval of the statistic: Wilson's for a share, for all else the BCa bootstrap with the
    /// stream of `seed`, since gains are skewed, and neither Student's interval nor that of χ² is valid for
    /// them. `None` below two gains, except for a share.
    #[must_use]
    pub fn interval(&self, statistic: GainStatistic, seed: u64, confidence: Confidence) -> Option<Interval> {
        match statistic.resampled() {
            Some(statistic) => {
                Bootstrap { statistic, confidence, ..Bootstrap::new(seed) }.interval(&self.pct).ok()
            }
            None => {
                let share = share_interval(self.positive(), self.signs().count(), confidence)?;
                Some(Interval { low: 100.0 * share.low, high: 100.0 * share.high })
            }
        }
    }

    /// Returns the statistic over that of unpaired gains; `None` if either is undefined, or the divisor is
    /// not positive.
    #[must_use]
    pub fn ratio(&self, other: &Self, statistic: GainStatistic) -> Option<f64> {
        let (ours, others) = (self.value(statistic)?, other.value(statistic)?);
        (others > 0.0).then(|| ours / others)
    }

    /// Returns the interval of that [`ratio`](Self::ratio): a percentile bootstrap of both. `None` below two
    /// gains of either, and for shares.
    #[must_use]
    pub fn interval_of_ratio(
        &self,
        other: &Self,
        statistic: GainStatistic,
        seed: u64,
        confidence: Confidence,
    ) -> Option<Interval> {
        let bootstrap = Bootstrap { statistic: statistic.resampled()?, confidence, ..Bootstrap::new(seed) };
        bootstrap.interval_of_ratio(&self.pct, &other.pct).ok()
    }

    /// Returns the sign test: is a pair as likely to gain as to lose?
    #[must_use]
    pub fn sign_test(&self) -> SignTest {
        SignTest::of(&self.signs().collect::<Vec<_>>())
    }

    /// Returns the number of pairs in `statistic`.
    #[must_use]
    pub fn counted(&self, statistic: GainStatistic) -> usize {
        match statistic.resampled() {
            Some(_) => self.pct.len(),
            None => self.signs().count(),
        }
    }

    /// Returns the number of pairs left out of `statistic`.
    #[must_use]
    pub fn excluded(&self, statistic: GainStatistic) -> usize {
        self.signs().count() - self.counted(statistic)
    }

    fn positive(&self) -> usize {
        self.signs().filter(|gain| *gain > 0.0).count()
    }

    /// Returns a number for each pair that is positive if it gains, and negative if it loses.
    fn signs(&self) -> impl Iterator<Item = f64> {
        self.pct.iter().chain(&self.without_ratio).copied()
    }
}

impl GainStatistic {
    /// Returns the statistic that is resampled for its interval; `None` for a share, which has a closed form.
    const fn resampled(self) -> Option<Statistic> {
        match self {
            Self::Mean => Some(Statistic::Mean),
            Self::Deviation => Some(Statistic::Deviation),
            Self::DeviationPerMean => Some(Statistic::DeviationPerMean),
            Self::PositiveShare => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{SKEWED, close};
    use super::*;
    use GainStatistic::{Deviation, DeviationPerMean, Mean, PositiveShare};

    const ALL: [GainStatistic; 4] = [Mean, Deviation, DeviationPerMean, PositiveShare];
    /// Mean 20, squares around it 100 + 0 + 400 + 900 = 1400.
    const FOUR: [f64; 4] = [30.0, 20.0, 40.0, -10.0];

    fn gains(pct: &[f64]) -> Gains {
        Gains { pct: pct.to_vec(), without_ratio: Vec::new() }
    }

    fn values(pct: &[f64]) -> [Option<f64>; 4] {
        ALL.map(|statistic| gains(pct).value(statistic))
    }

    fn intervals(pct: &[f64]) -> [Option<Interval>; 4] {
        ALL.map(|statistic| gains(pct).interval(statistic, 1, Confidence::P95))
    }

    #[test]
    fn statistics_match_hand_computed_values() {
        let deviation = libm::sqrt(1400.0 / 3.0);
        assert_eq!(values(&FOUR)[0], Some(20.0));
        assert!(close(values(&FOUR)[1].unwrap(), deviation));
        assert!(close(values(&FOUR)[2].unwrap(), deviation / 20.0));
        assert_eq!(values(&FOUR)[3], Some(75.0));
    }

    #[test]
    fn two_gains_have_all_statistics_and_one_no_deviation() {
        // 10 and 30: mean 20, deviation √(200 / 1).
        let two = values(&[10.0, 30.0]);
        assert_eq!((two[0], two[3]), (Some(20.0), Some(100.0)));
        assert!(close(two[1].unwrap(), libm::sqrt(200.0)) && close(two[2].unwrap(), libm::sqrt(2.0) / 2.0));
        assert!(intervals(&[10.0, 30.0]).iter().all(Option::is_some));
        assert_eq!(values(&[10.0]), [Some(10.0), None, None, Some(100.0)]);
        assert_eq!(intervals(&[10.0]).map(|i| i.is_some()), [false, false, false, true]);
        assert_eq!((values(&[]), intervals(&[])), ([None; 4], [None; 4]));
    }

    #[test]
    fn equal_gains_have_zero_deviation() {
        assert_eq!(values(&[5.0; 6]), [Some(5.0), Some(0.0), Some(0.0), Some(100.0)]);
        for (interval, value) in intervals(&[5.0; 6]).into_iter().zip([5.0, 0.0, 0.0]) {
            assert_eq!(interval, Some(Interval { low: value, high: value }));
        }
    }

    #[test]
    fn a_zero_gain_is_not_positive_and_a_zero_mean_has_no_relative_deviation() {
        assert_eq!(values(&[0.0, 0.0]), [Some(0.0), Some(0.0), None, Some(0.0)]);
        let lost = values(&[-10.0, -30.0, 10.0]);
        assert_eq!((lost[0], lost[2]), (Some(-10.0), None));
        assert!(close(lost[3].unwrap(), 100.0 / 3.0));
    }

    #[test]
    fn a_deviation_over_a_mean_near_zero_has_no_upper_end() {
        let unsure = intervals(&[-20.0, 30.0, -25.0, 45.0, 10.0])[2].unwrap();
        assert!(unsure.low > 0.0 && unsure.high == f64::INFINITY, "{unsure:?}");
        let sure = intervals(&[20.0, 30.0, 25.0, 45.0, 10.0])[2].unwrap();
        assert!(sure.high < 1.0 && sure.low > 0.1, "{sure:?}");
    }

    #[test]
    fn ratios_compare_deviations_of_unpaired_gains() {
        let (narrow, wide) = (gains(&FOUR), gains(&FOUR.map(|gain| 2.0 * gain)));
        assert!(close(wide.ratio(&narrow, Deviation).unwrap(), 2.0));
        assert!(close(wide.ratio(&narrow, DeviationPerMean).unwrap(), 1.0));
        let interval = wide.interval_of_ratio(&narrow, Deviation, 1, Confidence::P95).unwrap();
        assert!(interval.low < 2.0 && interval.high > 2.0, "{interval:?}");
        assert_eq!(wide.interval_of_ratio(&narrow, PositiveShare, 1, Confidence::P95), None);
        assert_eq!(narrow.ratio(&gains(&[5.0, 5.0]), Deviation), None, "nothing to divide by");
        assert_eq!(narrow.ratio(&gains(&[5.0]), Deviation), None);
    }

    #[test]
    fn equal_seeds_give_equal_intervals_and_different_seeds_do_not() {
        let interval = |seed| gains(&SKEWED).interval(Deviation, seed, Confidence::P95);
        assert_eq!(interval(3), interval(3));
        assert_ne!(interval(3), interval(4));
    }

    #[test]
    fn signs_match_the_gains() {
        let test = gains(&FOUR).sign_test();
        assert_eq!((test.positive, test.negative, test.ties), (3, 1, 0));
        assert!(close(test.p, 0.625), "2 · (1 + 4) / 16");
    }
}
