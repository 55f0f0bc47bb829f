//! Ratios of ratios.

use super::statistics::NONE;
use super::*;

const ONE: &[f64] = &[100.0, 101.0, 99.0, 100.0];
const TWO: &[f64] = &[200.0, 202.0, 198.0, 200.0];
const THREE: &[f64] = &[300.0, 303.0, 297.0, 300.0];
const FOUR_OVER_THREE: &str = "point = { variant = \"wide\", \"nodes.count\" = 4 }\n\
                               against = { variant = \"wide\", \"nodes.count\" = 3 }\n\
                               over = { variant = \"narrow\", \"nodes.count\" = 4 }\n\
                               over_against = { variant = \"narrow\", \"nodes.count\" = 3 }";

const LESS_LOST: &str = "above = 0";

fn measured(goodputs: statistics::Goodputs<'_>) -> (Verdict, Option<Measurement>, String) {
    let judged = statistics::judged(&format!("{FOUR_OVER_THREE}\n{LESS_LOST}"), goodputs);
    (judged.verdict, judged.measurement, judged.why)
}

#[test]
fn a_ratio_of_ratios_is_measured() {
    let (verdict, measurement, _) = measured([ONE, ONE, TWO, THREE]);
    let measurement = measurement.unwrap();
    assert!((measurement.value - 50.0).abs() < 1e-9, "three over two: {}", measurement.value);
    let interval = measurement.interval.unwrap();
    assert!(interval.high - interval.low < 1e-6, "all vary together: {measurement:?}");
    assert_eq!((verdict, measurement.unit), (Verdict::Agrees, "%"));
    assert_eq!(
        measurement.against.as_deref(),
        Some("wide nodes.count=3, over narrow nodes.count=4 / narrow nodes.count=3")
    );
}

#[test]
fn a_positive_gain_is_not_a_smaller_loss() {
    let (verdict, measurement, _) = measured([TWO, THREE, ONE, ONE]);
    assert_eq!(verdict, Verdict::Differs, "a half is lost of two, and two thirds of three: {measurement:?}");
}

#[test]
fn a_ratio_of_ratios_needs_four_points() {
    let (verdict, measurement, why) = measured([ONE, ONE, NONE, ONE]);
    assert_eq!((verdict, measurement), (Verdict::CannotBeJudged, None));
    assert_eq!(why, "no run has the metric at all four points");
    let zero: &[f64] = &[0.0; 4];
    let (_, _, why) = measured([ONE, zero, ONE, ONE]);
    assert_eq!(why, "one of the four means is zero");
}

#[test]
fn an_invalid_ratio_of_ratios_is_rejected() {
    let over = "over = { variant = \"narrow\", \"nodes.count\" = 4 }\nabove = 0";
    let alone = problem(&claim(&format!("{NARROW}\n{over}")));
    assert!(alone.contains("`over` without a point of the same figure"), "{alone}");
    let statistic = problem(&claim(&format!("{WIDE}\nstatistic = \"mean-ratio\"\n{over}")));
    assert!(statistic.contains("`over` beside `statistic`"), "{statistic}");
    let flow = problem(&claim(&format!("{WIDE}\nover_flow = \"f1\"\nabove = 0")));
    assert!(flow.contains("`over_flow` without `flow`"), "{flow}");
}
