//! Bootstrap intervals: resampling, without an assumed distribution.
//!
//! Efron and Tibshirani, An Introduction to the Bootstrap, 1993: chapters 13 (percentile) and 14 (BCa).

use super::estimate::{deviation, mean};
use super::quantile::{of_sorted, sorted};
use super::refusal::{Refusal, at_least};
use super::{CONFIDENCE, Confidence, Interval};
use hopline_core::{Purpose, RandomStream};
use statrs::distribution::{ContinuousCDF, Normal};

/// Default number of resamples of an interval. The ends of a 95 % interval then have a Monte Carlo error of
/// about 3 % of the standard error.
pub const RESAMPLES: u32 = 9_999;

/// Statistic to estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// The mean.
    Mean,
    /// The median. [`Method::Percentile`] is best for it: the jackknife behind BCa is not consistent for a
    /// median.
    Median,
    /// The standard deviation (divisor n − 1). For heavy-tailed values its interval is known to be short: the
    /// largest value of the population is seldom in the sample.
    Deviation,
    /// The standard deviation over the mean; infinite if the mean is not positive, so that the interval has
    /// no upper end if the mean may be zero.
    DeviationPerMean,
}

/// Computation of an interval from the resampled statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Their quantiles.
    Percentile,
    /// Their quantiles, corrected for bias and skewness (bias-corrected and accelerated).
    Bca,
}

/// Bootstrap interval. Equal fields and values give equal intervals. Samples of one size have the same
/// resampled indices, so that paired samples are resampled alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bootstrap {
    /// Seed of the experiment.
    pub seed: u64,
    /// Statistic to estimate; default: the mean.
    pub statistic: Statistic,
    /// Computation of the interval; default: BCa.
    pub method: Method,
    /// Confidence of the interval; default: 95 %.
    pub confidence: Confidence,
    /// Number of resamples, at least 1; default: [`RESAMPLES`].
    pub resamples: u32,
}

impl Bootstrap {
    /// Returns the BCa interval of a mean at 95 %.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self {
            seed,
            statistic: Statistic::Mean,
            method: Method::Bca,
            confidence: CONFIDENCE,
            resamples: RESAMPLES,
        }
    }

    /// Returns the percentile interval of a median at 95 %.
    #[must_use]
    pub const fn of_median(seed: u64) -> Self {
        Self { statistic: Statistic::Median, method: Method::Percentile, ..Self::new(seed) }
    }

    /// Returns the interval of the statistic of `values`.
    ///
    /// # Errors
    ///
    /// Fewer than two values, or values that are not finite.
    pub fn interval(&self, values: &[f64]) -> Result<Interval, Refusal> {
        at_least(2, values)?;
        let centre = self.statistic.centre(values);
        let values: Vec<f64> = values.iter().map(|x| x - centre).collect();
        let resampled = self.resampled(&values);
        let (low, high) = (self.confidence.tail(), 1.0 - self.confidence.tail());
        let (low, high) = match self.method {
            Method::Percentile => (low, high),
            Method::Bca => {
                let corrected = Correction::of(self.statistic, &values, &resampled);
                (corrected.probability(low), corrected.probability(high))
            }
        };
        let end = |probability: f64| centre + of_sorted(&resampled, probability);
        Ok(Interval { low: end(low), high: end(high) })
    }

    /// Returns the percentile interval of the statistic of `values` over that of `reference`, two unpaired
    /// samples: each is resampled independently, whatever the method. For non-negative statistics; infinite
    /// if that of `reference` is zero.
    ///
    /// # Errors
    ///
    /// Fewer than two values of either, or values that are not finite.
    pub fn interval_of_ratio(&self, values: &[f64], reference: &[f64]) -> Result<Interval, Refusal> {
        at_least(2, values)?;
        at_least(2, reference)?;
        let mut stream = RandomStream::global(self.seed, 0, Purpose::Bootstrap);
        let mut one = |of: &[f64]| self.statistic.of(&mut resample(of, &mut stream));
        let ratios: Vec<f64> =
            (0..self.resamples.max(1)).map(|_| ratio(one(values), one(reference))).collect();
        let (ratios, tail) = (sorted(&ratios), self.confidence.tail());
        Ok(Interval { low: of_sorted(&ratios, tail), high: of_sorted(&ratios, 1.0 - tail) })
    }

    /// Returns the statistic of each resample, in ascending order.
    fn resampled(&self, values: &[f64]) -> Vec<f64> {
        let mut stream = RandomStream::global(self.seed, 0, Purpose::Bootstrap);
        let mut one = || self.statistic.of(&mut resample(values, &mut stream));
        let resampled: Vec<f64> = (0..self.resamples.max(1)).map(|_| one()).collect();
        sorted(&resampled)
    }
}

