//! `hopline evaluate`.

use super::*;

#[test]
fn networks_and_requirements_are_listed_without_runs() {
    let text = stdout(&hopline(["evaluate", "--list"]));
    for word in
        ["crowd-32: ", "5.1.1 Protection against congestion collapse", "delay p95 of law: at most 60 ms"]
    {
        assert!(text.contains(word), "{word} is not in\n{text}");
    }
    let one = stdout(&hopline(["evaluate", "--list", "--section", "7.9"]));
    assert!(one.contains("rate-up: ") && !one.contains("crowd-32"), "{one}");
}

#[test]
fn an_algorithm_is_evaluated_beside_the_references_in_text_json_and_report() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("e.html");
    let args = ["evaluate", "reno", "--section", "slow", "--quick", "--quiet"];
    let text = stdout(&hopline(args.into_iter().chain(["--report", report.to_str().unwrap()])));
    assert!(
        text.contains("6.3      slow     goodput of law: at least 0.9 of the best reference  ✓ "),
        "{text}"
    );
    assert!(text.contains("QUICK"), "{text}");
    assert!(std::fs::read_to_string(&report).unwrap().contains("goodput of law: at least 0.9"));
    let json: Json = serde_json::from_str(&stdout(&hopline(args.into_iter().chain(["--json"])))).unwrap();
    let verdicts = json["networks"][0]["verdicts"].as_object().unwrap();
    assert_eq!(verdicts.keys().collect::<Vec<_>>(), ["bbr", "bbr3", "cubic", "reno"]);
}

#[test]
fn a_missed_requirement_is_exit_code_1_with_strict_alone() {
    let args = ["evaluate", "cubic", "--section", "bloat", "--quick", "--json", "--quiet"];
    assert_eq!(hopline(args).status.code(), Some(0));
    let strict = hopline(args.into_iter().chain(["--strict"]));
    assert_eq!(strict.status.code(), Some(1));
    assert!(stderr(&strict).contains("requirements missed on bloat"), "{}", stderr(&strict));
    let other = ["evaluate", "bbr", "--section", "bloat", "--quick", "--json", "--quiet", "--strict"];
    assert_eq!(hopline(other).status.code(), Some(0), "a reference that was not asked for may miss");
}

#[test]
fn wrong_names_are_refused_with_the_right_ones() {
    for (args, said) in [
        (["evaluate", "cubik"].as_slice(), "did you mean `cubic`?"),
        (&["evaluate", "own:Mine"], "the command has no user-defined algorithms"),
        (&["evaluate", "cubic", "--section", "9"], "there is no network or section `9`"),
        (&["evaluate", "cubic@tcp.windw=4", "--section", "slow"], "did you mean `window`?"),
        (&["evaluate", "cubic", "--plan", "missing.toml"], "missing.toml"),
        (&["evaluate"], "<LAW>"),
    ] {
        let output = hopline(args.iter().copied());
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()), "{args:?}");
        assert!(stderr(&output).contains(said), "{said}: {}", stderr(&output));
    }
}
