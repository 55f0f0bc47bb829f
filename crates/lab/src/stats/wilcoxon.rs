//! Wilcoxon's signed-rank test: sizes count by their rank, so that one outlier does not decide.

use super::quantile::sorted;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Normal};

/// Maximum number of differences for the exact distribution, with ties; above it the normal distribution is
/// used.
pub const EXACT_UP_TO: usize = 50;

/// Two-sided signed-rank test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Wilcoxon {
    /// Sum of the ranks of positive differences. Equal sizes share their mean rank.
    pub rank_sum: f64,
    /// Number of differences other than zero.
    pub n: usize,
    /// Differences of zero, which the test leaves out.
    pub ties: usize,
    /// p value: probability of rank sums at least this uneven if gain and loss are equally likely. 1 if all
    /// are ties.
    pub p: f64,
}

impl Wilcoxon {
    /// Returns the test of finite differences.
    pub(super) fn of(differences: &[f64]) -> Self {
        let moved: Vec<f64> = differences.iter().copied().filter(|&d| d != 0.0).collect();
        let sizes = sorted(&moved.iter().map(|d| d.abs()).collect::<Vec<_>>());
        let ranks: Vec<u64> = sizes.iter().map(|&size| doubled_rank(&sizes, size)).collect();
        let positive = moved.iter().filter(|&&d| d > 0.0);
        let doubled: u64 = positive.map(|&d| doubled_rank(&sizes, d)).sum();
        let p = if moved.len() <= EXACT_UP_TO { exact(&ranks, doubled) } else { normal(&ranks, doubled) };
        let (n, ties) = (moved.len(), differences.len() - moved.len());
        Self { rank_sum: doubled as f64 / 2.0, n, ties, p }
    }
}

/// Returns twice the mean rank of `size` among `sizes`, which are in ascending order: a whole number.
fn doubled_rank(sizes: &[f64], size: f64) -> u64 {
    let first = sizes.partition_point(|&x| x < size);
    let end = sizes.partition_point(|&x| x <= size);
    (first + 1 + end) as u64
}

/// Returns the exact p value over all assignments of signs to the ranks.
fn exact(ranks: &[u64], sum: u64) -> f64 {
    let total = ranks.iter().sum::<u64>() as usize;
    // Share of the assignments with each sum.
    let mut share = vec![0.0; total + 1];
    share[0] = 1.0;
    for &rank in ranks {
        let rank = rank as usize;
        for s in (0..=total).rev() {
            let with = if s >= rank { share[s - rank] } else { 0.0 };
            share[s] = (share[s] + with) / 2.0;
        }
    }
    let lower = (sum as usize).min(total - sum as usize);
    (2.0 * share[..=lower].iter().sum::<f64>()).min(1.0)
}

/// Returns the p value by mean and variance of the rank sum; ties are accounted for in the ranks. No
/// continuity correction.
fn normal(ranks: &[u64], sum: u64) -> f64 {
    let mean = ranks.iter().sum::<u64>() as f64 / 2.0;
    let variance = ranks.iter().map(|&r| (r * r) as f64).sum::<f64>() / 4.0;
    let z = (sum as f64 - mean).abs() / libm::sqrt(variance);
    (2.0 * Normal::standard().sf(z)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::super::samples::close;
    use super::*;

    /// Darwin's plants; `stats.wilcoxon(d, method="exact")`.
    #[test]
    fn the_exact_test_agrees_with_scipy() {
        let d = [6.0, 8.0, 14.0, 16.0, 23.0, 24.0, 28.0, 29.0, 41.0, -48.0, 49.0, 56.0, 60.0, -67.0, 75.0];
        let test = Wilcoxon::of(&d);
        assert_eq!((test.rank_sum, test.n, test.ties), (96.0, 15, 0));
        assert!(close(test.p, 0.041_259_765_625), "{test:?}");
        assert_eq!(Wilcoxon::of(&d.map(|x| -x)).p, test.p, "it is two-sided");
    }

    /// `stats.wilcoxon(d[d != 0], method=stats.PermutationMethod(n_resamples=10**7))`, which goes through all 2¹⁰.
    #[test]
    fn tied_ranks_are_exact() {
        let test = Wilcoxon::of(&[1.0, -2.0, 2.0, 3.0, 3.0, -1.0, 4.0, 5.0, 0.0, 0.0, -3.0, 6.0]);
        assert_eq!((test.rank_sum, test.n, test.ties), (44.0, 10, 2));
        assert!(close(test.p, 0.105_468_75), "{test:?}");
    }

    /// `stats.wilcoxon(d, method="asymptotic", correction=False)`.
    #[test]
    fn many_differences_go_by_the_normal_distribution() {
        let sign = |i: u32| if i.is_multiple_of(3) { -1.0 } else { 1.0 };
        let d: Vec<f64> = (1..=80).map(|i| sign(i) * f64::from(i % 17 + 1)).collect();
        let test = Wilcoxon::of(&d);
        assert_eq!((test.rank_sum, test.n), (2183.0, 80));
        assert!(close(test.p, 0.006_904_070_420_497_206_5), "{test:?}");
    }

    #[test]
    fn exact_and_normal_p_values_agree_at_the_switch() {
        let ranks: Vec<u64> = (1..=EXACT_UP_TO as u64).map(|rank| 2 * rank).collect();
        for sum in [700, 800, 1000, 1200] {
            let (exact, normal) = (exact(&ranks, sum), normal(&ranks, sum));
            assert!((exact - normal).abs() < 0.01, "{sum}: {exact} {normal}");
        }
    }

    #[test]
    fn without_differences_p_is_one() {
        assert_eq!(Wilcoxon::of(&[]).p, 1.0);
        assert_eq!(Wilcoxon::of(&[0.0; 3]), Wilcoxon { rank_sum: 0.0, n: 0, ties: 3, p: 1.0 });
        assert_eq!(Wilcoxon::of(&[4.0]).p, 1.0);
        assert_eq!(Wilcoxon::of(&[1.0; 6]).p, 0.031_25, "2 / 2⁶");
    }
}
