mod overrides;

use super::*;
use crate::metrics::{self, Level};
use crate::testing::{TWO_HOPS, scenario, source};
use hopline_scenario::{CustomAlgorithms, parse_vary};
use std::fs;
use std::path::Path;

fn labels(plan: &Plan) -> Vec<&str> {
    plan.points.iter().map(|p| p.label.as_str()).collect()
}

fn baselines(plan: &Plan) -> Vec<usize> {
    plan.points.iter().map(|p| p.baseline).collect()
}

fn target(metric: &str, flow: &str) -> MetricSelection {
    let level = if flow.is_empty() { Level::Run } else { Level::Flow };
    MetricSelection { metric: metrics::find(level, metric).unwrap(), subject: flow.to_owned() }
}

/// Parses `text` as a plan in a folder with a scenario.
fn parse(text: &str, effort: Effort) -> Result<Plan, Problems> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("two-hops.toml"), TWO_HOPS).unwrap();
    Plan::parse(&source("plan.toml", text), folder.path(), "plan", &[], effort)
}

fn plan(text: &str) -> Plan {
    parse(&format!("scenario = \"two-hops.toml\"\n{text}"), Effort::Full).unwrap()
}

/// Returns the error of a plan, with its position.
fn problem(text: &str) -> String {
    parse(&format!("scenario = \"two-hops.toml\"\n{text}"), Effort::Full).unwrap_err().to_string()
}

/// Returns `1,2,3,…`.
fn numbers(count: u32) -> String {
    (1..=count).map(|n| n.to_string()).collect::<Vec<_>>().join(",")
}

#[test]
fn points_are_the_product_of_the_axes_with_the_last_varying_fastest() {
    let axes = ["transport=tcp-reno,tcp-sack", "tcp.window=2,8"].map(|text| parse_vary(text).unwrap());
    let plan = Plan::new(&scenario(TWO_HOPS), &axes).unwrap();
    assert_eq!(
        labels(&plan),
        [
            "transport=tcp-reno tcp.window=2",
            "transport=tcp-reno tcp.window=8",
            "transport=tcp-sack tcp.window=2",
            "transport=tcp-sack tcp.window=8",
        ]
    );
    assert_eq!(baselines(&plan), [0, 0, 0, 0]);
    assert_eq!(plan.keys(), ["transport", "tcp.window"]);
    assert_eq!(plan.total_s(4), 4.0 * 4.0 * 5.0);
}

#[test]
fn a_grid_of_a_variant_applies_to_that_variant_only() {
    let plan = plan(
        "[grid]\n\"nodes.count\" = [3, 4]\n\
         [[variant]]\nname = \"plain\"\n\
         [[variant]]\nname = \"tuned\"\nset = { \"tcp.window\" = 8 }\n\
         grid = { \"tcp.mss_bytes\" = [500, 1000], \"tcp.initial_window\" = [1, 2] }\n",
    );
    let combination = |count: u32| {
        let tuned = [(500, 1), (500, 2), (1000, 1), (1000, 2)].map(|(mss, initial)| {
            format!("tuned tcp.mss_bytes={mss} tcp.initial_window={initial} nodes.count={count}")
        });
        [vec![format!("plain nodes.count={count}")], tuned.to_vec()].concat()
    };
    assert_eq!(labels(&plan), [combination(3), combination(4)].concat());
    assert_eq!(baselines(&plan), [0, 0, 0, 0, 0, 5, 5, 5, 5, 5]);
    assert!(plan.points[4].variant.as_deref() == Some("tuned"));
}

#[test]
fn a_grid_of_a_variant_is_checked() {
    let with = |grid: &str| problem(&format!("[[variant]]\nname = \"x\"\ngrid = {{ {grid} }}\n"));
    assert!(with("\"tcp.window\" = []").contains("plan.toml:4:"), "{}", with("\"tcp.window\" = []"));
    assert!(
        with("\"tcp.widnow\" = [1, 2]").contains("did you mean `window`?"),
        "{}",
        with("\"tcp.widnow\" = [1, 2]")
    );
    let many = format!("[{}]", numbers(101));
    assert!(with(&format!("\"tcp.window\" = {many}, \"nodes.count\" = {many}")).contains("more than 10000"));
}

