//! Means, deviations and how sure one can be of them.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Confidence of every interval the lab states.
pub const CONFIDENCE: f64 = 0.95;

/// A mean with what is known about it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Number of values.
    pub n: usize,
    /// Mean; 0 of no values.
    pub mean: f64,
    /// Standard deviation of the sample (divisor n − 1). `None` below two values.
    pub deviation: Option<f64>,
    /// Half the width of the 95 % Student interval of the mean. `None` below two values.
    pub half_width: Option<f64>,
}

impl Estimate {
    /// The estimate from independent values.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let n = values.len();
        let mean = if n == 0 { 0.0 } else { values.iter().sum::<f64>() / n as f64 };
        let deviation = (n >= 2).then(|| {
            let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
            libm::sqrt(squares / (n - 1) as f64)
        });
        let half_width = deviation.map(|s| t_quantile(n - 1) * s / libm::sqrt(n as f64));
        Self { n, mean, deviation, half_width }
    }

    /// The estimate of the mean difference `value − baseline` of pairs: runs that met the same world. Values beyond the
    /// shorter list are not used.
    #[must_use]
    pub fn of_differences(values: &[f64], baseline: &[f64]) -> Self {
        let differences: Vec<f64> = values.iter().zip(baseline).map(|(x, b)| x - b).collect();
        Self::of(&differences)
    }

    /// The same estimate in other units.
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
}

/// The two-sided 95 % quantile of Student's t distribution.
fn t_quantile(degrees_of_freedom: usize) -> f64 {
    let t = StudentsT::new(0.0, 1.0, degrees_of_freedom as f64).expect("at least one degree of freedom");
    t.inverse_cdf(0.5 + CONFIDENCE / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Expected numbers: scipy 1.17.1, `numpy.mean`, `numpy.std(ddof=1)`, `stats.sem(x) * stats.t.ppf(0.975, n - 1)`,
    // `stats.ttest_rel(b, a).confidence_interval(0.95)`.
    const A: [f64; 10] = [712.4, 698.1, 705.9, 731.2, 689.5, 702.3, 715.8, 694.6, 708.0, 720.1];
    const B: [f64; 10] = [655.2, 671.3, 640.8, 690.4, 662.7, 650.1, 668.9, 645.5, 659.6, 677.2];

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * b.abs()
    }

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

    #[test]
    fn student_quantiles_agree_with_scipy() {
        let expected = [
            (1, 12.706_204_736_174_694),
            (2, 4.302_652_729_749_462),
            (4, 2.776_445_105_197_793_4),
            (9, 2.262_157_162_798_205),
            (29, 2.045_229_642_132_703),
            (100, 1.983_971_518_523_551_8),
        ];
        for (df, t) in expected {
            assert!(close(t_quantile(df), t), "{df}: {}", t_quantile(df));
        }
    }

    #[test]
    fn one_value_has_no_interval_and_none_no_mean() {
        assert_eq!(Estimate::of(&[5.0]), Estimate { n: 1, mean: 5.0, deviation: None, half_width: None });
        assert_eq!(Estimate::of(&[]).mean, 0.0);
    }

    #[test]
    fn equal_values_are_certain() {
        let e = Estimate::of(&[2.0, 2.0, 2.0]);
        assert_eq!((e.mean, e.deviation, e.half_width), (2.0, Some(0.0), Some(0.0)));
    }

    #[test]
    fn scaling_keeps_widths_positive() {
        let e = Estimate::of(&[3.0, 5.0]).scaled(-10.0);
        assert_eq!(e.mean, -40.0);
        assert!(close(e.half_width.unwrap(), 127.062_047_361_746_94), "{e:?}");
    }
}
