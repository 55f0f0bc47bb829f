//! Means, deviations and Student's interval.

use super::refusal::{Refusal, at_least, finite};
use super::{CONFIDENCE, Confidence};
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Returns whether `x` lies in it, ends included.
    #[must_use]
    pub fn contains(&self, x: f64) -> bool {
        (self.low..=self.high).contains(&x)
    }

    /// Returns half its width. `None` if it is not nearly symmetric around `mean`, that is, if one side is longer
    /// by more than a tenth of half the width.
    #[must_use]
    pub fn half_width_around(&self, mean: f64) -> Option<f64> {
        let (below, above) = (mean - self.low, self.high - mean);
        let half = (above + below) / 2.0;
        (half.is_finite() && (above - below).abs() <= 0.1 * half.abs()).then_some(half)
    }
}

/// Mean of a sample with its deviation and interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Number of values.
    pub n: usize,
    /// Mean; 0 without values, NaN if a value is not finite (all else is `None` then).
    pub mean: f64,
    /// Standard deviation of the sample (divisor n − 1). `None` below two values.
    pub deviation: Option<f64>,
    /// Half the width of the 95 % Student interval of the mean. `None` below two values.
    pub half_width: Option<f64>,
}

impl Estimate {
    /// Returns the estimate of independent values.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let n = values.len();
        if finite(values).is_err() {
            return Self { n, mean: f64::NAN, deviation: None, half_width: None };
        }
        let mean = mean(values);
        let deviation = (n >= 2).then(|| deviation(values, mean));
        Self { n, mean, deviation, half_width: deviation.map(|s| half_width(n, s, CONFIDENCE)) }
    }

    /// Returns the estimate of the mean difference `value − baseline` of pairs: runs with common random
    /// numbers. Values beyond the shorter list are not used.
    #[must_use]
    pub fn of_differences(values: &[f64], baseline: &[f64]) -> Self {
        let differences: Vec<f64> = values.iter().zip(baseline).map(|(x, b)| x - b).collect();
        Self::of(&differences)
    }

    /// Returns the estimate of the difference of two means of independent samples: Welch's variance, and the
    /// degrees of freedom of the shorter list, which is conservative. No interval if either has less than two
    /// values.
    #[must_use]
    pub fn of_independent(values: &[f64], baseline: &[f64]) -> Self {
        let (a, b) = (Self::of(values), Self::of(baseline));
        let n = a.n.min(b.n);
        let variance_of_mean = |e: Self| e.deviation.map(|s| s * s / e.n as f64);
        let deviation =
            variance_of_mean(a).zip(variance_of_mean(b)).map(|(a, b)| libm::sqrt((a + b) * n as f64));
        let half_width = deviation.map(|s| half_width(n, s, CONFIDENCE));
        Self { n, mean: a.mean - b.mean, deviation, half_width }
    }

    /// Returns the same estimate in other units.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        let scale = |x: Option<f64>| x.map(|x| x * factor.abs());
        Self {
            n: self.n,
            mean: self.mean * factor,
            deviation: scale(self.deviation),
            half_width: scale(self.half_width),
        }
    }

    /// Returns Student's interval of the mean. `None` below two values.
    #[must_use]
    pub fn interval(&self, confidence: Confidence) -> Option<Interval> {
        let h = half_width(self.n, self.deviation?, confidence);
        Some(Interval { low: self.mean - h, high: self.mean + h })
    }

    /// As [`of`](Self::of), for values that must give an interval.
    ///
    /// # Errors
    ///
    /// Values that are not finite, or fewer than two.
    pub fn checked(values: &[f64]) -> Result<Self, Refusal> {
        at_least(2, values).map(|()| Self::of(values))
    }
}

