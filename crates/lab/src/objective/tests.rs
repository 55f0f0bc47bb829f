use super::*;
use hopline_config::source::{Origin, Problem};

fn flow(id: &str, kind: &str, class: &str) -> FlowEnds {
    let text = str::to_owned;
    FlowEnds {
        id: text(id),
        src: text("a"),
        dst: text("b"),
        transport: text("tcp"),
        kind: text(kind),
        class: text(class),
    }
}

fn mixed() -> Vec<FlowEnds> {
    vec![flow("pages", "http", "web"), flow("calls", "request-response", "web"), flow("f2", "bulk", "")]
}

fn asked(text: &str) -> Result<MetricSelection, Problem> {
    MetricSelection::parse(text, &Origin::of_option("--metric", text), &mixed())
}

fn bound(text: &str) -> Result<Constraint, Problem> {
    Constraint::parse(text, &Origin::of_option("--bound", text), &mixed())
}

#[test]
fn a_metric_is_selected_for_all_flows_a_kind_a_class_or_a_flow() {
    let key = |text| {
        let asked = asked(text).unwrap();
        (asked.metric.level(), asked.subject.clone(), asked.metric.name)
    };
    assert_eq!(key("response_p95"), (Level::Run, String::new(), "response_p95_s"));
    assert_eq!(key("response_p95_s of all flows"), (Level::Run, String::new(), "response_p95_s"));
    assert_eq!(key("response p95 of web"), (Level::Group, "web".into(), "response_p95_s"));
    assert_eq!(key("goodput of kind bulk"), (Level::Group, "bulk".into(), "goodput_bps"));
    assert_eq!(key("goodput of pages"), (Level::Flow, "pages".into(), "goodput_bps"));
    assert_eq!(key("delay of flow f2"), (Level::Flow, "f2".into(), "delay_mean_s"));
    assert_eq!(key("fairness"), (Level::Run, String::new(), "jain"));
    assert_eq!(key("delivery of http"), (Level::Group, "http".into(), "delivery_pct"));
}

#[test]
fn a_kind_is_recognised_even_if_all_flows_are_of_that_kind() {
    let text = "goodput of bulk";
    let asked = MetricSelection::parse(text, &Origin::of_option("--metric", text), &[flow("f0", "bulk", "")])
        .unwrap();
    assert_eq!(asked.key(), (Level::Group, "bulk", "goodput_bps"), "other points may have others");
}

#[test]
fn every_objective_in_the_documentation_parses() {
    for (word, name) in [
        ("goodput", "aggregate_goodput_bps"),
        ("delay", "delay_mean_s"),
        ("delay_p99", "delay_p99_s"),
        ("response_mean", "response_mean_s"),
        ("completion", "completion_max_s"),
        ("delivery", "delivery_pct"),
        ("loss", "packet_loss_pct"),
        ("fairness", "jain"),
        ("energy", "energy_per_megabyte_j"),
    ] {
        assert_eq!(asked(word).unwrap().metric.name, name, "{word}");
    }
}

#[test]
fn a_constraint_keeps_its_limit_and_its_name_may_contain_an_operator() {
    let zero = bound("loss <= 0 %").unwrap();
    assert_eq!(zero.side.keeps(Some([0.0, 0.0]), zero.limit), Some(true));
    assert_eq!(Side::Below.keeps(Some([0.0, 0.0]), 0.0), Some(false));
    assert_eq!(Side::Below.keeps(Some([-1.0, 1.0]), 0.0), None);
    assert_eq!(Side::Below.keeps(None, 0.0), None, "one run tells nothing");
    let odd = [flow("a>b", "bulk", "")];
    let text = "goodput of flow a>b > 1 Mb/s";
    assert_eq!(
        Constraint::parse(text, &Origin::of_option("--bound", text), &odd).unwrap().asked.subject,
        "a>b"
    );
}