#[test]
fn without_axes_there_is_one_point() {
    assert_eq!(labels(&Plan::new(&scenario(TWO_HOPS), &[]).unwrap()), ["two hops"]);
    assert_eq!(labels(&plan("")), ["two hops"]);
}

#[test]
fn too_many_points_are_rejected_before_they_are_created() {
    let axis = parse_vary(&format!("seed={}", numbers(1000))).unwrap();
    let error = Plan::new(&scenario(TWO_HOPS), &vec![axis; 8]).unwrap_err();
    assert!(error.to_string().contains("more than 10000 points"), "{error}");
    let ones = format!("[{}]", numbers(10_001));
    assert!(problem(&format!("[zip]\nseed = {ones}")).contains("more than 10000 points"));
}

#[test]
fn variants_are_compared_within_each_combination_of_the_rest() {
    let plan = plan(
        "[grid]\n\"nodes.count\" = [3, 4]\n\
         [[variant]]\nname = \"narrow\"\nset = { \"tcp.window\" = 2 }\n\
         [[variant]]\nname = \"wide\"\nset.tcp.window = 8\n",
    );
    assert_eq!(
        labels(&plan),
        ["narrow nodes.count=3", "wide nodes.count=3", "narrow nodes.count=4", "wide nodes.count=4",]
    );
    assert_eq!(baselines(&plan), [0, 0, 2, 2]);
    assert_eq!(plan.points[2].scenario.spec(1).unwrap().nodes.len(), 4);
}

#[test]
fn zipped_keys_change_together_and_combine_with_the_grid() {
    let plan = plan("[zip]\n\"nodes.count\" = [3, 4]\nduration_s = [5, 9]\n[grid]\ntcp.window = [2, 8]\n");
    assert_eq!(
        labels(&plan),
        [
            "nodes.count=3 duration_s=5 tcp.window=2",
            "nodes.count=3 duration_s=5 tcp.window=8",
            "nodes.count=4 duration_s=9 tcp.window=2",
            "nodes.count=4 duration_s=9 tcp.window=8",
        ]
    );
    assert_eq!(baselines(&plan), [0, 0, 0, 0]);
}

#[test]
fn zipped_lists_of_unequal_length_are_rejected() {
    let problem = problem("[zip]\n\"nodes.count\" = [3, 4]\nduration_s = [5]\n");
    assert!(problem.starts_with("plan.toml:4:1: `zip.duration_s` has 1 values"), "{problem}");
}

#[test]
fn settings_apply_to_every_point_and_override_the_seed_of_the_scenario() {
    let plan = plan("seed = 7\nruns = 3\n[set]\nduration_s = 2\n[grid]\ntcp.window = [2, 8]\n");
    assert!(plan.points.iter().all(|p| p.scenario.seed() == 7 && p.scenario.duration().as_secs_f64() == 2.0));
    assert_eq!(plan.runs, Runs::Fixed(3));
    assert_eq!(plan.points[0].settings.len(), 1, "only what distinguishes a point is its setting");
}

#[test]
fn the_number_of_runs_defaults_to_that_of_the_scenario_and_quick_reduces_it() {
    assert_eq!(plan("").runs, Runs::Fixed(4));
    let quick =
        |text: &str| parse(&format!("scenario = \"two-hops.toml\"\n{text}"), Effort::Quick).unwrap().runs;
    assert_eq!(quick("runs = 50\nprecision = \"5%\""), Runs::Fixed(3));
    assert_eq!(quick("runs = 50\nquick_runs = 8"), Runs::Fixed(8));
    assert_eq!(quick("runs = 2"), Runs::Fixed(2));
    let until = plan("runs = 12\nprecision = \"5%\"\nmax_runs = 60").runs;
    let precision = "5%".parse().unwrap();
    let target = target("aggregate_goodput_bps", "");
    assert_eq!(until, Runs::Until { precision, target, first: 12, max: 60 });
}

