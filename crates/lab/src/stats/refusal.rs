//! Reasons for which a statistic is not computed.

use std::fmt;

/// Largest accepted value, by size: its squares and cubes, and their sums, stay far from overflow.
pub const MAX_VALUE: f64 = 1e90;

/// Reason for which a statistic is not computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Refusal {
    /// There are fewer values than needed.
    TooFew {
        /// Values given.
        have: usize,
        /// Values needed.
        need: usize,
    },
    /// A value is NaN, infinite, or larger than [`MAX_VALUE`].
    NotFinite {
        /// Index of the value, from 0.
        index: usize,
        /// The value.
        value: f64,
    },
    /// The two sides of a paired comparison differ in length.
    Unpaired {
        /// Values of the variant.
        values: usize,
        /// Values of the baseline.
        baseline: usize,
    },
    /// A probability outside 0 to 1.
    Probability(f64),
    /// All values are equal.
    Constant,
    /// The series has not settled at its end.
    NotSettled,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFew { have, need } => write!(f, "{have} values; it takes {need} or more"),
            Self::NotFinite { index, value } => {
                write!(f, "value {index} is {value:e}; statistics take finite numbers up to {MAX_VALUE:e}")
            }
            Self::Unpaired { values, baseline } => {
                write!(f, "{values} values against {baseline} of the baseline; pairs take as many of each")
            }
            Self::Probability(p) => write!(f, "{p} is no probability; it takes 0 to 1"),
            Self::Constant => write!(f, "the values are all the same; it takes some that differ"),
            Self::NotSettled => {
                write!(f, "the series has not settled in its first half; it takes a longer run")
            }
        }
    }
}

impl std::error::Error for Refusal {}

/// Returns an error if a value is not finite.
pub(super) fn finite(values: &[f64]) -> Result<(), Refusal> {
    match values.iter().position(|x| x.is_nan() || x.abs() > MAX_VALUE) {
        Some(index) => Err(Refusal::NotFinite { index, value: values[index] }),
        None => Ok(()),
    }
}

/// Returns an error if a value is not finite, or there are fewer than `need`.
pub(super) fn at_least(need: usize, values: &[f64]) -> Result<(), Refusal> {
    finite(values)?;
    if values.len() < need { Err(Refusal::TooFew { have: values.len(), need }) } else { Ok(()) }
}

/// Returns an error unless `p` is a probability.
pub(super) fn probability(p: f64) -> Result<(), Refusal> {
    if (0.0..=1.0).contains(&p) { Ok(()) } else { Err(Refusal::Probability(p)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_non_finite_value_is_named_with_its_index() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e91] {
            let refused = finite(&[1.0, 2.0, bad]).unwrap_err();
            assert!(matches!(refused, Refusal::NotFinite { index: 2, .. }), "{refused:?}");
        }
        assert_eq!(finite(&[0.0, -0.0, MAX_VALUE, -MAX_VALUE, f64::MIN_POSITIVE]), Ok(()));
    }

    #[test]
    fn a_rejection_states_what_is_required() {
        let text = |r: Refusal| r.to_string();
        assert_eq!(text(Refusal::TooFew { have: 1, need: 2 }), "1 values; it takes 2 or more");
        assert_eq!(
            text(Refusal::NotFinite { index: 3, value: f64::NAN }),
            "value 3 is NaN; statistics take finite numbers up to 1e90"
        );
        assert_eq!(
            text(Refusal::Unpaired { values: 3, baseline: 4 }),
            "3 values against 4 of the baseline; pairs take as many of each"
        );
    }

    #[test]
    fn probabilities_end_at_0_and_1() {
        assert_eq!((probability(0.0), probability(1.0)), (Ok(()), Ok(())));
        assert_eq!(probability(-0.1), Err(Refusal::Probability(-0.1)));
        assert!(probability(f64::NAN).is_err());
    }
}
