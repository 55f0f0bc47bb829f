use super::Verdict::{Agrees, CannotBeJudged, Differs, DirectionOnly};
use super::*;

const LESS_RTX: Claimed = Claimed::Value { value: -70.0, tolerance: 14.0 };
const SIGNED: (SignMeaning, Scale) = (SignMeaning::Signed, Scale::Linear);
const RATIO: (SignMeaning, Scale) = (SignMeaning::Signed, Scale::LogRatio);

/// Returns the verdict on an estimate in the middle of its interval. Half-widths above 35 are too wide.
fn verdict(claimed: Claimed, low: f64, high: f64) -> Verdict {
    judge(claimed, SIGNED, ((low + high) / 2.0, Interval { low, high }), 50.0).0
}

#[test]
fn an_estimate_within_the_tolerance_agrees() {
    assert_eq!(verdict(LESS_RTX, -75.0, -65.0), Agrees);
    assert_eq!(verdict(LESS_RTX, -66.0, -46.0), Agrees, "ends included");
    assert_eq!(verdict(LESS_RTX, -104.0, -64.0), Agrees);
}

#[test]
fn an_estimate_outside_the_tolerance_with_a_narrow_interval_agrees_in_direction_at_most() {
    assert_eq!(verdict(LESS_RTX, -60.0, -50.0), DirectionOnly, "−55");
    assert_eq!(verdict(LESS_RTX, -95.0, -80.0), DirectionOnly, "−87.5");
    assert_eq!(verdict(Claimed::Range(Interval { low: -98.0, high: -93.0 }), -99.1, -30.1), DirectionOnly);
    assert_eq!(verdict(LESS_RTX, -58.0, 2.0), CannotBeJudged, "zero is not shut out, and neither is −58");
}

#[test]
fn an_estimate_that_misses_on_the_claimed_side_of_zero_agrees_in_direction() {
    assert_eq!(verdict(LESS_RTX, -40.0, -30.0), DirectionOnly);
    assert_eq!(verdict(LESS_RTX, -99.0, -85.0), DirectionOnly);
    let gain = Claimed::Range(Interval { low: 45.0, high: 57.0 });
    assert_eq!(verdict(gain, 5.0, 15.0), DirectionOnly);
}

#[test]
fn an_estimate_that_misses_with_an_interval_that_includes_zero_differs() {
    assert_eq!(verdict(LESS_RTX, -20.0, 0.0), Differs);
    assert_eq!(verdict(LESS_RTX, 10.0, 30.0), Differs);
    assert_eq!(verdict(LESS_RTX, 10.0, 190.0), Differs, "however wide it is");
}

#[test]
fn a_size_has_no_direction() {
    let size = Claimed::Value { value: 700.0, tolerance: 50.0 };
    let judged = |estimate: f64, low: f64, high: f64| {
        judge(size, (SignMeaning::Size, Scale::Linear), (estimate, Interval { low, high }), 100.0)
    };
    assert_eq!(judged(410.0, 400.0, 420.0), (Differs, ""));
    assert_eq!(judged(740.0, 720.0, 760.0), (Agrees, ""));
    assert_eq!(judged(760.0, 740.0, 780.0), (CannotBeJudged, OVERLAPS_CLAIM));
}

#[test]
fn an_interval_that_is_too_wide_cannot_be_judged() {
    assert_eq!(verdict(LESS_RTX, -106.0, -34.0), CannotBeJudged, "the estimate is −70");
    assert_eq!(verdict(LESS_RTX, -90.0, 90.0), CannotBeJudged);
    assert_eq!(verdict(LESS_RTX, -75.0, -3.0), CannotBeJudged, "all below zero, and −39: still too wide");
}

#[test]
fn bounds_hold_entirely_or_not_at_all() {
    assert_eq!(verdict(Claimed::Above(700.0), 710.0, 720.0), Agrees);
    assert_eq!(verdict(Claimed::Above(700.0), 600.0, 700.0), Differs);
    assert_eq!(verdict(Claimed::Above(700.0), 690.0, 720.0), CannotBeJudged);
    assert_eq!(verdict(Claimed::Below(100.0), 0.0, 99.0), Agrees);
    assert_eq!(verdict(Claimed::Below(100.0), 100.0, 120.0), Differs);
}

