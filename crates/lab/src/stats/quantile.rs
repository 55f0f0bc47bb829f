//! Quantiles of a sample.

use super::refusal::{Refusal, at_least, probability};

/// Returns the quantile of `values` at `probability`, from 0 (the smallest) to 1 (the largest), interpolated
/// between neighbours: type 7 of Hyndman and Fan 1996, the default of numpy and R.
///
/// # Errors
///
/// No values, values that are not finite, a probability outside 0 to 1.
pub fn quantile(values: &[f64], probability: f64) -> Result<f64, Refusal> {
    at_least(1, values)?;
    self::probability(probability)?;
    Ok(of_sorted(&sorted(values), probability))
}

/// Returns the median of `values`: the quantile at one half.
///
/// # Errors
///
/// No values, or values that are not finite.
pub fn median(values: &[f64]) -> Result<f64, Refusal> {
    quantile(values, 0.5)
}

/// Returns the values in ascending order.
pub(super) fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// Returns the quantile of one or more values in ascending order.
pub(super) fn of_sorted(sorted: &[f64], probability: f64) -> f64 {
    let last = sorted.len() - 1;
    let place = probability * last as f64;
    let below = (place as usize).min(last);
    let (low, high) = (sorted[below], sorted[(below + 1).min(last)]);
    // Two infinite ends have no distance.
    if low == high { low } else { low + (high - low) * (place - below as f64) }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{A, SKEWED, close};
    use super::*;

    /// `numpy.quantile(SKEWED, q)`.
    #[test]
    fn quantiles_agree_with_numpy() {
        for (q, expected) in [
            (0.0, 0.12),
            (0.05, 0.351),
            (0.25, 0.685),
            (0.5, 1.2),
            (0.9, 4.12),
            (0.99, 9.013_999_999_999_996),
            (1.0, 9.7),
        ] {
            let ours = quantile(&SKEWED, q).unwrap();
            assert!(close(ours, expected), "{q}: {ours}");
        }
        assert!(close(median(&A).unwrap(), 706.95), "between the two in the middle");
    }

    #[test]
    fn the_order_of_the_values_does_not_matter() {
        let mut reversed = SKEWED;
        reversed.reverse();
        assert_eq!(quantile(&reversed, 0.3), quantile(&SKEWED, 0.3));
    }

    #[test]
    fn one_value_is_every_quantile() {
        for q in [0.0, 0.3, 1.0] {
            assert_eq!(quantile(&[7.0], q), Ok(7.0));
        }
        assert_eq!(quantile(&[2.0; 4], 0.37), Ok(2.0));
        assert_eq!(quantile(&[1.0, 3.0], 0.25), Ok(1.5));
    }

    #[test]
    fn empty_samples_have_no_quantile_and_probabilities_end_at_1() {
        assert_eq!(median(&[]), Err(Refusal::TooFew { have: 0, need: 1 }));
        assert_eq!(quantile(&[1.0], 1.1), Err(Refusal::Probability(1.1)));
        assert!(matches!(quantile(&[1.0], f64::NAN), Err(Refusal::Probability(_))));
        assert!(matches!(median(&[1.0, f64::NAN]), Err(Refusal::NotFinite { index: 1, .. })));
        assert!(matches!(median(&[f64::INFINITY]), Err(Refusal::NotFinite { .. })));
    }
}
