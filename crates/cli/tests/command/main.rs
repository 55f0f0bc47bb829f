//! The command as its users meet it: exit codes, what is printed where, what is written.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bench;
mod compare;
mod errors;
mod movements;
mod reproduce;
mod resume;
mod run;
mod sweep;
mod tools;
mod transfer;

use serde_json::Value as Json;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The shipped scenario `name`.
fn scenario(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name).join("scenario.toml")
}

/// What `hopline` does with `args`; without colours, whatever the terminal.
fn hopline<I: IntoIterator<Item = S>, S: AsRef<std::ffi::OsStr>>(args: I) -> Output {
    command().args(args).output().expect("cargo built the command")
}

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hopline"));
    command.env("NO_COLOR", "1");
    command
}

/// `hopline run` of the chain scenario for two seconds, with more arguments.
fn run_chain(more: &[&str]) -> Output {
    let file = scenario("chain");
    let start = ["run", file.to_str().unwrap(), "--set", "duration_s=2"];
    hopline(start.iter().chain(more))
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn json(output: &Output) -> Json {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).expect("--json prints one JSON value")
}

fn keys(json: &Json) -> Vec<&str> {
    let mut keys: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.collect();
    names.sort();
    names
}

#[test]
fn help_names_commands_examples_and_exit_codes() {
    let help = stdout(&hopline(["--help"]));
    for word in [
        "run",
        "compare",
        "schema",
        "doctor",
        "completions",
        "man",
        "Exit codes: 0 done, 1 failed, 2 wrong usage",
    ] {
        assert!(help.contains(word), "{word} is not in\n{help}");
    }
    for (sub, example) in [
        ("run", "hopline run scenarios/walk/scenario.toml -o results/walk --pcap"),
        ("compare", "hopline compare scenarios/chain/scenario.toml --vary tcp.window=2,3,8,32 --runs 20"),
        ("schema", "hopline schema > scenario.schema.json"),
        ("completions", "hopline completions fish > ~/.config/fish/completions/hopline.fish"),
        ("man", "hopline man | man -l -"),
    ] {
        let help = stdout(&hopline([sub, "--help"]));
        assert!(help.contains(example), "{help}");
    }
    assert_eq!(hopline(["run", "--help"]).status.code(), Some(0));
}
