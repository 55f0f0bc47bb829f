//! The command with other programs, and on small disks. Tests are reported as ignored if the machine has none of these.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

#[path = "command/support.rs"]
mod support;

use hopline_harness::{Need, Test, tests};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use support::*;

pub(crate) fn tests() -> Vec<Test> {
    let of_bash = tests!([Need::Program("bash")]; bash_accepts_the_completions);
    let of_groff = tests!([Need::Program("groff")]; groff_formats_every_page_without_warnings);
    let of_disks = tests!([Need::Mounts];
        a_full_disk_is_a_single_error_and_keeps_stored_results,
        a_read_only_directory_is_an_error_before_any_run,
        a_qlog_file_that_fills_the_disk_is_a_single_error_and_leaves_nothing,
    );
    of_bash.into_iter().chain(of_groff).chain(of_disks).collect()
}

/// Returns the result of `program` with `input`.
fn pipe(program: &str, args: &[&str], input: &str) -> Output {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn bash_accepts_the_completions() {
    let script = stdout(&hopline(["completions", "bash"]));
    let checked = pipe("bash", &["-n"], &script);
    assert!(checked.status.success() && checked.stderr.is_empty(), "{}", stderr(&checked));
    let ask = "\nCOMP_WORDS=(hopline comp); COMP_CWORD=1; _hopline hopline comp hopline; echo \"${COMPREPLY[*]}\"\n";
    let asked = pipe("bash", &["--norc"], &(script + ask));
    assert_eq!(stdout(&asked).trim(), "compare completions", "{}", stderr(&asked));
}

fn groff_formats_every_page_without_warnings() {
    let folder = tempfile::tempdir().unwrap();
    let output = hopline(["man", "-o", folder.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let pages = names(folder.path());
    assert_eq!(pages.len(), COMMANDS.len() + PROXY_COMMANDS.len() + KEY_COMMANDS.len() + 1);
    for name in pages {
        let text = fs::read_to_string(folder.path().join(&name)).unwrap();
        let set = pipe("groff", &["-Kutf8", "-man", "-Tutf8", "-ww", "-z"], &text);
        assert!(set.status.success() && set.stderr.is_empty(), "{name}: {}", stderr(&set));
    }
}

/// Runs a shell script in a mount namespace of its own, in which a small file system can be mounted at `small`.
fn in_namespace(folder: &Path, script: &str) -> Output {
    fs::create_dir(folder.join("small")).unwrap();
    let mut shell = Command::new("unshare");
    shell.args(["--map-root-user", "--mount", "sh", "-c", script]).current_dir(folder);
    shell.env("HOPLINE", env!("CARGO_BIN_EXE_hopline")).env("NO_COLOR", "1").output().unwrap()
}

fn a_full_disk_is_a_single_error_and_keeps_stored_results() {
    let folder = folder();
    let script = "mount -t tmpfs -o size=64k none small && \
                  $HOPLINE sweep plan.toml -o small/out -q; code=$?; \
                  cp small/out/records.jsonl small/out/manifest.json .; exit $code";
    let output = in_namespace(folder.path(), script);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = stderr(&output);
    assert_eq!(said.matches('×').count(), 1, "{said}");
    assert!(said.contains("No space left on device"), "{said}");
    // Stored records are complete: a sweep elsewhere resumes them.
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

fn a_read_only_directory_is_an_error_before_any_run() {
    let folder = folder();
    let script = "mount -t tmpfs -o ro none small && $HOPLINE sweep plan.toml -o small/out -q";
    let output = in_namespace(folder.path(), script);
    assert_eq!((output.status.code(), stdout(&output)), (Some(1), String::new()));
    let said = stderr(&output);
    assert!(said.contains("small/out") && said.contains("Read-only file system"), "{said}");
    assert_eq!(said.matches('×').count(), 1, "{said}");
}

fn a_qlog_file_that_fills_the_disk_is_a_single_error_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let chain = scenario("chain");
    let script = format!(
        "mount -t tmpfs -o size=64k none small && \
         $HOPLINE run {} --set duration_s=5 --qlog small/logs -q; code=$?; ls -A small; exit $code",
        chain.display()
    );
    let output = in_namespace(folder.path(), &script);
    assert_eq!((output.status.code(), stdout(&output)), (Some(1), String::new()));
    let said = stderr(&output);
    assert!(said.contains("small/logs/f0-") && said.contains("No space left on device"), "{said}");
    assert_eq!(said.matches('×').count(), 1, "{said}");
}