#[test]
fn the_precision_target_may_be_a_metric_of_one_flow() {
    let target_of = |text: &str| match plan(&format!("precision = \"5%\"\n{text}")).runs {
        Runs::Until { target, .. } => target,
        Runs::Fixed(runs) => panic!("{runs} runs"),
    };
    assert_eq!(target_of("precision_flow = \"f0\""), target("goodput_bps", "f0"));
    assert_eq!(
        target_of("precision_flow = \"f0\"\nprecision_metric = \"rtx_index_pct\""),
        target("rtx_index_pct", "f0")
    );
    assert_eq!(target_of("precision_metric = \"rtx_index_pct\""), target("rtx_index_pct", ""));
}

#[test]
fn the_flow_of_the_precision_target_exists_at_every_point() {
    let renamed = "precision = \"5%\"\nprecision_flow = \"f0\"\n\
                   [[variant]]\nname = \"as is\"\n\
                   [[variant]]\nname = \"renamed\"\nset = { \"flow.0.name\" = \"bulk\" }\n";
    let problem = problem(renamed);
    let expected = "plan.toml:3:18: renamed has no flow \"f0\"";
    assert!(problem.starts_with(expected) && problem.contains("its flows are bulk"), "{problem}");
}

#[test]
fn errors_are_reported_at_their_position() {
    for (text, expected) in [
        (
            "precision = \"5%\"\nprecision_flow = \"f1\"",
            "plan.toml:3:18: two hops has no flow \"f1\" (did you mean \"f0\"?",
        ),
        (
            "precision = \"5%\"\nprecision_flow = \"f0\"\nprecision_metric = \"jain\"",
            "plan.toml:4:20: no flow has a metric \"jain\"",
        ),
        ("runs = 0", "plan.toml:2:8: `runs` = 0 is out of range"),
        ("rums = 5", "plan.toml:2:1: unknown key `rums` (did you mean `runs`?)"),
        ("precision = \"0.05\"", "plan.toml:2:13: \"0.05\" is not a percentage"),
        ("precision = \"5%\"\nprecision_metric = \"jian\"", "plan.toml:3:20: no run has a metric \"jian\""),
        ("[grid]\ntcp.window = 2", "plan.toml:3:14: `grid.tcp.window` takes a list of values"),
        (
            "[grid]\ntcp.window = []",
            "plan.toml:3:14: `grid.tcp.window` takes a list of values, not an empty one",
        ),
        ("[grid]\ntcp.widnow = [2]", "plan.toml:3:5: unknown key `widnow` in `tcp` (did you mean `window`?)"),
        ("[[variant]]\nset.tcp.window = 2", "plan.toml:2:1: `variant.0` has no `name`"),
        (
            "[[variant]]\nname = \"x\"\n[[variant]]\nname = \"x\"\nset.tcp.window = 2",
            "plan.toml:5:8: two variants are called \"x\"",
        ),
        ("[set]\nduration_s = -1", "plan.toml:3:14: `duration_s` = -1 is out of range"),
    ] {
        let problem = problem(text);
        assert!(problem.starts_with(expected), "{text}: {problem}");
    }
    let missing = parse("runs = 3", Effort::Full).unwrap_err().to_string();
    assert!(missing.starts_with("plan.toml:1:1: the plan has no `scenario`"), "{missing}");
    let absent = parse("scenario = \"three-hops.toml\"", Effort::Full).unwrap_err().to_string();
    assert!(absent.starts_with("plan.toml:1:12:") && absent.contains("there is no such file"), "{absent}");
}