#[test]
fn no_difference_requires_an_interval_within_the_margin() {
    assert_eq!(verdict(Claimed::Within(5.0), -5.0, 4.0), Agrees);
    assert_eq!(verdict(Claimed::Within(5.0), 1.0, 4.0), Agrees, "small, if not zero");
    assert_eq!(verdict(Claimed::Within(5.0), -30.0, 30.0), CannotBeJudged, "it holds zero, and more");
    assert_eq!(verdict(Claimed::Within(5.0), 2.0, 9.0), CannotBeJudged);
    assert_eq!(verdict(Claimed::Within(5.0), 5.5, 9.0), Differs);
    assert_eq!(verdict(Claimed::Within(5.0), -90.0, -5.1), Differs);
}

/// A ratio of 0.07 within a factor of 1.2: 0.0583 to 0.084. Factors above 1.5 to either side are too wide.
const TINY: Claimed = Claimed::Ratio { value: -93.0, factor: 1.2 };

/// Returns the verdict on a ratio with an interval that extends by `factor` to either side.
fn of_ratio(claimed: Claimed, ratio: f64, factor: f64) -> Verdict {
    let pct = |ratio: f64| (ratio - 1.0) * 100.0;
    let interval = Interval { low: pct(ratio / factor), high: pct(ratio * factor) };
    judge(claimed, RATIO, (pct(ratio), interval), 50.0).0
}

#[test]
fn retransmission_shares_are_judged_by_their_ratio() {
    for (ratio, factor, expected) in [
        (0.07, 1.3, Agrees),
        (0.059, 1.3, Agrees),
        (0.083, 1.4, Agrees),
        (0.09, 1.3, DirectionOnly), // −91 %
        (0.29, 1.2, DirectionOnly), // −71 %
        (0.02, 1.2, DirectionOnly), // −98 %
        (0.07, 1.6, CannotBeJudged),
        (0.2, 4.0, CannotBeJudged),
        (0.9, 1.2, Differs),
        (2.0, 1.2, Differs),
    ] {
        assert_eq!(of_ratio(TINY, ratio, factor), expected, "{ratio} × or ÷ {factor}");
    }
}

#[test]
fn a_range_of_ratios_may_be_wide() {
    let range = Claimed::Range(Interval { low: -98.0, high: -93.0 });
    assert_eq!(of_ratio(range, 0.04, 1.8), Agrees, "0.02 to 0.07: a factor of 1.87 to either side");
    assert_eq!(of_ratio(range, 0.04, 1.9), CannotBeJudged);
    assert_eq!(of_ratio(range, 0.354, 1.5), DirectionOnly, "−64.6 %");
}

#[test]
fn a_ratio_of_a_gain_never_matches_a_loss() {
    let slightly_more = Claimed::Ratio { value: 2.0, factor: 1.2 };
    assert_eq!(of_ratio(slightly_more, 1.1, 1.05), Agrees);
    assert_eq!(of_ratio(slightly_more, 0.95, 1.1), CannotBeJudged);
    assert_eq!(of_ratio(slightly_more, 0.95, 1.02), Differs);
    assert_eq!(ratio_range(-17.0, 1.5).high, 0.0);
    assert_eq!(of_ratio(Claimed::Ratio { value: 0.0, factor: 1.2 }, 0.9, 1.1), Agrees, "of no gain either");
}

#[test]
fn zero_retransmissions_lie_below_every_claim() {
    let nothing = |high: f64| judge(TINY, RATIO, (-100.0, Interval { low: -200.0 - high, high }), 50.0).0;
    assert_eq!(nothing(-98.0), DirectionOnly);
    assert_eq!(nothing(-80.0), CannotBeJudged, "it may be a fifth");
    let more = Claimed::Ratio { value: 22.0, factor: 1.2 };
    assert_eq!(judge(more, RATIO, (-100.0, Interval { low: -100.0, high: -100.0 }), 50.0).0, Differs);
}

#[test]
fn an_interval_that_contains_the_bound_is_reported_so() {
    let on = (SignMeaning::Size, Scale::Linear);
    let why = |claimed, low, high| judge(claimed, on, ((low + high) / 2.0, Interval { low, high }), 50.0);
    assert_eq!(why(Claimed::Above(0.95), 0.92, 1.006), (CannotBeJudged, "the interval holds the bound"));
    assert_eq!(why(Claimed::Below(0.95), 0.92, 1.006), (CannotBeJudged, "the interval holds the bound"));
    assert_eq!(
        why(Claimed::Within(2.0), -1.0, 3.0),
        (CannotBeJudged, "the interval reaches across the margin")
    );
}
