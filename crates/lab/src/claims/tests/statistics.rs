//! Statistics of the gains of single runs, compared with values computed by hand.

use super::*;
use crate::description::Description;
use crate::record::{CompletedRun, Record, Value};
use crate::stats::Interval;

/// Points of the plan, in their order: narrow and wide at three nodes, then at four.
pub(super) type Goodputs<'a> = [&'a [f64]; 4];

pub(super) const NONE: &[f64] = &[];
pub(super) const OVER_NARROW: &str = "point = { variant = \"wide\", \"nodes.count\" = 3 }\nagainst = { variant = \"narrow\", \"nodes.count\" = 3 }";

/// Returns a comparison for the plan of `register`, with these goodputs in place of runs.
pub(super) fn comparison(register: &Register, goodputs: Goodputs<'_>) -> Comparison {
    let plan = register.plan(&register.figures[0], &[], Effort::Full).unwrap();
    let runs = goodputs.iter().map(|values| values.len()).max().unwrap() as u64;
    let record = |point: usize, run: usize, value: f64| Record {
        point,
        run: run as u64 + 1,
        result: Ok(CompletedRun {
            fingerprint: 0,
            events: 0,
            sim_s: 1.0,
            cpu_s: 0.0,
            wall_s: 0.0,
            metrics: vec![Value {
                metric: crate::metrics::find(Level::Run, "aggregate_goodput_bps").unwrap(),
                subject: String::new(),
                value,
            }],
            flows: Vec::new(),
            series: Vec::new(),
            neighborhoods: Vec::new(),
            distributions: Vec::new(),
        }),
    };
    let of_point = |(point, values): (usize, &&[f64])| {
        values.iter().enumerate().map(|(run, value)| record(point, run, *value)).collect::<Vec<_>>()
    };
    let records: Vec<Record> = goodputs.iter().enumerate().flat_map(of_point).collect();
    Comparison::of(Description::of(&plan, Vec::new()).unwrap(), runs, &records)
}

/// Judgement of one claim.
pub(super) struct Judged {
    pub(super) measurement: Option<Measurement>,
    pub(super) verdict: Verdict,
    pub(super) why: String,
    pub(super) json: serde_json::Value,
}

pub(super) fn judged(what: &str, goodputs: Goodputs<'_>) -> Judged {
    judged_of(&claim(what), goodputs, None)
}

fn judged_of(claims: &str, goodputs: Goodputs<'_>, second: Option<Goodputs<'_>>) -> Judged {
    judged_in(&paper_text(claims), goodputs, second)
}

pub(super) fn judged_in(text: &str, goodputs: Goodputs<'_>, second: Option<Goodputs<'_>>) -> Judged {
    let (_folder, register) = paper_of(text);
    let register = register.unwrap();
    let first = comparison(&register, goodputs);
    let second = second.map(|goodputs| comparison(&register, goodputs));
    let made: Vec<(usize, &Comparison)> =
        [(0, &first)].into_iter().chain(second.iter().map(|c| (1, c))).collect();
    let evidence = evaluate(&register, &made).unwrap();
    Judged {
        measurement: evidence[0].measurement.clone(),
        verdict: evidence[0].verdict,
        why: evidence[0].why.clone(),
        json: evidence[0].json(),
    }
}

fn statistic(name: &str, claimed: &str, wide: &[f64], narrow: &[f64]) -> Judged {
    judged(&format!("{OVER_NARROW}\nstatistic = \"{name}\"\n{claimed}"), [narrow, wide, NONE, NONE])
}

/// Gains of 100, 50, −50 and 20 %: mean 30, squares around it 4900 + 400 + 6400 + 100 = 11800.
const WIDE: &[f64] = &[20.0, 30.0, 10.0, 12.0];
const NARROW_4: &[f64] = &[10.0, 20.0, 20.0, 10.0];

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

#[test]
fn statistics_are_computed_from_the_ratios_of_single_runs() {
    let deviation = libm::sqrt(11_800.0 / 3.0);
    for (name, expected, unit) in [
        ("mean-ratio", 30.0, "%"),
        ("ratio-sd", deviation, "percentage points"),
        ("ratio-sd-per-mean", deviation / 30.0, "1"),
        ("positive-share", 75.0, "%"),
        ("gain", 20.0, "%"), // 18 over 15
    ] {
        let m = statistic(name, "above = 1", WIDE, NARROW_4).measurement.unwrap();
        assert!(near(m.value, expected), "{name}: {}", m.value);
        assert_eq!((m.n, m.unit, m.excluded), (4, unit, 0), "{name}");
        let interval = m.interval.unwrap();
        assert!(interval.low < expected && expected < interval.high, "{name}: {interval:?}");
    }
}

