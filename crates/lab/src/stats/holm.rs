//! Correction for multiple comparisons.

use super::refusal::{Refusal, probability};

/// Holm's correction (1979): returns the corrected p values of hypotheses that are tested together, in the
/// same order. Rejecting results of at most α keeps the probability of even one false rejection at α or
/// below, whatever the dependence of the tests.
///
/// # Errors
///
/// A value that is no probability.
pub fn holm(p: &[f64]) -> Result<Vec<f64>, Refusal> {
    p.iter().try_for_each(|&p| probability(p))?;
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut adjusted = vec![0.0; p.len()];
    let mut least = 0.0f64;
    for (done, &i) in order.iter().enumerate() {
        // Corrected values do not decrease with p.
        least = least.max(p[i] * (p.len() - done) as f64).min(1.0);
        adjusted[i] = least;
    }
    Ok(adjusted)
}

#[cfg(test)]
mod tests {
    use super::super::samples::close;
    use super::*;

    /// `statsmodels.stats.multitest.multipletests(p, method="holm")[1]`.
    #[test]
    fn corrected_values_agree_with_statsmodels() {
        for (p, expected) in [
            (vec![0.01, 0.04, 0.03, 0.005, 0.5, 0.04], vec![0.05, 0.12, 0.12, 0.03, 0.5, 0.12]),
            (vec![0.6, 0.9, 0.7], vec![1.0, 1.0, 1.0]),
        ] {
            let ours = holm(&p).unwrap();
            assert!(ours.iter().zip(&expected).all(|(a, b)| close(*a, *b)), "{ours:?}");
            assert_eq!(ours.len(), expected.len());
        }
    }

    #[test]
    fn a_single_test_is_unchanged() {
        assert_eq!(holm(&[0.03]), Ok(vec![0.03]));
        assert_eq!(holm(&[]), Ok(vec![]));
        assert_eq!(holm(&[0.0, 0.0]), Ok(vec![0.0, 0.0]));
    }

    #[test]
    fn invalid_probabilities_are_rejected() {
        assert_eq!(holm(&[0.5, 1.5]), Err(Refusal::Probability(1.5)));
        assert!(matches!(holm(&[f64::NAN]), Err(Refusal::Probability(_))));
    }
}
