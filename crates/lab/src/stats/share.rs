//! Confidence interval of a share.

use super::{Confidence, Interval};
use statrs::distribution::{ContinuousCDF, Normal};

/// Returns Wilson's score interval of a share with `hits` of `n` observed, 0 to 1 (Wilson 1927). Unlike the
/// normal interval it has a positive width if all or none are hits, which shares of claims are near. `None`
/// if `n` is zero.
#[must_use]
pub fn share_interval(hits: usize, n: usize, confidence: Confidence) -> Option<Interval> {
    if n == 0 {
        return None;
    }
    let z = Normal::standard().inverse_cdf(1.0 - confidence.tail());
    let (n, share) = (n as f64, hits as f64 / n as f64);
    let shrunk = 1.0 + z * z / n;
    let centre = (share + z * z / (2.0 * n)) / shrunk;
    let half = z / shrunk * libm::sqrt(share * (1.0 - share) / n + z * z / (4.0 * n * n));
    // If all or none are hits, one end is the share itself, except for rounding.
    Some(Interval { low: (centre - half).clamp(0.0, share), high: (centre + half).clamp(share, 1.0) })
}

#[cfg(test)]
mod tests {
    use super::super::samples::close;
    use super::*;

    /// `stats.binomtest(hits, n).proportion_ci(0.95, method="wilson")`.
    #[test]
    fn intervals_agree_with_scipy() {
        for (hits, n, low, high) in [
            (0, 10, 0.0, 0.27753279986288926),
            (3, 12, 0.08894166839405471, 0.5323053349335657),
            (5, 10, 0.236593090512564, 0.7634069094874361),
            (98, 100, 0.9299882092714561, 0.9944980324498377),
            (100, 100, 0.9630065017930143, 1.0),
            (91, 100, 0.8377378714728368, 0.9519274599974349),
            (2, 2, 0.34238022750665303, 1.0),
            (450, 1000, 0.41941538407429674, 0.48096729177425873),
        ] {
            let ours = share_interval(hits, n, Confidence::P95).unwrap();
            let near = |a: f64, b: f64| close(a, b) || (a - b).abs() < 1e-12;
            assert!(near(ours.low, low) && near(ours.high, high), "{hits} of {n}: {ours:?}");
        }
    }

    #[test]
    fn an_empty_sample_has_no_share_and_one_value_a_wide_interval() {
        assert_eq!(share_interval(0, 0, Confidence::P95), None);
        let one = share_interval(1, 1, Confidence::P95).unwrap();
        assert!(one.low < 0.25 && one.high == 1.0, "{one:?}");
        let none = share_interval(0, 1, Confidence::P95).unwrap();
        assert!(none.low == 0.0 && none.high > 0.75, "{none:?}");
    }

    #[test]
    fn more_confidence_is_wider() {
        let width = |confidence| {
            let interval = share_interval(91, 100, confidence).unwrap();
            interval.high - interval.low
        };
        assert!(width(Confidence::P90) < width(Confidence::P95));
        assert!(width(Confidence::P95) < width(Confidence::P99));
    }
}
