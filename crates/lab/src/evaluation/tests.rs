use super::*;
use crate::comparison::Comparison;
use crate::experiment::RunOptions;
use crate::plan::Effort;
use crate::report;
use crate::run::NoObserver;
use crate::text::evaluation::describe;
use crate::user_defined::{CustomCcAck, CustomCcLoss, CustomCcTimeout, CustomCongestionControl};
use crate::view;
use hopline_config::document::Setting;
use hopline_config::source::Problems;
use hopline_scenario::CustomAlgorithms;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Scenario with a flow of the evaluated algorithm, and one beside it over `beside`.
fn scenario(beside: &str) -> String {
    format!(
        "duration_s = 5\n[[node]]\nname = \"l\"\n[[node]]\nname = \"r\"\n\
         [[link]]\na = \"l\"\nb = \"r\"\nrate_mbps = 5\ndelay_ms = 10\nqueue.capacity_packets = 20\n\
         [[flow]]\nclass = \"law\"\nsrc = \"l\"\ndst = \"r\"\n\
         [[flow]]\nname = \"beside\"\nsrc = \"l\"\ndst = \"r\"\n{beside}\n"
    )
}

const FIXED: &str = "transport = \"tcp-cubic\"\ntcp.congestion_control = \"cubic\"";

const HEAD: &str = "title = \"test\"\nreferences = [\"cubic\", \"reno\"]\nruns = 2\n";

fn network(criteria: &str) -> String {
    format!(
        "[[network]]\nid = \"one\"\nclause = \"1.2 Title\"\ntitle = \"a link\"\nscenario = \"s.toml\"\n{criteria}"
    )
}

fn criterion(metric: &str, side: &str, limit: &str) -> String {
    format!("[[network.criterion]]\nmetric = \"{metric}\"\n{side} = \"{limit}\"\n")
}

fn files(evaluation: &str, scenario: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("e.toml"), evaluation).unwrap();
    fs::write(folder.path().join("s.toml"), scenario).unwrap();
    folder
}

fn load_from(folder: &Path, laws: &[&str], only: &[&str]) -> Result<EvaluationPlan, Problems> {
    let laws = laws.iter().map(|law| Law::parse(law)).collect::<Result<Vec<_>, _>>()?;
    let only: Vec<String> = only.iter().map(|&name| name.to_owned()).collect();
    open(Some(&folder.join("e.toml")))?.load(
        &laws,
        Selection { only: &only, ..Selection::default() },
        &CustomAlgorithms::default(),
    )
}

fn refused(evaluation: &str, scenario: &str) -> String {
    load_from(files(evaluation, scenario).path(), &[], &[]).unwrap_err().to_string()
}

fn made(plan: &EvaluationPlan) -> Vec<Comparison> {
    plan.run(RunOptions { jobs: None, command: &[], watch: &NoObserver }).unwrap()
}

#[test]
fn every_network_of_the_built_in_evaluation_is_valid_and_has_requirements() {
    let laws = ["reno", "tpa-wide"].map(|law| Law::parse(law).unwrap());
    let file = open(None).unwrap();
    let plan = file.load(&laws, Selection::default(), &CustomAlgorithms::default()).unwrap();
    assert_eq!(
        plan.laws.iter().map(|law| law.name.as_str()).collect::<Vec<_>>(),
        ["cubic", "bbr", "bbr3", "reno", "tpa-wide"]
    );
    assert!(plan.networks.iter().all(|network| !network.criteria.is_empty()));
    let sections: std::collections::BTreeSet<&str> = plan
        .networks
        .iter()
        .map(|n| n.clause.as_str())
        .chain(plan.not_covered.iter().map(|n| n.clause.as_str()))
        .collect();
    assert_eq!(sections.len(), 25, "sections of RFC 9743 §5 to §7: {sections:?}");
}

