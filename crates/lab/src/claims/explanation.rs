//! Words of the rule: for one claim, and for all kinds of claims.

use super::measure::Measure;
use super::rule::Rule;
use super::verdict::{Claimed, Scale, SignMeaning};
use crate::metrics;

const BOUND_TEXT: &str = "agrees if the whole interval lies beyond the bound on the claimed side, differs if none of it does, and cannot be \
                     judged if the interval holds the bound";
const NO_DIFFERENCE_TEXT: &str = "agrees if the whole interval lies within the margin, differs if none of it does, and cannot be judged if the \
                             interval reaches across the margin";
const SIZE_TEXT: &str = "differs if the interval misses what is claimed, and cannot be judged if the interval meets it and is too wide, or \
                    reaches in from an estimate outside";
const GAIN_TEXT: &str = "agrees in direction only if the whole interval lies on the claimed side of zero, and either misses what is claimed, or \
                    is narrow enough and its estimate lies outside. Else it differs if the interval misses what is claimed, and cannot be \
                    judged if the interval meets it";
const NOT_TESTED: &str = "A claim that comes out the same with the mechanism switched off is not tested";

impl Rule {
    /// Returns the rule for all kinds of claims, without the last full stop.
    #[must_use]
    pub fn describe(&self) -> String {
        let Self { tolerance_pct, max_half_width_pct: widest_pct, log_ratios } = self;
        let ratios = if log_ratios.is_empty() {
            String::new()
        } else {
            format!(
                " Gains in {} are judged as ratios: the tolerance is a factor of {}, the widest interval one of {} to either side.",
                log_ratios.join(", "),
                factor(*tolerance_pct),
                factor(*widest_pct)
            )
        };
        format!(
            "A claimed value stands for itself ± {tolerance_pct} %, unless the claim states another tolerance. A measurement of a value \
             or a range agrees if its estimate lies within and its interval is narrow enough: its half-width is {widest_pct} % of the \
             claimed value at most, or half the width of what is claimed. Else a size {SIZE_TEXT}. A gain or loss {GAIN_TEXT}.{ratios} A bound \
             {BOUND_TEXT}. No difference {NO_DIFFERENCE_TEXT}. {NOT_TESTED}. The intervals here are of one claim each"
        )
    }

    /// Returns the rule for the kind of claim of `measure`, with its own numbers and without the last full
    /// stop.
    #[must_use]
    pub fn describe_for(&self, measure: &Measure) -> String {
        let (factor_of_unit, unit) = metrics::display_unit(measure.unit());
        let signed = measure.sign_meaning() == SignMeaning::Signed;
        let claimed = measure.claimed.scaled(factor_of_unit);
        let words = claimed.describe(unit, signed);
        let rule = match claimed {
            Claimed::Above(_) | Claimed::Below(_) => {
                format!("The claim is a bound, {words}. It {BOUND_TEXT}")
            }
            Claimed::Within(_) => format!("The claim is {words}. It {NO_DIFFERENCE_TEXT}"),
            Claimed::Value { .. } | Claimed::Ratio { .. } | Claimed::Range(_) => {
                let kind = if signed { "a gain or loss" } else { "a size" };
                let rest = if signed { GAIN_TEXT } else { SIZE_TEXT };
                let narrow = self.describe_max_interval(claimed, measure.scale, unit);
                format!(
                    "The claim is {kind}, {words}. It agrees if the estimate lies within and the interval is narrow enough: {narrow}. \
                     Else it {rest}"
                )
            }
        };
        format!("{rule}. {NOT_TESTED}")
    }

    /// Describes the widest conclusive interval for a value or a range.
    fn describe_max_interval(&self, claimed: Claimed, scale: Scale, unit: &str) -> String {
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        let widest = claimed
            .max_half_width(scale, self.max_half_width_pct)
            .expect("a value or a range has a widest interval");
        match scale {
            Scale::Linear => format!("its half-width is {}{unit} at most", (widest * 1e3).round() / 1e3),
            Scale::LogRatio => format!(
                "as a ratio, it reaches by a factor of {:.2} to either side at most",
                libm::exp(widest)
            ),
        }
    }
}

/// Converts a percentage into a factor.
fn factor(percent: f64) -> f64 {
    1.0 + percent / 100.0
}
