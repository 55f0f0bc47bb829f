//! `hopline compare`.

use super::*;

fn compare_chain(more: &[&str]) -> Output {
    compare_chain_over("3", more)
}

fn compare_chain_over(runs: &str, more: &[&str]) -> Output {
    let file = scenario("chain");
    let start = ["compare", file.to_str().unwrap(), "--set", "duration_s=2", "--runs", runs, "--no-report"];
    hopline(start.iter().chain(more))
}

#[test]
fn without_vary_the_sweep_of_the_scenario_is_compared() {
    let output = compare_chain(&[]);
    let text = stdout(&output);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "chain: 4 variants, 3 paired runs, seed 1; ± is the 95 % interval of the mean; the intervals of the 3 gains hold together with 95 % confidence"
    );
    assert!(lines[2].starts_with("variant ") && lines[2].ends_with("CPU s  fingerprint"), "{text}");
    let starts = ["tcp.window=2 ", "tcp.window=3 ", "tcp.window=8 ", "tcp.window=unclamped "];
    for (line, start) in lines[3..].iter().zip(starts) {
        assert!(line.starts_with(start), "{text}");
    }
    assert!(lines[3].contains("baseline") && !lines[4].contains("baseline"), "{text}");
    assert!(lines[8].contains("baseline tcp.window=2"), "the answer: {text}");
    assert_eq!(stderr(&output).as_str(), "");
}

#[test]
fn vary_replaces_the_sweep_and_combines() {
    let json = json(&compare_chain(&[
        "--vary",
        "transport=tcp-reno,tcp-sack",
        "--vary",
        "tcp.window=2,4",
        "--json",
    ]));
    let variants = json["variants"].as_array().unwrap();
    let labels: Vec<&str> = variants.iter().map(|v| v["variant"].as_str().unwrap()).collect();
    assert_eq!(labels[1..3], ["transport=tcp-reno tcp.window=4", "transport=tcp-sack tcp.window=2"]);
    assert_eq!((variants.len(), &json["runs"]), (4, &Json::from(3)));
    assert_eq!(
        keys(&variants[0]),
        [
            "asked",
            "baseline",
            "cpu_s",
            "failed",
            "fingerprint",
            "gain_bps",
            "gain_p",
            "gain_pct",
            "gain_per_pair_pct",
            "gain_sign_p",
            "goodput_bps",
            "metrics",
            "runs",
            "settings",
            "variant"
        ]
    );
    assert_eq!(variants[0]["runs"].as_array().unwrap().len(), 3);
    assert!(variants[0]["goodput_bps"]["interval"][1].as_f64() > variants[0]["goodput_bps"]["mean"].as_f64());
}

#[test]
fn fingerprints_do_not_depend_on_jobs() {
    let fingerprints = |jobs| {
        let json = json(&compare_chain(&["--json", "--jobs", jobs]));
        json["variants"].as_array().unwrap().iter().map(|v| v["fingerprint"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(fingerprints("1"), fingerprints("2"));
}

#[test]
fn a_run_of_a_comparison_equals_a_single_run() {
    let compared = json(&compare_chain(&["--vary", "tcp.window=3,8", "--json"]));
    let file = scenario("chain");
    let args = [
        "run",
        file.to_str().unwrap(),
        "--set",
        "duration_s=2",
        "--set",
        "tcp.window=8",
        "--run",
        "2",
        "--json",
    ];
    let alone = json(&hopline(args));
    let run = &compared["variants"][1]["runs"][1];
    assert_eq!((&run["fingerprint"], &run["flows"]), (&alone["fingerprint"], &alone["flows"]));
}

#[test]
fn one_run_has_no_interval_and_that_is_noted() {
    let text = stdout(&compare_chain_over("1", &[]));
    assert!(text.starts_with("chain: 4 variants, 1 paired run, seed 1; one run has no interval\n"), "{text}");
    assert!(!text.contains('±'), "{text}");
}

#[test]
fn verbose_lists_every_run() {
    let text = stdout(&compare_chain(&["-v"]));
    assert_eq!(text.lines().filter(|l| l.starts_with("tcp.window=3 ")).count(), 1 + 3, "{text}");
}

/// Runs `hopline compare` of the chain scenario for two seconds and two runs, in `folder`.
fn compare_in(folder: &Path, more: &[&str]) -> Output {
    let file = std::fs::canonicalize(scenario("chain")).unwrap();
    let start = ["compare", file.to_str().unwrap(), "--set", "duration_s=2", "--runs", "2"];
    command().current_dir(folder).args(start.iter().chain(more)).output().unwrap()
}

#[test]
fn a_report_is_written_beside_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let output = compare_in(folder.path(), &[]);
    assert!(stdout(&output).ends_with("\nreport in hopline-chain.html\n"), "{}", stdout(&output));
    assert_eq!(names(folder.path()), ["hopline-chain.html"]);
    let page = std::fs::read_to_string(folder.path().join("hopline-chain.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.len() < 1_000_000, "{}", page.len());
    for word in ["window=unclamped", "tcp.window = unclamped", "<svg", "hopline compare", "fingerprint"] {
        assert!(page.contains(word), "{word}");
    }
    compare_in(folder.path(), &["--report", "another.html"]);
    compare_in(folder.path(), &["--no-report"]);
    compare_in(folder.path(), &["--json"]);
    assert_eq!(names(folder.path()), ["another.html", "hopline-chain.html"]);
}

#[test]
fn a_file_that_is_no_report_is_not_replaced_and_nothing_is_run() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("hopline-chain.html"), "my homepage").unwrap();
    let output = compare_in(folder.path(), &[]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()));
    assert!(stderr(&output).contains("it is not a report of hopline"), "{}", stderr(&output));
    assert_eq!(std::fs::read_to_string(folder.path().join("hopline-chain.html")).unwrap(), "my homepage");
}

#[test]
fn a_stored_comparison_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let first = json(&compare_in(folder.path(), &["-o", "kept", "--json"]));
    assert_eq!(names(folder.path()), ["kept"]);
    let records = std::fs::read_to_string(folder.path().join("kept/records.jsonl")).unwrap();
    let again = json(&compare_in(folder.path(), &["-o", "kept", "--json"]));
    assert_eq!(first, again, "CPU seconds included: nothing was run again");
    assert_eq!(records, std::fs::read_to_string(folder.path().join("kept/records.jsonl")).unwrap());
    let other = compare_in(folder.path(), &["-o", "kept", "--vary", "tcp.window=5,6"]);
    assert_eq!(other.status.code(), Some(2));
    assert!(stderr(&other).contains("holds results of another plan"), "{}", stderr(&other));
}

