//! Paired comparison of a variant with a baseline.

use super::Estimate;
use super::estimate::student;
use super::gains::Gains;
use super::refusal::{Refusal, at_least, finite};
use super::relative::RelativeDifference;
use super::sign::SignTest;
use super::wilcoxon::Wilcoxon;
use serde::Serialize;
use statrs::distribution::ContinuousCDF;

/// Values of a variant and of the baseline: entry i of both comes from runs with common random numbers, so
/// that common influences cancel out.
#[derive(Clone, Debug, PartialEq)]
pub struct Pairs {
    values: Vec<f64>,
    baseline: Vec<f64>,
}

/// Student's t test of paired values: is the mean difference zero?
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TTest {
    /// Mean difference in its standard errors; infinite if every pair differs by the same amount.
    pub t: f64,
    /// Number of pairs less one.
    pub degrees_of_freedom: usize,
    /// Two-sided p value. 1 if every pair is equal.
    pub p: f64,
}

impl Pairs {
    /// Pairs the values of a variant with those of the baseline.
    ///
    /// # Errors
    ///
    /// Lists of different lengths, or values that are not finite.
    pub fn new(values: &[f64], baseline: &[f64]) -> Result<Self, Refusal> {
        if values.len() != baseline.len() {
            return Err(Refusal::Unpaired { values: values.len(), baseline: baseline.len() });
        }
        finite(values)?;
        finite(baseline)?;
        Ok(Self { values: values.to_vec(), baseline: baseline.to_vec() })
    }

    /// Returns `value − baseline` of each pair.
    #[must_use]
    pub fn differences(&self) -> Vec<f64> {
        self.values.iter().zip(&self.baseline).map(|(x, b)| x - b).collect()
    }

    /// Returns the mean difference, with Student's interval.
    #[must_use]
    pub fn difference(&self) -> Estimate {
        Estimate::of(&self.differences())
    }

    /// Returns the difference of the means in per cent of the baseline's. `None` if that is not positive.
    #[must_use]
    pub fn relative_difference(&self) -> Option<RelativeDifference> {
        RelativeDifference::of_pairs(&self.values, &self.baseline)
    }

    /// Returns the logarithm of the ratio of the two means. `None` if one of them is not positive.
    #[must_use]
    pub fn log_ratio(&self) -> Option<Estimate> {
        Estimate::of_log_ratio(&self.values, &self.baseline)
    }

    /// Returns the gain of each pair in percent of its own baseline (DOOR §6, A17).
    #[must_use]
    pub fn gains(&self) -> Gains {
        let pairs = self.values.iter().zip(&self.baseline);
        let (with, without): (Vec<_>, Vec<_>) = pairs.partition(|(_, b)| **b > 0.0);
        Gains {
            pct: with.into_iter().map(|(x, b)| (x / b - 1.0) * 100.0).collect(),
            without_ratio: without.into_iter().map(|(x, b)| x - b).collect(),
        }
    }

    /// Returns the paired t test.
    ///
    /// # Errors
    ///
    /// Fewer than two pairs.
    pub fn t_test(&self) -> Result<TTest, Refusal> {
        let differences = self.differences();
        at_least(2, &differences)?;
        let Estimate { n, mean, deviation, .. } = Estimate::of(&differences);
        let error = deviation.expect("two values or more have one") / libm::sqrt(n as f64);
        let t = if mean == 0.0 { 0.0 } else { mean / error };
        let degrees_of_freedom = n - 1;
        let p = if t.is_infinite() { 0.0 } else { 2.0 * student(degrees_of_freedom).sf(t.abs()) };
        Ok(TTest { t, degrees_of_freedom, p: p.min(1.0) })
    }

    /// Returns the sign test: is a pair as likely to gain as to lose?
    #[must_use]
    pub fn sign_test(&self) -> SignTest {
        SignTest::of(&self.differences())
    }

