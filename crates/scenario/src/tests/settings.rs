//! `--set`, `--vary` and `[sweep]`.

use super::*;
use hopline_sim::spec::FailureNotification;

fn problem(setting: &str) -> String {
    parse(CHAIN, &[setting]).expect_err("this is wrong").to_string()
}

#[test]
fn route_failures_are_notified_if_configured() {
    let of = |settings: &[&str]| spec(CHAIN, settings).failure_notification;
    assert_eq!(of(&[]), FailureNotification::None);
    assert_eq!(of(&["routing.failure_notification=elfn"]), FailureNotification::Elfn);
    assert_eq!(of(&["routing.failure_notification=none"]), FailureNotification::None);
}

#[test]
fn a_setting_reaches_into_lists_and_creates_missing_tables() {
    let spec = spec(CHAIN, &["flow.0.start_s=2", "flow.0.tcp.window=5", "tcp.preset=ns2-2.35"]);
    assert_eq!(spec.flows[0].start, Instant::from_secs(2));
    assert_eq!(tcp(&spec, 0).window_clamp(), Some(5));
    assert_eq!(tcp(&spec, 0).rto().initial(), Duration::from_secs(3));
}

#[test]
fn the_last_of_two_settings_wins() {
    assert_eq!(tcp(&spec(CHAIN, &["tcp.window=5", "tcp.window=6"]), 0).window_clamp(), Some(6));
}

#[test]
fn words_may_be_quoted_or_not() {
    for text in ["transport=tcp-sack", "transport=\"tcp-sack\"", " transport = tcp-sack "] {
        assert!(matches!(tcp(&spec(CHAIN, &[text]), 0).variant(), Variant::Sack(_)), "{text}");
    }
}

#[test]
fn invalid_settings_are_reported_as_given() {
    assert_eq!(
        problem("tcp.window=0"),
        "--set tcp.window=0: `tcp.window` = 0 is out of range \
         (it takes a whole number from 1 to 1048576, or \"unclamped\")"
    );
    assert_eq!(
        problem("tcp.widnow=8"),
        "--set tcp.widnow=8: unknown key `widnow` in `tcp` (did you mean `window`?)"
    );
    assert_eq!(
        problem("flow.1.start_s=2"),
        "--set flow.1.start_s=2: `flow` has no entry `1` (its entries are numbered 0 to 0)"
    );
    assert_eq!(
        problem("duration_s.x=2"),
        "--set duration_s.x=2: `duration_s` is a whole number; it has no key `x`"
    );
    assert_eq!(
        problem("flow.0.dst=n7"),
        "--set flow.0.dst=n7: there is no node `n7` (did you mean `n0`? the nodes are n0, n1, n2)"
    );
}

#[test]
fn a_setting_has_the_form_key_equals_value() {
    for text in ["", "seed", "=3", " =3"] {
        let problem = Setting::parse("--set", text).unwrap_err();
        assert!(problem.message.contains("not of the form key=value"), "{problem}");
    }
}

#[test]
fn an_option_is_named_in_its_errors() {
    let wrong =
        parse(CHAIN, &[]).unwrap().with(&[Setting::of_option("--seed", "seed", u64::MAX)]).unwrap_err();
    assert!(
        wrong.to_string().starts_with("--seed 18446744073709551615: `seed` takes a whole number"),
        "{wrong}"
    );
}

#[test]
fn vary_splits_at_commas() {
    let axis = parse_vary("tcp.window=2, 3,unclamped").unwrap();
    let texts: Vec<_> = axis.iter().map(|s| format!("{}={}", s.path, s.text())).collect();
    assert_eq!(texts, ["tcp.window=2", "tcp.window=3", "tcp.window=unclamped"]);
    assert_eq!(axis[1].node.origin.span, 14..15);
    assert!(parse_vary("tcp.window").is_err());
}

#[test]
fn a_sweep_keeps_the_order_of_the_file_and_may_be_nested() {
    let text =
        CHAIN.to_owned() + "[sweep]\ntransport = [\"tcp-reno\", \"tcp-sack\"]\nmac.cw_min = [15, 31]\n";
    let axes = parse(&text, &[]).unwrap().sweep().unwrap();
    let paths: Vec<_> = axes.iter().map(|axis| (axis[0].path.as_str(), axis.len())).collect();
    assert_eq!(paths, [("transport", 2), ("mac.cw_min", 2)]);
}

#[test]
fn an_overlong_path_is_rejected() {
    let path = vec!["a"; 100_000].join(".");
    let problems = parse(CHAIN, &[&format!("{path}=1")]).unwrap_err();
    assert_eq!(problems.0[0].message, "a path of 100000 keys");
}