#[test]
fn runs_with_a_zero_baseline_are_excluded_and_counted() {
    let judged = statistic("mean-ratio", "above = 1", &[20.0, 5.0, 0.0, 30.0], &[10.0, 0.0, 0.0, 20.0]);
    let m = judged.measurement.unwrap();
    assert_eq!((m.value, m.n, m.excluded), (75.0, 2, 2));
    assert_eq!(judged.json["measured"]["excluded"], 2);
    let share = statistic("positive-share", "above = 1", &[20.0, 5.0, 1.0], &[10.0, 0.0, 2.0]);
    let m = share.measurement.unwrap();
    assert_eq!((m.value, m.n, m.excluded), (200.0 / 3.0, 3, 0), "5 over nothing is a gain without a ratio");
    assert_eq!(share.json["measured"]["sign_p"], 1.0);
    let none = statistic("positive-share", "above = 1", &[1.0, 0.0], &[0.0, 0.0]).measurement.unwrap();
    assert_eq!((none.value, none.n), (50.0, 2));
    let none = statistic("mean-ratio", "above = 1", &[1.0, 2.0], &[0.0, 0.0]);
    assert_eq!(
        (none.verdict, none.why.as_str()),
        (Verdict::CannotBeJudged, "what it is compared with is zero in every run")
    );
}

#[test]
fn equal_runs_have_zero_gain_and_zero_deviation() {
    let equal = [5.0, 7.0, 9.0];
    let of = |name: &str, claimed: &str| statistic(name, claimed, &equal, &equal);
    let mean = of("mean-ratio", "within = 1");
    assert_eq!((mean.measurement.unwrap().value, mean.verdict), (0.0, Verdict::Agrees));
    assert_eq!(of("ratio-sd", "below = 1").verdict, Verdict::Agrees);
    assert_eq!(of("positive-share", "below = 90").measurement.unwrap().value, 0.0, "a tie is no gain");
    let spread = of("ratio-sd-per-mean", "below = 1");
    assert_eq!(
        (spread.verdict, spread.why.as_str()),
        (Verdict::CannotBeJudged, "the mean gain is not above zero")
    );
}

#[test]
fn one_run_has_a_share_and_no_deviation_and_two_have_both() {
    let one = |name: &str| statistic(name, "above = 99", &[3.0], &[2.0]);
    assert_eq!(one("mean-ratio").measurement.unwrap().value, 50.0);
    assert_eq!(one("mean-ratio").why, "a single run has no interval");
    assert_eq!(one("ratio-sd").why, "a single run has no spread");
    assert_eq!(one("positive-share").why, "the interval holds the bound");
    // Gains of 50 and 100: mean 75, deviation √1250.
    let two = |name: &str| statistic(name, "above = 0", &[3.0, 4.0], &[2.0, 2.0]);
    assert!(near(two("ratio-sd").measurement.unwrap().value, libm::sqrt(1250.0)));
    assert!(near(two("ratio-sd-per-mean").measurement.unwrap().value, libm::sqrt(1250.0) / 75.0));
    assert_eq!(two("mean-ratio").measurement.unwrap().interval, Some(Interval { low: 50.0, high: 100.0 }));
}

#[test]
fn a_share_is_judged_by_its_interval() {
    let (wide, narrow) = (vec![2.0; 100], vec![1.0; 100]);
    let all = statistic("positive-share", "low = 98\nhigh = 100", &wide, &narrow);
    assert_eq!(all.verdict, Verdict::Agrees);
    assert!(all.measurement.unwrap().sign_test.unwrap().p < 1e-20);
    let above = statistic("positive-share", "above = 98", &wide, &narrow);
    assert_eq!(above.verdict, Verdict::CannotBeJudged, "a hundred runs do not show 98 %");
    assert_eq!(statistic("positive-share", "above = 95", &wide, &narrow).verdict, Verdict::Agrees);
}

#[test]
fn a_deviation_is_compared_with_that_of_another_figure() {
    let claims = format!(
        "{SECOND}{}",
        claim(&format!(
            "{OVER_NARROW}\nstatistic = \"ratio-sd\"\nover_figure = \"again\"\nclaimed = 2\ntolerance = 1.9"
        ))
    );
    // Gains of 20, 0, −20, 40 against 10, 0, −10, 20: twice as large.
    let base: &[f64] = &[100.0; 4];
    let here = [base, &[120.0, 100.0, 80.0, 140.0], NONE, NONE];
    let there = [base, &[110.0, 100.0, 90.0, 120.0], NONE, NONE];
    let judged = judged_of(&claims, here, Some(there));
    let m = judged.measurement.unwrap();
    assert!(near(m.value, 2.0) && m.unit == "1", "{m:?}");
    assert!(m.against.unwrap().contains(", over wide nodes.count=3 in again"));
    let flat = judged_of(&claims, here, Some([base, base, NONE, NONE]));
    assert_eq!((flat.verdict, flat.why.as_str()), (Verdict::CannotBeJudged, "what it is taken over is zero"));
    let (_folder, register) = paper(&claims);
    let register = register.unwrap();
    let alone = comparison(&register, here);
    assert!(evaluate(&register, &[(0, &alone)]).unwrap().is_empty(), "the other figure was not run");
}

/// Four points, all compared with the first: gains of 10, 40 and 20 %.
const FOUR: Goodputs<'static> = [&[10.0, 20.0], &[11.0, 22.0], &[14.0, 28.0], &[12.0, 24.0]];