    /// Returns Wilcoxon's signed-rank test: are the differences symmetric around zero?
    #[must_use]
    pub fn wilcoxon(&self) -> Wilcoxon {
        Wilcoxon::of(&self.differences())
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{A, B, close};
    use super::super::{Confidence, median};
    use super::*;

    fn pairs(values: &[f64], baseline: &[f64]) -> Pairs {
        Pairs::new(values, baseline).unwrap()
    }

    /// `stats.ttest_rel(values, baseline)`.
    #[test]
    fn the_paired_t_test_agrees_with_scipy() {
        let test = pairs(&B, &A).t_test().unwrap();
        assert!(close(test.t, -11.924_082_132_089_847), "{test:?}");
        assert!(close(test.p, 8.127_467_338_635_703e-7), "{test:?}");
        assert_eq!(test.degrees_of_freedom, 9);
        let test = pairs(&[10.1, 9.8, 10.4, 10.0, 9.9], &[10.0, 9.9, 10.1, 10.2, 9.7]).t_test().unwrap();
        assert!(close(test.t, 0.646_996_639_220_635_7), "{test:?}");
        assert!(close(test.p, 0.552_889_433_933_414), "{test:?}");
    }

    /// `2 * stats.t.sf(t, df)`.
    #[test]
    fn tails_of_student_agree_with_scipy() {
        let p = |t: f64, df| 2.0 * student(df).sf(t);
        assert!(close(p(40.0, 9), 1.898_299_844_933_982_2e-11), "{}", p(40.0, 9));
        assert!(close(p(0.001, 3), 0.999_264_894_969_460_9), "{}", p(0.001, 3));
        assert!(close(p(5.0, 1), 0.125_665_916_378_002_4), "{}", p(5.0, 1));
    }

    #[test]
    fn differences_are_taken_within_pairs() {
        let pairs = pairs(&B, &A);
        assert_eq!(pairs.difference(), Estimate::of_differences(&B, &A));
        // The interval excludes zero exactly if the test rejects.
        let test = pairs.t_test().unwrap();
        for confidence in [Confidence::P90, Confidence::P95, Confidence::P99] {
            let excludes = !pairs.difference().interval(confidence).unwrap().contains(0.0);
            assert_eq!(excludes, test.p < 1.0 - confidence.fraction());
        }
    }

    /// `(A / B - 1) * 100`: `mean`, `std(ddof=1)`, `median`.
    #[test]
    fn gains_agree_with_numpy() {
        let gains = pairs(&A, &B).gains();
        assert_eq!((gains.pct.len(), gains.without_ratio.len()), (10, 0));
        assert!(close(gains.estimate().mean, 6.915_550_923_699_892), "{gains:?}");
        assert!(close(gains.estimate().deviation.unwrap(), 1.939_642_876_876_492_6), "{gains:?}");
        assert!(close(median(&gains.pct).unwrap(), 7.174_645_954_850_522), "{gains:?}");
    }

    #[test]
    fn a_baseline_of_zero_has_no_ratio_and_keeps_its_sign() {
        let gains = pairs(&[5.0, 3.0, 0.0, 6.0, 1.0], &[0.0, 2.0, 0.0, 4.0, -1.0]).gains();
        assert_eq!(gains, Gains { pct: vec![50.0, 50.0], without_ratio: vec![5.0, 0.0, 2.0] });
        let none = pairs(&[1.0], &[0.0]).gains();
        assert_eq!((none.estimate().n, none.without_ratio.len()), (0, 1));
    }

    #[test]
    fn equal_pairs_have_no_difference() {
        let test = pairs(&A, &A).t_test().unwrap();
        assert_eq!((test.t, test.p), (0.0, 1.0));
        assert_eq!((pairs(&A, &A).sign_test().p, pairs(&A, &A).wilcoxon().p), (1.0, 1.0));
    }

    #[test]
    fn a_constant_difference_is_certain() {
        let test = pairs(&[5.0, 7.0, 9.0], &[3.0, 5.0, 7.0]).t_test().unwrap();
        assert_eq!((test.t, test.p), (f64::INFINITY, 0.0));
        let test = pairs(&[3.0, 5.0, 7.0], &[5.0, 7.0, 9.0]).t_test().unwrap();
        assert_eq!((test.t, test.p), (f64::NEG_INFINITY, 0.0));
    }

    #[test]
    fn a_large_common_offset_cancels_within_pairs() {
        let far = |x: &[f64]| x.iter().map(|x| (x * 10.0).round() + 1e14).collect::<Vec<_>>();
        let test = pairs(&far(&B), &far(&A)).t_test().unwrap();
        assert!(close(test.t, -11.924_082_132_089_847), "{test:?}");
    }

    #[test]
    fn two_pairs_are_enough_and_one_is_not() {
        assert!(close(pairs(&[2.0, 4.0], &[1.0, 1.0]).t_test().unwrap().t, 2.0));
        assert_eq!(pairs(&[2.0], &[1.0]).t_test(), Err(Refusal::TooFew { have: 1, need: 2 }));
        assert_eq!(pairs(&[], &[]).t_test(), Err(Refusal::TooFew { have: 0, need: 2 }));
        assert_eq!(pairs(&[], &[]).sign_test().p, 1.0);
    }

    #[test]
    fn unpaired_values_are_rejected() {
        assert_eq!(Pairs::new(&[1.0, 2.0], &[1.0]), Err(Refusal::Unpaired { values: 2, baseline: 1 }));
        assert!(matches!(Pairs::new(&[f64::NAN], &[1.0]), Err(Refusal::NotFinite { .. })));
        assert!(matches!(Pairs::new(&[1.0], &[f64::INFINITY]), Err(Refusal::NotFinite { .. })));
    }
}
