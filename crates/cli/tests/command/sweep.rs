//! `hopline sweep` and `hopline report`.

use super::*;
use std::fs;
use std::process::Stdio;
use std::time::Duration;

const PLAN: &str = "\
scenario = \"chain.toml\"
runs = 6
[set]
duration_s = 4
[grid]
\"tcp.window\" = [2, 8]
\"nodes.count\" = [3, 5]
";

/// A folder with a plan.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let chain = fs::read_to_string(scenario("chain")).unwrap();
    fs::write(folder.path().join("chain.toml"), chain.replace("dst = \"n4\"", "dst = \"n2\"")).unwrap();
    fs::write(folder.path().join("plan.toml"), PLAN).unwrap();
    folder
}

fn sweep(folder: &Path, more: &[&str]) -> Output {
    command()
        .current_dir(folder)
        .args(["sweep", "plan.toml", "-o", "out"].iter().chain(more))
        .output()
        .unwrap()
}

/// The tables that depend on the plan alone.
fn tables(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let names = names(folder)
        .into_iter()
        .filter(|name| name != "timing.csv" && (name.ends_with(".csv") || name.ends_with(".parquet")));
    names.map(|name| (name.clone(), fs::read(folder.join(name)).unwrap())).collect()
}

#[test]
fn a_sweep_prints_its_points_and_keeps_tables_and_report() {
    let folder = folder();
    let output = sweep(folder.path(), &[]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        text.starts_with("plan: 4 variants, 6 paired runs, seed 1; ± is the 95 % interval of the mean\n"),
        "{text}"
    );
    assert!(text.contains("tcp.window=8 nodes.count=5 "), "{text}");
    assert!(text.ends_with("\nresults and report.html in out\n"), "{text}");
    assert_eq!(
        names(&folder.path().join("out")),
        [
            ".lock",
            "manifest.json",
            "metrics.csv",
            "metrics.parquet",
            "records.jsonl",
            "report.html",
            "runs.csv",
            "runs.parquet",
            "series.csv",
            "series.parquet",
            "timing.csv"
        ]
    );
    let runs = fs::read_to_string(folder.path().join("out/runs.csv")).unwrap();
    assert!(
        runs.starts_with("point,variant,tcp.window,nodes.count,run,fingerprint,events,sim_s,error\n"),
        "{runs}"
    );
    assert_eq!(runs.lines().count(), 1 + 4 * 6);
}

