//! Correlation of two series.

use super::refusal::{Refusal, at_least};

/// Returns Pearson's correlation of paired values: 1 if they rise and fall together in proportion, −1 if one
/// falls as the other rises, 0 if they are uncorrelated.
///
/// # Errors
///
/// Fewer than two pairs, sides of different lengths, values that are not finite, or a constant side.
pub fn correlation(a: &[f64], b: &[f64]) -> Result<f64, Refusal> {
    if a.len() != b.len() {
        return Err(Refusal::Unpaired { values: a.len(), baseline: b.len() });
    }
    let [a, b] = [deviations(a)?, deviations(b)?];
    let sum = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let r = sum(&a, &b) / libm::sqrt(sum(&a, &a) * sum(&b, &b));
    // Rounding may exceed the range.
    Ok(r.clamp(-1.0, 1.0))
}

/// Returns the deviation of each value from their mean, in units of their range.
fn deviations(values: &[f64]) -> Result<Vec<f64>, Refusal> {
    at_least(2, values)?;
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let range = values.iter().copied().fold(f64::NEG_INFINITY, f64::max) - least;
    if range <= 0.0 {
        return Err(Refusal::Constant);
    }
    let shares: Vec<f64> = values.iter().map(|x| (x - least) / range).collect();
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    Ok(shares.into_iter().map(|share| share - mean).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn r(a: &[f64], b: &[f64]) -> f64 {
        correlation(a, b).unwrap()
    }

    #[test]
    fn the_correlation_matches_a_hand_computed_value() {
        // Deviations −2, −1, 0, 1, 2 and −2, 0, 1, −1, 2: products 4 + 0 + 0 − 1 + 4 = 7, squares 10 and 10.
        assert!((r(&[1.0, 2.0, 3.0, 4.0, 5.0], &[1.0, 3.0, 4.0, 2.0, 5.0]) - 0.7).abs() < 1e-12);
        assert!(r(&[1.0, 0.0, -1.0, 0.0], &[0.0, 1.0, 0.0, -1.0]).abs() < 1e-12);
    }

    #[test]
    fn scale_and_offset_do_not_matter_and_the_sign_does() {
        let up = [1e-80, 2e-80, 4e-80];
        assert!((r(&up, &[1e80 + 1e79, 1e80 + 2e79, 1e80 + 4e79]) - 1.0).abs() < 1e-9);
        assert!((r(&up, &[-1.0, -2.0, -4.0]) + 1.0).abs() < 1e-12);
        assert_eq!(r(&[0.0, 1.0], &[5.0, 4.0]), -1.0, "two points are always in line");
    }

    #[test]
    fn constant_values_have_no_correlation() {
        let constant = [0.1; 10];
        let rising: Vec<f64> = (0..10).map(f64::from).collect();
        assert_eq!(correlation(&constant, &rising), Err(Refusal::Constant));
        assert_eq!(correlation(&rising, &constant), Err(Refusal::Constant));
    }

    #[test]
    fn too_few_unpaired_and_infinite_values_are_rejected() {
        assert_eq!(correlation(&[1.0], &[1.0]), Err(Refusal::TooFew { have: 1, need: 2 }));
        assert_eq!(correlation(&[], &[]), Err(Refusal::TooFew { have: 0, need: 2 }));
        assert_eq!(correlation(&[1.0, 2.0], &[1.0]), Err(Refusal::Unpaired { values: 2, baseline: 1 }));
        assert!(matches!(
            correlation(&[1.0, f64::NAN], &[1.0, 2.0]),
            Err(Refusal::NotFinite { index: 1, .. })
        ));
    }
}