#[test]
fn a_run_is_judged_by_an_absolute_limit_and_by_a_share_of_a_reference() {
    let criteria = [
        criterion("goodput of law", "at_least", "100 kb/s"),
        criterion("goodput of law", "at_least", "20 Mb/s"),
        criterion("goodput of law", "at_least", "0.5 of cubic"),
        criterion("goodput of law", "at_least", "1.5 of cubic"),
        criterion("delay_p95 of law", "at_most", "0.5 of best"),
    ];
    let folder = files(&(HEAD.to_owned() + &network(&criteria.concat())), &scenario(FIXED));
    let plan = load_from(folder.path(), &["tcp-cubic"], &[]).unwrap();
    let results = plan.judge(&made(&plan));
    let verdicts: Vec<Verdict> = results[0].criteria.iter().map(|c| c.laws[0].verdict).collect();
    let [meets, misses] = [Verdict::Meets, Verdict::Misses];
    assert_eq!(verdicts, [meets, misses, meets, misses, misses]);
    // `tcp-cubic` is the reference `cubic` under another name.
    assert_eq!(results[0].criteria[0].laws[0].runs, results[0].criteria[0].laws[2].runs);
    assert_eq!(results[0].verdicts, [misses; 3], "the worst of all criteria");
    assert_eq!((count(&results, 0).of(misses), count(&results, 0).of(meets)), (1, 0));
}

#[test]
fn text_json_and_report_show_every_verdict() {
    let criteria = criterion("goodput of law", "at_least", "100 kb/s");
    let not_covered = "[[not_covered]]\nclause = \"9 Other\"\nreason = \"a discussion\"\n";
    let folder = files(&(HEAD.to_owned() + &network(&criteria) + not_covered), &scenario(FIXED));
    let plan = load_from(folder.path(), &["tpa-wide"], &[]).unwrap();
    let made = made(&plan);
    let results = plan.judge(&made);
    let text = describe(&plan, &results, Effort::Full);
    assert!(
        text.contains("goodput of law: at least 100 kb/s") && text.contains("9 Other: a discussion"),
        "{text}"
    );
    let json = json(&plan, &results);
    assert_eq!(json["networks"][0]["verdicts"]["tpa-wide"], "meets");
    assert_eq!(json["networks"][0]["criteria"][0]["laws"]["cubic"]["limits"], serde_json::json!([1e5, 1e5]));
    assert_eq!(json["laws"][2]["reference"], false);
    let page = report::html(&view::evaluation::report(&plan, &made, &results, Effort::Quick));
    assert!(page.contains("QUICK") && page.contains("goodput of law: at least 100 kb/s"));
    assert!(page.contains("a discussion") && page.contains("Meets: cubic, reno, tpa-wide."));
}

#[test]
fn a_failed_run_has_no_value() {
    let network = network(&criterion("response_p95 of law", "at_most", "1 s"));
    let asks = scenario(FIXED).replace(
        "class = \"law\"",
        "class = \"law\"\nkind = \"request-response\"\nrequest_bytes = 1\nresponse_bytes = 100_000_000",
    );
    let folder = files(&(HEAD.to_owned() + &network), &asks);
    let plan = load_from(folder.path(), &[], &[]).unwrap();
    assert_eq!(plan.judge(&made(&plan))[0].verdicts, [Verdict::NoValue; 2], "no response arrives in time");
}

#[test]
fn networks_are_chosen_by_name_and_by_section() {
    let two = network(&criterion("jain", "at_least", "0.1"))
        + &network(&criterion("jain", "at_least", "0.1")).replace("one", "two").replace("1.2 ", "1.22 ");
    let folder = files(&(HEAD.to_owned() + &two), &scenario(FIXED));
    let chosen = |only: &[&str]| {
        let plan = load_from(folder.path(), &[], only).unwrap();
        plan.networks.iter().map(|network| network.id.clone()).collect::<Vec<_>>()
    };
    assert_eq!(chosen(&[]), ["one", "two"]);
    assert_eq!(chosen(&["two"]), ["two"]);
    assert_eq!(chosen(&["1"]), ["one", "two"]);
    assert_eq!(chosen(&["1.2"]), ["one"], "1.22 is another section");
    let unknown = load_from(folder.path(), &[], &["three"]).unwrap_err().to_string();
    assert!(unknown.contains("there is no network or section `three`"), "{unknown}");
}

