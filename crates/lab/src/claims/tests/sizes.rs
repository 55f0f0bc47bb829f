//! Claims of a size: conditions on the estimate, besides its interval, to agree.

use super::statistics::{Judged, NONE, OVER_NARROW, judged, judged_in};
use super::*;
use crate::stats::Interval;

/// Returns the verdict on a gain of `wide` over `narrow`.
fn verdict(claimed: &str, wide: &[f64], narrow: &[f64]) -> Verdict {
    judged(&format!("{OVER_NARROW}\n{claimed}"), [narrow, wide, NONE, NONE]).verdict
}

const HUNDRED: &[f64] = &[100.0; 4];

/// −64.5 ± 34.6 %, the measurement of TPA's retransmissions over four hops of OLSR, of which the paper has 93
/// to 98 % less.
#[test]
fn an_estimate_outside_the_range_disagrees_even_with_a_wide_interval() {
    let wide = &[10.0, 65.0, 35.0, 32.0];
    assert_eq!(verdict("low = -98\nhigh = -93", wide, HUNDRED), Verdict::DirectionOnly);
}

/// −12 ± 3.2 %: the interval reaches the claimed 10 ± 2 %, the estimate is beyond.
#[test]
fn an_estimate_beyond_the_tolerance_disagrees() {
    assert_eq!(
        verdict("claimed = -10\ntolerance = 1", &[88.0, 90.0, 86.0, 88.0], HUNDRED),
        Verdict::DirectionOnly
    );
    assert_eq!(verdict("claimed = -10\ntolerance = 2", &[88.0, 90.0, 86.0, 88.0], HUNDRED), Verdict::Agrees);
}

/// Judges a claim of a paper that judges gains in goodput as ratios.
fn by_ratios(claimed: &str, wide: &[f64], narrow: &[f64]) -> Judged {
    let text = paper_text(&claim(&format!("{OVER_NARROW}\n{claimed}")));
    let text = text.replace("widest_pct = 50", "widest_pct = 50, log_ratios = [\"aggregate_goodput_bps\"]");
    judged_in(&text, [narrow, wide, NONE, NONE], None)
}

/// Means of 7 and 100: a ratio of 0.07; values over their means 6/7, 1, 8/7, 1 and 1.1, 0.9, 1, 1.
#[test]
fn a_gain_judged_as_a_ratio_has_an_interval_of_factors() {
    let (wide, narrow) = (&[6.0, 7.0, 8.0, 7.0], &[110.0, 90.0, 100.0, 100.0]);
    let judged = by_ratios("claimed = -93", wide, narrow);
    let m = judged.measurement.unwrap();
    assert!((m.value + 93.0).abs() < 1e-9 && m.unit == "%", "{m:?}");
    let expected = Estimate::of_log_ratio(wide, narrow).unwrap().interval(crate::stats::CONFIDENCE).unwrap();
    let interval = m.interval.unwrap();
    assert!((interval.low - libm::expm1(expected.low) * 100.0).abs() < 1e-9, "{interval:?}");
    assert!(m.value - interval.low < interval.high - m.value, "factors are not symmetrical in percent");
    assert_eq!(
        (judged.verdict, &judged.json["claimed"]),
        (Verdict::Agrees, &"-93 (-94.2 to -91.6) %".into())
    );
    let third = by_ratios("claimed = -71", wide, narrow);
    assert_eq!(third.verdict, Verdict::DirectionOnly, "a fourth of what is claimed");
    assert_eq!(
        by_ratios("claimed = -71\ntolerance = 400", wide, narrow).verdict,
        Verdict::Agrees,
        "a factor of 5"
    );
}

#[test]
fn single_zero_runs_use_the_ratio_of_means_and_all_zero_runs_use_differences() {
    let some = by_ratios("low = -98\nhigh = -93", &[0.0, 8.0, 4.0, 4.0], HUNDRED).measurement.unwrap();
    assert!((some.value + 96.0).abs() < 1e-9 && some.interval.unwrap().low > -100.0, "{some:?}");
    let none = by_ratios("low = -98\nhigh = -93", &[0.0; 4], HUNDRED);
    assert_eq!(none.measurement.unwrap().interval, Some(Interval { low: -100.0, high: -100.0 }));
    assert_eq!(none.verdict, Verdict::DirectionOnly, "less than is claimed");
    let nothing = by_ratios("claimed = -93", &[0.0; 4], &[0.0; 4]);
    assert_eq!(
        (nothing.verdict, nothing.why.as_str()),
        (Verdict::CannotBeJudged, "what it is compared with is zero")
    );
}

#[test]
fn a_sign_is_judged_by_differences_for_every_metric() {
    let judged = by_ratios("below = 0", &[6.0, 7.0, 8.0, 7.0], HUNDRED);
    let m = judged.measurement.unwrap();
    let interval = m.interval.unwrap();
    assert!((m.value - interval.low - (interval.high - m.value)).abs() < 1e-9, "{m:?}");
    assert_eq!(judged.verdict, Verdict::Agrees);
}

#[test]
fn ratios_are_of_existing_metrics_only() {
    let text = paper_text(&claim(&format!("{NARROW}\nabove = 1")))
        .replace("widest_pct = 50", "widest_pct = 50, log_ratios = [\"rtx_indx\"]");
    let problem = paper_of(&text).1.unwrap_err().to_string();
    assert!(problem.contains("no run has a metric \"rtx_indx\""), "{problem}");
}
