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
        text.contains("6.3      slow     goodput of law: at least 0.9 of the best reference  = "),
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
        (&["evaluate", "cubic", "--section", "7.6"], "no network is about section `7.6`: "),
        (&["evaluate", "cubic", "--section", ""], "there is no network or section ``"),
        (&["evaluate", "cubic@seed=2"], "`seed` is no parameter of an algorithm"),
        (&["evaluate", "--list", "--json"], "'--json'"),
        (&["evaluate", "cubic", "--runs", "0"], "a whole number from 1"),
        (&["evaluate"], "<LAW>"),
    ] {
        let output = hopline(args.iter().copied());
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()), "{args:?}");
        assert!(stderr(&output).contains(said), "{said}: {}", stderr(&output));
    }
}

#[test]
fn the_examples_of_the_help_name_networks_that_exist() {
    let help = stdout(&hopline(["evaluate", "--help"]));
    let examples: Vec<&str> =
        help.lines().filter_map(|line| line.strip_prefix("  hopline evaluate ")).collect();
    assert!(examples.len() >= 4, "{help}");
    for example in examples {
        let words = example
            .split(" | ")
            .next()
            .unwrap_or_default()
            .split(' ')
            .filter(|word| !["--json", "--list"].contains(word));
        let output = hopline(["evaluate", "--list"].into_iter().chain(words));
        assert_eq!(output.status.code(), Some(0), "{example}: {}", stderr(&output));
    }
}

#[test]
fn without_a_value_strict_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = "duration_s = 1\n[[node]]\nname = \"l\"\n[[node]]\nname = \"r\"\n[[link]]\na = \"l\"\nb = \"r\"\n\
        rate_mbps = 1\ndelay_ms = 1\n[[flow]]\nclass = \"law\"\nsrc = \"l\"\ndst = \"r\"\n";
    let plan = "title = \"t\"\nreferences = [\"cubic\"]\n[[network]]\nid = \"one\"\nclause = \"1\"\ntitle = \"t\"\n\
        scenario = \"s.toml\"\n[[network.criterion]]\nmetric = \"jain\"\nat_least = \"0.5\"\n";
    std::fs::write(folder.path().join("s.toml"), scenario).unwrap();
    std::fs::write(folder.path().join("e.toml"), plan).unwrap();
    let plan = folder.path().join("e.toml");
    let strict =
        hopline(["evaluate", "reno", "--strict", "--json", "--quiet", "--plan", plan.to_str().unwrap()]);
    assert_eq!(strict.status.code(), Some(1));
    assert!(
        stderr(&strict).contains("no value on one") && !stderr(&strict).contains("missed"),
        "{}",
        stderr(&strict)
    );
}