#[test]
fn parameters_of_an_algorithm_change_no_other_flow() {
    let folder =
        files(&(HEAD.to_owned() + &network(&criterion("jain", "at_least", "0.1"))), &scenario(FIXED));
    let plan = load_from(folder.path(), &["cubic@tcp.initial_window=32"], &[]).unwrap();
    let paths: Vec<&str> =
        plan.networks[0].plan.points[2].settings.iter().map(|setting| setting.path.as_str()).collect();
    assert_eq!(paths, ["transport", "flow.0.tcp.initial_window"]);
}

#[test]
fn settings_are_put_over_every_network() {
    let folder =
        files(&(HEAD.to_owned() + &network(&criterion("jain", "at_least", "0.1"))), &scenario(FIXED));
    let seed = [Setting::parse("--set", "seed=7").unwrap()];
    let file = open(Some(&folder.path().join("e.toml"))).unwrap();
    let selection = Selection { set: &seed, ..Selection::default() };
    let plan = file.load(&[], selection, &CustomAlgorithms::default()).unwrap();
    assert_eq!(plan.networks[0].plan.points[1].scenario.seed(), 7);
}

#[test]
fn wrong_files_are_refused_with_the_reason() {
    let good = || criterion("goodput of law", "at_least", "1 Mb/s");
    let with = |criteria: &str| HEAD.to_owned() + &network(criteria);
    let fixed = scenario(FIXED);
    let cases = [
        (with("[[network.criterion]]\nmetric = \"goodput\"\n"), fixed.clone(), "the criterion has no limit"),
        (with(&(good() + "at_most = \"2 Mb/s\"\n")), fixed.clone(), "two limits"),
        (with(&criterion("goodput of law", "at_least", "1 ms")), fixed.clone(), "not in \"ms\""),
        (
            with(&criterion("goodput of law", "at_least", "0.9 of vegas")),
            fixed.clone(),
            "`vegas` is no reference",
        ),
        (with(&criterion("goodput of law", "at_least", "-1 of cubic")), fixed.clone(), "no factor above 0"),
        (with(&criterion("goodput of nobody", "at_least", "1 Mb/s")), fixed.clone(), "\"nobody\""),
        (with(&good()), scenario(""), "would change the flow \"beside\" too"),
        (with(&good()), fixed.replace("class = \"law\"\n", ""), "no flow of class \"law\""),
        (
            with(&good()).replace("\"reno\"", "\"vegas\""),
            fixed.clone(),
            "no congestion control algorithm `vegas`",
        ),
        (with(&good()).replace("[\"cubic\", \"reno\"]", "[]"), fixed.clone(), "there are no references"),
        (with(&good()) + &network(&good()), fixed.clone(), "two networks are called \"one\""),
        (with(&good()).replace("\"reno\"", "\"cubic\""), fixed.clone(), "`cubic` is named twice"),
        (HEAD.to_owned() + "network = []\n", fixed.clone(), "there are no networks"),
        (with("criterion = []\n"), fixed.clone(), "the network \"one\" has no criterion"),
        (with(&good()).replace("\"one\"", "\"\""), fixed.clone(), "`id` of a network is empty"),
        (with(&good()).replace("1.2 Title", " "), fixed.clone(), "`clause` of a network is empty"),
        (with(&good()).replace("s.toml", "t.toml"), fixed.clone(), "there is no scenario file"),
        (with(&good()).replace("s.toml", ""), fixed.clone(), "there is no scenario file"),
        (
            with(&criterion("goodput of law", "at_least", "0 Mb/s")),
            fixed.clone(),
            "every run has at least that",
        ),
        (with(&criterion("delay_p95 of law", "at_most", "-5 ms")), fixed.clone(), "no run has so little"),
        (with(&criterion("jain", "at_least", "90")), fixed.clone(), "no run has so much"),
        (with(&criterion("jain", "at_most", "1")), fixed.clone(), "no run has more"),
        (with(&criterion("goodput of law", "at_least", "inf Mb/s")), fixed.clone(), "no number with a unit"),
        (with(&criterion("goodput of law", "at_least", "nan of cubic")), fixed.clone(), "no factor above 0"),
        (with(&criterion("goodput_max_bps", "at_least", "0.5 of best")), fixed, "has no best"),
    ];
    for (evaluation, scenario, reason) in cases {
        let said = refused(&evaluation, &scenario);
        assert!(said.contains(reason), "{reason}: {said}");
    }
}

