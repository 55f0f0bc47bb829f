//! The command as users see it: exit codes, output, and written files.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bench;
mod compare;
mod encrypted;
mod errors;
mod evaluate;
mod key;
mod movements;
mod packetdrill;
mod reproduce;
mod resume;
mod run;
mod support;
mod sweep;
mod tools;
mod transfer;
mod units;

use serde_json::Value as Json;
use std::path::Path;
use std::process::{Command, Output};
use support::*;

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
        ("run", "hopline run scenarios/walk/scenario.toml -o walk --pcap"),
        ("compare", "hopline compare scenarios/chain/scenario.toml --vary tcp.window=2,8 --runs 20"),
        ("schema", "hopline schema > scenario.schema.json"),
        ("completions", "hopline completions fish > ~/.config/fish/completions/hopline.fish"),
        ("man", "hopline man | man -l -"),
    ] {
        let help = stdout(&hopline([sub, "--help"]));
        assert!(help.contains(example), "{help}");
    }
    assert_eq!(hopline(["run", "--help"]).status.code(), Some(0));
}
