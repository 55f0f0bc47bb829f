//! Many comparisons at once.

use super::refusal::{Refusal, probability};

/// Holm's correction (1979): the p values that `p` become, in the same order, when all of these hypotheses are tested
/// together. Rejecting where the result is at most α keeps the probability of even one false rejection at α or below,
/// however the tests depend on each other.
///
/// # Errors
///
/// What is no probability.
pub fn holm(p: &[f64]) -> Result<Vec<f64>, Refusal> {
    p.iter().try_for_each(|&p| probability(p))?;
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut adjusted = vec![0.0; p.len()];
    let mut least = 0.0f64;
    for (done, &i) in order.iter().enumerate() {
        // A larger p never becomes smaller than one before it.
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
    fn one_test_alone_is_left_as_it_is() {
        assert_eq!(holm(&[0.03]), Ok(vec![0.03]));
        assert_eq!(holm(&[]), Ok(vec![]));
        assert_eq!(holm(&[0.0, 0.0]), Ok(vec![0.0, 0.0]));
    }

    #[test]
    fn what_is_no_probability_is_refused() {
        assert_eq!(holm(&[0.5, 1.5]), Err(Refusal::Probability(1.5)));
        assert!(matches!(holm(&[f64::NAN]), Err(Refusal::Probability(_))));
    }
}