fn of_several(word: &str) -> Measurement {
    let what = format!(
        "point = {{}}\nof_several = \"{word}\"\nagainst = {{ variant = \"narrow\", \"nodes.count\" = 3 }}\nstatistic = \"mean-ratio\"\nabove = -1"
    );
    judged(&what, FOUR).measurement.unwrap()
}

#[test]
fn an_aggregate_selects_one_of_several_points() {
    // The baseline is one of the four: 0, 10, 40, 20.
    for (word, value, label) in [
        ("least", 0.0, "narrow nodes.count=3 (least of 4)"),
        ("middle", 10.0, "wide nodes.count=3 (middle of 4)"),
        ("most", 40.0, "narrow nodes.count=4 (most of 4)"),
        ("best", 40.0, "narrow nodes.count=4 (best of 4)"),
    ] {
        let m = of_several(word);
        assert!(near(m.value, value) && m.point == label, "{word}: {m:?}");
    }
}

#[test]
fn an_average_is_computed_run_by_run_on_both_sides() {
    let what = "point = { \"nodes.count\" = 4 }\nof_several = \"mean\"\nagainst = { \"nodes.count\" = 3 }\nstatistic = \"mean-ratio\"\nwithin = 30";
    // Run 1: 13 over 10.5, run 2: 26 over 21.
    let judged = judged(what, FOUR);
    let m = judged.measurement.unwrap();
    assert!(near(m.value, (13.0 / 10.5 - 1.0) * 100.0), "{m:?}");
    assert_eq!(
        (m.point.as_str(), m.against.as_deref()),
        ("the mean of 2 points", Some("the mean of 2 points"))
    );
    assert_eq!(judged.verdict, Verdict::Agrees);
    assert_eq!(judged.json["claimed"], "no difference: within ± 30 %");
}

#[test]
fn points_without_a_value_are_ignored_by_aggregates() {
    let what = |word: &str| {
        format!(
            "point = {{}}\nof_several = \"{word}\"\nagainst = {{ variant = \"narrow\", \"nodes.count\" = 3 }}\nstatistic = \"mean-ratio\"\nabove = 1"
        )
    };
    let goodputs = [FOUR[0], FOUR[1], NONE, NONE];
    assert!(near(judged(&what("most"), goodputs).measurement.unwrap().value, 10.0));
    assert_eq!(judged(&what("least"), goodputs).measurement.unwrap().value, 0.0);
    assert_eq!(judged(&what("least"), [NONE; 4].map(|_| NONE)).why, "no pair of runs has the metric");
}

#[test]
fn meaningless_claims_are_rejected_at_their_position() {
    for (what, expected, line) in [
        (
            format!("{NARROW}\nstatistic = \"ratio-sd\"\nabove = 1"),
            "a `statistic` without `against`",
            "statistic",
        ),
        (format!("{OVER_NARROW}\nstatistic = \"ratio\"\nabove = 1"), "does not know \"ratio\"", "ratio"),
        (
            format!("{OVER_NARROW}\nover_figure = \"chain\"\nabove = 1"),
            "`over_figure` of something that may be below zero",
            "over",
        ),
        (
            format!("{OVER_NARROW}\nstatistic = \"positive-share\"\nover_figure = \"chain\"\nabove = 1"),
            "or is a share",
            "over",
        ),
        (
            format!("{OVER_NARROW}\nstatistic = \"ratio-sd\"\nover_figure = \"chian\"\nabove = 1"),
            "did you mean \"chain\"?",
            "over",
        ),
        (
            format!("{OVER_NARROW}\nagainst_figure = \"again\"\nstatistic = \"mean-ratio\"\nabove = 1"),
            "runs that do not pair",
            "statistic",
        ),
        (format!("{NARROW}\nwithin = 5"), "`within` without `against`", "within"),
        (format!("{OVER_NARROW}\nwithin = -5"), "`claim.0.within`", "within"),
        (format!("{OVER_NARROW}\nwithin = 5\nabove = 1"), "what is claimed is not one thing", "id"),
        (format!("{OVER_NARROW}\nof_several = \"all\"\nabove = 1"), "of_several", "of_several"),
    ] {
        let problem = problem(&format!("{SECOND}{}", claim(&what)));
        assert!(problem.contains(expected) && problem.contains("claims.toml:"), "{line}: {problem}");
    }
}

#[test]
fn several_points_without_an_aggregate_are_rejected() {
    let (_folder, register) = paper(&claim("point = { variant = \"wide\" }\nabove = 1"));
    let register = register.unwrap();
    let problem = register.plan(&register.figures[0], &[], Effort::Full).unwrap_err().to_string();
    assert!(problem.contains("several points") && problem.contains("`of_several`"), "{problem}");
    let (_folder, register) =
        paper(&claim("point = { variant = \"wide\" }\nof_several = \"least\"\nabove = 1"));
    let register = register.unwrap();
    assert!(register.plan(&register.figures[0], &[], Effort::Full).is_ok());
}
