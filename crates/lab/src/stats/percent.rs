//! Percentages as text ("5%"), and the confidence of an interval.

use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// Text that is not a percentage above 0 and below 100.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PercentError {
    text: String,
}

impl fmt::Display for PercentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" is not a percentage above 0 and below 100, such as \"5%\"", self.text)
    }
}

impl std::error::Error for PercentError {}

/// Parses "5%" or "2.5 %" as a fraction between 0 and 1, both ends excluded.
pub(super) fn parse_percent(text: &str) -> Result<f64, PercentError> {
    let number = text.trim().strip_suffix('%').and_then(|digits| digits.trim_end().parse::<f64>().ok());
    match number.map(|p| p / 100.0) {
        Some(fraction) if fraction > 0.0 && fraction < 1.0 => Ok(fraction),
        _ => Err(PercentError { text: text.to_owned() }),
    }
}

/// Returns a fraction in percent. Rounded to twelve digits: 0.95 · 100 is not quite 95.
pub(super) fn in_percent(fraction: f64) -> f64 {
    (fraction * 1e12).round() / 1e10
}

/// Confidence level: the probability that an interval contains the true value, a fraction between 0 and 1,
/// both ends excluded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Confidence(f64);

impl Confidence {
    /// 90 %, as in TPA's figures (TPA §4).
    pub const P90: Self = Self(0.90);
    /// 95 %.
    pub const P95: Self = Self(0.95);
    /// 99 %.
    pub const P99: Self = Self(0.99);

    /// Returns the confidence of `fraction`; `None` unless it lies between 0 and 1, both ends excluded.
    #[must_use]
    pub fn new(fraction: f64) -> Option<Self> {
        (fraction > 0.0 && fraction < 1.0).then_some(Self(fraction))
    }

    /// Returns it as a fraction.
    #[must_use]
    pub const fn fraction(self) -> f64 {
        self.0
    }

    /// Returns the confidence of each of `times` intervals, so that all of them together have this one
    /// (Bonferroni). `times` is at least 1.
    #[must_use]
    pub fn for_each_of(self, times: f64) -> Self {
        Self(1.0 - (1.0 - self.0) / times.max(1.0))
    }

    /// Returns the probability beyond each end of a two-sided interval.
    #[must_use]
    pub const fn tail(self) -> f64 {
        (1.0 - self.0) / 2.0
    }
}

/// 95 %.
impl Default for Confidence {
    fn default() -> Self {
        Self::P95
    }
}

/// Parses "90%".
impl FromStr for Confidence {
    type Err = PercentError;

    fn from_str(text: &str) -> Result<Self, PercentError> {
        parse_percent(text).map(Self)
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", in_percent(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_parsed_with_their_sign() {
        assert_eq!(parse_percent("5%"), Ok(0.05));
        assert_eq!(parse_percent(" 2.5 % "), Ok(0.025));
        assert_eq!(parse_percent("99.9%"), Ok(99.9 / 100.0));
        assert_eq!("90%".parse(), Ok(Confidence::P90));
    }

    #[test]
    fn other_texts_are_rejected_with_an_example() {
        for text in [
            "",
            "%",
            "5",
            "0%",
            "100%",
            "-5%",
            "1e400%",
            "NaN%",
            "inf%",
            "5 percent",
            "0.05",
            "5%%",
            "1e-400%",
        ] {
            assert!(parse_percent(text).is_err(), "{text}");
        }
        let error = parse_percent("0.05").unwrap_err().to_string();
        assert_eq!(error, "\"0.05\" is not a percentage above 0 and below 100, such as \"5%\"");
    }

    #[test]
    fn a_confidence_lies_between_0_and_1() {
        assert_eq!(Confidence::new(0.95), Some(Confidence::P95));
        for bad in [0.0, 1.0, -0.5, 95.0, f64::NAN] {
            assert_eq!(Confidence::new(bad), None);
        }
        assert!((Confidence::P90.tail() - 0.05).abs() < 1e-15);
    }

    #[test]
    fn a_confidence_reads_as_percent_and_serializes_as_a_fraction() {
        assert_eq!(Confidence::P95.to_string(), "95 %");
        assert_eq!(Confidence::new(0.999).unwrap().to_string(), "99.9 %");
        assert_eq!(serde_json::json!(Confidence::P95), serde_json::json!(0.95));
    }
}
