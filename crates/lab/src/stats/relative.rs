//! Relative differences of two means, with Fieller's interval.

use super::estimate::{mean, t_quantile};
use super::refusal::finite;
use super::{Confidence, Interval};

/// Difference of two means in per cent of the second one, the baseline, which has an error of its own.
///
/// Its interval is Fieller's (E. C. Fieller, "Some Problems in Interval Estimation", Journal of the Royal
/// Statistical Society B 16(2), 1954): all ratios that a t test at that confidence does not reject. Of
/// pairs it excludes zero exactly if the paired t test rejects. It is not symmetric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RelativeDifference {
    /// Number of pairs, or of values of the shorter list.
    pub n: usize,
    /// The relative difference, in per cent.
    pub mean: f64,
    /// Variances and covariance of both means over the baseline's mean. `None` below two values.
    errors: Option<Errors>,
}

/// Variances and covariance of the difference and the baseline, as means, over the mean of the baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Errors {
    difference: f64,
    covariance: f64,
    baseline: f64,
}

impl RelativeDifference {
    /// Returns the relative difference of pairs: runs with common random numbers. `None` if the baseline's
    /// mean is not positive, or a value is not finite. Values beyond the shorter list are not used.
    #[must_use]
    pub fn of_pairs(values: &[f64], baseline: &[f64]) -> Option<Self> {
        let n = values.len().min(baseline.len());
        let (values, baseline) = (&values[..n], &baseline[..n]);
        let over = mean_above_zero(values, baseline)?;
        let difference: Vec<f64> = values.iter().zip(baseline).map(|(x, b)| (x - b) / over).collect();
        let baseline: Vec<f64> = baseline.iter().map(|b| b / over).collect();
        let errors = (n >= 2).then(|| Errors {
            difference: covariance_of_means(&difference, &difference),
            covariance: covariance_of_means(&difference, &baseline),
            baseline: covariance_of_means(&baseline, &baseline),
        });
        Some(Self { n, mean: mean(&difference) * 100.0, errors })
    }

    /// Returns the relative difference of means of independent samples: Welch's variance, and the degrees of
    /// freedom of the shorter list, which is conservative. `None` as for [pairs](Self::of_pairs).
    #[must_use]
    pub fn of_independent(values: &[f64], baseline: &[f64]) -> Option<Self> {
        let over = mean_above_zero(values, baseline)?;
        let n = values.len().min(baseline.len());
        let scaled = |values: &[f64]| values.iter().map(|x| x / over).collect::<Vec<_>>();
        let (values, baseline) = (scaled(values), scaled(baseline));
        let errors = (n >= 2).then(|| {
            let [ours, theirs] = [&values, &baseline].map(|of| covariance_of_means(of, of));
            Errors { difference: ours + theirs, covariance: -theirs, baseline: theirs }
        });
        Some(Self { n, mean: (mean(&values) - 1.0) * 100.0, errors })
    }

    /// Returns the standard error of the relative difference times √n, in per cent. Of pairs it is the standard
    /// deviation of the differences over the baseline's mean. `None` below two values.
    #[must_use]
    pub fn deviation(&self) -> Option<f64> {
        self.errors.map(|errors| libm::sqrt(errors.difference * self.n as f64) * 100.0)
    }

    /// Returns Fieller's interval, in per cent. An end is infinite if the baseline is not distinguishable
    /// from zero on that side. `None` below two values, and if nothing can be excluded.
    #[must_use]
    pub fn interval(&self, confidence: Confidence) -> Option<Interval> {
        let ends = self.errors?.ends(self.mean / 100.0, t_quantile(self.n - 1, confidence))?;
        Some(Interval { low: ends.low * 100.0, high: ends.high * 100.0 })
    }
}