/// Returns a resample of the same size, drawn with replacement.
fn resample(values: &[f64], stream: &mut RandomStream) -> Vec<f64> {
    let n = u32::try_from(values.len()).expect("fewer runs than 2^32");
    values.iter().map(|_| values[stream.below(n) as usize]).collect()
}

/// Returns `a / b` of two non-negative numbers. Zero over zero is infinite: such a resample contradicts no
/// ratio, however large.
fn ratio(a: f64, b: f64) -> f64 {
    if b > 0.0 { a / b } else { f64::INFINITY }
}

impl Statistic {
    /// Returns the offset that is subtracted from the values, so that a large common offset costs no digits:
    /// the statistic itself, if it shifts with its values.
    fn centre(self, values: &[f64]) -> f64 {
        match self {
            Self::Mean | Self::Median => self.of(&mut values.to_vec()),
            Self::Deviation | Self::DeviationPerMean => 0.0,
        }
    }

    /// Returns the statistic of one or more values; their order may change.
    pub(super) fn of(self, values: &mut [f64]) -> f64 {
        match self {
            Self::Mean => mean(values),
            Self::Deviation => spread(values, mean(values)),
            Self::DeviationPerMean => {
                let mean = mean(values);
                if mean > 0.0 { spread(values, mean) / mean } else { f64::INFINITY }
            }
            Self::Median => {
                values.sort_unstable_by(f64::total_cmp);
                of_sorted(values, 0.5)
            }
        }
    }
}

/// Returns the standard deviation of values around their mean; 0 for one value, as the jackknife leaves of
/// two.
fn spread(values: &[f64], mean: f64) -> f64 {
    if values.len() < 2 { 0.0 } else { deviation(values, mean) }
}

/// BCa correction of quantile positions.
struct Correction {
    /// Bias: median offset of the resampled statistics, in standard normal units.
    bias: f64,
    /// Acceleration: rate of change of the standard error with the statistic.
    acceleration: f64,
}

impl Correction {
    fn of(statistic: Statistic, values: &[f64], resampled: &[f64]) -> Self {
        let observed = statistic.of(&mut values.to_vec());
        // Sums in another order differ in their last digits: values that near are ties, and count half.
        let near = 1e-12 * values.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        let below = resampled.partition_point(|&x| x < observed - near) as f64;
        let not_above = resampled.partition_point(|&x| x <= observed + near) as f64;
        let count = resampled.len() as f64;
        // Half a resample from either end, so that no quantile of the normal distribution is infinite.
        let share = ((below + not_above) / 2.0).clamp(0.5, count - 0.5) / count;
        Self { bias: standard_normal().inverse_cdf(share), acceleration: acceleration(statistic, values) }
    }

    /// Returns the corrected probability of Efron and Tibshirani 1993, (14.10).
    fn probability(&self, nominal: f64) -> f64 {
        let normal = standard_normal();
        let z = self.bias + normal.inverse_cdf(nominal);
        let stretch = 1.0 - self.acceleration * z;
        // The corrected quantile goes to infinity as this reaches zero.
        if stretch > 0.0 { normal.cdf(self.bias + z / stretch) } else { f64::from(u8::from(z > 0.0)) }
    }
}

