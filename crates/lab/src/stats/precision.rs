//! How many runs are enough.

use super::percent::{in_percent, parse_percent};
use super::refusal::{Refusal, finite};
use super::{Confidence, Estimate, PercentError};
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// Runs below which no interval is trusted to be narrow: few runs may agree by chance, and stopping when they do makes
/// intervals that miss the truth oftener than they say. TPA repeats at least five times (TPA §4); ten are better.
pub const LEAST_RUNS: usize = 5;
/// No step asks for more than so many times the runs that there are: early estimates of how many are needed are rough.
pub const MOST_GROWTH: usize = 2;

/// How narrow an interval is wanted: half its width over the size of the mean, a fraction between 0 and 1, both ends
/// excluded. Written "5%".
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Precision(f64);

/// What to do for a wanted precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// The interval is narrow enough.
    Reached,
    /// Make so many runs in all, the ones there are included, and ask again.
    Runs(usize),
}

impl Precision {
    /// The precision of `fraction`; `None` unless it lies between 0 and 1, both ends excluded.
    #[must_use]
    pub fn new(fraction: f64) -> Option<Self> {
        (fraction > 0.0 && fraction < 1.0).then_some(Self(fraction))
    }

    /// As a fraction.
    #[must_use]
    pub const fn fraction(self) -> f64 {
        self.0
    }

    /// Whether Student's interval of the mean of `values`, one a run, is as narrow as wanted, and how many runs to make
    /// if not. It depends on nothing but the arguments:
    ///
    /// 1. below [`LEAST_RUNS`] runs: that many;
    /// 2. half-width h ≤ precision · |mean|: reached (so are runs that are all equal);
    /// 3. else n · (h / (precision · |mean|))², rounded up, as the width falls with √n; at least one run more, at most
    ///    [`MOST_GROWTH`] times as many.
    ///
    /// # Errors
    ///
    /// Values that are not finite.
    pub fn next(self, values: &[f64], confidence: Confidence) -> Result<NextStep, Refusal> {
        finite(values)?;
        let n = values.len();
        if n < LEAST_RUNS {
            return Ok(NextStep::Runs(LEAST_RUNS));
        }
        let estimate = Estimate::of(values);
        let interval = estimate.interval(confidence).expect("five values have one");
        let (half_width, wanted) = ((interval.high - interval.low) / 2.0, self.0 * estimate.mean.abs());
        if half_width <= wanted {
            return Ok(NextStep::Reached);
        }
        let ratio = half_width / wanted;
        // Too large a number, as of a mean of zero, saturates.
        let needed = (n as f64 * ratio * ratio).ceil() as usize;
        Ok(NextStep::Runs(needed.clamp(n + 1, n.saturating_mul(MOST_GROWTH))))
    }
}

/// Reads "5%".
impl FromStr for Precision {
    type Err = PercentError;

    fn from_str(text: &str) -> Result<Self, PercentError> {
        parse_percent(text).map(Self)
    }
}

/// As it is written: "5%".
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
    fn a_precision_is_read_and_written_in_percent() {
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
    fn few_runs_are_never_enough() {
        for values in [&[][..], &[7.0], &[7.0; 4]] {
            assert_eq!(next(five(), values), NextStep::Runs(LEAST_RUNS));
        }
    }

    #[test]
    fn a_narrow_interval_is_reached() {
        // A: 707.79 ± 8.989 at 95 %, ± 12.914 at 99 %: 1.27 % and 1.82 %.
        assert_eq!(next(five(), &A), NextStep::Reached);
        assert_eq!(next(Precision::new(0.0128).unwrap(), &A), NextStep::Reached);
        let at_99 = Precision::new(0.0128).unwrap().next(&A, Confidence::P99);
        assert_eq!(at_99, Ok(NextStep::Runs(20)), "10 · (12.914 / 9.060)² = 20.3, at most twice as many");
    }

    #[test]
    fn a_wide_interval_asks_for_what_the_square_root_law_says() {
        // 10 · (8.989 / (0.01 · 707.79))² = 16.13.
        assert_eq!(next(Precision::new(0.01).unwrap(), &A), NextStep::Runs(17));
        // 10 · (8.989 / (0.0125 · 707.79))² = 10.32.
        assert_eq!(next(Precision::new(0.0125).unwrap(), &A), NextStep::Runs(11), "one more at least");
        assert_eq!(next(Precision::new(0.001).unwrap(), &A), NextStep::Runs(20), "twice as many at most");
    }

    #[test]
    fn equal_runs_are_enough_and_a_mean_of_zero_asks_for_more_each_time() {
        assert_eq!(next(five(), &[3.0; 10]), NextStep::Reached);
        assert_eq!(next(five(), &[0.0; 10]), NextStep::Reached);
        let around_zero: Vec<f64> = [1.0, -1.0].repeat(5);
        assert_eq!(next(five(), &around_zero), NextStep::Runs(20));
    }

    #[test]
    fn the_sign_of_the_mean_is_of_no_account() {
        let precision = Precision::new(0.01).unwrap();
        assert_eq!(next(precision, &A.map(|x| -x)), next(precision, &A));
    }

    #[test]
    fn asking_and_running_comes_to_an_end() {
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
    fn values_that_are_not_finite_are_refused() {
        assert!(matches!(five().next(&[f64::NAN], Confidence::P95), Err(Refusal::NotFinite { .. })));
        assert!(five().next(&[f64::INFINITY; 12], Confidence::P95).is_err());
    }
}
