//! `hopline sweep` and `hopline report`.

use super::*;
use std::fs;
use std::process::Stdio;
use std::time::Duration;

/// Returns the tables that depend on the plan alone.
fn tables(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let names = names(folder)
        .into_iter()
        .filter(|name| name != "timing.csv" && (name.ends_with(".csv") || name.ends_with(".parquet")));
    names.map(|name| (name.clone(), fs::read(folder.join(name)).unwrap())).collect()
}

#[test]
fn a_sweep_prints_its_points_and_stores_tables_and_report() {
    let folder = folder();
    let output = sweep(folder.path(), &[]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        text.starts_with("plan: 4 variants, 6 paired runs, seed 1; ± is the 95 % interval of the mean; the intervals of the 3 gains hold together with 95 % confidence\n"),
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
fn a_killed_sweep_resumes_and_ends_with_the_same_tables() {
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
fn a_report_is_rebuilt_from_stored_results() {
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
fn quick_reduces_runs_and_set_applies_to_every_point() {
    let folder = folder();
    let json = json(&sweep(folder.path(), &["--quick", "--set", "duration_s=1", "--json"]));
    assert_eq!(json["runs"], 3);
    let runs = fs::read_to_string(folder.path().join("out/runs.csv")).unwrap();
    assert!(runs.lines().skip(1).all(|line| line.contains(",1,")), "{runs}");
}

#[test]
fn errors_in_a_plan_have_a_position_and_nothing_is_created() {
    let folder = folder();
    fs::write(folder.path().join("plan.toml"), PLAN.replace("runs = 6", "rnus = 6")).unwrap();
    let output = sweep(folder.path(), &[]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()));
    assert!(stderr(&output).contains("plan.toml:2:1") && stderr(&output).contains("did you mean `runs`?"));
    assert_eq!(names(folder.path()), ["chain.toml", "plan.toml"]);
}

#[test]
fn results_of_another_plan_are_rejected_and_replaced_by_force() {
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
fn a_report_of_a_directory_without_results_is_rejected() {
    let folder = folder();
    let output = hopline(["report", folder.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no manifest.json"), "{}", stderr(&output));
}