/// Returns the acceleration by the jackknife, Efron and Tibshirani 1993, (14.15); 0 if leaving out a value
/// changes nothing.
fn acceleration(statistic: Statistic, values: &[f64]) -> f64 {
    let without = |i: usize| statistic.of(&mut [&values[..i], &values[i + 1..]].concat());
    let left: Vec<f64> = (0..values.len()).map(without).collect();
    let centre = mean(&left);
    let (mut squares, mut cubes) = (0.0, 0.0);
    for x in left {
        let d = centre - x;
        squares += d * d;
        cubes += d * d * d;
    }
    // A statistic that is infinite without some value has no jackknife.
    if squares > 0.0 && squares.is_finite() { cubes / (6.0 * squares * libm::sqrt(squares)) } else { 0.0 }
}

fn standard_normal() -> Normal {
    Normal::standard()
}

#[cfg(test)]
mod tests {
    use super::super::samples::{A, SKEWED};
    use super::*;
    use hopline_core::NodeId;

    fn with(statistic: Statistic, method: Method, confidence: Confidence) -> Bootstrap {
        Bootstrap { statistic, method, confidence, ..Bootstrap::new(1) }
    }

    /// `stats.bootstrap((x,), statistic, confidence_level=c, n_resamples=99999, method=m, rng=7)`. The
    /// tolerance is three Monte Carlo errors of an end: 9,999 resamples give about 3 % of the standard error
    /// (5 % at the skewed tail). The resampled medians are single values, so theirs agree exactly; at 95 %
    /// the upper end of the skewed sample may be either of two of them: 97.48 % of the medians are at most
    /// 1.9.
    #[test]
    fn intervals_agree_with_scipy() {
        use {Method::*, Statistic::*};
        let (p90, p95) = (Confidence::P90, Confidence::P95);
        let (se_a, se_s) = (3.97, 0.632);
        let expected = [
            (&A[..], 0.1 * se_a, with(Mean, Percentile, p90), [701.7, 714.09]),
            (&A[..], 0.1 * se_a, with(Mean, Percentile, p95), [700.61, 715.34]),
            (&A[..], 0.1 * se_a, with(Mean, Bca, p90), [702.01, 714.5]),
            (&A[..], 0.1 * se_a, with(Mean, Bca, p95), [700.99, 715.83]),
            (&SKEWED[..], 0.1 * se_s, with(Mean, Percentile, p90), [1.130_667, 3.104_067]),
            (&SKEWED[..], 0.1 * se_s, with(Mean, Percentile, p95), [1.028_667, 3.357_333]),
            (&SKEWED[..], 0.15 * se_s, with(Mean, Bca, p90), [1.286_667, 3.564_918]),
            (&SKEWED[..], 0.15 * se_s, with(Mean, Bca, p95), [1.193_333, 3.972_767]),
            (&A[..], 1e-9, with(Median, Percentile, p95), [698.1, 716.25]),
            (&SKEWED[..], 1e-9, with(Median, Percentile, p90), [0.77, 1.9]),
            (&SKEWED[..], 1e-9, with(Median, Bca, p90), [0.77, 1.9]),
        ];
        for (values, tolerance, bootstrap, scipy) in expected {
            let ours = bootstrap.interval(values).unwrap();
            let near = |ours: f64, scipy: f64| (ours - scipy).abs() <= tolerance;
            assert!(
                near(ours.low, scipy[0]) && near(ours.high, scipy[1]),
                "{bootstrap:?}: {ours:?}, scipy {scipy:?}"
            );
        }
    }

