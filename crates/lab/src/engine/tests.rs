//! The command is a script here, that answers as `hopline kernel-run` does.

use super::*;
use crate::Plan;
use crate::execute::NoRecord;
use crate::experiment::{ExperimentError, RunOptions, in_memory};
use crate::plan::Runs;
use crate::run::NoObserver;
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

/// The scenario with a simulated flow beside the program.
fn mixed() -> Scenario {
    let flow = "flow = [{ src = \"n0\", dst = \"n1\", kind = \"cbr\", rate_kbps = 10 }]\nprogram =";
    let mixed = source("pair.toml", &SCENARIO.replace("program =", flow));
    Scenario::parse_network(mixed, PathBuf::new(), &[]).expect("a scenario")
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

fn run_with(script: &str) -> Result<Vec<String>, ExperimentError> {
    let (_folder, command) = command(script);
    let plan = plan().with_kernels(&command, KernelOptions::default()).expect("a kernel");
    let (comparison, _) = in_memory(&plan, RunOptions { jobs: None, command: &[], watch: &NoObserver })?;
    Ok(comparison.points[0].failed.iter().map(|(_, why)| why.clone()).collect())
}

#[test]
fn a_run_whose_program_fails_is_a_failed_run() {
    assert_eq!(
        run_with("echo '{\"Failed\":\"program a failed\"}'").expect("a result"),
        ["program a failed"; 2]
    );
}

#[test]
fn a_machine_that_cannot_make_a_run_ends_the_sweep_without_a_record() {
    let ended = |script: &str| match run_with(script) {
        Err(ExperimentError::Failed(why)) => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(ended("echo '× no space left' >&2; exit 1"), "no space left");
    assert_eq!(ended("exit 3"), "the emulation ended with exit status: 3");
    assert_eq!(ended("kill -9 $$"), "the emulation ended with signal: 9 (SIGKILL)");
    assert!(ended("echo hello").starts_with("the command gave no reply of a sweep: expected value"));
    // More than a pipe holds.
    let loud = "head -c 300000 /dev/zero | tr '\\0' e >&2; exit 1";
    assert!(ended(loud).starts_with("eee"));
}

#[test]
fn a_command_that_is_missing_or_refuses_the_plan_is_reported() {
    let refused = |path: &std::path::Path| {
        plan().with_kernels(path, KernelOptions::default()).expect_err("no kernel").message
    };
    assert!(refused("/none/hopline".as_ref()).starts_with("/none/hopline cannot be started: No such file"));
    assert_eq!(refused("".as_ref()), "there is no command `hopline` in PATH");
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
    assert_eq!(made, Err(NoRecord::Interrupted));
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

#[test]
fn questions_about_programs_come_first() {
    let plan = Plan::new(&mixed(), &[]).expect("a plan");
    assert_eq!(plan.objective.asked.words(), "goodput of program");
}

#[test]
fn programs_and_simulated_flows_are_columns_of_their_own_and_not_added_up() {
    let goodput = |kind: &str| format!(r#"["group of flows","{kind}","goodput_bps",8000.0]"#);
    let metrics =
        format!(r#"[["run","","aggregate_goodput_bps",16000.0],{},{}]"#, goodput("program"), goodput("cbr"));
    let rest = r#""fingerprint":"01","events":1,"sim_s":2.0,"cpu_s":0.0,"wall_s":0.0,"flows":[],"series":[]"#;
    let (_folder, command) = command(&format!(r#"echo '{{"Done":{{{rest},"metrics":{metrics}}}}}'"#));
    let plan = Plan::new(&mixed(), &[]).expect("a plan");
    let plan = plan.with_kernels(&command, KernelOptions::default()).expect("a kernel");
    let how = RunOptions { jobs: None, command: &[], watch: &NoObserver };
    let (comparison, _) = in_memory(&plan, how).expect("nothing interrupts");
    let text = crate::text::comparison::describe(&comparison);
    assert!(text.contains("goodput of program kb/s") && text.contains("goodput of cbr kb/s"), "{text}");
    assert!(text.contains("over Linux 6 in virtual time") && !text.contains(" goodput kb/s"), "{text}");
}

#[test]
fn what_kernels_cannot_give_is_refused() {
    let (_folder, command) = command("");
    let refused =
        |plan: Plan| plan.with_kernels(&command, KernelOptions::default()).expect_err("refused").message;
    let asking = |metric: &str| {
        let origin =
            hopline_config::source::Origin { source: source("--metric", metric), span: 0..metric.len() };
        let asked = hopline_scenario::Objective { metric: Some((metric.to_owned(), origin)), bound: None };
        plan().with_objective(asked).expect("a metric")
    };
    assert!(refused(asking("jain")).starts_with("runs over kernels have no `jain`"));
    assert!(refused(asking("timeouts")).starts_with("runs over kernels have no `timeouts`"));
    let pairs = Keep { pairs: crate::plan::KeepPairs::Keep, ..plan().keep };
    assert_eq!(refused(Plan { keep: pairs, ..plan() }), "runs over kernels keep no pairs of flows");
}

#[test]
fn a_request_of_another_version_is_refused() {
    let scenarios = crate::remote::Scenarios::of(&[&network()], plan().keep);
    let request = Request { scenarios, options: KernelOptions::default(), run: None };
    let text = serde_json::to_string(&request).expect("JSON");
    assert!(Request::from_bytes(text.as_bytes()).is_ok());
    let ours = concat!("\"version\":\"", env!("CARGO_PKG_VERSION"), "\"");
    let other = text.replace(ours, "\"version\":\"0.0.1\"");
    let error = Request::from_bytes(other.as_bytes()).expect_err("another version").to_string();
    assert!(error.contains("begun by hopline 0.0.1"), "{error}");
}

#[test]
fn points_without_routes_are_named() {
    let (_folder, command) = command("");
    let routed = SCENARIO.replace("program =", "routing.protocol = \"aodv\"\nprogram =");
    let routed =
        Scenario::parse_network(source("pair.toml", &routed), PathBuf::new(), &[]).expect("a scenario");
    let with = |scenario: &Scenario, no_routes: bool| {
        let options = KernelOptions { no_routes, ..KernelOptions::default() };
        let plan =
            Plan::new(scenario, &[]).expect("a plan").with_kernels(&command, options).expect("a kernel");
        plan.without_routes().map(str::to_owned)
    };
    assert_eq!(with(&routed, false).as_deref(), Some("pair"));
    assert_eq!(with(&routed, true), None);
    assert_eq!(with(&network(), false), None);
}
