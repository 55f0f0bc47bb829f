//! Tests that run in a process of their own.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

use hopline_harness::Test;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

/// Set in a copy of this program that has a test which hangs.
const HANGS: &str = "HOPLINE_TEST_HANGS";
/// Lines that this test prints when it begins, and if nothing has ended it.
const BEGUN: &str = "begun";
const LEFT: &str = "left behind";

fn main() -> ExitCode {
    if std::env::var_os(HANGS).is_some() {
        return hopline_harness::run([Test::new("hangs", [], hangs).in_own_process(&[])], None);
    }
    hopline_harness::run(
        hopline_harness::tests!([]; a_test_in_a_process_of_its_own_ends_with_the_program),
        None,
    )
}

#[expect(clippy::print_stdout, reason = "it is how the outer program hears of it")]
fn hangs() {
    println!("{BEGUN}");
    thread::sleep(Duration::from_secs(2));
    println!("{LEFT}");
}

fn a_test_in_a_process_of_its_own_ends_with_the_program() {
    let this = std::env::current_exe().unwrap();
    let mut program = Command::new(this).env(HANGS, "1").stdout(Stdio::piped()).spawn().unwrap();
    let mut printed = BufReader::new(program.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains(BEGUN) {
        line.clear();
        assert_ne!(printed.read_line(&mut line).unwrap(), 0, "the test begins");
    }
    program.kill().unwrap();
    program.wait().unwrap();
    // Until the last process that could print has ended.
    line.clear();
    printed.read_to_string(&mut line).unwrap();
    assert!(!line.contains(LEFT), "{line}");
}