impl Errors {
    /// Solves `(g − γ)² ≤ t² · var(difference − γ · baseline)` for the ratio γ, where `g` is the estimate.
    fn ends(self, g: f64, t: f64) -> Option<Interval> {
        let of = |variance: f64| t * t * variance;
        let (d, c, b) = (of(self.difference), of(self.covariance), of(self.baseline));
        let (square, half_linear, constant) = (1.0 - b, g - c, g * g - d);
        // `half_linear² − square · constant` without the terms that cancel.
        let discriminant = (d - 2.0 * g * c + g * g * b) + (c * c - d * b);
        if square > 0.0 {
            // The estimate is a solution, so that a negative value is rounding.
            let [low, high] = roots(square, half_linear, constant, discriminant.max(0.0));
            return Some(Interval { low, high });
        }
        if discriminant <= 0.0 {
            return None;
        }
        // Two branches; the one without the estimate belongs to a baseline below zero.
        let [low, high] = roots(square, half_linear, constant, discriminant);
        Some(match g >= high {
            true => Interval { low: high, high: f64::INFINITY },
            false => Interval { low: f64::NEG_INFINITY, high: low },
        })
    }
}

/// Returns the roots of `square · x² − 2 · half_linear · x + constant`, in ascending order; one is infinite
/// if `square` is zero.
fn roots(square: f64, half_linear: f64, constant: f64, discriminant: f64) -> [f64; 2] {
    let sum = half_linear + libm::copysign(libm::sqrt(discriminant), half_linear);
    if sum == 0.0 {
        return [0.0; 2];
    }
    let (far, near) = (sum / square, constant / sum);
    [far.min(near), far.max(near)]
}

/// Returns the mean of the baseline. `None` if it is not positive, or a value of either list is not finite.
fn mean_above_zero(values: &[f64], baseline: &[f64]) -> Option<f64> {
    let all_finite = finite(values).is_ok() && finite(baseline).is_ok();
    Some(mean(baseline)).filter(|mean| all_finite && !values.is_empty() && *mean > 0.0)
}

/// Returns the covariance of the means of two lists of two or more values of equal length.
fn covariance_of_means(a: &[f64], b: &[f64]) -> f64 {
    let (mean_a, mean_b) = (mean(a), mean(b));
    let products: f64 = a.iter().zip(b).map(|(x, y)| (x - mean_a) * (y - mean_b)).sum();
    let n = a.len() as f64;
    products / (n - 1.0) / n
}

#[cfg(test)]
mod tests {
    use super::super::samples::{A, B, close};
    use super::super::{Estimate, Pairs};
    use super::*;

    const LEVELS: [Confidence; 3] = [Confidence::P90, Confidence::P95, Confidence::P99];

    fn interval(values: &[f64], baseline: &[f64], confidence: Confidence) -> Option<Interval> {
        RelativeDifference::of_pairs(values, baseline).unwrap().interval(confidence)
    }

    /// Returns the p value of the t test that the mean is `1 + percent / 100` times that of the baseline.
    fn p_of(values: &[f64], baseline: &[f64], percent: f64) -> f64 {
        let scaled: Vec<f64> = baseline.iter().map(|b| b * (1.0 + percent / 100.0)).collect();
        Pairs::new(values, &scaled).unwrap().t_test().unwrap().p
    }

    #[test]
    fn at_its_ends_the_t_test_has_the_p_value_of_the_confidence() {
        for confidence in LEVELS {
            let Interval { low, high } = interval(&B, &A, confidence).unwrap();
            for end in [low, high] {
                let p = p_of(&B, &A, end);
                assert!((p - (1.0 - confidence.fraction())).abs() < 1e-9, "{end}: {p}");
            }
        }
    }

    #[test]
    fn the_interval_excludes_zero_exactly_if_the_t_test_rejects() {
        let values = [10.1, 9.8, 10.4, 10.0, 9.9];
        for shift in [0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6] {
            let shifted: Vec<f64> = values.iter().map(|x| x + shift).collect();
            let baseline = [10.0, 9.9, 10.1, 10.2, 9.7];
            let p = Pairs::new(&shifted, &baseline).unwrap().t_test().unwrap().p;
            for confidence in LEVELS {
                let excludes = !interval(&shifted, &baseline, confidence).unwrap().contains(0.0);
                assert_eq!(excludes, p < 1.0 - confidence.fraction(), "{shift} at {confidence}");
            }
        }
    }