/// Returns the mean of finite values; 0 without values. The second pass corrects the rounding error of the
/// first.
pub(super) fn mean(values: &[f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let n = values.len() as f64;
    let rough = values.iter().sum::<f64>() / n;
    rough + values.iter().map(|x| x - rough).sum::<f64>() / n
}

/// Returns the standard deviation of two or more finite values around their mean: the two-pass algorithm with
/// its correction (Chan, Golub and LeVeque 1983), so that a large common offset costs no digits.
pub(super) fn deviation(values: &[f64], mean: f64) -> f64 {
    let n = values.len() as f64;
    let sum: f64 = values.iter().map(|x| x - mean).sum();
    let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
    libm::sqrt((squares - sum * sum / n).max(0.0) / (n - 1.0))
}

/// Returns half the width of Student's interval of a mean of `n` values (two or more) with standard deviation
/// `deviation`.
fn half_width(n: usize, deviation: f64, confidence: Confidence) -> f64 {
    t_quantile(n - 1, confidence) * deviation / libm::sqrt(n as f64)
}

/// Returns the two-sided quantile of Student's t distribution.
pub(super) fn t_quantile(degrees_of_freedom: usize, confidence: Confidence) -> f64 {
    student(degrees_of_freedom).inverse_cdf(1.0 - confidence.tail())
}

/// Returns Student's t distribution with one or more degrees of freedom.
pub(super) fn student(degrees_of_freedom: usize) -> StudentsT {
    StudentsT::new(0.0, 1.0, degrees_of_freedom as f64).expect("at least one degree of freedom")
}

#[cfg(test)]
mod tests {
    use super::super::samples::{A, B, close};
    use super::*;

    #[test]
    fn means_of_unpaired_values_differ_by_welch() {
        // Variances 1 and 20/3, of means 1/3 and 5/3: together 2. Student's quantile of two degrees is 4.302653.
        let difference = Estimate::of_independent(&[1.0, 2.0, 3.0], &[0.0, 2.0, 4.0, 6.0]);
        assert_eq!((difference.n, difference.mean), (3, -1.0));
        assert!((difference.half_width.unwrap() - 4.302_653 * libm::sqrt(2.0)).abs() < 1e-5);
        assert_eq!(Estimate::of_independent(&[1.0], &[0.0, 2.0]).half_width, None);
    }

    // Expected numbers: `numpy.mean`, `numpy.std(ddof=1)`, `stats.sem(x) * stats.t.ppf(0.975, n - 1)`,
    // `stats.ttest_rel(b, a).confidence_interval(0.95)`.

    #[test]
    fn an_estimate_agrees_with_scipy() {
        let e = Estimate::of(&A);
        assert_eq!(e.n, 10);
        assert!(close(e.mean, 707.79), "{e:?}");
        assert!(close(e.deviation.unwrap(), 12.565_954_887_004_105), "{e:?}");
        assert!(close(e.half_width.unwrap(), 8.989_142_608_534_209), "{e:?}");
    }

    #[test]
    fn a_paired_difference_agrees_with_scipy() {
        let d = Estimate::of_differences(&B, &A);
        assert!(close(d.mean, -45.62), "{d:?}");
        assert!(close(d.deviation.unwrap(), 12.098_466_385_822_979), "{d:?}");
        assert!(close(d.mean - d.half_width.unwrap(), -54.274_721_480_752_405), "{d:?}");
        assert!(close(d.mean + d.half_width.unwrap(), -36.965_278_519_247_576), "{d:?}");
    }

    /// `stats.t.interval(c, 9, loc=mean(A), scale=sem(A))`.
    #[test]
    fn intervals_at_any_confidence_agree_with_scipy() {
        for (confidence, low, high) in [
            (Confidence::P90, 700.505_752_097_076_9, 715.074_247_902_923),
            (Confidence::P95, 698.800_857_391_465_8, 716.779_142_608_534_1),
            (Confidence::P99, 694.876_116_023_203_7, 720.703_883_976_796_2),
        ] {
            let interval = Estimate::of(&A).interval(confidence).unwrap();
            assert!(close(interval.low, low) && close(interval.high, high), "{confidence}: {interval:?}");
            assert!(
                interval.contains(707.79) && !interval.contains(high + 1e-6) && !interval.contains(f64::NAN)
            );
        }
    }

    /// `stats.t.ppf(1 - (1 - c) / 2, df)`.
    #[test]
    fn student_quantiles_agree_with_scipy() {
        let expected = [
            (1, [6.313_751_514_675_037, 12.706_204_736_174_694, 63.656_741_162_871_526]),
            (2, [2.919_985_580_353_724_2, 4.302_652_729_749_462, 9.924_843_200_918_287]),
            (4, [2.131_846_786_326_649_5, 2.776_445_105_197_793_4, 4.604_094_871_349_992]),
            (9, [1.833_112_932_656_237, 2.262_157_162_798_205, 3.249_835_541_592_126]),
            (29, [1.699_127_026_533_497_2, 2.045_229_642_132_703, 2.756_385_903_670_605]),
            (100, [1.660_234_326_085_339_2, 1.983_971_518_523_551_8, 2.625_890_521_438_017_3]),
        ];
        for (df, quantiles) in expected {
            for (confidence, t) in
                [Confidence::P90, Confidence::P95, Confidence::P99].into_iter().zip(quantiles)
            {
                let ours = t_quantile(df, confidence);
                assert!(close(ours, t), "{df} at {confidence}: {ours}");
            }
        }
    }

    /// The same function; here statrs is good to four digits, which is enough for the width of an interval.
    #[test]
    fn with_a_million_degrees_of_freedom_it_is_nearly_normal() {
        let ours = t_quantile(1_000_000, Confidence::P95);
        assert!((ours - 1.959_966_356_814_107).abs() < 2e-4, "{ours}");
    }

    #[test]
    fn one_value_has_no_interval_and_none_no_mean() {
        assert_eq!(Estimate::of(&[5.0]), Estimate { n: 1, mean: 5.0, deviation: None, half_width: None });
        assert_eq!(Estimate::of(&[5.0]).interval(Confidence::P90), None);
        assert_eq!(Estimate::of(&[]).mean, 0.0);
        assert_eq!(Estimate::checked(&[5.0]), Err(Refusal::TooFew { have: 1, need: 2 }));
        assert_eq!(Estimate::checked(&[5.0, 6.0]), Ok(Estimate::of(&[5.0, 6.0])));
    }

    #[test]
    fn equal_values_have_no_deviation_despite_rounding() {
        for x in [2.0, 0.1, 1e90, -1e-300, 0.0] {
            let e = Estimate::of(&[x; 7]);
            assert_eq!((e.mean, e.deviation, e.half_width), (x, Some(0.0), Some(0.0)));
        }
    }

    #[test]
    fn a_large_offset_loses_no_precision() {
        // Deviation of 4, 7, 13, 16: √30, `numpy.std(ddof=1)`. The mean of squares less the square of the mean gives 0 here.
        let e = Estimate::of(&[1e9 + 4.0, 1e9 + 7.0, 1e9 + 13.0, 1e9 + 16.0]);
        assert_eq!(e.mean, 1e9 + 10.0);
        assert!(close(e.deviation.unwrap(), 5.477_225_575_051_661), "{e:?}");
    }

    #[test]
    fn many_values_are_summed_without_drift() {
        let e = Estimate::of(&[0.1; 1_000_000]);
        assert_eq!((e.mean, e.deviation), (0.1, Some(0.0)));
    }

    #[test]
    fn non_finite_values_have_no_estimate() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e200] {
            let e = Estimate::of(&[1.0, bad, 3.0]);
            assert!(e.mean.is_nan());
            assert_eq!((e.n, e.deviation, e.half_width), (3, None, None));
            assert!(matches!(Estimate::checked(&[1.0, bad]), Err(Refusal::NotFinite { index: 1, .. })));
        }
    }

    #[test]
    fn scaling_keeps_widths_positive() {
        let e = Estimate::of(&[3.0, 5.0]).scaled(-10.0);
        assert_eq!(e.mean, -40.0);
        assert!(close(e.half_width.unwrap(), 127.062_047_361_746_94), "{e:?}");
    }
}
