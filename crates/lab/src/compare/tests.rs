use super::*;
use crate::run::Unwatched;
use crate::scenario::parse_vary;
use crate::scenario::source::Source;
use hopline_core::Duration;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Two hops; long enough for losses to differ between runs.
const TWO_HOPS: &str = "\
name = \"two hops\"
duration_s = 5
runs = 4
[radio]
[nodes]
layout = \"chain\"
count = 3
spacing_m = 200
[[flow]]
src = \"n0\"
dst = \"n2\"
";

fn scenario(text: &str) -> Scenario {
    let source = Arc::new(Source { name: "test.toml".into(), text: text.into() });
    Scenario::parse(source, PathBuf::new(), &[]).unwrap()
}

fn plan(vary: &[&str]) -> Plan {
    let axes: Vec<Axis> = vary.iter().map(|text| parse_vary(text).unwrap()).collect();
    Plan::new(&scenario(TWO_HOPS), &axes).unwrap()
}

fn labels(plan: &Plan) -> Vec<String> {
    plan.variants.iter().map(label).collect()
}

/// A comparison without what may differ from one execution to the next.
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
fn variants_are_the_product_of_the_axes_and_the_last_varies_fastest() {
    let plan = plan(&["transport=tcp-reno,tcp-sack", "tcp.window=2,8"]);
    assert_eq!(
        labels(&plan),
        [
            "transport=tcp-reno tcp.window=2",
            "transport=tcp-reno tcp.window=8",
            "transport=tcp-sack tcp.window=2",
            "transport=tcp-sack tcp.window=8",
        ]
    );
    assert_eq!(plan.total_s(), 4.0 * 4.0 * 5.0);
}

#[test]
fn without_axes_the_scenario_stands_alone() {
    assert_eq!(labels(&plan(&[])), ["two hops"]);
}

#[test]
fn too_many_variants_are_refused_before_they_are_made() {
    let axis = parse_vary(&format!("seed={}", vec!["1"; 1000].join(","))).unwrap();
    let error = Plan::new(&scenario(TWO_HOPS), &vec![axis; 8]).unwrap_err();
    assert!(error.to_string().contains("more than 10000 variants"), "{error}");
}

#[test]
fn the_result_does_not_depend_on_the_number_of_threads() {
    let result = |jobs| {
        let plan = Plan { jobs: Some(jobs), ..plan(&["tcp.window=2,8"]) };
        without_cpu(compare(&plan, &Unwatched).unwrap().json())
    };
    let alone = result(1);
    assert_eq!(alone, result(2));
    assert_eq!(alone, result(5));
}

#[test]
fn runs_are_numbered_paired_and_those_of_a_single_run() {
    let result = compare(&plan(&["tcp.window=2,8"]), &Unwatched).unwrap();
    for variant in &result.variants {
        assert_eq!(variant.runs.iter().map(|r| r.run).collect::<Vec<_>>(), [1, 2, 3, 4]);
    }
    let fingerprints: std::collections::BTreeSet<_> =
        result.variants.iter().flat_map(|v| v.runs.iter().map(|r| r.fingerprint)).collect();
    assert_eq!(fingerprints.len(), 8, "every run is another one");
    let spec = scenario(TWO_HOPS)
        .with(&[Setting::parse("--set", "tcp.window=8").unwrap()])
        .unwrap()
        .spec(3)
        .unwrap();
    assert_eq!(hopline_sim::simulate(&spec, 3).fingerprint, result.variants[1].runs[2].fingerprint);
}

#[test]
fn gains_are_taken_within_pairs_against_the_first_variant() {
    let result = compare(&plan(&["tcp.window=2,8"]), &Unwatched).unwrap();
    let [base, other] = &result.variants[..] else { panic!("two variants") };
    assert_eq!((base.gain_bps, base.gain_pct), (None, None));
    let expected = Estimate::of_differences(&goodputs(&other.runs), &goodputs(&base.runs));
    assert_eq!(other.gain_bps, Some(expected));
    let percent = other.gain_pct.unwrap().mean;
    assert!((percent - 100.0 * expected.mean / base.goodput_bps.mean).abs() < 1e-9);
    assert_eq!(base.jain, None, "one flow has nobody to be fair to");
}

#[test]
fn a_baseline_that_delivers_nothing_has_no_percentage() {
    let far = TWO_HOPS.replace("spacing_m = 200", "spacing_m = 900");
    let plan = Plan::new(&scenario(&far), &[parse_vary("tcp.window=2,8").unwrap()]).unwrap();
    let result = compare(&plan, &Unwatched).unwrap();
    assert_eq!(result.variants[0].goodput_bps.mean, 0.0);
    assert_eq!((result.variants[1].gain_bps.unwrap().mean, result.variants[1].gain_pct), (0.0, None));
}

#[test]
fn json_has_mean_interval_and_runs_of_each_variant() {
    let json = compare(&plan(&["tcp.window=2,unclamped"]), &Unwatched).unwrap().json();
    let variant = &json["variants"][1];
    assert_eq!(variant["settings"]["tcp.window"], "unclamped");
    let mean = variant["goodput_bps"]["mean"].as_f64().unwrap();
    let [low, high] = [0, 1].map(|i| variant["goodput_bps"]["interval"][i].as_f64().unwrap());
    assert!(low <= mean && mean <= high && mean > 0.0);
    assert_eq!(variant["runs"].as_array().unwrap().len(), 4);
    assert_eq!(variant["runs"][2]["run"], 3);
    assert_eq!(variant["runs"][2]["flows"][0]["dst"], "n2");
    assert_eq!(json["variants"][0]["gain_pct"], Json::Null);
}

/// Counts virtual time, and gives up when there is enough of it.
struct Impatient {
    nanos: AtomicU64,
    limit: u64,
}

impl Watch for Impatient {
    fn advanced(&self, by: Duration) {
        self.nanos.fetch_add(by.as_nanos(), Ordering::Relaxed);
    }

    fn interrupted(&self) -> bool {
        self.nanos.load(Ordering::Relaxed) >= self.limit
    }
}

#[test]
fn a_watcher_hears_of_all_virtual_time() {
    let watch = Impatient { nanos: AtomicU64::new(0), limit: u64::MAX };
    let plan = plan(&["tcp.window=2,8"]);
    compare(&plan, &watch).unwrap();
    assert_eq!(watch.nanos.into_inner() as f64, plan.total_s() * 1e9);
}

#[test]
fn a_watcher_may_give_up() {
    let watch = Impatient { nanos: AtomicU64::new(0), limit: 3_000_000_000 };
    assert_eq!(compare(&plan(&[]), &watch).unwrap_err(), CompareError::Interrupted);
}

#[test]
fn the_fingerprint_of_a_variant_depends_on_the_order_of_its_runs() {
    assert_ne!(combine([1, 2].into_iter()), combine([2, 1].into_iter()));
    // FNV-1a of no bytes is its offset basis.
    assert_eq!(combine([].into_iter()), 0xcbf2_9ce4_8422_2325);
}
