use super::*;
use crate::experiment::{RunOptions, in_memory};
use crate::objective::MetricSelection;
use crate::plan::{Plan, Runs};
use crate::run::NoObserver;
use crate::testing::{TWO_HOPS, scenario};
use hopline_scenario::{Axis, Scenario, parse_vary};
use hopline_sim::simulate;
use std::num::NonZeroUsize;

fn plan(vary: &[&str]) -> Plan {
    of(&scenario(TWO_HOPS), vary)
}

fn of(scenario: &Scenario, vary: &[&str]) -> Plan {
    let axes: Vec<Axis> = vary.iter().map(|text| parse_vary(text).unwrap()).collect();
    Plan::new(scenario, &axes).unwrap()
}

fn run(plan: &Plan, jobs: Option<usize>) -> (Comparison, Vec<Record>) {
    let how = RunOptions { jobs: jobs.and_then(NonZeroUsize::new), command: &[], watch: &NoObserver };
    in_memory(plan, how).unwrap()
}

/// Returns p values of all points against their baselines, by Holm's correction; `None` if undefined.
fn corrected_p(comparison: &Comparison, metric: Key<'_>) -> Vec<Option<f64>> {
    let versus = (0..comparison.points.len()).map(|point| comparison.versus_baseline(point, metric)?.p);
    corrected(&versus.collect::<Vec<_>>())
}