#[test]
fn a_sweep_that_is_killed_goes_on_and_ends_in_the_same_tables() {
    let (whole, killed) = (folder(), folder());
    assert_eq!(sweep(whole.path(), &[]).status.code(), Some(0));
    let records = killed.path().join("out/records.jsonl");
    let lines = || fs::read(&records).map_or(0, |text| text.iter().filter(|b| **b == b'\n').count());
    for least in [1, 9, 17] {
        let mut child = command()
            .current_dir(killed.path())
            .args(["sweep", "plan.toml", "-o", "out", "--jobs", "1", "-q"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        for patience in (0..30_000).rev() {
            if lines() >= least || child.try_wait().unwrap().is_some() {
                break;
            }
            assert!(patience > 0, "{} runs of {least}", lines());
            std::thread::sleep(Duration::from_millis(2));
        }
        // SIGKILL.
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(lines() >= least);
    }
    assert_eq!(sweep(killed.path(), &["--jobs", "2"]).status.code(), Some(0));
    assert_eq!(tables(&whole.path().join("out")), tables(&killed.path().join("out")));
    assert_eq!(tables(&whole.path().join("out")).len(), 6);
}

#[test]
fn a_report_is_rebuilt_from_what_is_stored() {
    let folder = folder();
    sweep(folder.path(), &[]);
    let out = folder.path().join("out");
    let before = tables(&out);
    for name in ["report.html", "metrics.csv", "runs.parquet"] {
        fs::remove_file(out.join(name)).unwrap();
    }
    let output = hopline(["report", out.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("plan: 4 variants, 6 paired runs"), "{}", stdout(&output));
    assert!(out.join("report.html").exists());
    assert_eq!(before, tables(&out));
    let json = json(&hopline(["report", out.to_str().unwrap(), "--json"]));
    assert_eq!(json["variants"].as_array().unwrap().len(), 4);
}

#[test]
fn quick_runs_less_and_set_reaches_every_point() {
    let folder = folder();
    let json = json(&sweep(folder.path(), &["--quick", "--set", "duration_s=1", "--json"]));
    assert_eq!(json["runs"], 3);
    let runs = fs::read_to_string(folder.path().join("out/runs.csv")).unwrap();
    assert!(runs.lines().skip(1).all(|line| line.contains(",1,")), "{runs}");
}

#[test]
fn mistakes_in_a_plan_are_shown_with_their_place_and_nothing_is_made() {
    let folder = folder();
    fs::write(folder.path().join("plan.toml"), PLAN.replace("runs = 6", "rnus = 6")).unwrap();
    let output = sweep(folder.path(), &[]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()));
    assert!(stderr(&output).contains("plan.toml:2:1") && stderr(&output).contains("did you mean `runs`?"));
    assert_eq!(names(folder.path()), ["chain.toml", "plan.toml"]);
}

#[test]
fn results_of_another_plan_are_refused_and_begun_anew_by_force() {
    let folder = folder();
    sweep(folder.path(), &[]);
    let before = tables(&folder.path().join("out"));
    fs::write(folder.path().join("plan.toml"), PLAN.replace("duration_s = 4", "duration_s = 3")).unwrap();
    let refused = sweep(folder.path(), &[]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("holds results of another plan"), "{}", stderr(&refused));
    assert_eq!(before, tables(&folder.path().join("out")));
    assert_eq!(sweep(folder.path(), &["--force"]).status.code(), Some(0));
    assert_ne!(before, tables(&folder.path().join("out")));
}

#[test]
fn a_report_of_what_is_no_result_is_refused() {
    let folder = folder();
    let output = hopline(["report", folder.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no manifest.json"), "{}", stderr(&output));
}

/// Runs a shell script in a mount namespace of its own, where a small file system can be mounted; `None` where that is
/// not allowed.
#[allow(clippy::print_stderr, reason = "a test that did not look must say so")]
fn in_namespace(folder: &Path, script: &str) -> Option<Output> {
    let mut unshare = Command::new("unshare");
    unshare.args(["--map-root-user", "--mount", "sh", "-c"]).current_dir(folder);
    let probe = unshare.arg("mkdir -p small && mount -t tmpfs -o size=64k none small").output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        eprintln!("SKIPPED: no file system can be mounted here; a full disk was not tried");
        return None;
    }
    let mut shell = Command::new("unshare");
    shell.args(["--map-root-user", "--mount", "sh", "-c", script]).current_dir(folder);
    Some(shell.env("HOPLINE", env!("CARGO_BIN_EXE_hopline")).env("NO_COLOR", "1").output().unwrap())
}

#[test]
fn a_full_disk_gives_one_error_and_leaves_what_was_stored() {
    let folder = folder();
    let script = "mount -t tmpfs -o size=64k none small && \
                  $HOPLINE sweep plan.toml -o small/out -q; code=$?; \
                  cp small/out/records.jsonl small/out/manifest.json .; exit $code";
    let Some(output) = in_namespace(folder.path(), script) else { return };
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = stderr(&output);
    assert_eq!(said.matches('×').count(), 1, "{said}");
    assert!(said.contains("No space left on device"), "{said}");
    // What was stored is whole: a sweep elsewhere goes on from it.
    fs::create_dir(folder.path().join("out")).unwrap();
    for name in ["records.jsonl", "manifest.json"] {
        fs::rename(folder.path().join(name), folder.path().join("out").join(name)).unwrap();
    }
    let stored = fs::read_to_string(folder.path().join("out/records.jsonl")).unwrap();
    assert!(stored.ends_with('\n') && stored.lines().count() > 0, "{} bytes", stored.len());
    assert_eq!(sweep(folder.path(), &[]).status.code(), Some(0));
    let went_on = fs::read_to_string(folder.path().join("out/records.jsonl")).unwrap();
    assert!(went_on.starts_with(&stored));
}

#[test]
fn a_read_only_place_gives_one_error_before_anything_is_run() {
    let folder = folder();
    let script = "mount -t tmpfs -o ro none small && $HOPLINE sweep plan.toml -o small/out -q";
    let Some(output) = in_namespace(folder.path(), script) else { return };
    assert_eq!((output.status.code(), stdout(&output)), (Some(1), String::new()));
    let said = stderr(&output);
    assert!(said.contains("small/out") && said.contains("Read-only file system"), "{said}");
    assert_eq!(said.matches('×').count(), 1, "{said}");
}
