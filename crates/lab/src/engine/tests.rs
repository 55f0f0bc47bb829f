//! The command is a script here, that answers as `hopline kernel-run` does.

use super::*;
use crate::Plan;
use crate::experiment::{RunOptions, in_memory};
use crate::plan::Runs;
use crate::run::{Interrupted, NoObserver};
use crate::testing::{InterruptAfter, scenario, source};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

const SCENARIO: &str = "
duration_s = 2
radio.preset = \"ns2-wavelan\"
nodes = { layout = \"chain\", count = 2, spacing_m = 200 }
program = [{ name = \"a\", node = \"n0\", command = [\"true\"] }]
";

fn plan() -> Plan {
    Plan { runs: Runs::Fixed(2), ..Plan::new(&network(), &[]).expect("a plan") }
}

fn network() -> Scenario {
    Scenario::parse_network(source("pair.toml", SCENARIO), PathBuf::new(), &[]).expect("a scenario")
}

/// A command that checks every plan with kernel 6, and runs `script` for every run.
fn command(script: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hopline");
    let check = "case \"$request\" in *'\"run\":null'*) echo '{\"Checked\":\"6\"}'; exit;; esac";
    fs::write(&path, format!("#!/bin/sh\nrequest=$(cat)\n{check}\n{script}\n")).expect("written");
    fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("executable");
    (folder, path)
}

fn failures(script: &str) -> Vec<String> {
    let (_folder, command) = command(script);
    let plan = plan().with_kernels(&command, KernelOptions::default()).expect("a kernel");
    let how = RunOptions { jobs: None, command: &[], watch: &NoObserver };
    let (comparison, _) = in_memory(&plan, how).expect("nothing interrupts");
    comparison.points[0].failed.iter().map(|(_, why)| why.clone()).collect()
}

#[test]
fn a_run_that_fails_says_why() {
    assert_eq!(failures("echo '{\"Failed\":\"program a failed\"}'"), ["program a failed"; 2]);
    assert_eq!(failures("echo 'no space left' >&2; exit 1"), ["no space left"; 2]);
    assert!(failures("echo hello")[0].starts_with("the command gave no reply of a sweep: expected value"));
    assert_eq!(failures("exit 3"), ["the emulation ended with exit status: 3"; 2]);
}

#[test]
fn a_command_that_is_missing_or_refuses_the_plan_is_reported() {
    let refused = |path: &std::path::Path| {
        plan().with_kernels(path, KernelOptions::default()).expect_err("no kernel").message
    };
    assert!(refused("/none/hopline".as_ref()).starts_with("/none/hopline cannot be started: No such file"));
    let (folder, path) = command("");
    fs::write(&path, "#!/bin/sh\necho '× there is no kernel' >&2; exit 2\n").expect("written");
    assert_eq!(refused(&path), "there is no kernel");
    drop(folder);
}

#[test]
fn the_progress_of_a_run_is_reported_until_it_is_interrupted() {
    let endless = "while echo '{\"Reached\":1000000000}'; do echo '{\"Reached\":1500000000}'; done";
    let (_folder, command) = command(endless);
    let plan = plan().with_kernels(&command, KernelOptions::default()).expect("a kernel");
    let watch = InterruptAfter::after_s(1);
    let made = crate::execute::run_one(&plan.engine, &plan.points[0].scenario, (0, 1), plan.keep, &watch);
    assert_eq!(made, Err(Interrupted));
    assert_eq!(watch.nanos.into_inner(), 1_000_000_000);
}

#[test]
fn kernels_and_what_they_cost_are_part_of_the_identity() {
    let (_folder, command) = command("");
    let with = |options| plan().with_kernels(&command, options).expect("a kernel").identity();
    let usual = with(KernelOptions::default());
    assert_ne!(usual, plan().identity());
    assert_ne!(usual, with(KernelOptions { syscall_cost_us: Some(9), ..KernelOptions::default() }));
    assert_ne!(usual, with(KernelOptions { no_routes: true, ..KernelOptions::default() }));
    assert_eq!(usual, with(KernelOptions { patience_s: Some(9), ..KernelOptions::default() }));
}

#[test]
fn questions_may_be_about_programs_alone_where_there_are_any() {
    let question = |plan: Plan| {
        let text = "goodput of program".to_owned();
        let origin =
            hopline_config::source::Origin { source: source("--metric", &text), span: 0..text.len() };
        plan.with_objective(hopline_scenario::Objective { metric: Some((text, origin)), bound: None })
    };
    assert_eq!(question(plan()).expect("programs").objective.asked.words(), "goodput of program");
    let simulated = SCENARIO.replace("program =", "flow = [{ src = \"n0\", dst = \"n1\" }] #");
    question(Plan::new(&scenario(&simulated), &[]).expect("a plan")).expect_err("no programs");
}
