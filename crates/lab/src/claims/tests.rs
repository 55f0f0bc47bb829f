mod pairs;
mod ratios;
mod readings;
mod rule;
mod sham;
mod sizes;
mod standing;
mod statistics;
mod tally;

use super::*;
use crate::comparison::Comparison;
use crate::description::PointDescription;
use crate::experiment::{RunOptions, in_memory};
use crate::metrics::Level;
use crate::run::NoObserver;
use crate::stats::{Estimate, RelativeDifference};
use crate::testing::TWO_HOPS;
use hopline_config::source::Problems;
use std::fs;

const PLAN: &str = "\
scenario = \"two-hops.toml\"
runs = 4
[grid]
\"nodes.count\" = [3, 4]
[[variant]]
name = \"narrow\"
set = { \"tcp.window\" = 2 }
[[variant]]
name = \"wide\"
set = { \"tcp.window\" = 8 }
";

const HEAD: &str = "\
paper = \"Somebody, Something, Somewhere 2003\"
rule = { tolerance_pct = 20, widest_pct = 50 }
[[figure]]
id = \"chain\"
title = \"A chain\"
plan = \"chain.toml\"
";

/// Loads a paper with these claims.
fn paper(claims: &str) -> (tempfile::TempDir, Result<Register, Problems>) {
    paper_of(&paper_text(claims))
}

fn paper_text(claims: &str) -> String {
    format!("{HEAD}{claims}")
}

fn paper_of(text: &str) -> (tempfile::TempDir, Result<Register, Problems>) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("two-hops.toml"), TWO_HOPS).unwrap();
    fs::write(folder.path().join("chain.toml"), PLAN).unwrap();
    fs::write(folder.path().join(FILE), text).unwrap();
    let register = Register::load(folder.path());
    (folder, register)
}

fn claim(what: &str) -> String {
    format!(
        "[[claim]]\nid = \"X-1\"\nfigure = \"chain\"\nstatement = \"as it is said\"\nmetric = \"aggregate_goodput_bps\"\n{what}\n"
    )
}

fn problem(claims: &str) -> String {
    paper(claims).1.unwrap_err().to_string()
}

fn run(register: &Register) -> Comparison {
    let plan = register.plan(&register.figures[0], &[], Effort::Full).unwrap();
    in_memory(&plan, RunOptions { jobs: None, command: &[], watch: &NoObserver }).unwrap().0
}

/// Asserts that a measurement is a mean with Student's interval.
fn assert_mean(measured: &Measurement, expected: Estimate) {
    assert_eq!((measured.value, measured.n), (expected.mean, expected.n));
    assert_eq!(measured.interval, expected.interval(crate::stats::CONFIDENCE));
}

/// Asserts that a measured gain is a relative difference with Fieller's interval.
fn assert_gain(measured: &Measurement, expected: RelativeDifference) {
    assert_eq!((measured.value, measured.n), (expected.mean, expected.n));
    assert_eq!(measured.interval, expected.interval(crate::stats::CONFIDENCE));
}

const NARROW: &str = "point = { variant = \"narrow\", \"nodes.count\" = 3 }";
const WIDE: &str = "point = { variant = \"wide\", \"nodes.count\" = 3 }\nagainst = { variant = \"narrow\", \"nodes.count\" = 3 }";

#[test]
fn a_size_is_measured_at_its_point() {
    let (_folder, register) = paper(&claim(&format!("{NARROW}\nlow = 100000\nhigh = 2000000")));
    let register = register.unwrap();
    let comparison = run(&register);
    let evidence = evaluate(&register, &[(0, &comparison)]).unwrap();
    let measured = evidence[0].measurement.as_ref().unwrap();
    let expected = comparison.points[0].estimate(crate::objective::GOODPUT).unwrap();
    assert_mean(measured, expected);
    assert_eq!(measured.point, "narrow nodes.count=3");
    assert_eq!(evidence[0].verdict, Verdict::Agrees);
}

