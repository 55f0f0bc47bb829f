//! User-defined algorithms, by name: `custom:NAME`.

use super::*;
use hopline_sim::custom::{AlgorithmKind, CustomAlgorithms, CustomCongestionControlId, UsedAlgorithm};
use hopline_sim::spec::Discipline;
use hopline_transport::tcp::CongestionControl;
use std::path::PathBuf;

/// None of them is ever made here.
fn machines(digest: &str) -> CustomAlgorithms {
    CustomAlgorithms::default()
        .with_congestion_control("gentle", "other", |_seed| Err(String::new()))
        .with_congestion_control("greedy", digest, |_seed| Err(String::new()))
        .with_discipline("short", digest, |_seed| Err(String::new()))
}

fn with(text: &str, settings: &[&str], machines: CustomAlgorithms) -> Result<Scenario, Problems> {
    let source = Arc::new(Source { name: "test.toml".into(), text: text.into() });
    let settings: Vec<Setting> = settings.iter().map(|s| Setting::parse("--set", s).unwrap()).collect();
    Scenario::parse_with(source, PathBuf::new(), &settings, machines)
}

fn problem(text: &str, settings: &[&str], machines: CustomAlgorithms) -> String {
    with(text, settings, machines).expect_err("this is wrong").to_string()
}

#[test]
fn a_user_defined_congestion_control_and_queue_are_named_with_a_prefix() {
    let settings = ["tcp.congestion_control=own:greedy", "queue.discipline=own:short"];
    let scenario = with(CHAIN, &settings, machines("1")).unwrap();
    let spec = scenario.spec(1).unwrap();
    assert_eq!(tcp(&spec, 0).congestion_control(), CongestionControl::Custom(CustomCongestionControlId(1)));
    let queue = spec.radio.as_ref().expect("has radios").queue.discipline;
    assert!(matches!(queue, Discipline::Custom(_)), "{queue:?}");
    let used = |kind, name: &str| UsedAlgorithm { kind, name: name.into(), digest: "1".into() };
    let expected =
        [used(AlgorithmKind::CongestionControl, "greedy"), used(AlgorithmKind::Discipline, "short")];
    assert!(spec.custom_algorithms().iter().eq(&expected), "gentle is not asked for");
}

#[test]
fn a_derived_scenario_keeps_its_user_defined_algorithms() {
    let scenario = with(CHAIN, &[], machines("1")).unwrap();
    assert!(scenario.spec(1).unwrap().custom_algorithms().is_empty());
    let more =
        scenario.with(&[Setting::parse("--set", "tcp.congestion_control=own:gentle").unwrap()]).unwrap();
    assert_eq!(
        tcp(&more.spec(1).unwrap(), 0).congestion_control(),
        CongestionControl::Custom(CustomCongestionControlId(0))
    );
    let text = CHAIN.to_owned() + "tcp = { congestion_control = \"own:greedy\" }\n";
    let of_flow = with(&text, &[], machines("1")).unwrap().spec(1).unwrap();
    assert_eq!(
        tcp(&of_flow, 0).congestion_control(),
        CongestionControl::Custom(CustomCongestionControlId(1))
    );
}

#[test]
fn an_unknown_user_defined_name_is_rejected_at_its_position() {
    let text = CHAIN.to_owned() + "tcp = { congestion_control = \"own:gredy\" }\n";
    let wrong = problem(&text, &[], machines("1"));
    assert!(wrong.starts_with("test.toml:10:30: there is no own law `gredy`"), "{wrong}");
    assert!(wrong.contains("did you mean `greedy`?") && wrong.contains("known: gentle, greedy"), "{wrong}");
    let none = problem(CHAIN, &["tcp.congestion_control=own:greedy"], CustomAlgorithms::default());
    assert!(none.contains("in Python or Rust; known: none"), "{none}");
    let queue = problem(CHAIN, &["queue.discipline=own:greedy"], machines("1"));
    assert!(queue.contains("there is no own queue discipline `greedy`"), "{queue}");
    assert!(queue.contains("known: short"), "{queue}");
}

#[test]
fn a_name_that_is_neither_built_in_nor_user_defined_is_rejected() {
    for wrong in [
        "tcp.congestion_control=greedy",
        "tcp.congestion_control=own:",
        "tcp.congestion_control=own",
        "queue.discipline=own:",
    ] {
        let said = problem(CHAIN, &[wrong], machines("1"));
        assert!(said.contains("does not know") && said.contains("or \"own:NAME\""), "{wrong}: {said}");
    }
    let near = problem(CHAIN, &["tcp.congestion_control=cubik"], machines("1"));
    assert!(near.contains("did you mean \"cubic\"?"), "{near}");
}

#[test]
fn built_in_parameters_with_a_user_defined_algorithm_are_rejected() {
    let text = CHAIN.to_owned() + "tcp = { congestion_control = \"own:greedy\", cubic_beta = 0.5 }\n";
    let wrong = problem(&text, &[], machines("1"));
    assert!(
        wrong.contains("`cubic_beta` is used with congestion_control = \"cubic\", not \"own:greedy\""),
        "{wrong}"
    );
    for key in ["service=\"fifo\"", "target_ms=5", "weight=0.1", "action=\"mark\"", "flows=4"] {
        let setting = format!("queue.{key}");
        let wrong = problem(CHAIN, &["queue.discipline=own:short", &setting], machines("1"));
        assert!(wrong.contains("not \"own:short\""), "{key}: {wrong}");
    }
}

#[test]
fn parameters_distinguish_algorithms_of_one_name() {
    let parameters =
        |settings: &[&str], digest| with(CHAIN, settings, machines(digest)).unwrap().parameters();
    let settings = ["tcp.congestion_control=own:greedy", "queue.discipline=own:short"];
    let one = parameters(&settings, "1");
    let expected = serde_json::json!({ "tcp.congestion_control = own:greedy": "1", "queue.discipline = own:short": "1" });
    assert_eq!(one["own_machines"], expected);
    assert_ne!(one, parameters(&settings, "2"));
    assert_eq!(parameters(&[], "1"), parameters(&[], "2"), "nobody asks for them");
    assert_eq!(parameters(&[], "1").get("own_machines"), None);
}

#[test]
fn a_split_proxy_takes_no_user_defined_algorithm() {
    let text = CHAIN.to_owned() + "[[proxy]]\nnode = \"n1\"\nkind = \"split\"\n";
    let wrong = problem(&text, &["tcp.congestion_control=own:greedy"], machines("1"));
    assert!(wrong.contains("an own law in a machine that splits connections"), "{wrong}");
    let of_flow = text.replace("dst = \"n2\"", "dst = \"n2\"\ntcp = { congestion_control = \"own:greedy\" }");
    with(&of_flow, &[], machines("1")).unwrap();
}
