//! Measured mean and its text format.

use crate::stats::{Estimate, Interval};

/// A mean, its interval, and the single runs behind it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// The mean.
    pub mean: f64,
    /// The 95 % interval, low and high. `None` with less than two runs.
    pub interval: Option<[f64; 2]>,
    /// Single runs, in the order of their numbers; NaN where one has no value. May be empty.
    pub runs: Vec<f64>,
}

/// Maximum number of digits after the point.
const MOST_DECIMALS: usize = 9;

impl Measured {
    /// Returns the mean of single runs with its Student interval.
    #[must_use]
    pub fn of(runs: Vec<f64>) -> Self {
        let estimate = Estimate::of(&runs);
        let interval = estimate.half_width.map(|half| [estimate.mean - half, estimate.mean + half]);
        Self { mean: estimate.mean, interval, runs }
    }

    /// Returns the number with its interval: `712.4 ± 8.9`, or `712.4 [701.0, 718.2]` if the interval is not
    /// symmetric; with as many digits as the interval supports.
    #[must_use]
    pub fn text(&self) -> String {
        self.written(plain)
    }

    /// As [`text`](Self::text), with a sign before the mean: `+12.3 ± 1.4`.
    #[must_use]
    pub fn signed(&self) -> String {
        self.written(signed)
    }

    /// Returns the mean alone, with as many digits as the interval supports.
    #[must_use]
    pub fn mean_text(&self) -> String {
        plain(self.mean, self.decimals())
    }

    /// Returns the interval alone: `701.0 to 718.2`. `None` if there is none.
    #[must_use]
    pub fn range_text(&self) -> Option<String> {
        let decimals = self.decimals();
        self.interval.map(|[low, high]| format!("{} to {}", plain(low, decimals), plain(high, decimals)))
    }

    /// Returns the number of runs with a value.
    #[must_use]
    pub fn finite(&self) -> usize {
        self.runs.iter().filter(|x| x.is_finite()).count()
    }

    /// Returns whether the interval lies on one side of zero.
    #[must_use]
    pub fn excludes_zero(&self) -> bool {
        self.interval.is_some_and(|[low, high]| low > 0.0 || high < 0.0)
    }

    /// Returns all numbers that a chart must have room for.
    pub(super) fn extent(&self) -> impl Iterator<Item = f64> {
        let ends = self.interval.into_iter().flatten();
        std::iter::once(self.mean).chain(ends).chain(self.runs.iter().copied())
    }

    fn written(&self, number: fn(f64, usize) -> String) -> String {
        let decimals = self.decimals();
        let mean = number(self.mean, decimals);
        let Some([low, high]) = self.interval else { return mean };
        match (Interval { low, high }).half_width_around(self.mean) {
            Some(half) => format!("{mean} ± {}", plain(half, decimals)),
            None => format!("{mean} [{}, {}]", plain(low, decimals), plain(high, decimals)),
        }
    }

    /// Returns the number of digits after the point. They show two significant digits of half the interval, or, without an
    /// interval, four of the mean.
    fn decimals(&self) -> usize {
        match self.interval {
            Some([low, high]) if high == f64::INFINITY => decimals_for(self.mean - low, 2),
            Some([low, high]) if low == f64::NEG_INFINITY => decimals_for(high - self.mean, 2),
            Some([low, high]) if high > low => decimals_for((high - low) / 2.0, 2),
            _ if self.interval.is_none() && libm::floor(self.mean) == self.mean => 0,
            _ => decimals_for(self.mean, 4).min(4),
        }
    }
}

/// Returns the number of digits after the point that show `significant` digits of `value`, at most [`MOST_DECIMALS`].
fn decimals_for(value: f64, significant: i32) -> usize {
    if value == 0.0 || !value.is_finite() {
        return 0;
    }
    let magnitude = libm::floor(libm::log10(value.abs())) as i32;
    usize::try_from(significant - 1 - magnitude).unwrap_or(0).min(MOST_DECIMALS)
}

/// Formats a number with `decimals` digits after the point, the minus sign U+2212, and thousands separated if it has five
/// digits or more before the point.
pub(super) fn plain(value: f64, decimals: usize) -> String {
    match value {
        f64::INFINITY => return "∞".into(),
        f64::NEG_INFINITY => return "−∞".into(),
        _ if value.is_nan() => return "–".into(),
        _finite => {}
    }
    let text = format!("{value:.decimals$}");
    let (sign, digits) = match text.strip_prefix('-') {
        // A number that rounds to zero has no sign.
        Some(rest) if rest.chars().any(|c| c.is_ascii_digit() && c != '0') => ("−", rest),
        Some(rest) => ("", rest),
        None => ("", text.as_str()),
    };
    let (whole, fraction) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    format!("{sign}{}{fraction}", grouped(whole))
}

