//! Sign test: which of two is better, regardless of the amount.

use serde::Serialize;
use statrs::distribution::{Binomial, DiscreteCDF};

/// Exact two-sided sign test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SignTest {
    /// Differences above zero.
    pub positive: usize,
    /// Differences below zero.
    pub negative: usize,
    /// Differences of zero, which the test leaves out.
    pub ties: usize,
    /// p value: probability of counts at least this uneven if gain and loss are equally likely. 1 if all are
    /// ties.
    pub p: f64,
}

impl SignTest {
    /// Returns the test of finite differences.
    pub(super) fn of(differences: &[f64]) -> Self {
        let count = |sign: &dyn Fn(f64) -> bool| differences.iter().filter(|&&d| sign(d)).count();
        let (positive, negative) = (count(&|d| d > 0.0), count(&|d| d < 0.0));
        let ties = differences.len() - positive - negative;
        let n = (positive + negative) as u64;
        let fair = Binomial::new(0.5, n).expect("one half is a probability");
        // Both tails are alike; they overlap when the counts are equal.
        let p = (2.0 * fair.cdf(positive.min(negative) as u64)).min(1.0);
        Self { positive, negative, ties, p }
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::close;
    use super::*;

    fn counts(positive: usize, negative: usize, ties: usize) -> SignTest {
        let sizes = [(1.5, positive), (-0.2, negative), (0.0, ties)];
        SignTest::of(&sizes.into_iter().flat_map(|(d, n)| vec![d; n]).collect::<Vec<_>>())
    }

    /// `stats.binomtest(k, n, 0.5).pvalue`.
    #[test]
    fn probabilities_agree_with_scipy() {
        for (k, n, p) in [
            (0, 10, 0.001_953_125),
            (1, 10, 0.021_484_375),
            (3, 12, 0.145_996_093_75),
            (5, 10, 1.0),
            (2, 7, 0.453_125),
            (40, 100, 0.056_887_933_640_980_89),
            (450, 1000, 0.001_730_536_084_976_302_7),
        ] {
            let test = counts(k, n - k, 0);
            assert!(close(test.p, p), "{k} of {n}: {test:?}");
            assert_eq!(counts(n - k, k, 0).p, test.p, "it is two-sided");
        }
    }

    #[test]
    fn ties_are_counted_and_left_out() {
        let test = counts(1, 9, 5);
        assert_eq!((test.positive, test.negative, test.ties), (1, 9, 5));
        assert_eq!(test.p, counts(1, 9, 0).p);
        assert_eq!(SignTest::of(&[0.0, -0.0]), SignTest { positive: 0, negative: 0, ties: 2, p: 1.0 });
        assert_eq!(SignTest::of(&[]).p, 1.0);
        assert!(close(counts(1, 0, 0).p, 1.0), "one pair shows nothing");
    }
}