#[test]
fn the_objective_comes_first_in_the_table_and_the_conclusion() {
    let file = scenario("web");
    let output = hopline([
        "compare",
        file.to_str().unwrap(),
        "--set=duration_s=30",
        "--runs=3",
        "--no-report",
        "--vary=flow.2.tcp.window=16,2",
        "--metric=response_p95 of http",
        "--bound=goodput of bulk > 1 kb/s",
    ]);
    let text = stdout(&output);
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let head = one_line(text.lines().nth(2).unwrap());
    assert!(head.starts_with("variant response p95 of http ms change % goodput of bulk kb/s"), "{text}");
    assert!(one_line(&text).contains("Of those that keep goodput of bulk above 1 kb/s"), "{text}");
    let unknown = hopline(["compare", file.to_str().unwrap(), "--metric=response_p95 of htp", "--no-report"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("did you mean \"http\"?"), "{}", stderr(&unknown));
}

#[test]
fn an_animated_part_changes_no_result() {
    let folder = tempfile::tempdir().unwrap();
    let still = json(&compare_in(folder.path(), &["--json", "--report", "still.html"]));
    let alive = json(&compare_in(folder.path(), &["--json", "--report", "a.html", "--animate", "500ms..1s"]));
    let fingerprints = |json: &Json| {
        let variants = json["variants"].as_array().unwrap().iter();
        variants.map(|v| v["fingerprint"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(fingerprints(&alive), fingerprints(&still));
    let page = |name| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(page("a.html").contains("Shown: 0.5 s to 1 s of run 1."));
    let variants = alive["variants"].as_array().unwrap().len();
    assert_eq!(page("a.html").matches("application/octet-stream\">").count(), variants);
    assert!(!page("still.html").contains("class=\"alive\""));
}

#[test]
fn a_scenario_may_request_an_animation() {
    let folder = tempfile::tempdir().unwrap();
    compare_in(folder.path(), &["--report", "a.html", "--set", "animation.to_s=1"]);
    let page = std::fs::read_to_string(folder.path().join("a.html")).unwrap();
    assert!(page.contains("Shown: 0 s to 1 s of run 1."));
    compare_in(folder.path(), &["--report", "a.html", "--set", "animation.to_s=1", "--animate", "1s.."]);
    let page = std::fs::read_to_string(folder.path().join("a.html")).unwrap();
    assert!(page.contains("Shown: 1 s to 2 s of run 1."), "the option goes over it");
}

#[test]
fn a_part_beyond_the_run_is_rejected_before_any_run() {
    for (window, said) in [
        ("2s..3s", "--animate: it begins at 2 s, and the run ends at 2 s"),
        ("1s..1s", "nothing is left to play"),
        ("soon", "it takes FROM..TO, for example 20s..40s"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let output = compare_in(folder.path(), &["--report", "a.html", "--animate", window]);
        assert_eq!(output.status.code(), Some(2), "{window}");
        assert!(stderr(&output).contains(said), "{window}: {}", stderr(&output));
        assert!(!folder.path().join("a.html").exists());
    }
    let nowhere = compare_chain_over("1", &["--json", "--animate", "0s..1s"]);
    assert_eq!(nowhere.status.code(), Some(2), "a report is what it is for: {}", stderr(&nowhere));
}

#[test]
fn a_key_that_is_both_set_and_varied_is_rejected() {
    for (more, part) in [
        (&["--set", "tcp.window=8"][..], "`[sweep]` of the scenario sets `tcp.window`"),
        (&["--set", "tcp.window=8", "--vary", "tcp.window=2,4"], "`--vary` sets `tcp.window`"),
        (&["--vary", "runs=2,4"], "`--vary` sets `runs`"),
    ] {
        let output = compare_chain(more);
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()), "{more:?}");
        assert!(stderr(&output).contains(part), "{more:?}: {}", stderr(&output));
    }
}