    #[test]
    fn with_a_constant_baseline_the_interval_is_that_of_student() {
        let baseline = [50.0; 10];
        let expected = Estimate::of_differences(&A, &baseline).scaled(2.0).interval(Confidence::P95).unwrap();
        let Interval { low, high } = interval(&A, &baseline, Confidence::P95).unwrap();
        assert!(close(low, expected.low) && close(high, expected.high), "{low} {high} {expected:?}");
    }

    #[test]
    fn proportional_values_have_no_error() {
        let baseline = [10.0, 11.0, 13.0];
        let Interval { low, high } = interval(&[30.0, 33.0, 39.0], &baseline, Confidence::P95).unwrap();
        assert!((low - 200.0).abs() < 1e-9 && (high - 200.0).abs() < 1e-9, "{low} {high}");
    }

    /// A baseline of 1 ± 0.5 makes a tenfold gain uncertain, however little the other side varies.
    #[test]
    fn the_error_of_the_baseline_counts() {
        let (values, baseline) = ([10.0, 10.0, 10.0, 10.0], [0.5, 1.5, 0.8, 1.2]);
        let Interval { low, high } = interval(&values, &baseline, Confidence::P95).unwrap();
        let exact = Estimate::of_differences(&values, &baseline).scaled(100.0);
        assert!(low < 600.0 && high > 2000.0, "{low} {high}");
        assert!(exact.interval(Confidence::P95).unwrap().low > 800.0, "{exact:?}");
    }

    #[test]
    fn a_baseline_near_zero_bounds_one_end_only() {
        let baseline = [0.1, 3.0, 0.1];
        let Interval { low, high } = interval(&[50.0, 51.0, 52.0], &baseline, Confidence::P95).unwrap();
        assert!(low > 0.0 && low < 4680.0 && high == f64::INFINITY, "{low} {high}");
        assert!((p_of(&[50.0, 51.0, 52.0], &baseline, low) - 0.05).abs() < 1e-9);
    }

    #[test]
    fn without_any_exclusion_there_is_no_interval() {
        assert_eq!(interval(&[-4.9, 3.0, 5.1], &[0.1, 3.0, 0.1], Confidence::P95), None);
    }

    #[test]
    fn unpaired_values_have_independent_errors() {
        let (values, baseline) = ([11.0, 12.0, 13.0, 12.0], [4.0, 6.0, 5.0]);
        let e = RelativeDifference::of_independent(&values, &baseline).unwrap();
        assert!(close(e.mean, 140.0) && e.n == 3, "{e:?}");
        let Interval { low, high } = e.interval(Confidence::P95).unwrap();
        // At an end: (12 − r · 5)² = t² · (var₁ + r² · var₂), with variances of the means of 1/6 and 1/3.
        for ratio in [1.0 + low / 100.0, 1.0 + high / 100.0] {
            let variance = 1.0 / 6.0 + ratio * ratio / 3.0;
            let t = (12.0 - ratio * 5.0) / libm::sqrt(variance);
            assert!((t.abs() - t_quantile(2, Confidence::P95)).abs() < 1e-9, "{ratio}: {t}");
        }
    }

    #[test]
    fn a_single_pair_has_a_mean_alone() {
        let e = RelativeDifference::of_pairs(&[3.0], &[2.0]).unwrap();
        assert_eq!((e.n, e.mean, e.deviation(), e.interval(Confidence::P95)), (1, 50.0, None, None));
    }

    #[test]
    fn a_baseline_that_is_not_positive_has_no_ratio() {
        for baseline in [[0.0, 0.0], [1.0, -1.0], [-1.0, -2.0], [f64::NAN, 1.0]] {
            assert_eq!(RelativeDifference::of_pairs(&[1.0, 2.0], &baseline), None);
            assert_eq!(RelativeDifference::of_independent(&[1.0, 2.0], &baseline), None);
        }
        assert_eq!(RelativeDifference::of_pairs(&[], &[]), None);
    }
}