#[test]
fn a_gain_is_measured_within_pairs_in_percent() {
    let (_folder, register) = paper(&claim(&format!("{WIDE}\nclaimed = 1000\ntolerance = 1")));
    let register = register.unwrap();
    let comparison = run(&register);
    let evidence = evaluate(&register, &[(0, &comparison)]).unwrap();
    let measured = evidence[0].measurement.as_ref().unwrap();
    let versus = comparison.versus_baseline(1, crate::objective::GOODPUT).unwrap();
    assert_gain(measured, versus.percent.unwrap());
    assert_eq!(measured.unit, "%");
    assert!(matches!(evidence[0].verdict, Verdict::Differs | Verdict::DirectionOnly));
    assert_eq!(evidence[0].claimed(), "+1000 ± 1 %");
}

/// Returns the label of the point by which a claim about `variants` at three nodes is judged, and the
/// comparison.
fn best_of(variants: &str, metric: &str) -> (String, Comparison) {
    let point = format!("point = {{ variant = {variants}, \"nodes.count\" = 3 }}\nabove = 0");
    let (_folder, register) = paper(&claim(&point).replace("aggregate_goodput_bps", metric));
    let register = register.unwrap();
    let comparison = run(&register);
    let label =
        evaluate(&register, &[(0, &comparison)]).unwrap()[0].measurement.as_ref().unwrap().point.clone();
    (label, comparison)
}

#[test]
fn of_a_list_of_variants_the_best_is_measured_in_any_order() {
    for metric in ["aggregate_goodput_bps", "delay_mean_s"] {
        let (label, comparison) = best_of("[\"narrow\", \"wide\"]", metric);
        let [narrow, wide] =
            [0, 1].map(|i| comparison.points[i].estimate((Level::Run, "", metric)).unwrap().mean);
        assert_ne!(narrow, wide, "{metric}");
        let narrow_is_best = if metric == "delay_mean_s" { narrow < wide } else { narrow > wide };
        assert_eq!(label.starts_with("narrow "), narrow_is_best, "{metric}: {label}, {narrow}, {wide}");
        assert_eq!(label, best_of("[\"wide\", \"narrow\"]", metric).0);
    }
}

#[test]
fn a_list_of_variants_is_allowed_on_both_sides() {
    let both = "point = { variant = [\"narrow\", \"wide\"], \"nodes.count\" = 3 }\n\
                against = { variant = [\"wide\", \"narrow\"], \"nodes.count\" = 3 }\nclaimed = 0\ntolerance = 1";
    let (_folder, register) = paper(&claim(both));
    let register = register.unwrap();
    let comparison = run(&register);
    let evidence = evaluate(&register, &[(0, &comparison)]).unwrap();
    let measured = evidence[0].measurement.as_ref().unwrap();
    assert_eq!(measured.against.as_ref(), Some(&measured.point), "the best of the same variants is the same");
    assert_eq!((measured.value, evidence[0].verdict), (0.0, Verdict::Agrees));
}

#[test]
fn a_list_of_variants_needs_a_member_a_better_and_points_for_all() {
    let of = |variants: &str| {
        claim(&format!("point = {{ variant = {variants}, \"nodes.count\" = 3 }}\nabove = 1"))
    };
    assert!(problem(&of("[]")).contains("an empty list of variants"));
    let neither = of("[\"narrow\", \"wide\"]").replace("aggregate_goodput_bps", "goodput_max_bps");
    assert!(problem(&neither).contains("neither more nor less is better"), "{}", problem(&neither));
    let (_folder, register) = paper(&of("[\"narrow\", \"wider\"]"));
    let register = register.unwrap();
    let error = register.plan(&register.figures[0], &[], Effort::Full).unwrap_err().to_string();
    assert!(error.contains("no point of the plan has these settings"), "{error}");
}

