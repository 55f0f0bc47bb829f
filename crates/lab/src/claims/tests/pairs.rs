//! Claims about two flows together.

use super::*;
use crate::description::Description;
use crate::metrics::find;
use crate::record::{CompletedRun, Record, Value};

const CLAIM: &str = "\
[[claim]]
id = \"X-1\"
figure = \"chain\"
statement = \"as it is said\"
metric = \"goodput_correlation\"
point = { variant = \"wide\", \"nodes.count\" = 3 }
below = 0
";

/// Returns a comparison of runs with these correlations of flow a with flow b, the same at every point.
fn comparison(register: &Register, values: &[f64]) -> Comparison {
    let plan = register.plan(&register.figures[0], &[], Effort::Full).unwrap();
    let metric = find(Level::Pair, "goodput_correlation").unwrap();
    let done = |value| CompletedRun {
        fingerprint: 0,
        events: 0,
        sim_s: 1.0,
        cpu_s: 0.0,
        wall_s: 0.0,
        metrics: vec![Value { metric, subject: "a with b".into(), value }],
        flows: Vec::new(),
        series: Vec::new(),
        neighborhoods: Vec::new(),
        distributions: Vec::new(),
    };
    let runs = || (1..).zip(values).map(|(run, value)| (run, *value));
    let of_point = |point| runs().map(move |(run, value)| Record { point, run, result: Ok(done(value)) });
    let records: Vec<Record> = (0..plan.points.len()).flat_map(of_point).collect();
    Comparison::of(Description::of(&plan, Vec::new()).unwrap(), values.len() as u64, &records)
}

#[test]
fn a_claim_about_two_flows_accepts_either_order() {
    for flows in ["flow = \"a\"\nwith_flow = \"b\"\n", "flow = \"b\"\nwith_flow = \"a\"\n"] {
        let (_folder, register) = paper(&format!("{CLAIM}{flows}"));
        let register = register.unwrap();
        let comparison = comparison(&register, &[-0.5, -0.4, -0.6]);
        let evidence = evaluate(&register, &[(0, &comparison)]).unwrap();
        let measured = evidence[0].measurement.as_ref().unwrap();
        assert_eq!((evidence[0].verdict, measured.n), (Verdict::Agrees, 3));
        assert!((measured.value + 0.5).abs() < 1e-12);
        // Student's t for two degrees of freedom is 4.3027; the standard error 0.1 / sqrt(3).
        let interval = measured.interval.unwrap();
        assert!((interval.high - interval.low - 2.0 * 4.3027 * 0.1 / 3.0_f64.sqrt()).abs() < 1e-4);
    }
}

#[test]
fn runs_without_pairs_cannot_be_judged() {
    let (_folder, register) = paper(&format!("{CLAIM}flow = \"a\"\nwith_flow = \"c\"\n"));
    let register = register.unwrap();
    let comparison = comparison(&register, &[-0.5, -0.4]);
    let evidence = evaluate(&register, &[(0, &comparison)]).unwrap();
    assert_eq!(evidence[0].verdict, Verdict::CannotBeJudged);
    assert_eq!(evidence[0].why, "no run has the metric");
}

#[test]
fn a_pair_has_two_flows_and_is_not_compared_with_a_single_one() {
    for (flows, expected) in [
        ("with_flow = \"b\"", "`with_flow` without `flow`"),
        ("flow = \"b\"\nwith_flow = \"b\"", "`with_flow` names the same flow"),
        ("flow = \"a\"\nwith_flow = \"b\"\nagainst_flow = \"c\"", "`with_flow` beside `against_flow`"),
        ("flow = \"a\"", "no flow has a metric \"goodput_correlation\""),
    ] {
        let problem = problem(&format!("{CLAIM}{flows}\n"));
        assert!(problem.contains(expected), "{problem}");
    }
}