    /// `stats.bootstrap((x,), statistic, n_resamples=400000, method="BCa", rng=1)` with `numpy.std(x,
    /// ddof=1)` and that over `numpy.mean(x)`. The tolerance is a share of the interval's width; with 9,999
    /// resamples scipy's own upper ends of the last lie between 1.82 and 1.98, depending on the seed.
    #[test]
    fn intervals_of_deviations_agree_with_scipy() {
        use Statistic::{Deviation, DeviationPerMean};
        for (values, statistic, scipy) in [
            (&A[..], Deviation, [8.767_72, 18.374_41]),
            (&A[..], DeviationPerMean, [0.012_420_9, 0.025_877_6]),
            (&SKEWED[..], Deviation, [1.070_88, 4.282_14]),
            (&SKEWED[..], DeviationPerMean, [0.833_42, 1.958_80]),
        ] {
            let ours = with(statistic, Method::Bca, Confidence::P95).interval(values).unwrap();
            let tolerance = 0.13 * (scipy[1] - scipy[0]);
            let off = (ours.low - scipy[0]).abs().max((ours.high - scipy[1]).abs());
            assert!(off <= tolerance, "{statistic:?}: {ours:?}, scipy {scipy:?}");
        }
    }

    /// `stats.bootstrap((SKEWED, A), lambda x, y, axis: std(x) / std(y), method="percentile", …)`.
    #[test]
    fn the_interval_of_a_ratio_agrees_with_scipy() {
        let bootstrap = with(Statistic::Deviation, Method::Bca, Confidence::P95);
        let ours = bootstrap.interval_of_ratio(&SKEWED, &A).unwrap();
        assert!((ours.low - 0.054_585).abs() < 0.01 && (ours.high - 0.407_453).abs() < 0.02, "{ours:?}");
    }

    #[test]
    fn a_ratio_to_zero_has_no_upper_end_and_one_of_single_values_no_interval() {
        let bootstrap = with(Statistic::Deviation, Method::Percentile, Confidence::P95);
        let over_none = bootstrap.interval_of_ratio(&A, &[3.0; 5]).unwrap();
        assert_eq!(over_none.high, f64::INFINITY);
        assert_eq!(bootstrap.interval_of_ratio(&A, &[3.0]), Err(Refusal::TooFew { have: 1, need: 2 }));
        assert_eq!(bootstrap.interval_of_ratio(&[3.0], &A), Err(Refusal::TooFew { have: 1, need: 2 }));
    }

    /// The mean of a resample of two is the smaller with probability 1/4, the larger with 1/4: the interval is the range.
    #[test]
    fn two_values_span_their_interval() {
        for method in [Method::Percentile, Method::Bca] {
            let interval = with(Statistic::Mean, method, Confidence::P95).interval(&[3.0, 8.0]).unwrap();
            assert_eq!(interval, Interval { low: 3.0, high: 8.0 });
        }
    }

    /// For an odd number n of distinct sorted values, the resampled median is at most the k-th with the
    /// probability that more than half of n draws are among the k smallest: a binomial distribution function.
    #[test]
    fn resampled_medians_have_their_exact_distribution() {
        use statrs::distribution::{Binomial, DiscreteCDF};
        let n = 15u64;
        let values: Vec<f64> = (0..n).map(|i| i as f64).collect();
        let resampled = Bootstrap::of_median(3).resampled(&values);
        for k in 3..=12u64 {
            let exact = Binomial::new(k as f64 / n as f64, n).unwrap().sf(n / 2);
            let ours = resampled.partition_point(|&m| m < k as f64) as f64 / resampled.len() as f64;
            // Five standard errors of a share at 9,999.
            assert!((ours - exact).abs() < 0.025, "{k}: {ours} against {exact}");
        }
    }

    /// For many values the interval of the mean tends to mean ± 1.96 s / √n (divisor n).
    #[test]
    fn a_large_sample_has_the_asymptotic_interval() {
        let mut stream = RandomStream::new(5, 1, NodeId(0), Purpose::Emulation);
        let values: Vec<f64> = (0..2000).map(|_| stream.normal(100.0, 20.0)).collect();
        let n = values.len() as f64;
        let m = mean(&values);
        let error = libm::sqrt(values.iter().map(|x| (x - m) * (x - m)).sum::<f64>() / n / n);
        for method in [Method::Percentile, Method::Bca] {
            let bootstrap = Bootstrap { resamples: 2999, method, ..Bootstrap::new(1) };
            let interval = bootstrap.interval(&values).unwrap();
            let off = |end: f64, z: f64| ((end - m) / error - z).abs();
            assert!(off(interval.low, -1.96) < 0.2 && off(interval.high, 1.96) < 0.2, "{interval:?}");
        }
    }

