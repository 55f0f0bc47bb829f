//! `hopline reproduce`.

use super::*;

#[test]
fn papers_figures_and_claims_are_listed() {
    let text = stdout(&hopline(["reproduce", "--list"]));
    for word in ["tpa: ", "nred: ", "door: "] {
        assert!(text.contains(word), "{word} is not in\n{text}");
    }
    let one = stdout(&hopline(["reproduce", "nred", "--list"]));
    assert!(one.starts_with("nred: ") && !one.contains("tpa: "), "{one}");
    let folder = papers();
    let mine = stdout(&reproduce(folder.path(), &["--list"]));
    assert!(mine.contains("cannot be judged yet: X-3"), "{mine}");
}

#[test]
fn an_unknown_paper_or_figure_is_rejected_with_the_available_ones() {
    for (args, known) in [(["reproduce", "tap"], "the papers are"), (["reproduce", "tpa/"], "the papers are")]
    {
        let output = hopline(args);
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()));
        assert!(stderr(&output).contains(known) && stderr(&output).contains("tpa"), "{}", stderr(&output));
    }
    let output = hopline(["reproduce", "tpa", "chian"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("tpa has no figure `chian`"), "{}", stderr(&output));
    let near = stderr(&hopline(["reproduce", "snoop", "error"]));
    assert!(near.contains("did you mean `errors`?"), "{near}");
    let beside = hopline(["reproduce", "snoop", "handoffs", "--explain", "Z-4a"]);
    assert_eq!(beside.status.code(), Some(2));
    assert!(stderr(&beside).contains("leave the figure out"), "{}", stderr(&beside));
}

