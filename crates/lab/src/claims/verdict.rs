//! Verdict on a claim by a measurement.

use crate::stats::Interval;
use serde::Serialize;

/// Claimed value, range or bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Claimed {
    /// This value within the tolerance, in the same unit.
    Value {
        /// The value.
        value: f64,
        /// The tolerance, not negative.
        tolerance: f64,
    },
    /// This gain in percent; its ratio may be larger or smaller by a factor.
    Ratio {
        /// The gain: −93 % is a ratio of 0.07.
        value: f64,
        /// The factor, 1 or above.
        factor: f64,
    },
    /// A value in this range.
    Range(Interval),
    /// A value above this.
    Above(f64),
    /// A value below this.
    Below(f64),
    /// Zero, within this margin.
    Within(f64),
}

/// Verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The estimate meets the claim, and its interval is narrow enough to tell.
    Agrees,
    /// The estimate does not meet the claim, but lies on the claimed side of zero, and so does all of its
    /// interval.
    DirectionOnly,
    /// The interval misses the claim.
    Differs,
    /// There is no measurement, or its interval is too wide to tell.
    CannotBeJudged,
    /// It agrees, in full or in direction, and also does with the mechanism under test switched off.
    NotTested,
}

impl Verdict {
    /// All of them, best first.
    pub const ALL: [Self; 5] =
        [Self::Agrees, Self::DirectionOnly, Self::Differs, Self::CannotBeJudged, Self::NotTested];

    /// Returns it in words.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::DirectionOnly => "direction only",
            Self::Differs => "differs",
            Self::CannotBeJudged => "cannot be judged",
            Self::NotTested => "not tested",
        }
    }

    /// Returns it as a character.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Agrees => "✓",
            Self::DirectionOnly => "↗",
            Self::Differs => "✗",
            Self::CannotBeJudged => "?",
            Self::NotTested => "∅",
        }
    }
}

/// Meaning of zero for a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignMeaning {
    /// Zero divides directions: the claim is a gain or a loss.
    Signed,
    /// Zero does not divide directions: the claim is a size.
    Size,
}

/// Scale on which sizes are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Linear in the unit.
    Linear,
    /// Logarithm of the ratio that a gain in percent stands for: −93 and −71 % are a factor of four apart.
    LogRatio,
}

impl Scale {
    /// Returns the position of `x` on the scale. A loss of 100 % lies below everything.
    fn of(self, x: f64) -> f64 {
        match self {
            Self::Linear => x,
            Self::LogRatio => libm::log1p((x / 100.0).max(-1.0)),
        }
    }

    fn of_interval(self, Interval { low, high }: Interval) -> Interval {
        Interval { low: self.of(low), high: self.of(high) }
    }

    /// Returns the maximum half-width of a conclusive interval that meets `range`. `size`: size of the
    /// claimed value.
    fn max_half_width(self, range: Interval, size: f64, percent: f64) -> f64 {
        let widest = match self {
            Self::Linear => size * percent / 100.0,
            Self::LogRatio => libm::log1p(percent / 100.0),
        };
        widest.max((range.high - range.low) / 2.0)
    }
}

const CONTAINS_BOUND: &str = "the interval holds the bound";
const CROSSES_MARGIN: &str = "the interval reaches across the margin";
const TOO_WIDE: &str = "the interval is too wide";
const OVERLAPS_CLAIM: &str = "the estimate misses what is claimed, and its interval does not";

