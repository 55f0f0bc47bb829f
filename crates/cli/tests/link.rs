//! `hopline link`: a command over an emulated link between two hosts.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

use hopline_testkit::namespace::run_tests;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::process::{Command, ExitCode, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    run_tests(&[
        ("the_commands_end_is_passed_on", the_commands_end_is_passed_on),
        ("both_hosts_are_known_by_their_addresses", both_hosts_are_known_by_their_addresses),
        ("what_is_read_and_printed_is_the_near_commands", what_is_read_and_printed_is_the_near_commands),
        ("the_far_command_ends_with_the_near_one", the_far_command_ends_with_the_near_one),
        ("who_is_told_to_end_is_told_once_and_then_killed", who_is_told_to_end_is_told_once_and_then_killed),
        ("nothing_outlives_a_link_that_is_told_to_end", nothing_outlives_a_link_that_is_told_to_end),
        ("nothing_outlives_a_link_that_is_killed", nothing_outlives_a_link_that_is_killed),
        ("packets_are_delayed_and_lost_as_asked", packets_are_delayed_and_lost_as_asked),
        ("a_file_arrives_over_a_bad_link", a_file_arrives_over_a_bad_link),
    ])
}

fn link(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hopline"));
    command.arg("link").args(arguments).env("HOPLINE", env!("CARGO_BIN_EXE_hopline"));
    command
}

fn done(arguments: &[&str]) -> Output {
    link(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether a process with this command line is there.
fn runs(mark: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.any(|line| String::from_utf8_lossy(&line).replace('\0', " ").trim() == mark)
}

fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..1000 {
        if holds() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("never: {what}");
}

fn the_commands_end_is_passed_on() {
    assert_eq!(done(&["--", "sh", "-c", "exit 7"]).status.code(), Some(7));
    assert_eq!(done(&["--", "true"]).status.code(), Some(0));
    assert_eq!(done(&["--", "sh", "-c", "kill -9 $$"]).status.code(), Some(128 + 9));
    let missing = done(&["--", "/no/such/program"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(stderr(&missing).contains("/no/such/program cannot be started"));
    assert_eq!(done(&["--rate", "20", "--", "true"]).status.code(), Some(2));
}

fn both_hosts_are_known_by_their_addresses() {
    let said = done(&["--seed", "5", "--", "sh", "-c", "echo $HOPLINE_NEAR $HOPLINE_FAR $HOPLINE_LINK_SEED"]);
    assert_eq!(stdout(&said), "10.80.0.1 10.80.0.2 5\n");
    let far = "nsenter --net=$HOPLINE_FAR_NETNS cat /proc/self/net/fib_trie | grep -c 10.80.0.2";
    assert_ne!(stdout(&done(&["--", "sh", "-c", far])), "0\n");
    let same = "test $(readlink $HOPLINE_FAR_NETNS) = $(readlink /proc/self/ns/net) && echo it is";
    assert!(stderr(&done(&["--far", same, "--", "true"])).contains("far: it is\n"));
}

fn what_is_read_and_printed_is_the_near_commands() {
    let mut child = link(&["--far", "cat; echo said; echo wrong >&2", "--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"data\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(stdout(&output), "data\n");
    assert!(stderr(&output).starts_with("far: said\nfar: wrong\nthere: "), "{}", stderr(&output));
}

fn the_far_command_ends_with_the_near_one() {
    let output = done(&["--far", "setsid sleep 71001 & exec sleep 71002", "--", "true"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(!runs("sleep 71001") && !runs("sleep 71002"), "what they left behind is ended too");
}

fn who_is_told_to_end_is_told_once_and_then_killed() {
    let far = "trap 'echo told' TERM; while :; do sleep 0.1; done";
    let output = done(&["--far", far, "--", "true"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stderr(&output).matches("far: told\n").count(), 1, "{}", stderr(&output));
}

fn nothing_outlives_a_link_that_is_told_to_end() {
    let mut child =
        link(&["--far", "sleep 72001", "--", "sleep", "72002"]).stderr(Stdio::null()).spawn().unwrap();
    until("both run", || runs("sleep 72001") && runs("sleep 72002"));
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    assert!(!runs("sleep 72001") && !runs("sleep 72002"));
}

fn nothing_outlives_a_link_that_is_killed() {
    let mut child =
        link(&["--far", "exec sleep 73001", "--", "sleep", "73002"]).stderr(Stdio::null()).spawn().unwrap();
    until("both run", || runs("sleep 73001") && runs("sleep 73002"));
    child.kill().unwrap();
    child.wait().unwrap();
    until("they end", || !runs("sleep 73001") && !runs("sleep 73002"));
}

fn packets_are_delayed_and_lost_as_asked() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("link.json");
    // The kernel's TCP, through some losses: its SYN alone takes a round trip.
    let script = "hopline bench -c $HOPLINE_FAR --transport tcp -n 300K";
    #[expect(clippy::disallowed_methods, reason = "this link is in real time")]
    let began = Instant::now();
    let output = done(&[
        "--delay",
        "40ms",
        "--loss",
        "20%",
        "--rate",
        "5mbit",
        "--json",
        place.to_str().unwrap(),
        "--far",
        "$HOPLINE bench -s -1",
        "--",
        "sh",
        "-c",
        &script.replace("hopline", "$HOPLINE"),
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(began.elapsed() > Duration::from_millis(4 * 80));
    let did: Value = serde_json::from_slice(&fs::read(place).unwrap()).unwrap();
    let (sent, lost) = (did["there"]["sent"].as_f64().unwrap(), did["there"]["lost"].as_f64().unwrap());
    assert!(sent > 200.0 && (0.1..0.32).contains(&(lost / sent)), "{did:#}");
}

fn a_file_arrives_over_a_bad_link() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let data: Vec<u8> = (0..300_000).map(|i| (i * 31 % 251) as u8).collect();
    fs::write(from.path().join("f"), &data).unwrap();
    let far = format!("$HOPLINE recv -q -o {}", to.path().display());
    let near = format!("$HOPLINE send -q {}/f $HOPLINE_FAR", from.path().display());
    let output =
        done(&["--delay", "5ms", "--loss", "5%", "--mtu", "1400", "--far", &far, "--", "sh", "-c", &near]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(fs::read(to.path().join("f")).unwrap() == data);
}
