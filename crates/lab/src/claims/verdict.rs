//! Whether a measurement agrees with a claim.

use crate::stats::Interval;
use serde::Serialize;

/// What a paper says of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Claimed {
    /// It is this, give or take the tolerance, in the same unit.
    Value {
        /// The value.
        value: f64,
        /// The tolerance, not negative.
        tolerance: f64,
    },
    /// It lies in this range.
    Range(Interval),
    /// It is above this.
    Above(f64),
    /// It is below this.
    Below(f64),
    /// It is nothing, give or take this.
    Within(f64),
}

/// How a measurement stands to a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The interval meets what is claimed.
    Agrees,
    /// The interval misses it, on the side of zero that is claimed.
    DirectionOnly,
    /// The interval misses it.
    Differs,
    /// There is no measurement, or its interval is too wide to tell.
    CannotBeJudged,
}

impl Verdict {
    /// All of them, best first.
    pub const ALL: [Self; 4] = [Self::Agrees, Self::DirectionOnly, Self::Differs, Self::CannotBeJudged];

    /// In words.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::DirectionOnly => "direction only",
            Self::Differs => "differs",
            Self::CannotBeJudged => "cannot be judged",
        }
    }

    /// As a character.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Agrees => "✓",
            Self::DirectionOnly => "↗",
            Self::Differs => "✗",
            Self::CannotBeJudged => "?",
        }
    }
}

/// Whether zero divides what is claimed into directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// It does: the claim is a gain or a loss.
    Signed,
    /// It does not: the claim is a size.
    Size,
}

/// The verdict on `measured`, the confidence interval of what `claimed` is about.
///
/// 1. Above, below, within: *agrees* if the whole interval is, *differs* if none of it is, else it *cannot be judged*. So
///    "no difference" is shown by an interval within the margin, never by one that is too wide to show a difference.
/// 2. A value with its tolerance is a range. If the interval meets the range, it *agrees*, unless its half-width is above
///    `widest`: then it *cannot be judged*.
/// 3. Else, if the claim is a gain or a loss and the interval lies wholly on its side of zero: *direction only*.
/// 4. Else it *differs*, however wide it is: it lies wholly outside of what is claimed.
#[must_use]
pub fn judge(claimed: Claimed, direction: Direction, measured: Interval, widest: f64) -> Verdict {
    let range = match claimed {
        Claimed::Above(limit) => return bound(measured.low > limit, measured.high <= limit),
        Claimed::Below(limit) => return bound(measured.high < limit, measured.low >= limit),
        Claimed::Within(margin) => {
            let beyond = measured.low > margin || measured.high < -margin;
            return bound(measured.low >= -margin && measured.high <= margin, beyond);
        }
        Claimed::Value { value, tolerance } => Interval { low: value - tolerance, high: value + tolerance },
        Claimed::Range(range) => range,
    };
    let narrow = (measured.high - measured.low) / 2.0 <= widest;
    let meets = measured.low <= range.high && range.low <= measured.high;
    let middle = (range.low + range.high) / 2.0;
    let same_side = (middle > 0.0 && measured.low > 0.0) || (middle < 0.0 && measured.high < 0.0);
    match (meets, narrow) {
        (true, true) => Verdict::Agrees,
        (true, false) => Verdict::CannotBeJudged,
        (false, _) if direction == Direction::Signed && same_side => Verdict::DirectionOnly,
        (false, _) => Verdict::Differs,
    }
}

fn bound(holds: bool, fails: bool) -> Verdict {
    match (holds, fails) {
        (true, _) => Verdict::Agrees,
        (_, true) => Verdict::Differs,
        _ => Verdict::CannotBeJudged,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LESS_RTX: Claimed = Claimed::Value { value: -70.0, tolerance: 10.0 };

    fn verdict(claimed: Claimed, low: f64, high: f64) -> Verdict {
        judge(claimed, Direction::Signed, Interval { low, high }, 20.0)
    }

    #[test]
    fn an_interval_that_meets_the_claimed_range_agrees() {
        assert_eq!(verdict(LESS_RTX, -75.0, -65.0), Verdict::Agrees);
        assert_eq!(verdict(LESS_RTX, -60.0, -50.0), Verdict::Agrees, "ends included");
        assert_eq!(verdict(LESS_RTX, -95.0, -80.0), Verdict::Agrees);
    }

    #[test]
    fn one_that_misses_it_on_the_claimed_side_of_zero_agrees_in_direction() {
        assert_eq!(verdict(LESS_RTX, -40.0, -30.0), Verdict::DirectionOnly);
        assert_eq!(verdict(LESS_RTX, -99.0, -85.0), Verdict::DirectionOnly);
        let gain = Claimed::Range(Interval { low: 45.0, high: 57.0 });
        assert_eq!(verdict(gain, 5.0, 15.0), Verdict::DirectionOnly);
    }

    #[test]
    fn one_that_misses_it_and_reaches_zero_or_beyond_differs() {
        assert_eq!(verdict(LESS_RTX, -20.0, 0.0), Verdict::Differs);
        assert_eq!(verdict(LESS_RTX, 10.0, 30.0), Verdict::Differs);
    }

    #[test]
    fn a_size_has_no_direction() {
        let size = Claimed::Value { value: 700.0, tolerance: 50.0 };
        let measured = Interval { low: 400.0, high: 420.0 };
        assert_eq!(judge(size, Direction::Size, measured, 100.0), Verdict::Differs);
    }

    #[test]
    fn an_interval_too_wide_to_tell_judges_nothing() {
        assert_eq!(verdict(LESS_RTX, -100.0, -55.0), Verdict::CannotBeJudged);
        assert_eq!(verdict(LESS_RTX, -90.0, 90.0), Verdict::CannotBeJudged);
    }

    #[test]
    fn bounds_hold_wholly_or_not_at_all() {
        assert_eq!(verdict(Claimed::Above(700.0), 710.0, 720.0), Verdict::Agrees);
        assert_eq!(verdict(Claimed::Above(700.0), 600.0, 700.0), Verdict::Differs);
        assert_eq!(verdict(Claimed::Above(700.0), 690.0, 720.0), Verdict::CannotBeJudged);
        assert_eq!(verdict(Claimed::Below(100.0), 0.0, 99.0), Verdict::Agrees);
        assert_eq!(verdict(Claimed::Below(100.0), 100.0, 120.0), Verdict::Differs);
    }

    #[test]
    fn no_difference_is_shown_by_an_interval_within_the_margin_only() {
        assert_eq!(verdict(Claimed::Within(5.0), -5.0, 4.0), Verdict::Agrees);
        assert_eq!(verdict(Claimed::Within(5.0), 1.0, 4.0), Verdict::Agrees, "small, if not zero");
        assert_eq!(
            verdict(Claimed::Within(5.0), -30.0, 30.0),
            Verdict::CannotBeJudged,
            "it holds zero, and more"
        );
        assert_eq!(verdict(Claimed::Within(5.0), 2.0, 9.0), Verdict::CannotBeJudged);
        assert_eq!(verdict(Claimed::Within(5.0), 5.5, 9.0), Verdict::Differs);
        assert_eq!(verdict(Claimed::Within(5.0), -90.0, -5.1), Verdict::Differs);
    }

    #[test]
    fn a_wide_interval_that_misses_the_range_differs_all_the_same() {
        assert_eq!(verdict(LESS_RTX, 10.0, 90.0), Verdict::Differs);
    }
}