#[test]
fn the_identity_of_a_plan_covers_all_that_results_depend_on() {
    let one = plan("runs = 3\n[grid]\ntcp.window = [2, 8]").identity();
    assert_eq!(one.len(), 64);
    assert_eq!(one, plan("runs = 9\n[grid]\ntcp.window = [2, 8]").identity(), "more runs are the same plan");
    let of_scenario = |runs: u64| {
        let setting = hopline_config::document::Setting::of_option("--runs", "runs", runs);
        let scenario = crate::testing::scenario(crate::testing::TWO_HOPS).with(&[setting]).unwrap();
        Plan::new(&scenario, &[]).unwrap().identity()
    };
    assert_eq!(of_scenario(3), of_scenario(9), "`compare --runs 9 -o` goes on with three");
    for other in [
        "[grid]\ntcp.window = [2, 9]",
        "seed = 2\n[grid]\ntcp.window = [2, 8]",
        "[grid]\ntcp.window = [2, 8]\n[set]\nduration_s = 6",
        "series = \"all\"\n[grid]\ntcp.window = [2, 8]",
    ] {
        assert_ne!(one, plan(other).identity(), "{other}");
    }
}

#[test]
fn an_invalid_swept_value_is_reported_in_the_file() {
    let text = TWO_HOPS.to_owned() + "[sweep]\n\"tcp.window\" = [3, 0]\n";
    let scenario = scenario(&text);
    let problems = Plan::new(&scenario, &scenario.sweep().unwrap()).unwrap_err();
    let said = problems.to_string();
    assert!(said.contains(": `tcp.window` = 0 is out of range"), "{said}");
    let line = text.lines().count();
    assert!(said.contains(&format!(":{line}:20: ")), "{said}");
}

#[test]
fn an_invalid_point_is_named() {
    // The flow of two hops ends at n2.
    let scenario = scenario(TWO_HOPS);
    let axes = ["nodes.count=3,2"].map(|text| parse_vary(text).unwrap());
    let wrong = Plan::new(&scenario, &axes).unwrap_err().to_string();
    assert!(wrong.contains(": nodes.count=2: there is no node `n2`"), "{wrong}");
    let zipped = problem("[zip]\n\"nodes.count\" = [4, 2]\n\"tcp.window\" = [8, 16]\n");
    assert!(zipped.contains(": nodes.count=2 tcp.window=16: there is no node `n2`"), "{zipped}");
    let axes = ["tcp.window=2,zero"].map(|text| parse_vary(text).unwrap());
    let shown = Plan::new(&scenario, &axes).unwrap_err().to_string();
    assert!(shown.starts_with("--vary tcp.window=2,zero: `tcp.window` does not know"), "{shown}");
}

#[test]
fn a_value_is_varied_once_and_zip_rows_may_repeat() {
    let axes = ["tcp.window=2,8,2"].map(|text| parse_vary(text).unwrap());
    let twice = Plan::new(&scenario(TWO_HOPS), &axes).unwrap_err().to_string();
    let expected = "--vary tcp.window=2,8,2: `tcp.window` is varied over 2 twice (remove one of the two)";
    assert_eq!(twice, expected);
    assert!(problem("[grid]\n\"tcp.window\" = [2, 2]\n").contains("is varied over 2 twice"));
    let rows = "[zip]\n\"tcp.window\" = [2, 2]\n\"tcp.mss_bytes\" = [500, 1000]\n";
    assert_eq!(plan(rows).points.len(), 2);
}

#[test]
fn the_plan_in_the_documentation_works() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/plans.md")).unwrap();
    let text = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs::copy(root.join("scenarios/chain/scenario.toml"), folder.path().join("chain.toml")).unwrap();
    let plan = Plan::parse(&source("plan.toml", text), folder.path(), "plan", &[], Effort::Full).unwrap();
    assert_eq!(plan.points.len(), 8);
    let ends = plan.points.iter().map(|point| {
        let spec = point.scenario.spec(1).unwrap();
        (spec.nodes.len(), spec.flows[0].dst.index())
    });
    assert!(ends.clone().all(|(nodes, dst)| dst + 1 == nodes), "{:?}", ends.collect::<Vec<_>>());
}
