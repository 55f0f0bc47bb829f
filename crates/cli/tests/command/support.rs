//! Shared code of the tests of the command.

#![allow(dead_code, reason = "each test target uses its own part")]

use serde_json::Value as Json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub(crate) const COMMANDS: [&str; 21] = [
    "run",
    "compare",
    "sweep",
    "report",
    "reproduce",
    "schema",
    "doctor",
    "completions",
    "link",
    "man",
    "movements",
    "evaluate",
    "packetdrill",
    "send",
    "recv",
    "bench",
    "proxy",
    "tcp",
    "key",
    "emulate",
    "exec",
];

/// Subcommands of `key`.
pub(crate) const KEY_COMMANDS: [&str; 3] = ["new", "show", "peers"];

/// Subcommands of `proxy`.
pub(crate) const PROXY_COMMANDS: [&str; 7] = ["check", "setup", "undo", "run", "status", "top", "host-key"];

pub(crate) const PLAN: &str = "\
scenario = \"chain.toml\"
runs = 6
[set]
duration_s = 4
[grid]
\"tcp.window\" = [2, 8]
\"nodes.count\" = [3, 5]
";

/// Returns a folder with a plan.
pub(crate) fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let chain = fs::read_to_string(scenario("chain")).unwrap();
    fs::write(folder.path().join("chain.toml"), chain.replace("dst = \"n4\"", "dst = \"n2\"")).unwrap();
    fs::write(folder.path().join("plan.toml"), PLAN).unwrap();
    folder
}

pub(crate) fn sweep(folder: &Path, more: &[&str]) -> Output {
    command()
        .current_dir(folder)
        .args(["sweep", "plan.toml", "-o", "out"].iter().chain(more))
        .output()
        .unwrap()
}

/// Returns the path of the shipped scenario `name`.
pub(crate) fn scenario(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name).join("scenario.toml")
}

/// Runs `hopline` with `args`, without colours.
pub(crate) fn hopline<I: IntoIterator<Item = S>, S: AsRef<std::ffi::OsStr>>(args: I) -> Output {
    command().args(args).output().expect("cargo built the command")
}

pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hopline"));
    command.env("NO_COLOR", "1");
    command
}

/// Runs `hopline run` of the chain scenario for two seconds, with more arguments.
pub(crate) fn run_chain(more: &[&str]) -> Output {
    let file = scenario("chain");
    let start = ["run", file.to_str().unwrap(), "--set", "duration_s=2"];
    hopline(start.iter().chain(more))
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

pub(crate) fn json(output: &Output) -> Json {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).expect("--json prints one JSON value")
}

pub(crate) fn keys(json: &Json) -> Vec<&str> {
    let mut keys: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.collect();
    names.sort();
    names
}