#[test]
fn an_unknown_name_is_answered_with_the_known_ones() {
    let words = |problem: Problem| format!("{problem} {}", problem.help.clone().unwrap_or_default());
    let of = words(asked("goodput of wob").unwrap_err());
    assert!(of.contains("no flow, kind or class \"wob\"") && of.contains("did you mean \"web\"?"), "{of}");
    assert!(of.contains("http, request-response, bulk, web, pages, calls, f2"), "{of}");
    assert!(words(asked("goodput of flow web").unwrap_err()).contains("no flow \"web\""));
    assert!(words(asked("goodput of ").unwrap_err()).contains("no flow, kind or class \"\""));
    let metric = words(asked("respons_p95 of web").unwrap_err());
    assert!(metric.contains("did you mean \"response_p95_s\""), "{metric}");
}

#[test]
fn a_metric_without_a_direction_is_no_objective() {
    let text = "hops_mean of f2";
    let written = hopline_scenario::Objective::of_options(Some(text), None);
    let problem = Objective::parse(&written, &mixed()).unwrap_err();
    assert!(problem.to_string().contains("`hops_mean` cannot decide"), "{problem}");
}

#[test]
fn a_constraint_needs_an_operator_and_a_unit() {
    let under = bound("delay_p95 of web < 50 ms").unwrap();
    assert_eq!((under.side, under.limit, under.asked.subject.as_str()), (Side::Below, 0.05, "web"));
    assert!(under.side.allows(0.049, under.limit) && !under.side.allows(0.05, under.limit));
    let over = bound("goodput of bulk >= 1.5 Mb/s").unwrap();
    assert_eq!((over.side, over.limit), (Side::AtLeast, 1.5e6));
    assert!(over.side.allows(1.5e6, over.limit) && !over.side.allows(1.4e6, over.limit));
    assert_eq!(bound("jain > 0.9").unwrap().limit, 0.9);
    assert_eq!(bound("packet_loss under 1e0%").unwrap().limit, 1.0);
}

#[test]
fn an_invalid_constraint_is_rejected() {
    for (text, why) in [
        ("delay_p95", "neither < nor >"),
        ("delay_p95 < fast", "no number"),
        ("delay_p95 < inf ms", "no number"),
        ("delay_p95 < 50", "has no unit: one of ms, s"),
        ("delay_p95 < 50 kb/s", "is not in \"kb/s\", but in ms, s"),
        ("jain > 0.9 ms", "has no unit, so \"ms\" does not belong there"),
        ("< 5 ms", "no run has a metric \"\""),
    ] {
        let problem = bound(text).unwrap_err().to_string();
        assert!(problem.contains(why), "{text}: {problem}");
    }
}

#[test]
fn the_default_objective_is_completion_time_or_response_time() {
    let usual = |flows: &[FlowEnds]| Objective::default_for(flows).asked.words();
    assert_eq!(usual(&[flow("f0", "bulk", "")]), "goodput");
    assert_eq!(usual(&[flow("f0", "http", "")]), "response p95");
    assert_eq!(usual(&[flow("f0", "cbr", "")]), "goodput");
    assert_eq!(usual(&mixed()), "goodput of bulk");
    assert_eq!(usual(&[flow("f0", "cbr", ""), flow("f1", "http", "")]), "response p95 of http");
    assert_eq!(usual(&[flow("f0", "cbr", ""), flow("f1", "on-off", "")]), "goodput of cbr");
    assert_eq!(usual(&[]), "goodput");
}

#[test]
fn an_objective_round_trips_through_its_file() {
    let written = hopline_scenario::Objective::of_options(
        Some("response_p95 of web"),
        Some("goodput of bulk > 100 kb/s"),
    );
    let question = Objective::parse(&written, &mixed()).unwrap();
    let text = serde_json::to_string(&question).unwrap();
    assert_eq!(serde_json::from_str::<Objective>(&text).unwrap(), question, "{text}");
}