    /// BCa covers a skewed mean about as often as stated; Student's interval of normal samples is exact.
    #[test]
    fn intervals_have_their_nominal_coverage() {
        let mut stream = RandomStream::new(6, 1, NodeId(0), Purpose::Emulation);
        let (mut bca, mut student) = (0, 0);
        for seed in 0..400 {
            let skewed: Vec<f64> = (0..30).map(|_| stream.exponential(1.0)).collect();
            let bootstrap = Bootstrap { resamples: 499, ..Bootstrap::new(seed) };
            bca += u32::from(bootstrap.interval(&skewed).unwrap().contains(1.0));
            let normal: Vec<f64> = (0..6).map(|_| stream.normal(1.0, 3.0)).collect();
            let interval = super::super::Estimate::of(&normal).interval(Confidence::P95).unwrap();
            student += u32::from(interval.contains(1.0));
        }
        // 380 of 400 expected, deviation 4.4; BCa is known to be a few percent short at n = 30.
        assert!((358..=395).contains(&bca), "{bca} of 400");
        assert!((362..=398).contains(&student), "{student} of 400");
    }

    #[test]
    fn equal_seeds_give_equal_intervals_and_different_seeds_do_not() {
        let interval = |seed| Bootstrap::new(seed).interval(&SKEWED).unwrap();
        assert_eq!(interval(1), interval(1));
        assert_ne!(interval(1), interval(2));
    }

    #[test]
    fn equal_values_have_an_interval_of_no_width() {
        for (statistic, method) in [
            (Statistic::Mean, Method::Bca),
            (Statistic::Mean, Method::Percentile),
            (Statistic::Median, Method::Bca),
        ] {
            let interval = with(statistic, method, Confidence::P95).interval(&[0.1; 5]).unwrap();
            assert_eq!(interval, Interval { low: 0.1, high: 0.1 }, "{statistic:?} {method:?}");
        }
    }

    #[test]
    fn a_large_offset_only_shifts_the_interval() {
        let whole: Vec<f64> = SKEWED.iter().map(|x| (x * 100.0).round()).collect();
        let far: Vec<f64> = whole.iter().map(|x| x + 1e12).collect();
        for bootstrap in [Bootstrap::new(1), Bootstrap::of_median(1)] {
            let (near, far) = (bootstrap.interval(&whole).unwrap(), bootstrap.interval(&far).unwrap());
            assert!((far.low - 1e12 - near.low).abs() < 1e-3, "{near:?} {far:?}");
            assert!((far.high - 1e12 - near.high).abs() < 1e-3, "{near:?} {far:?}");
        }
    }

    #[test]
    fn one_outlier_keeps_the_interval_within_the_sample_except_for_rounding() {
        let interval = Bootstrap::new(1).interval(&[1.0, 1.0, 1.0, 1.0, 1e80]).unwrap();
        assert!(
            interval.low >= -1e64 && interval.high <= 1e80 && interval.low <= interval.high,
            "{interval:?}"
        );
    }

    #[test]
    fn too_few_and_non_finite_values_are_rejected() {
        let bootstrap = Bootstrap::new(1);
        assert_eq!(bootstrap.interval(&[]), Err(Refusal::TooFew { have: 0, need: 2 }));
        assert_eq!(bootstrap.interval(&[1.0]), Err(Refusal::TooFew { have: 1, need: 2 }));
        assert!(matches!(bootstrap.interval(&[1.0, f64::NAN]), Err(Refusal::NotFinite { index: 1, .. })));
        assert!(matches!(bootstrap.interval(&[f64::INFINITY, 1.0]), Err(Refusal::NotFinite { .. })));
        let none = Bootstrap { resamples: 0, ..bootstrap };
        assert!(none.interval(&A).is_ok(), "no resamples are one");
    }
}