#[test]
fn the_message_about_a_scenario_that_does_not_exist_shows_its_line() {
    let file = HEAD.to_owned() + &network(&criterion("jain", "at_least", "0.1"));
    let said = refused(&file.replace("s.toml", "t.toml"), &scenario(FIXED));
    assert!(said.contains("e.toml:8:12"), "{said}");
}

#[test]
fn a_section_without_a_network_is_refused_with_the_reason() {
    let not_covered = "[[not_covered]]\nclause = \"7.6 Nodes\"\nreason = \"a discussion\"\n";
    let file = HEAD.to_owned() + &network(&criterion("jain", "at_least", "0.1")) + not_covered;
    let folder = files(&file, &scenario(FIXED));
    let said = load_from(folder.path(), &[], &["7.6"]).unwrap_err().to_string();
    assert!(said.contains("no network is about section `7.6`: a discussion"), "{said}");
}

#[test]
fn zero_runs_are_refused() {
    let laws: &[Law] = &[];
    let selection = Selection { runs: Some(0), ..Selection::default() };
    let said =
        open(None).unwrap().load(laws, selection, &CustomAlgorithms::default()).unwrap_err().to_string();
    assert!(said.contains("0 runs"), "{said}");
}

#[test]
fn keys_of_the_network_are_no_parameters_of_an_algorithm() {
    for (law, said) in [
        ("cubic@link.0.rate_mbps=100", "`link.0.rate_mbps` is no parameter of an algorithm"),
        ("cubic@seed=9", "`--set seed=9` changes the network"),
        ("cubic@transport=tcp-bbr", "`transport` is no parameter"),
        ("cubic@tcp.initial_window", "\"tcp.initial_window\" is not of the form KEY=VALUE"),
        ("cubic@", "\"\" is not of the form KEY=VALUE"),
    ] {
        let problem = Law::parse(law).unwrap_err();
        let text = format!("{problem} {:?}", problem.help);
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(Law::parse("tcp-ap@pacing.history_weight=0.5").is_ok());
}

/// Result with these values against a limit of 100.
fn judged(side: crate::objective::Side, runs: &[f64]) -> LawResult {
    let limits = vec![100.0; runs.len()];
    let mut result =
        LawResult { verdict: Verdict::NoValue, runs: runs.to_vec(), limits, side, is_reference: false };
    result.verdict = result.verdict_if(0.0);
    result
}

#[test]
fn the_margin_is_that_of_the_run_nearest_to_another_verdict() {
    use crate::objective::Side::{AtLeast, AtMost};
    let of = |side, runs: &[f64]| {
        let result = judged(side, runs);
        (result.verdict, result.margin().map(|margin| libm::round(margin * 100.0)), result.is_close())
    };
    assert_eq!(of(AtLeast, &[104.0, 150.0]), (Verdict::Meets, Some(4.0), true));
    assert_eq!(of(AtLeast, &[120.0, 150.0]), (Verdict::Meets, Some(20.0), false));
    assert_eq!(of(AtMost, &[120.0, 150.0]), (Verdict::Misses, Some(-20.0), false));
    assert_eq!(of(AtMost, &[104.0, 150.0]), (Verdict::Misses, Some(-4.0), true));
    assert_eq!(of(AtMost, &[80.0, 150.0]), (Verdict::Varies, None, false));
    assert_eq!(of(AtMost, &[f64::NAN, 150.0]), (Verdict::NoValue, None, false));
    let own = LawResult { is_reference: true, ..judged(AtLeast, &[105.0]) };
    assert_eq!((own.margin(), own.is_close()), (None, false), "a share of its own value");
}

#[test]
fn a_share_of_nothing_is_no_requirement() {
    let criteria = [
        criterion("timeouts of law", "at_least", "0.5 of cubic"),
        criterion("timeouts of law", "at_most", "0.5 of cubic"),
    ];
    let folder = files(&(HEAD.to_owned() + &network(&criteria.concat())), &scenario(FIXED));
    let plan = load_from(folder.path(), &[], &[]).unwrap();
    let results = plan.judge(&made(&plan));
    let verdicts: Vec<Verdict> = results[0].criteria.iter().map(|c| c.laws[1].verdict).collect();
    assert_eq!(verdicts, [Verdict::NoValue, Verdict::Meets], "CUBIC has no timeout");
}

/// Fails with its first acknowledgment, or panics.
#[derive(Debug)]
struct Broken {
    panics: bool,
}

impl CustomCongestionControl for Broken {
    fn on_ack(&mut self, _ack: &CustomCcAck) -> Result<f64, String> {
        assert!(!self.panics, "no window to return");
        Err("the first line\nthe second line".to_owned())
    }

    fn on_loss(&mut self, _loss: &CustomCcLoss) -> Result<f64, String> {
        Ok(1e4)
    }

    fn on_timeout(&mut self, _timeout: &CustomCcTimeout) -> Result<f64, String> {
        Ok(1e4)
    }
}

#[test]
fn a_user_defined_algorithm_that_fails_has_no_value_and_its_reason_is_shown() {
    let machines = CustomAlgorithms::default()
        .with_congestion_control("errs", "1", |_| Ok(Box::new(Broken { panics: false })))
        .with_congestion_control("panics", "1", |_| Ok(Box::new(Broken { panics: true })));
    let criteria = criterion("goodput of law", "at_least", "100 kb/s");
    let folder = files(&(HEAD.to_owned() + &network(&criteria)), &scenario(FIXED));
    let laws = ["own:errs", "own:panics"].map(|law| Law::parse(law).unwrap());
    let file = open(Some(&folder.path().join("e.toml"))).unwrap();
    let plan = file.load(&laws, Selection::default(), &machines).unwrap();
    let results = plan.judge(&made(&plan));
    let [meets, none] = [Verdict::Meets, Verdict::NoValue];
    assert_eq!(results[0].verdicts, [meets, meets, none, none], "the other algorithms are judged");
    let text = describe(&plan, &results, Effort::Full);
    assert!(text.contains("  own:errs on one, 2 runs; run 1: "), "{text}");
    assert!(text.contains("the first line\n    the second line\n"), "{text}");
    assert!(
        text.contains("  own:panics on one, 2 runs; run 1: ") && text.contains("no window to return"),
        "{text}"
    );
    let json = json(&plan, &results);
    assert_eq!(json["networks"][0]["failed"].as_array().map(Vec::len), Some(4), "{json}");
    assert_eq!(json["networks"][0]["criteria"][0]["laws"]["own:errs"]["mean"], serde_json::Value::Null);
}

#[test]
fn parameters_reach_flows_of_a_file_too() {
    let csv = "name,class,src,dst\nf1,law,l,r\n";
    let mixed = scenario(FIXED).replace("duration_s = 5\n", "duration_s = 5\nflows.file = \"f.csv\"\n");
    let file = HEAD.to_owned() + &network(&criterion("jain", "at_least", "0.1"));
    let folder = files(
        &file,
        &mixed.replace(&format!("[[flow]]\nname = \"beside\"\nsrc = \"l\"\ndst = \"r\"\n{FIXED}\n"), ""),
    );
    fs::write(folder.path().join("f.csv"), csv).unwrap();
    let plan = load_from(folder.path(), &["cubic@tcp.initial_window=32"], &[]).unwrap();
    let spec = plan.networks[0].plan.points[2].scenario.spec(1).unwrap();
    let plain = plan.networks[0].plan.points[0].scenario.spec(1).unwrap();
    let changed = spec.flows.iter().zip(&plain.flows).filter(|(one, other)| one.traffic != other.traffic);
    assert_eq!((spec.flows.len(), changed.count()), (2, 2));
}

#[test]
fn a_name_selects_a_transport_and_takes_settings() {
    let settings = |text: &str| {
        let law = Law::parse(text).unwrap();
        law.settings.iter().map(|s| format!("{}={}", s.path, s.text())).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(settings("cubic"), "transport=tcp-cubic");
    assert_eq!(settings("tcp-cubic"), "transport=tcp-cubic");
    assert_eq!(settings("reno"), "transport=tcp-sack");
    assert_eq!(settings("tpa-wide@wide.mss_bytes=1000"), "transport=tpa-wide wide.mss_bytes=1000");
    assert_eq!(settings("own:Mine"), "transport=tcp-cubic tcp.congestion_control=own:Mine");
    assert_eq!(settings("quic-s2n-bbr"), "transport=quic quic.congestion_control=s2n-bbr");
    assert_eq!(settings("quic-own:Mine"), "transport=quic quic.congestion_control=own:Mine");
    let unknown = Law::parse("cubik").unwrap_err().to_string();
    assert!(unknown.contains("did you mean `cubic`?"), "{unknown}");
    assert!(Law::parse("cubic@tcp.min_rto_s").is_err(), "a setting without a value");
}

/// Window of 300 segments, whatever is lost.
#[derive(Debug)]
struct Flood;

impl CustomCongestionControl for Flood {
    fn on_ack(&mut self, ack: &CustomCcAck) -> Result<f64, String> {
        Ok(300.0 * f64::from(ack.state.mss_bytes))
    }

    fn on_loss(&mut self, loss: &CustomCcLoss) -> Result<f64, String> {
        Ok(300.0 * f64::from(loss.state.mss_bytes))
    }

    fn on_timeout(&mut self, timeout: &CustomCcTimeout) -> Result<f64, String> {
        Ok(300.0 * f64::from(timeout.state.mss_bytes))
    }
}

#[test]
fn an_algorithm_that_ignores_losses_misses_the_requirements_of_safety() {
    let machines = CustomAlgorithms::default().with_congestion_control("flood", "1", |_| Ok(Box::new(Flood)));
    let only = ["tiny-queue", "call", "full-queue", "path-shorter"].map(str::to_owned);
    let law = Law::parse("own:flood").unwrap();
    let plan = open(None)
        .unwrap()
        .load(&[law], Selection { only: &only, effort: Effort::Quick, ..Selection::default() }, &machines)
        .unwrap();
    let results = plan.judge(&made(&plan));
    let verdicts: Vec<Verdict> = results.iter().map(|network| network.verdicts[3]).collect();
    assert_eq!(verdicts, [Verdict::Misses; 4]);
    assert!(results.iter().all(|network| network.verdicts[0] == Verdict::Meets), "CUBIC meets them");
}

#[test]
fn algorithms_that_ignore_marks_do_not_ask_for_them() {
    let criteria = "marks = true\n".to_owned() + &criterion("marks", "at_least", "1");
    let evaluation = HEAD.replace("\"reno\"", "\"bbr\"") + &network(&criteria);
    let fixed = scenario(&format!("{FIXED}\ntcp.ecn = \"ask\"")).replace(
        "[[flow]]\nclass",
        "[link.queue]\ndiscipline = \"codel\"\naction = \"mark\"\n[[flow]]\nclass",
    );
    let fixed = fixed.replace("queue.capacity_packets = 20\n", "");
    let folder = files(&evaluation, &fixed);
    let plan = load_from(folder.path(), &[], &[]).unwrap();
    let asks = |point: usize| format!("{:?}", plan.networks[0].plan.points[point].settings);
    assert!(asks(0).contains("tcp.ecn") && !asks(1).contains("tcp.ecn"));
}
