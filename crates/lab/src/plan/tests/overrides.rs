//! Overrides that would have no effect, or an effect on the baseline.

use super::*;

const VARIANTS: &str = "\
scenario = \"two-hops.toml\"
runs = 4
[set]
\"tcp.window\" = 4
[zip]
\"tcp.mss_bytes\" = [500, 1000]
[grid]
\"nodes.count\" = [3, 4]
[[variant]]
name = \"drop tail\"
[[variant]]
name = \"NRED\"
set = { \"neighborhood_red.share\" = 1, \"mac.short_retry_limit\" = 4 }
grid = { \"neighborhood_red.suffering_share\" = [0.3, 0.4] }
";

fn with(settings: &[&str]) -> Result<Plan, Problems> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("two-hops.toml"), TWO_HOPS).unwrap();
    let over: Vec<Setting> = settings.iter().map(|text| Setting::parse("--set", text).unwrap()).collect();
    Plan::parse(&source("plan.toml", VARIANTS), folder.path(), "plan", &over, Effort::Full)
}

/// Returns the plan with the settings of a reading applied.
fn read(settings: &[&str]) -> Plan {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("two-hops.toml"), TWO_HOPS).unwrap();
    fs::write(folder.path().join("plan.toml"), VARIANTS).unwrap();
    let reading: Vec<Setting> =
        settings.iter().map(|text| Setting::parse("the reading", text).unwrap()).collect();
    let over = Overrides { reading: &reading, user: &[] };
    Plan::load_over(
        &folder.path().join("plan.toml"),
        over,
        Effort::Full,
        Purpose::Simulation(CustomAlgorithms::default()),
    )
    .unwrap()
}

fn refused(setting: &str) -> String {
    with(&[setting]).unwrap_err().to_string()
}

#[test]
fn a_key_that_a_part_of_the_plan_sets_is_rejected_with_its_position() {
    for (setting, setter) in [
        ("neighborhood_red.share=0.5", "the variant \"NRED\" sets `neighborhood_red.share` (plan.toml:13:9)"),
        ("mac.short_retry_limit=7", "the variant \"NRED\" sets"),
        ("neighborhood_red.suffering_share=0.5", "`grid` of the variant \"NRED\" sets"),
        ("tcp.mss_bytes=700", "`[zip]` of the plan sets"),
        ("flow.0.tcp.mss_bytes=700", "`[zip]` of the plan sets `tcp.mss_bytes`"),
        ("nodes.count=5", "`[grid]` of the plan sets"),
        ("runs=9", "the plan sets `runs`"),
        ("nodes=5", "`[grid]` of the plan sets `nodes.count`"),
    ] {
        let refused = refused(setting);
        let key = setting.split('=').next().unwrap();
        assert!(
            refused.starts_with(&format!("--set {setting}: `{key}` cannot be set at every point")),
            "{refused}"
        );
        assert!(refused.contains(setter) && refused.contains("leave it out"), "{refused}");
    }
}

#[test]
fn a_key_that_would_switch_on_a_mechanism_of_some_variants_is_rejected() {
    let refused = refused("neighborhood_red.max_probability=0.3");
    assert!(
        refused.contains("the variant \"NRED\" has `neighborhood_red`, and \"drop tail\" would get it, too"),
        "{refused}"
    );
}

#[test]
fn a_key_is_rejected_if_flows_of_a_variant_set_it() {
    let text =
        format!("{VARIANTS}[[variant]]\nname = \"DOOR\"\nset = {{ \"flow.0.transport\" = \"tcp-door\" }}\n");
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("two-hops.toml"), TWO_HOPS).unwrap();
    let over = [Setting::parse("--set", "transport=tcp-sack").unwrap()];
    let plan = Plan::parse(&source("plan.toml", &text), folder.path(), "plan", &over, Effort::Full);
    let refused = plan.unwrap_err().to_string();
    assert!(refused.contains("the variant \"DOOR\" sets `flow.0.transport`"), "{refused}");
}

#[test]
fn a_reading_does_not_switch_on_a_mechanism_of_some_variants() {
    let plan = read(&["neighborhood_red.flow_memory_s=1", "tcp.window=7"]);
    for point in &plan.points {
        let written = point.scenario.as_written();
        let memory = written.pointer("/neighborhood_red/flow_memory_s");
        assert_eq!(memory.is_some(), point.variant.as_deref() == Some("NRED"), "{}", point.label);
        assert_eq!(written["tcp"]["window"], 7, "what is no switch holds at every point");
    }
    assert_ne!(plan.identity(), read(&["tcp.window=7"]).identity());
    let shares = |plan: Plan| plan.points.iter().filter_map(share).collect::<Vec<_>>();
    let share = read(&["neighborhood_red.suffering_share=1"]);
    assert_eq!(shares(share), shares(read(&[])), "a variant's own settings win, as over the plan");
}

/// Returns the share of the channel below which a node of the point counts as suffering.
fn share(point: &Point) -> Option<String> {
    point.scenario.as_written().pointer("/neighborhood_red/suffering_share").map(ToString::to_string)
}

#[test]
fn other_keys_are_set_at_every_point_and_override_the_plan() {
    // `[mac]` is set in one variant only, but there is a MAC with or without it.
    let plan = with(&[
        "tcp.window=7",
        "flow.0.tcp.initial_window=3",
        "mac.long_retry_limit=5",
        "tcp.preset=linux",
        "seed=9",
    ])
    .unwrap();
    assert!(plan.points.iter().all(|point| {
        let written = point.scenario.as_written();
        (&written["tcp"]["window"], &written["mac"]["long_retry_limit"]) == (&7.into(), &5.into())
    }));
    assert!(plan.points.iter().any(|point| point.scenario.as_written().get("neighborhood_red").is_none()));
}

#[test]
fn a_key_that_is_varied_and_set_by_an_option_is_rejected() {
    let set = [Setting::parse("--set", "tcp.window=7").unwrap()];
    let refused = |axes: &[Axis]| reject_varied(&set, axes).map_err(|problem| problem.to_string());
    assert_eq!(refused(&[parse_vary("tcp.mss_bytes=500,1000").unwrap()]), Ok(()));
    let vary = refused(&[parse_vary("tcp.window=2,8").unwrap()]).unwrap_err();
    assert!(vary.contains("`--vary` sets `tcp.window`") && vary.contains("one of the two"), "{vary}");
    let sweep = scenario(&format!("{TWO_HOPS}[sweep]\ntcp.window = [2, 8]\n")).sweep().unwrap();
    let sweep = refused(&sweep).unwrap_err();
    assert!(sweep.contains("`[sweep]` of the scenario sets `tcp.window` (test.toml:"), "{sweep}");
}
