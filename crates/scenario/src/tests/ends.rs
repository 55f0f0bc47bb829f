//! Ends of flows.

use super::*;
use std::collections::BTreeSet;

/// Twenty nodes somewhere, and a flow that says `flow`.
fn random(flow: &str) -> String {
    format!(
        "duration_s = 10\n[radio]\n[nodes]\nlayout = \"random\"\ncount = 20\nwidth_m = 500\nheight_m = 500\n[[flow]]\n{flow}\n"
    )
}

fn pairs(text: &str, run: u64) -> Vec<(u32, u32)> {
    let spec = parse(text, &[]).and_then(|s| s.spec(run)).unwrap_or_else(|problems| panic!("{problems}"));
    spec.flows.iter().map(|flow| (flow.src.0, flow.dst.0)).collect()
}

fn problem(text: &str, settings: &[&str]) -> String {
    parse(text, settings).expect_err("this is wrong").to_string()
}

#[test]
fn pairs_are_drawn_for_each_run_and_are_distinct() {
    let text = random("pairs = 100\nkind = \"cbr\"\nrate_kbps = 8");
    let first = pairs(&text, 1);
    assert_eq!(first.len(), 100);
    assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), 100);
    assert!(first.iter().all(|(src, dst)| src != dst && *src < 20 && *dst < 20));
    assert_eq!(first, pairs(&text, 1));
    assert_ne!(first, pairs(&text, 2));
    let all = pairs(&random("pairs = 380"), 1);
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 380, "every pair there is");
}

#[test]
fn pairs_carry_any_traffic_and_may_start_one_after_the_other() {
    let spec = spec(&random("pairs = 3\nkind = \"http\"\ntransport = \"tcp-sack\"\nstart_jitter_s = 5"), &[]);
    assert!(spec.flows.iter().all(|flow| matches!(flow.traffic, Traffic::Exchange { .. })));
    assert!(spec.flows.iter().all(|flow| flow.labels.transport == "tcp-sack"));
    let starts: BTreeSet<Instant> = spec.flows.iter().map(|flow| flow.start).collect();
    assert_eq!(starts.len(), 3);
    assert!(starts.iter().all(|start| *start <= Instant::from_secs(5)));
}

#[test]
fn pairs_are_named_by_number() {
    let text =
        random("pairs = 2\nname = \"call-\"\n[[flow]]\nsrc = \"n0\"\ndst = \"n1\"\n[[flow]]\npairs = 1");
    let names: Vec<String> = spec(&text, &[]).flows.into_iter().map(|flow| flow.name).collect();
    assert_eq!(names, ["call-0", "call-1", "f2", "f3"]);
    let twice = random("pairs = 2\nname = \"a\"\n[[flow]]\nsrc = \"n0\"\ndst = \"n1\"\nname = \"a1\"");
    assert!(problem(&twice, &[]).contains("a second flow named `a1`"));
}

#[test]
fn other_flows_do_not_change_the_drawn_pairs() {
    let alone = pairs(&random("pairs = 5"), 1);
    assert_eq!(alone, pairs(&random("pairs = 5\nkind = \"cbr\"\nrate_kbps = 8"), 1));
    let more = pairs(&random("pairs = 9"), 1);
    assert_eq!(alone, more[..5], "more pairs are more, not others");
    let two = pairs(&random("pairs = 5\n[[flow]]\npairs = 5"), 1);
    assert_eq!(alone, two[..5]);
    assert_ne!(two[..5], two[5..]);
}

#[test]
fn a_given_end_is_that_of_all_pairs() {
    let to_all = pairs(&random("pairs = 19\nsrc = \"n3\""), 1);
    assert!(to_all.iter().all(|(src, _)| *src == 3));
    assert_eq!(to_all.iter().map(|(_, dst)| dst).collect::<BTreeSet<_>>().len(), 19);
    let from_some = pairs(&random("pairs = 4\ndst = \"last\""), 1);
    assert!(from_some.iter().all(|(src, dst)| *dst == 19 && *src != 19));
}

