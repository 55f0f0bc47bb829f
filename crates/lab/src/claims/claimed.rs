//! Claimed values in words.

use super::verdict::{Claimed, ratio_range};
use crate::stats::Interval;

impl Claimed {
    pub(super) fn scaled(self, factor: f64) -> Self {
        match self {
            Self::Value { value, tolerance } => {
                Self::Value { value: value * factor, tolerance: tolerance * factor }
            }
            Self::Ratio { .. } => self,
            Self::Range(range) => {
                Self::Range(Interval { low: range.low * factor, high: range.high * factor })
            }
            Self::Above(limit) => Self::Above(limit * factor),
            Self::Below(limit) => Self::Below(limit * factor),
            Self::Within(margin) => Self::Within(margin * factor),
        }
    }

    /// Describes it in words, with a readable unit: "−70 ± 10 %", "45 to 57 %", "above 700".
    #[must_use]
    pub fn describe(&self, unit: &str, signed: bool) -> String {
        let number = |x: f64| if signed { format!("{x:+}") } else { x.to_string() };
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        match self {
            Self::Value { value, tolerance } => format!("{} ± {}{unit}", number(*value), round(*tolerance)),
            Self::Ratio { value, factor } => {
                let Interval { low, high } = ratio_range(*value, *factor);
                format!("{} ({} to {}){unit}", number(*value), number(tenths(low)), number(tenths(high)))
            }
            Self::Range(range) => format!("{} to {}{unit}", number(range.low), number(range.high)),
            Self::Above(limit) => format!("above {}{unit}", number(*limit)),
            Self::Below(limit) => format!("below {}{unit}", number(*limit)),
            Self::Within(margin) => format!("no difference: within ± {margin}{unit}"),
        }
    }
}

fn tenths(x: f64) -> f64 {
    (x * 10.0).round() / 10.0
}

/// Rounds to three digits after the point.
fn round(x: f64) -> f64 {
    (x * 1e3).round() / 1e3
}