/// Formats a number as short as possible: for parameters and ticks.
pub(super) fn shortest(value: f64) -> String {
    if value != 0.0 && !(1e-4..1e7).contains(&value.abs()) {
        return format!("{value:e}").replace('-', "−");
    }
    let decimals = (0..=MOST_DECIMALS).find(|&d| {
        let text = format!("{value:.d$}");
        text.parse::<f64>().is_ok_and(|back| (back - value).abs() <= 1e-9 * value.abs())
    });
    plain(value, decimals.unwrap_or(MOST_DECIMALS))
}

fn signed(value: f64, decimals: usize) -> String {
    let text = plain(value, decimals);
    let zero = text.chars().all(|c| !c.is_ascii_digit() || c == '0');
    if value > 0.0 && !zero { format!("+{text}") } else { text }
}

/// Inserts narrow no-break spaces between groups of three digits, in numbers of five digits and more.
fn grouped(whole: &str) -> String {
    if whole.len() < 5 {
        return whole.to_owned();
    }
    let mut out = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(mean: f64, interval: Option<[f64; 2]>) -> Measured {
        Measured { mean, interval, runs: Vec::new() }
    }

    #[test]
    fn the_interval_determines_the_number_of_digits() {
        assert_eq!(measured(707.79, Some([698.80, 716.78])).text(), "707.8 ± 9.0");
        assert_eq!(measured(0.951_234, Some([0.949, 0.953_468])).text(), "0.9512 ± 0.0022");
        assert_eq!(measured(123_456.0, Some([120_000.0, 126_912.0])).text(), "123\u{202f}456 ± 3456");
        assert_eq!(measured(5.0, Some([5.0, 5.0])).text(), "5.000 ± 0.000");
    }

    #[test]
    fn runs_give_mean_and_interval() {
        // Student, two degrees of freedom: 2 − 4.302653 / √3.
        let three = Measured::of(vec![1.0, 2.0, 3.0]);
        assert_eq!(three.text(), "2.0 ± 2.5");
        assert!((three.interval.unwrap()[0] + 0.484_137_7).abs() < 1e-6, "{three:?}");
        assert_eq!(Measured::of(vec![7.0]).interval, None);
        assert_eq!(Measured::of(Vec::new()).mean, 0.0);
    }

    #[test]
    fn one_run_has_a_mean_alone() {
        assert_eq!(measured(707.79, None).text(), "707.8");
        assert_eq!(measured(0.0, None).text(), "0");
        assert_eq!(measured(f64::NAN, None).text(), "–");
        assert_eq!(measured(f64::INFINITY, Some([0.0, f64::INFINITY])).text(), "∞ [0, ∞]");
    }

    #[test]
    fn an_asymmetric_interval_is_written_out() {
        assert_eq!(measured(10.0, Some([9.0, 14.0])).text(), "10.0 [9.0, 14.0]");
        assert_eq!(measured(100.0, Some([89.04, 112.0])).text(), "100 ± 11");
        assert_eq!(measured(100.0, Some([90.0, f64::INFINITY])).text(), "100 [90, ∞]");
        assert_eq!(measured(-50.0, Some([f64::NEG_INFINITY, -41.3])).text(), "−50.0 [−∞, −41.3]");
    }

    #[test]
    fn gains_have_signs_and_zero_has_none() {
        assert_eq!(measured(12.34, Some([10.34, 14.34])).signed(), "+12.3 ± 2.0");
        assert_eq!(measured(-12.34, Some([-14.34, -10.34])).signed(), "−12.3 ± 2.0");
        assert_eq!(measured(-0.001, Some([-1.001, 0.999])).signed(), "0.0 ± 1.0");
        assert_eq!(measured(0.001, Some([-0.999, 1.001])).signed(), "0.0 ± 1.0");
    }

    #[test]
    fn only_an_interval_on_one_side_excludes_zero() {
        assert!(measured(2.0, Some([1.0, 3.0])).excludes_zero());
        assert!(measured(-2.0, Some([-3.0, -1.0])).excludes_zero());
        assert!(!measured(2.0, Some([-1.0, 5.0])).excludes_zero());
        assert!(!measured(2.0, None).excludes_zero());
    }

    #[test]
    fn parameters_are_written_as_short_as_possible() {
        let texts = [0.0, 2.0, 0.75, 1.5e-6, 32_000.0, -0.1, 1e9].map(shortest);
        assert_eq!(texts, ["0", "2", "0.75", "1.5e−6", "32\u{202f}000", "−0.1", "1e9"]);
    }
}