#[test]
fn missing_and_single_runs_cannot_be_judged() {
    let missing = "[[claim]]\nid = \"X-2\"\nstatement = \"TPA is better\"\nneeds = \"TPA\"\n";
    let (_folder, register) = paper(&(missing.to_owned() + &claim(&format!("{NARROW}\nabove = 1"))));
    let register = register.unwrap();
    let mut plan = register.plan(&register.figures[0], &[], Effort::Full).unwrap();
    plan.runs = crate::plan::Runs::Fixed(1);
    let comparison = in_memory(&plan, RunOptions { jobs: None, command: &[], watch: &NoObserver }).unwrap().0;
    let evidence = evaluate(&register, &[(0, &comparison)]).unwrap();
    let said: Vec<(Verdict, &str)> = evidence.iter().map(|e| (e.verdict, e.why.as_str())).collect();
    assert_eq!(
        said,
        [(Verdict::CannotBeJudged, "needs TPA"), (Verdict::CannotBeJudged, "a single run has no interval")]
    );
    assert!(evaluate(&register, &[]).unwrap().is_empty(), "figures that were not run judge nothing");
}

#[test]
fn a_metric_of_a_flow_is_selected_by_its_name() {
    let of_flow =
        claim(&format!("{NARROW}\nflow = \"f0\"\nabove = 1")).replace("aggregate_goodput_bps", "goodput_bps");
    let (_folder, register) = paper(&of_flow);
    let register = register.unwrap();
    let comparison = run(&register);
    let evidence = evaluate(&register, &[(0, &comparison)]).unwrap();
    let whole = comparison.points[0].estimate(crate::objective::GOODPUT).unwrap();
    assert_mean(evidence[0].measurement.as_ref().unwrap(), whole); // there is one flow
    assert_eq!(evidence[0].verdict, Verdict::Agrees);
}

/// Returns a claim about `f0` against `f1`, and its runs.
fn two_flows(what: &str) -> (Register, Comparison) {
    let text = claim(&format!("{what}\nflow = \"f0\"\nagainst_flow = \"f1\"\nabove = 0"));
    let (folder, _) = paper(&text.replace("aggregate_goodput_bps", "goodput_bps"));
    let second = "\n[[flow]]\nname = \"f1\"\nsrc = \"n2\"\ndst = \"n0\"\nbytes = 1000\n";
    fs::write(folder.path().join("two-hops.toml"), TWO_HOPS.to_owned() + second).unwrap();
    let register = Register::load(folder.path()).unwrap();
    let comparison = run(&register);
    (register, comparison)
}

#[test]
fn a_flow_is_compared_with_another_of_the_same_point_or_of_a_second_one() {
    for (what, against) in [(NARROW, "f1"), (WIDE, "f1 of narrow nodes.count=3")] {
        let (register, comparison) = two_flows(what);
        let evidence = evaluate(&register, &[(0, &comparison)]).unwrap();
        let measured = evidence[0].measurement.as_ref().unwrap();
        let point = usize::from(what == WIDE);
        let expected = comparison
            .between((point, (Level::Flow, "f0", "goodput_bps")), (0, (Level::Flow, "f1", "goodput_bps")))
            .unwrap();
        assert_gain(measured, expected.percent.unwrap());
        assert_eq!(measured.unit, "%");
        assert!(measured.against.as_deref() == Some(against), "{:?}", measured.against);
        assert_ne!(expected.difference.mean, 0.0);
    }
    let alone = claim(&format!("{NARROW}\nagainst_flow = \"f1\"\nabove = 0"));
    assert!(problem(&alone).contains("`against_flow` without `flow`"));
}

#[test]
fn errors_are_reported_at_their_position() {
    for (text, expected) in [
        (claim(NARROW), "what is claimed is not one thing"),
        (claim(&format!("{NARROW}\nabove = 1\nbelow = 2")), "what is claimed is not one thing"),
        (claim(&format!("{NARROW}\nlow = 5\nhigh = 4")), "what is claimed is not one thing"),
        (
            claim(&format!("{NARROW}\nabove = 1")).replace("\"chain\"", "\"chian\""),
            "there is no figure \"chian\"",
        ),
        (
            claim(&format!("{NARROW}\nabove = 1")).replace("aggregate_goodput_bps", "goodput_bps"),
            "no run has a metric \"goodput_bps\"",
        ),
        (claim(&format!("{NARROW}\nabove = 1")).repeat(2), "a second claim \"X-1\""),
        (claim("claimed = true"), "`claim.0.claimed` takes a number"),
        ("[[claim]]\nstatement = \"x\"\nneeds = \"y\"\n".into(), "`claim.0` has no `id`"),
    ] {
        let problem = problem(&text);
        assert!(problem.contains(expected) && problem.contains("claims.toml:"), "{text}: {problem}");
    }
}

