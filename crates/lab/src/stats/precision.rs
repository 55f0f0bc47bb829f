//! Number of runs for a required precision.

use super::percent::{in_percent, parse_percent};
use super::refusal::{Refusal, finite};
use super::{Confidence, Estimate, PercentError};
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// Minimum number of runs of an interval that counts as narrow: few runs may agree by chance, and stopping
/// then makes intervals that miss the true value more often than stated. TPA repeats at least five times (TPA
/// §4); ten are better.
pub const MIN_RUNS: usize = 5;
/// Maximum growth factor of the number of runs in a step: early estimates of the required number are rough.
pub const MAX_GROWTH: usize = 2;

/// Required precision: half-width of the interval over the size of the mean, a fraction between 0 and 1, both
/// ends excluded. Written "5%".
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Precision(f64);

/// Next step towards the required precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// The interval is narrow enough.
    Reached,
    /// Make runs up to this total number, and ask again.
    Runs(usize),
}

impl Precision {
    /// Returns the precision of `fraction`; `None` unless it lies between 0 and 1, both ends excluded.
    #[must_use]
    pub fn new(fraction: f64) -> Option<Self> {
        (fraction > 0.0 && fraction < 1.0).then_some(Self(fraction))
    }

    /// Returns it as a fraction.
    #[must_use]
    pub const fn fraction(self) -> f64 {
        self.0
    }

    /// Returns whether Student's interval of the mean of `values`, one for each run, is narrow enough, and
    /// the number of runs to make if not. It depends on the arguments only:
    ///
    /// 1. below [`MIN_RUNS`] runs: that many;
    /// 2. half-width h ≤ precision · |mean|: reached (also if all runs are equal);
    /// 3. else n · (h / (precision · |mean|))², rounded up, as the width falls with √n; at least one run
    ///    more, at most [`MAX_GROWTH`] times as many.
    ///
    /// # Errors
    ///
    /// Values that are not finite.
    pub fn next(self, values: &[f64], confidence: Confidence) -> Result<NextStep, Refusal> {
        finite(values)?;
        let n = values.len();
        if n < MIN_RUNS {
            return Ok(NextStep::Runs(MIN_RUNS));
        }
        let estimate = Estimate::of(values);
        let interval = estimate.interval(confidence).expect("five values have one");
        let (half_width, wanted) = ((interval.high - interval.low) / 2.0, self.0 * estimate.mean.abs());
        if half_width <= wanted {
            return Ok(NextStep::Reached);
        }
        let ratio = half_width / wanted;
        // A number that is too large, as for a mean of zero, saturates.
        let needed = (n as f64 * ratio * ratio).ceil() as usize;
        Ok(NextStep::Runs(needed.clamp(n + 1, n.saturating_mul(MAX_GROWTH))))
    }
}

/// Parses "5%".
impl FromStr for Precision {
    type Err = PercentError;

    fn from_str(text: &str) -> Result<Self, PercentError> {
        parse_percent(text).map(Self)
    }
}

/// Writes "5%".
impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", in_percent(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::A;
    use super::*;

    fn five() -> Precision {
        "5%".parse().unwrap()
    }

    fn next(precision: Precision, values: &[f64]) -> NextStep {
        precision.next(values, Confidence::P95).unwrap()
    }

    #[test]
    fn a_precision_is_parsed_and_written_in_percent() {
        assert_eq!(five().fraction(), 0.05);
        assert_eq!(
            (five().to_string(), "7%".parse::<Precision>().unwrap().to_string()),
            ("5%".into(), "7%".into())
        );
        assert_eq!(serde_json::json!(five()), serde_json::json!(0.05));
        let error = "tight".parse::<Precision>().unwrap_err().to_string();
        assert_eq!(error, "\"tight\" is not a percentage above 0 and below 100, such as \"5%\"");
        assert_eq!((Precision::new(0.0), Precision::new(1.0), Precision::new(f64::NAN)), (None, None, None));
    }

    #[test]
    fn few_runs_are_never_precise() {
        for values in [&[][..], &[7.0], &[7.0; 4]] {
            assert_eq!(next(five(), values), NextStep::Runs(MIN_RUNS));
        }
    }

    #[test]
    fn a_narrow_interval_is_precise() {
        // A: 707.79 ± 8.989 at 95 %, ± 12.914 at 99 %: 1.27 % and 1.82 %.
        assert_eq!(next(five(), &A), NextStep::Reached);
        assert_eq!(next(Precision::new(0.0128).unwrap(), &A), NextStep::Reached);
        let at_99 = Precision::new(0.0128).unwrap().next(&A, Confidence::P99);
        assert_eq!(at_99, Ok(NextStep::Runs(20)), "10 · (12.914 / 9.060)² = 20.3, at most twice as many");
    }

    #[test]
    fn a_wide_interval_requests_runs_by_the_square_root_law() {
        // 10 · (8.989 / (0.01 · 707.79))² = 16.13.
        assert_eq!(next(Precision::new(0.01).unwrap(), &A), NextStep::Runs(17));
        // 10 · (8.989 / (0.0125 · 707.79))² = 10.32.
        assert_eq!(next(Precision::new(0.0125).unwrap(), &A), NextStep::Runs(11), "one more at least");
        assert_eq!(next(Precision::new(0.001).unwrap(), &A), NextStep::Runs(20), "twice as many at most");
    }

    #[test]
    fn equal_runs_are_precise_and_a_zero_mean_requests_more_each_time() {
        assert_eq!(next(five(), &[3.0; 10]), NextStep::Reached);
        assert_eq!(next(five(), &[0.0; 10]), NextStep::Reached);
        let around_zero: Vec<f64> = [1.0, -1.0].repeat(5);
        assert_eq!(next(five(), &around_zero), NextStep::Runs(20));
    }

    #[test]
    fn the_sign_of_the_mean_does_not_matter() {
        let precision = Precision::new(0.01).unwrap();
        assert_eq!(next(precision, &A.map(|x| -x)), next(precision, &A));
    }

    #[test]
    fn requesting_runs_terminates() {
        let run = |i: usize| 100.0 + ((i * 37) % 41) as f64;
        let mut runs = 0;
        let mut steps = 0;
        while let NextStep::Runs(more) =
            next(Precision::new(0.02).unwrap(), &(0..runs).map(run).collect::<Vec<_>>())
        {
            assert!(more > runs);
            (runs, steps) = (more, steps + 1);
        }
        // Uniform over 100 … 140: s = 11.97, mean 120, so (1.96 · 11.97 / 2.4)² = 96 runs.
        assert!((80..=120).contains(&runs) && steps <= 8, "{runs} runs in {steps} steps");
    }

    #[test]
    fn non_finite_values_are_rejected() {
        assert!(matches!(five().next(&[f64::NAN], Confidence::P95), Err(Refusal::NotFinite { .. })));
        assert!(five().next(&[f64::INFINITY; 12], Confidence::P95).is_err());
    }
}