#[test]
fn impossible_pairs_are_rejected() {
    let wrong = |flow: &str| problem(&random(flow), &[]);
    assert!(
        wrong("pairs = 381").contains("381 different pairs, where there are 380"),
        "{}",
        wrong("pairs = 381")
    );
    assert!(wrong("pairs = 20\nsrc = \"n0\"").contains("20 different pairs, where there are 19"));
    assert!(wrong("pairs = 1\nsrc = \"n0\"\ndst = \"n1\"").contains("remove src, dst or pairs"));
    assert!(wrong("pairs = 0").contains("`flow.0.pairs` = 0 is out of range"));
    assert!(wrong("name = \"x\"").contains("a flow without `src`"));
    let alone = problem(&random("pairs = 1"), &["nodes.count=1"]);
    assert!(alone.contains("1 different pairs, where there are 0"), "{alone}");
}

#[test]
fn last_selects_the_last_node_for_any_number_of_nodes() {
    let text = CHAIN.replace("dst = \"n2\"", "dst = \"last\"");
    for count in [2, 3, 9] {
        assert_eq!(spec(&text, &[&format!("nodes.count={count}")]).flows[0].dst, NodeId(count - 1));
    }
    assert!(problem(&text, &["nodes.count=1"]).contains("a flow from a node to itself"));
    let with_another = format!("{text}[[node]]\nname = \"far\"\nx_m = 900\n");
    assert_eq!(spec(&with_another, &[]).flows[0].dst, NodeId(3));
}

#[test]
fn a_node_named_last_is_selected_by_its_name() {
    let text = CHAIN.replace("dst = \"n2\"", "dst = \"last\"");
    let text = format!("{text}[[node]]\nname = \"last\"\nx_m = 600\n[[node]]\nname = \"far\"\nx_m = 900\n");
    assert_eq!(spec(&text, &[]).flows[0].dst, NodeId(3));
}

#[test]
fn an_end_by_position_is_the_nearest_node_other_than_the_other_end() {
    // n0, n1 and n2 stand at 0, 200 and 400 m.
    let to = |dst: &str| {
        let flow = spec(&CHAIN.replace("\"n2\"", dst), &[]).flows.remove(0);
        (flow.src.0, flow.dst.0)
    };
    assert_eq!(to("{ x_m = 310, y_m = -50 }"), (0, 2));
    assert_eq!(to("{ x_m = 290, y_m = 50 }"), (0, 1));
    assert_eq!(to("{ x_m = 300, y_m = 0 }"), (0, 1), "of two the first");
    assert_eq!(to("{ x_m = -100, y_m = 0 }"), (0, 1), "n0 sends");
    let both = CHAIN.replace("\"n0\"", "{ x_m = 390, y_m = 0 }").replace("\"n2\"", "{ x_m = 400, y_m = 0 }");
    let flow = spec(&both, &[]).flows.remove(0);
    assert_eq!((flow.src.0, flow.dst.0), (2, 1));
    let from = spec(&CHAIN.replace("\"n0\"", "{ x_m = 500, y_m = 0 }"), &[]).flows.remove(0);
    assert_eq!((from.src.0, from.dst.0), (1, 2));
}

#[test]
fn a_position_is_x_and_y() {
    let wrong = |dst: &str| problem(&CHAIN.replace("\"n2\"", dst), &[]);
    assert!(wrong("{ x_m = 1 }").contains("`flow.0.dst` has no `y_m`"));
    assert!(wrong("{ x = 1, y_m = 2 }").contains("unknown key `x` in `flow.0.dst`"));
    assert!(wrong("[1, 2]").contains("`flow.0.dst` takes a string, or a table, not a list"));
    let set = parse(CHAIN, &["flow.0.dst={ x_m = 200, y_m = 0 }"]).unwrap().spec(1).unwrap();
    assert_eq!(set.flows[0].dst, NodeId(1));
    assert!(problem(CHAIN, &["nodes.count=1", "flow.0.dst={ x_m = 200, y_m = 0 }"]).contains("to itself"));
}