#[test]
fn a_claim_that_selects_no_point_or_several_is_rejected_before_any_run() {
    for (point, expected) in [
        ("point = { variant = \"wide\", \"nodes.count\" = 5 }", "no point of the plan has these settings"),
        ("point = { variant = \"wide\" }", "several points of the plan have these settings"),
    ] {
        let (_folder, register) = paper(&claim(&format!("{point}\nabove = 1")));
        let register = register.unwrap();
        let error = register.plan(&register.figures[0], &[], Effort::Full).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("wide nodes.count=4"), "{error}");
    }
}

/// A second figure with the plan of the first.
const SECOND: &str = "[[figure]]\nid = \"again\"\ntitle = \"A chain, again\"\nplan = \"chain.toml\"\n";

fn against_another_figure(settings: &str) -> String {
    claim(&format!("{NARROW}\nagainst_figure = \"again\"\nagainst = {{ {settings} }}\nbelow = 0"))
}

#[test]
fn a_point_of_another_figure_is_compared_without_pairing() {
    let wide = "variant = \"wide\", \"nodes.count\" = 3";
    let (_folder, register) = paper(&format!("{SECOND}{}", against_another_figure(wide)));
    let register = register.unwrap();
    let (first, second) = (run(&register), run(&register));
    let evidence = evaluate(&register, &[(0, &first), (1, &second)]).unwrap();
    let measurement = evidence[0].measurement.as_ref().unwrap();
    let values = |variant: &str| {
        let is_it =
            |p: &PointDescription| p.variant.as_deref() == Some(variant) && p.settings["nodes.count"] == 3;
        let point = first.description.points.iter().position(is_it).unwrap();
        first.points[point].all((Level::Run, "", "aggregate_goodput_bps")).unwrap().to_vec()
    };
    let (narrow, wide) = (values("narrow"), values("wide"));
    let expected = RelativeDifference::of_independent(&narrow, &wide).unwrap();
    assert_gain(measurement, expected);
    assert_eq!(measurement.unit, "%");
    assert!(expected.mean != 0.0 && measurement.interval.is_some());
    assert_eq!(measurement.against.as_deref(), Some("wide nodes.count=3 in again"));
    assert!(evaluate(&register, &[(0, &first)]).unwrap().is_empty(), "the other figure was not run");
}

#[test]
fn a_point_of_another_figure_must_exist_there() {
    let (_folder, register) = paper(&format!("{SECOND}{}", against_another_figure("\"nodes.count\" = 9")));
    let register = register.unwrap();
    assert!(register.plan(&register.figures[0], &[], Effort::Full).is_ok());
    let problem = register.plan(&register.figures[1], &[], Effort::Full).unwrap_err().to_string();
    assert!(problem.contains("no point of the plan has these settings"), "{problem}");
    let unknown = claim(&format!("{NARROW}\nagainst_figure = \"chian\"\nagainst = {{}}\nbelow = 0"));
    let problem = self::problem(&unknown);
    assert!(problem.contains("there is no figure \"chian\""), "{problem}");
    let alone = claim(&format!("{NARROW}\nagainst_figure = \"chain\"\nbelow = 0"));
    assert!(self::problem(&alone).contains("`against_figure` without `against`"));
}

#[test]
fn of_several_points_each_compares_its_own_flows() {
    let measured = |word: &str| {
        let what = format!("point = {{ \"nodes.count\" = 3 }}\nof_several = \"{word}\"");
        let (register, comparison) = two_flows(&what);
        evaluate(&register, &[(0, &comparison)]).unwrap().remove(0).measurement.unwrap()
    };
    let (least, most) = (measured("least"), measured("most"));
    assert!(least.value < most.value, "{least:?} {most:?}");
    assert_ne!(least.point, most.point);
    assert_eq!(most.against.as_deref(), Some("f1"), "of the same point");
}