const AXIS: &str = "\
[[axis]]
id = \"acks\"
words = \"§2 does not say\"
[[axis.reading]]
name = \"delayed\"
[[axis.reading]]
name = \"at once\"
set = { \"tcp.delayed_ack_ms\" = \"off\" }
";

const CLAIMS: &str = "\
paper = \"Somebody, Something, Somewhere 2003\"
rule = { tolerance_pct = 20, widest_pct = 50 }

[[figure]]
id = \"windows\"
title = \"Windows over a chain\"
plan = \"windows.toml\"

[[claim]]
id = \"X-1\"
figure = \"windows\"
statement = \"a small window is no worse\"
metric = \"aggregate_goodput_bps\"
point = { \"tcp.window\" = 2 }
above = 1000

[[claim]]
id = \"X-2\"
figure = \"windows\"
statement = \"a small window carries a gigabit\"
metric = \"aggregate_goodput_bps\"
point = { \"tcp.window\" = 2 }
above = 1e9

[[claim]]
id = \"X-3\"
statement = \"TPA is better still\"
needs = \"TPA\"
";

/// Returns a folder of papers with one paper, `mine`.
fn papers() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mine = folder.path().join("papers/mine");
    std::fs::create_dir_all(&mine).unwrap();
    std::fs::copy(scenario("chain"), mine.join("chain.toml")).unwrap();
    let plan = "scenario = \"chain.toml\"\nruns = 6\n[set]\nduration_s = 2\n[grid]\ntcp.window = [2, 8]\n";
    std::fs::write(mine.join("windows.toml"), plan).unwrap();
    std::fs::write(mine.join("claims.toml"), CLAIMS).unwrap();
    folder
}

#[test]
fn random_networks_are_equal_for_equal_seeds() {
    let run = |seed: &str| {
        let args = ["reproduce", "wide", "draws", "--networks", "1", "--seed", seed, "-q"];
        stdout(&hopline(args))
    };
    let (one, again, other) = (run("9"), run("9"), run("10"));
    assert!(one.starts_with("1 random network of seed 9\n") && one.contains("000-steady"), "{one}");
    assert_eq!(one, again);
    assert_ne!(one.replace("seed 9", ""), other.replace("seed 10", ""));
    assert!(stdout(&hopline(["reproduce", "wide", "--list"])).contains("draws"));
}

#[test]
fn random_networks_leave_a_directory_with_files_alone() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("000-steady.toml");
    std::fs::write(&own, "mine").unwrap();
    let directory = folder.path().to_string_lossy().into_owned();
    let output = hopline(["reproduce", "wide", "draws", "--networks", "1", "-q", "-o", &directory]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("add --force"), "{}", stderr(&output));
    assert_eq!(std::fs::read_to_string(&own).unwrap(), "mine");
}

#[test]
fn options_of_random_networks_are_refused_elsewhere() {
    for option in [["--seed", "7"], ["--networks", "3"], ["--law", "reno"], ["--traces", "."]] {
        let output = hopline([&["reproduce", "wide", "two"][..], &option].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("is for random networks only"), "{}", stderr(&output));
    }
    let output = hopline(["reproduce", "wide", "draws", "--readings"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("have no claims"), "{}", stderr(&output));
    let near = stderr(&hopline(["reproduce", "wide", "drws"]));
    assert!(near.contains("did you mean `draws`"), "{near}");
    let output = hopline(["reproduce", "wide", "draws", "--law", "cubik"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("did you mean `cubic`"), "{}", stderr(&output));
}

/// Returns a folder with two traces of link rates, in `traces`.
fn traces() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("traces")).unwrap();
    std::fs::write(folder.path().join("traces/b.trace"), "1\n2\n4\n").unwrap();
    std::fs::write(folder.path().join("traces/a b.csv"), "time_s,rate_mbps\n0,2\n1,8\n").unwrap();
    folder
}

/// Runs `hopline reproduce wide draws -q` with more options, in `folder`.
fn draws(folder: &Path, more: &[&str]) -> Output {
    let start = ["reproduce", "wide", "draws", "-q"];
    command().current_dir(folder).args(start.iter().chain(more)).output().unwrap()
}

#[test]
fn scenarios_of_random_networks_with_traces_run_on_their_own() {
    let folder = traces();
    let options = ["--networks", "6", "--set", "duration_s=2", "--set", "warmup_s=0", "--traces", "traces"];
    let output = draws(folder.path(), &[&options[..], &["-o", "kept"]].concat());
    let text = stdout(&output);
    assert!(
        text.starts_with("6 random networks of seed 1, 1 of them with rates from 2 trace files\n"),
        "{text}{}",
        stderr(&output)
    );
    let ratios = text.lines().skip_while(|line| !line.starts_with("of BBR, on networks that vary")).nth(2);
    assert!(ratios.is_some_and(|row| row.starts_with("bbr ") && row.contains(" 1.00 ")), "{text}");
    let kept = std::fs::read_to_string(folder.path().join("kept/draws.json")).unwrap();
    let kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(kept["traces"], serde_json::json!({"files": 2, "networks": 1}));
    let used = kept["networks"][5]["trace"]["file"].as_str().unwrap();
    assert_eq!(kept["networks"][4]["trace"], serde_json::Value::Null);
    let copies: Vec<_> = std::fs::read_dir(folder.path().join("kept/traces")).unwrap().collect();
    assert_eq!(copies.len(), 1, "the used one alone");
    let moved = tempfile::tempdir().unwrap();
    std::fs::rename(folder.path().join("kept"), moved.path().join("there")).unwrap();
    drop(folder);
    let there = moved.path().join("there");
    assert!(there.join("traces").join(used).exists(), "{used}");
    let run = command()
        .current_dir(moved.path())
        .args(["run", "there/005-cellular.toml", "--set", "duration_s=2", "-qo", "run"])
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(0), "{}", stderr(&run));
    let manifest = std::fs::read_to_string(moved.path().join("run/manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["named_files"][0]["file"], format!("there/traces/{used}"));
    assert_eq!(manifest["named_files"][0]["sha256"].as_str().unwrap().len(), 64);
}

#[test]
fn a_comparison_in_place_of_another_leaves_none_of_its_scenarios() {
    let folder = tempfile::tempdir().unwrap();
    let quick = ["--set", "duration_s=2", "--set", "warmup_s=0", "-o", "kept", "--networks"];
    for (more, networks) in [(&["3"][..], 3), (&["1", "--force"], 1)] {
        let output = draws(folder.path(), &[&quick[..], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let names = std::fs::read_dir(folder.path().join("kept")).unwrap().map(|e| e.unwrap().file_name());
        let scenarios = names.filter(|name| name.to_string_lossy().ends_with(".toml")).count();
        assert_eq!(scenarios, networks);
    }
    let output = draws(folder.path(), &["--networks", "1", "--law", "reno", "--law", "cubic"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--law cubic: it is compared already"), "{}", stderr(&output));
}

#[test]
fn folders_of_traces_that_are_wrong_are_refused_before_anything_is_written() {
    let folder = traces();
    let options = |traces| ["--networks", "1", "--traces", traces, "-o", "kept"];
    for (traces, expected) in [("none", "there is no such folder"), ("empty", "a folder without files")] {
        std::fs::create_dir_all(folder.path().join("empty")).unwrap();
        let output = draws(folder.path(), &options(traces));
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
    std::fs::write(folder.path().join("traces/z.csv"), "time_s,rate_mbps\n0,x\n").unwrap();
    let output = draws(folder.path(), &options("traces"));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("z.csv:2:3"), "{}", stderr(&output));
    assert!(!folder.path().join("kept").exists());
}

#[test]
fn controllers_of_quic_run_on_random_networks_in_builds_that_have_them() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["--networks", "1", "--set", "duration_s=2", "--law", "quic-bbr"];
    let output = draws(folder.path(), &options);
    // Cargo may have built the lab with the feature for another package, so the command's own features do not tell.
    if output.status.code() == Some(2) {
        let expected = "no congestion control algorithm `quic-bbr`";
        return assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("\nquic-bbr "), "{}", stdout(&output));
}

fn reproduce(folder: &Path, more: &[&str]) -> Output {
    let start = ["reproduce", "mine", "--papers", "papers"];
    command().current_dir(folder).args(start.iter().chain(more)).output().unwrap()
}

#[test]
fn claims_are_listed_with_measurements_verdicts_and_the_rule() {
    let folder = papers();
    // One job: with more, the number of finished runs when each point has one would depend on chance.
    let output = reproduce(folder.path(), &["--jobs", "1"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let row =
        |id: &str| text.lines().find(|line| line.starts_with(id)).unwrap_or_else(|| panic!("{id}: {text}"));
    assert!(row("X-1 ").contains("agrees"), "{text}");
    assert!(row("X-2 ").contains("differs"), "{text}");
    assert!(row("X-3 ").contains("cannot be judged: needs TPA"), "{text}");
    assert!(text.contains("± 20 %") && text.contains("Somebody, Something"), "{text}");
    assert!(!text.contains("QUICK") && text.contains("6 paired runs"), "{text}");
    let counts =
        "signs and ranges of the paper: 1 of 2 agree (0 direction only, 1 differs, 0 cannot be judged)";
    let headline = "Of the paper's 3 claims about its system 2 are tested: 1 of them hold. Undecided: 0. \
                    Not testable, as they come out the same with the system switched off or cannot be measured: 1.";
    assert!(text.ends_with(&format!("\n{counts}\n\n{headline}\n\nreport in hopline-mine.html\n")), "{text}");
    let said = stderr(&output);
    assert!(said.contains("windows: 2 points, 12 runs, 0.0 h of virtual time"), "{said}");
    assert!(
        said.contains("windows: a run takes ") && said.contains(" s of CPU time; the 10 to go"),
        "{said}"
    );
    assert_eq!(stderr(&reproduce(folder.path(), &["-q"])), "", "quiet is quiet");
    let page = std::fs::read_to_string(folder.path().join("hopline-mine.html")).unwrap();
    assert!(page.contains("X-2") && page.contains("differs"), "{} bytes", page.len());
}

#[test]
fn a_claim_is_explained_by_its_own_points() {
    let folder = papers();
    let output = reproduce(folder.path(), &["--explain", "X-1", "-q"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for part in [
        "X-1 of Somebody, Something",
        "\nclaim          ",
        "\npoint          ",
        "\nmeasured       ",
        "6 runs",
        "\nverdict        agrees\n",
    ] {
        assert!(text.contains(part), "{part:?}: {text}");
    }
    assert!(text.ends_with("--explain X-1 -q\n") && text.lines().count() < 24, "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&stdout(&reproduce(folder.path(), &["--explain", "X-2", "-q", "--json"])))
            .unwrap();
    assert_eq!((&json["claim"], &json["verdict"]), (&"X-2".into(), &"differs".into()));
    assert!(
        stdout(&reproduce(folder.path(), &["--explain", "X-3", "-q"]))
            .contains("cannot be judged: needs TPA")
    );
}

#[test]
fn a_claim_is_explained_in_all_readings() {
    let folder = papers();
    let file = folder.path().join("papers/mine/claims.toml");
    std::fs::write(&file, CLAIMS.replacen("[[claim]]", &format!("{AXIS}[[claim]]"), 1)).unwrap();
    let open = stdout(&reproduce(folder.path(), &["--explain", "X-1", "-q"]));
    assert!(open.contains("\nleft open      ") && !open.contains("\nreadings "), "{open}");
    let read = stdout(&reproduce(folder.path(), &["--explain", "X-1", "-q", "--readings=quick"]));
    assert!(
        read.contains("\nreadings       holds in 2 of 2; first reading: 6 runs, other readings: 3 runs\n"),
        "{read}"
    );
    let json = stdout(&reproduce(folder.path(), &["--explain", "X-1", "-q", "--readings", "--json"]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["readings"].as_array().unwrap().len(), 1);
}

#[test]
fn a_register_without_open_questions_has_no_other_readings() {
    let said = stderr(&reproduce(papers().path(), &["-q", "--readings"]));
    assert!(said.contains("mine: its register leaves nothing open"), "{said}");
}

#[test]
fn claims_are_judged_by_all_readings() {
    let folder = papers();
    let file = folder.path().join("papers/mine/claims.toml");
    std::fs::write(&file, CLAIMS.replacen("[[claim]]", &format!("{AXIS}[[claim]]"), 1)).unwrap();
    let text = stdout(&reproduce(folder.path(), &["-q", "--readings", "-o", "results"]));
    let row =
        |id: &str| text.lines().rfind(|line| line.starts_with(id)).unwrap_or_else(|| panic!("{id}: {text}"));
    assert!(text.contains("\nread otherwise\n"), "{text}");
    assert!(row("X-1 ").contains("2 of 2 readings") && row("X-2 ").contains("0 of 2 readings"), "{text}");
    assert!(text.contains("Runs: first reading: 6 runs, other readings: 6 runs. "), "{text}");
    assert!(
        text.contains("`hopline reproduce mine --explain CLAIM --readings` lists the readings"),
        "{text}"
    );
    assert!(!text.contains("at once"), "names of readings are in the report: {text}");
    let page = std::fs::read_to_string(folder.path().join("results/report.html")).unwrap();
    assert!(page.contains("<p class=\"headline\">Of the paper&#39;s 3 claims"), "the answer is at the top");
    assert!(page.contains("<td class=\"statement\">§2 does not say</td><td>delayed</td><td>at once</td>"));
    assert!(folder.path().join("results/windows-reading-2/records.jsonl").is_file());
    let kept = std::fs::read_to_string(folder.path().join("results/claims.json")).unwrap();
    let kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(kept["standing"]["readings"], 2);
    assert_eq!(kept["claims"][0]["readings"].as_array().unwrap().len(), 1);
}

#[test]
fn other_readings_may_have_fewer_runs() {
    let folder = papers();
    let file = folder.path().join("papers/mine/claims.toml");
    std::fs::write(&file, CLAIMS.replacen("[[claim]]", &format!("{AXIS}[[claim]]"), 1)).unwrap();
    stdout(&reproduce(folder.path(), &["-q", "--readings=quick", "-o", "results"]));
    let runs = |figure: &str| {
        let path = folder.path().join("results").join(figure).join("records.jsonl");
        std::fs::read_to_string(path).unwrap().lines().count()
    };
    assert!(runs("windows-reading-2") < runs("windows"));
}

#[test]
fn an_unknown_claim_is_rejected_with_the_nearest() {
    let folder = papers();
    let parts = reproduce(folder.path(), &["--explain", "X"]);
    assert!(stderr(&parts).contains("its parts are X-1, X-2, X-3"), "{}", stderr(&parts));
    let output = reproduce(folder.path(), &["--explain", "X-l"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("mine has no claim `X-l`") && stderr(&output).contains("did you mean `X-")
    );
}

#[test]
fn a_figure_without_claims_is_reported_without_a_table() {
    let folder = papers();
    let file = folder.path().join("papers/mine/claims.toml");
    let more = "[[figure]]\nid = \"again\"\ntitle = \"Windows, again\"\nplan = \"windows.toml\"\n\n[[claim]]";
    std::fs::write(&file, CLAIMS.replacen("[[claim]]", more, 1)).unwrap();
    let text = stdout(&reproduce(folder.path(), &["again", "-q", "--quick"]));
    assert!(text.contains("\nNo claim is judged by this alone.\n\nQUICK: "), "{text}");
    assert!(!text.contains("verdict  \n") && !text.contains("± 20 %"), "{text}");
    let page = std::fs::read_to_string(folder.path().join("hopline-mine.html")).unwrap();
    assert!(page.contains("QUICK") && !page.contains("Published claims"), "{} bytes", page.len());
}

#[test]
fn quick_is_noted_and_a_directory_is_resumed() {
    let folder = papers();
    let more = ["--quick", "-o", "out", "--json"];
    let first = json(&reproduce(folder.path(), &more));
    assert_eq!((&first["quick"], &first["figures"][0][1]["runs"]), (&Json::from(true), &Json::from(3)));
    assert_eq!(first["claims"][1]["verdict"], "differs");
    assert_eq!(
        (&first["counts"]["bounds"]["agrees"], &first["counts"]["values"]["all"]),
        (&1.into(), &0.into())
    );
    assert_eq!(
        (&first["claims"][0]["counted"], &first["claims"][2]["counted"]),
        (&"bounds".into(), &Json::Null)
    );
    assert_eq!(names(&folder.path().join("out")), ["claims.json", "report.html", "windows"]);
    assert_eq!(first, json(&reproduce(folder.path(), &more)), "CPU seconds included: nothing was run again");
    let text = stdout(&reproduce(folder.path(), &["windows", "--quick"]));
    assert!(text.contains("QUICK"), "{text}");
}

#[test]
fn a_setting_that_variants_override_or_that_changes_their_ablations_is_rejected() {
    for (setting, part) in [
        ("neighborhood_red.max_probability=0.3", "three.toml"),
        ("queue.discipline=codel", "the variant \"RED\" sets `queue.discipline`"),
        ("neighborhood_red.action=mark", "\"drop tail\" would get it, too"),
    ] {
        for more in
            [["three", "-q"].as_slice(), &["--explain", "N-12b", "-q"], &["three", "--readings", "-q"]]
        {
            let start = ["reproduce", "nred", "--quick", "--set", setting];
            let output =
                command().current_dir(papers().path()).args(start.iter().chain(more)).output().unwrap();
            assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()), "{setting}");
            assert!(stderr(&output).contains(part), "{setting}: {}", stderr(&output));
        }
    }
    let varied = reproduce(papers().path(), &["-q", "--set", "tcp.window=4"]);
    assert_eq!(varied.status.code(), Some(2));
    assert!(stderr(&varied).contains("`[grid]` of the plan sets `tcp.window`"), "{}", stderr(&varied));
}