/// Returns the printed comparison, without values that may differ between executions.
fn without_cpu(mut json: Json) -> Json {
    fn strip(json: &mut Json) {
        match json {
            Json::Object(map) => {
                map.remove("cpu_s");
                map.values_mut().for_each(strip);
            }
            Json::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut json);
    json
}

#[test]
fn the_result_does_not_depend_on_the_number_of_threads() {
    let result = |jobs| {
        let (comparison, records) = run(&plan(&["tcp.window=2,8"]), Some(jobs));
        without_cpu(json_with_runs(&comparison, &records))
    };
    let alone = result(1);
    assert_eq!(alone, result(2));
    assert_eq!(alone, result(5));
}

#[test]
fn single_runs_are_numbered_and_paired_as_in_comparisons() {
    let (comparison, records) = run(&plan(&["tcp.window=2,8"]), None);
    let keys: Vec<(usize, u64)> = records.iter().map(|r| (r.point, r.run)).collect();
    assert_eq!(keys, [(0, 1), (0, 2), (0, 3), (0, 4), (1, 1), (1, 2), (1, 3), (1, 4)]);
    let fingerprint = |r: &Record| r.result.as_ref().unwrap().fingerprint;
    let all: std::collections::BTreeSet<u64> = records.iter().map(fingerprint).collect();
    assert_eq!(all.len(), 8, "every run is another one");
    let window = hopline_config::document::Setting::parse("--set", "tcp.window=8").unwrap();
    let alone = simulate(&scenario(TWO_HOPS).with(&[window]).unwrap().spec(3).unwrap(), 3);
    assert_eq!(alone.fingerprint, fingerprint(&records[6]));
    assert_eq!(comparison.points[1].values(GOODPUT)[2], alone.aggregate_goodput_bps());
}

#[test]
fn gains_are_taken_within_pairs_against_the_baseline() {
    let (comparison, _) = run(&plan(&["tcp.window=2,8"]), None);
    assert!(comparison.versus_baseline(0, GOODPUT).is_none());
    let versus = comparison.versus_baseline(1, GOODPUT).unwrap();
    let (a, b) = (comparison.points[1].values(GOODPUT), comparison.points[0].values(GOODPUT));
    assert_eq!(versus.difference, Estimate::of_differences(&a, &b));
    let percent = versus.percent.unwrap().mean;
    assert!((percent - 100.0 * versus.difference.mean / Estimate::of(&b).mean).abs() < 1e-9);
    assert_eq!(corrected_p(&comparison, GOODPUT), [None, versus.p]);
}

#[test]
fn a_baseline_that_delivers_nothing_has_no_percentage() {
    let far = scenario(&TWO_HOPS.replace("spacing_m = 200", "spacing_m = 900"));
    let (comparison, _) = run(&of(&far, &["tcp.window=2,8"]), None);
    assert_eq!(comparison.points[0].estimate(GOODPUT).unwrap().mean, 0.0);
    let versus = comparison.versus_baseline(1, GOODPUT).unwrap();
    assert_eq!((versus.difference.mean, versus.percent), (0.0, None));
}

#[test]
fn a_run_that_failed_leaves_its_pair_out() {
    let (comparison, mut records) = run(&plan(&["tcp.window=2,8"]), None);
    records[5].result = Err("no luck".into());
    let with_failure = Comparison::of(comparison.description.clone(), comparison.runs, &records);
    assert_eq!(with_failure.points[1].failed, [(2, "no luck".to_owned())]);
    assert_eq!(with_failure.failed(), 1);
    let versus = with_failure.versus_baseline(1, GOODPUT).unwrap();
    assert_eq!(versus.difference.n, 3);
    let mean = |runs: &[usize]| {
        let values = comparison.points[1].values(GOODPUT);
        runs.iter().map(|&i| values[i]).sum::<f64>() / runs.len() as f64
    };
    let estimate = with_failure.points[1].estimate(GOODPUT).unwrap();
    assert!((estimate.mean - mean(&[0, 2, 3])).abs() < 1e-6);
}

#[test]
fn json_has_mean_interval_and_runs_of_each_variant() {
    let (comparison, records) = run(&plan(&["tcp.window=2,unclamped"]), None);
    let json = json_with_runs(&comparison, &records);
    let variant = &json["variants"][1];
    assert_eq!(variant["settings"]["tcp.window"], "unclamped");
    let mean = variant["goodput_bps"]["mean"].as_f64().unwrap();
    let [low, high] = [0, 1].map(|i| variant["goodput_bps"]["interval"][i].as_f64().unwrap());
    assert!(low <= mean && mean <= high && mean > 0.0);
    assert_eq!(variant["runs"].as_array().unwrap().len(), 4);
    assert_eq!(variant["runs"][2]["run"], 3);
    assert_eq!(variant["runs"][2]["flows"][0]["dst"], "n2");
    let of_flow = variant["runs"][2]["flows"][0]["goodput_bps"].as_f64();
    assert_eq!(of_flow, variant["runs"][2]["aggregate_goodput_bps"].as_f64());
    assert_eq!(json["variants"][0]["gain_pct"], Json::Null);
}

#[test]
fn json_has_intervals_and_tests_that_need_no_normal_distribution() {
    let (comparison, _) = run(&plan(&["tcp.window=2,8,unclamped"]), None);
    let json = comparison.json();
    for (point, variant) in comparison.points.iter().zip(json["variants"].as_array().unwrap()) {
        let expected = Bootstrap::new(1).interval(&point.values(GOODPUT)).unwrap();
        let goodput = &variant["goodput_bps"];
        assert_eq!(goodput["bootstrap_interval"], json!([expected.low, expected.high]));
    }
    let differs = &json["variants"][2]["goodput_bps"];
    assert_ne!(differs["bootstrap_interval"], differs["interval"], "{differs}");
    let raw = [1, 2].map(|point| comparison.versus_baseline(point, GOODPUT).unwrap().pairs.sign_test().p);
    let corrected = holm(&raw).unwrap();
    for (point, sign_p) in [1, 2].into_iter().zip(corrected) {
        let variant = &json["variants"][point];
        assert_eq!(variant["gain_sign_p"], json!(sign_p));
        let (values, baseline) =
            (comparison.points[point].values(GOODPUT), comparison.points[0].values(GOODPUT));
        let gains = values.iter().zip(&baseline).map(|(x, b)| (x / b - 1.0) * 100.0);
        let (mean, per_pair) = (gains.sum::<f64>() / 4.0, &variant["gain_per_pair_pct"]);
        assert!((per_pair["mean"].as_f64().unwrap() - mean).abs() < 1e-9, "{per_pair}");
        assert_eq!((&per_pair["n"], &per_pair["excluded"]), (&json!(4), &json!(0)));
        assert_eq!(json!(corrected_p(&comparison, GOODPUT)[point]), variant["gain_p"]);
    }
    let baseline = &json["variants"][0];
    assert_eq!((&baseline["gain_sign_p"], &baseline["gain_per_pair_pct"]), (&Json::Null, &Json::Null));
}

#[test]
fn one_run_has_no_bootstrap_interval_and_a_zero_baseline_no_gain() {
    let far =
        scenario(&TWO_HOPS.replace("spacing_m = 200", "spacing_m = 900").replace("runs = 4", "runs = 1"));
    let json = run(&of(&far, &["tcp.window=2,8"]), None).0.json();
    let variant = &json["variants"][1];
    assert_eq!(variant["goodput_bps"]["mean"], 0.0);
    assert_eq!(variant["goodput_bps"]["bootstrap_interval"], Json::Null);
    assert_eq!(
        (&variant["gain_per_pair_pct"]["n"], &variant["gain_per_pair_pct"]["excluded"]),
        (&json!(0), &json!(1))
    );
    assert_eq!((&variant["gain_per_pair_pct"]["mean"], &variant["gain_sign_p"]), (&Json::Null, &json!(1.0)));
}

#[test]
fn the_fingerprint_of_a_point_depends_on_the_order_of_its_runs() {
    let hash = |fingerprints: &[u64]| {
        let mut hash = Fingerprint::default();
        fingerprints.iter().for_each(|&f| hash.add(f));
        hash.to_string()
    };
    assert_ne!(hash(&[1, 2]), hash(&[2, 1]));
    // FNV-1a of no bytes is its offset basis.
    assert_eq!(hash(&[]), "cbf29ce484222325");
}

fn target(metric: &str, flow: &str) -> MetricSelection {
    let level = if flow.is_empty() { Level::Run } else { Level::Flow };
    MetricSelection { metric: metrics::find(level, metric).unwrap(), subject: flow.to_owned() }
}

#[test]
fn runs_are_added_until_every_point_is_precise_with_any_number_of_threads() {
    let runs = |jobs| {
        let mut plan = plan(&["tcp.window=2,8"]);
        plan.runs = Runs::Until {
            precision: "1%".parse().unwrap(),
            target: target(GOODPUT.2, ""),
            first: 2,
            max: 40,
        };
        let (comparison, _) = run(&plan, Some(jobs));
        for point in &comparison.points {
            let estimate = point.estimate(GOODPUT).unwrap();
            let precise = estimate.half_width.unwrap() <= 0.01 * estimate.mean;
            assert!(precise || comparison.runs == 40, "{estimate:?}");
        }
        comparison.runs
    };
    let alone = runs(1);
    assert!(alone >= crate::stats::MIN_RUNS as u64, "{alone}");
    assert_eq!(alone, runs(3));
}

#[test]
fn the_precision_may_be_that_of_one_flow() {
    let back = "[[flow]]\nsrc = \"n2\"\ndst = \"n0\"\n";
    let scenario = scenario(&format!("{TWO_HOPS}{back}"));
    let needed = |metric: &str, flow: &str| {
        let mut plan = of(&scenario, &["tcp.window=2"]);
        plan.runs = Runs::Until {
            precision: "2%".parse().unwrap(),
            target: target(metric, flow),
            first: 2,
            max: 100,
        };
        run(&plan, None).0
    };
    let (of_all, of_flow) = (needed(GOODPUT.2, ""), needed("goodput_bps", "f0"));
    assert!(of_flow.runs > of_all.runs, "{} and {} runs", of_flow.runs, of_all.runs);
    let values = of_flow.points[0].all((Level::Flow, "f0", "goodput_bps")).unwrap();
    let estimate = Estimate::of(values);
    let precise = estimate.half_width.unwrap() <= 0.02 * estimate.mean;
    assert!(precise || of_flow.runs == 100, "{estimate:?}");
}

#[test]
fn the_number_of_runs_is_limited() {
    let mut plan = plan(&["tcp.window=2,8"]);
    plan.runs = Runs::Until {
        precision: "0.0001%".parse().unwrap(),
        target: target(GOODPUT.2, ""),
        first: 2,
        max: 13,
    };
    assert_eq!(run(&plan, None).0.runs, 13);
}

#[test]
fn the_interval_of_a_gain_excludes_zero_exactly_if_p_is_small() {
    let (comparison, _) = run(&plan(&["tcp.window=2,3,4,8,unclamped"]), None);
    for name in ["aggregate_goodput_bps", "delay_mean_s", "rtx_index_pct", "frames_per_segment"] {
        let gains = comparison.gains((Level::Run, "", name));
        assert!(gains[0].is_none(), "the baseline");
        for gain in gains[1..].iter().flatten().filter(|gain| gain.p.is_some_and(f64::is_finite)) {
            let interval = gain.versus.difference.interval(gain.confidence).unwrap();
            let excludes_zero = interval.low > 0.0 || interval.high < 0.0;
            assert_eq!(excludes_zero, gain.p.unwrap() < 0.05, "{name}: {interval:?}, {:?}", gain.p);
            assert!(
                gain.confidence.fraction() >= 0.95 && gain.confidence.fraction() <= 1.0 - 0.05 / 4.0 + 1e-12
            );
        }
    }
}

#[test]
fn timer_metrics_of_two_transports_are_not_compared() {
    let (comparison, _) = run(&plan(&["transport=tcp-newreno,tcp-sack,tpa"]), None);
    let timeouts = (Level::Run, "", "timeouts");
    assert!(comparison.versus_baseline(1, timeouts).is_some());
    assert!(comparison.versus_baseline(2, timeouts).is_none());
    assert!(comparison.versus_baseline(2, GOODPUT).is_some());
}

#[test]
fn the_objective_comes_first_in_the_json() {
    let plan = plan(&["tcp.window=2,8"]);
    let plan = plan
        .with_objective(hopline_scenario::Objective::of_options(Some("delay_p95"), Some("goodput > 1 kb/s")))
        .unwrap();
    let (comparison, records) = run(&plan, None);
    let json = json_with_runs(&comparison, &records);
    assert_eq!(json["question"]["metric"], "delay_p95_s");
    assert_eq!((&json["question"]["better"], &json["question"]["unit"]), (&json!("less"), &json!("s")));
    assert_eq!(json["question"]["bound"]["metric"], "aggregate_goodput_bps");
    let asked = &json["variants"][1]["asked"];
    assert_eq!(asked["keeps_bound"], true);
    let mean = |of: &Json| of["mean"].as_f64().unwrap();
    let (value, difference) = (mean(&asked["value"]), mean(&asked["difference"]));
    let baseline = mean(&json["variants"][0]["asked"]["value"]);
    assert!((value - baseline - difference).abs() < 1e-12 && difference > 0.0, "{asked}");
    // The same results with another question have another conclusion.
    let again =
        comparison.with_objective(&hopline_scenario::Objective::of_options(Some("jain"), None)).unwrap();
    assert_eq!(again.objective.asked.metric.name, "jain");
    assert!(again.objective.bound.is_some());
}

#[test]
fn an_objective_of_a_kind_applies_to_every_point_with_other_kinds() {
    let exchange = "\n[[flow]]\nname = \"s\"\nkind = \"http\"\nthink_s = 0.1\nsrc = \"n2\"\ndst = \"n0\"\n";
    let vary = ["flow.1.kind=http,request-response"];
    let with_sizes = exchange.replace("think_s", "request_bytes = 100\nresponse_bytes = 900\nthink_s");
    let plan = of(&scenario(&format!("{TWO_HOPS}{with_sizes}")), &vary);
    let asking =
        |metric| plan.clone().with_objective(hopline_scenario::Objective::of_options(Some(metric), None));
    // The kind of the second point is known as well.
    assert_eq!(asking("responses of request-response").unwrap().objective.asked.subject, "request-response");
    let (comparison, _) = run(&asking("goodput of bulk").unwrap(), None);
    let asked = comparison.objective.asked.clone();
    for point in 0..2 {
        let of_flow = comparison.points[point].values((Level::Flow, "f0", "goodput_bps"));
        assert_eq!(comparison.points[point].values(asked.key()), of_flow);
    }
}

#[test]
fn a_missing_metric_is_not_replaced_by_another() {
    let plan = plan(&["tcp.window=2,8"]);
    let plan = plan
        .with_objective(hopline_scenario::Objective::of_options(
            Some("response_p95"),
            Some("completion < 1 s"),
        ))
        .unwrap();
    let (comparison, _) = run(&plan, None);
    let experiment = &crate::view::report(&comparison).experiments[0];
    assert_eq!(experiment.metrics[0].name, "response p95");
    assert_eq!(experiment.limit.unwrap().metric, 1);
    let answer = crate::report::Conclusion::of(experiment);
    assert_eq!(answer.text(), "Nothing was measured of response p95.");
}

#[test]
fn delays_over_time_have_no_warm_up() {
    let series = |more: &str| {
        let text = TWO_HOPS.replacen("duration_s = 5", &format!("duration_s = 5{more}"), 1);
        let (comparison, _) = run(&of(&scenario(&text), &[]), None);
        comparison.points[0].series[0].delay_s.clone()
    };
    assert!(TWO_HOPS.contains("duration_s = 5"));
    assert_eq!(series("\nwarmup_s = 2.5"), series(""));
    assert!(series("").iter().flatten().all(|delay| *delay > 0.0 && *delay < 1.0));
}