/// Returns the verdict on an estimate and its confidence interval, and its reason; empty if there is nothing
/// to say.
///
/// 1. Above, below, within: *agrees* if the whole interval is, *differs* if none of it is, else it *cannot be
///    judged*. "No difference" is thus shown by an interval within the margin, never by one that is too wide
///    to show a difference.
/// 2. A value with its tolerance is a range. An interval that misses the range, however wide: *direction
///    only* if the claim is a gain or a loss and all of the interval lies on its side of zero, else it
///    *differs*.
/// 3. An interval that meets the range and is too wide (`Scale::max_half_width`) *cannot be judged*.
/// 4. If it is not too wide, the estimate decides. Within the range it *agrees*. Outside of it: *direction
///    only* as in 2, else it *cannot be judged*.
#[must_use]
pub fn judge(
    claimed: Claimed,
    (direction, scale): (SignMeaning, Scale),
    (estimate, interval): (f64, Interval),
    widest_pct: f64,
) -> (Verdict, &'static str) {
    let Some((range, size)) = claimed.range() else { return judge_bound(claimed, interval) };
    let (range, measured) = (scale.of_interval(range), scale.of_interval(interval));
    let meets = measured.low <= range.high && range.low <= measured.high;
    let narrow = (measured.high - measured.low) / 2.0 <= scale.max_half_width(range, size, widest_pct);
    let middle = (range.low + range.high) / 2.0;
    let same_side = (middle > 0.0 && measured.low > 0.0) || (middle < 0.0 && measured.high < 0.0);
    let sign_is_shown = direction == SignMeaning::Signed && same_side;
    match (meets, narrow) {
        (false, _) if sign_is_shown => (Verdict::DirectionOnly, ""),
        (false, _) => (Verdict::Differs, ""),
        (true, false) => (Verdict::CannotBeJudged, TOO_WIDE),
        (true, true) if range.contains(scale.of(estimate)) => (Verdict::Agrees, ""),
        (true, true) if sign_is_shown => (Verdict::DirectionOnly, ""),
        (true, true) => (Verdict::CannotBeJudged, OVERLAPS_CLAIM),
    }
}

impl Claimed {
    /// Returns the half-width of the widest conclusive interval for a value or a range, on `scale`; `None`
    /// for a bound.
    pub(super) fn max_half_width(self, scale: Scale, percent: f64) -> Option<f64> {
        self.range().map(|(range, size)| scale.max_half_width(scale.of_interval(range), size, percent))
    }

    /// Returns the range that a size stands for, and the size; `None` for a bound.
    fn range(self) -> Option<(Interval, f64)> {
        match self {
            Self::Value { value, tolerance } => {
                Some((Interval { low: value - tolerance, high: value + tolerance }, value.abs()))
            }
            Self::Ratio { value, factor } => Some((ratio_range(value, factor), value.abs())),
            Self::Range(range) => Some((range, range.low.abs().max(range.high.abs()))),
            Self::Above(_) | Self::Below(_) | Self::Within(_) => None,
        }
    }
}

/// Returns the gains with ratios within `factor` of that of `value`; none of them has the opposite sign.
pub(super) fn ratio_range(value: f64, factor: f64) -> Interval {
    let ratio = 1.0 + value / 100.0;
    let (low, high) = ((ratio / factor - 1.0) * 100.0, (ratio * factor - 1.0) * 100.0);
    Interval {
        low: if value > 0.0 { low.max(0.0) } else { low },
        high: if value < 0.0 { high.min(0.0) } else { high },
    }
}

fn judge_bound(claimed: Claimed, measured: Interval) -> (Verdict, &'static str) {
    match claimed {
        Claimed::Above(limit) => bound_verdict(measured.low > limit, measured.high <= limit, CONTAINS_BOUND),
        Claimed::Below(limit) => bound_verdict(measured.high < limit, measured.low >= limit, CONTAINS_BOUND),
        Claimed::Within(margin) => {
            let beyond = measured.low > margin || measured.high < -margin;
            bound_verdict(measured.low >= -margin && measured.high <= margin, beyond, CROSSES_MARGIN)
        }
        Claimed::Value { .. } | Claimed::Ratio { .. } | Claimed::Range(_) => unreachable!("it has a range"),
    }
}

fn bound_verdict(holds: bool, fails: bool, undecided: &'static str) -> (Verdict, &'static str) {
    match (holds, fails) {
        (true, _) => (Verdict::Agrees, ""),
        (_, true) => (Verdict::Differs, ""),
        _ => (Verdict::CannotBeJudged, undecided),
    }
}

#[cfg(test)]
mod tests;
