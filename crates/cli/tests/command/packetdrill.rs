//! `hopline packetdrill`.

use super::*;
use std::fs;

/// Folder with a script that passes, one that fails, and one that does not apply.
fn scripts() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let passing = "0 < S 100:100(0) win 1000\n+0 > R. 0:0(0) ack 101\n";
    fs::write(folder.path().join("closed.pkt"), passing).unwrap();
    fs::write(inner.join("wrong.pkt"), passing.replace("ack 101", "ack 100")).unwrap();
    fs::write(inner.join("other.pkt"), "0 < udp (100)\n").unwrap();
    fs::write(inner.join("notes.txt"), "not a script").unwrap();
    folder
}

fn packetdrill(folder: &Path, more: &[&str]) -> Output {
    command().current_dir(folder).arg("packetdrill").args(more).output().unwrap()
}

#[test]
fn each_script_has_a_verdict_and_a_failure_its_difference() {
    let folder = scripts();
    let output = packetdrill(folder.path(), &["."]);
    assert_eq!(output.status.code(), Some(1));
    let expected = "\
running 3 scripts
test ./closed.pkt ... ok
test ./inner/other.pkt ... not applicable, line 1: UDP
test ./inner/wrong.pkt ... FAILED

failures:

./inner/wrong.pkt:2: acknowledgment 101, not 100
  - +0 > R. 0:0(0) ack 100
  + 0.000000 > R. 0:0(0) ack 101 win 0

not applicable for want of  scripts
UDP                               1

result: FAILED. 1 passed; 1 failed; 1 not applicable
";
    assert_eq!(stdout(&output), expected);
    assert_eq!(stderr(&output).trim(), "× 1 of 3 scripts failed");
}

#[test]
fn scripts_that_do_not_apply_are_no_failure() {
    let folder = scripts();
    let output = packetdrill(folder.path(), &["closed.pkt", "inner/other.pkt", "--summary"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).ends_with("\nresult: ok. 1 passed; 0 failed; 1 not applicable\n"));
    assert!(!stdout(&output).contains("test "));
}

#[test]
fn json_has_the_numbers_and_each_script() {
    let folder = scripts();
    let output = packetdrill(folder.path(), &[".", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let printed: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&printed["passed"], &printed["failed"], &printed["not_applicable"]),
        (&1.into(), &1.into(), &1.into())
    );
    let wrong = &printed["scripts"][2];
    assert_eq!(wrong["script"], "./inner/wrong.pkt");
    assert_eq!(wrong["difference"], "acknowledgment 101, not 100");
}

#[test]
fn a_syntax_error_is_shown_at_its_place_after_the_other_scripts() {
    let folder = scripts();
    fs::write(folder.path().join("bad.pkt"), "0 < S 100:100(0) win\n").unwrap();
    let output = packetdrill(folder.path(), &["bad.pkt", "closed.pkt"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stdout(&output).contains("test closed.pkt ... ok"));
    assert!(
        stderr(&output).contains("bad.pkt:2:1: expected an integer, found `the end of the line`"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn missing_scripts_are_input_errors() {
    let folder = tempfile::tempdir().unwrap();
    let output = packetdrill(folder.path(), &["none.pkt"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("none.pkt: there is no such file"));
    let output = packetdrill(folder.path(), &["."]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no scripts in this folder"));
}

#[test]
fn options_count_after_those_of_the_scripts() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("six.pkt"), "--ip_version=ipv6\n0 < S 0:0(0) win 1\n+0 > R. 0:0(0) ack 1\n")
        .unwrap();
    let output = packetdrill(folder.path(), &["six.pkt", "--option", "ip_version=ipv4"]);
    assert!(stdout(&output).contains("six.pkt ... not applicable, line 1: another IP version"));
    let output = packetdrill(folder.path(), &["six.pkt", "--option", "ip_version=ipv6"]);
    assert!(stdout(&output).contains("six.pkt ... ok"), "{}", stdout(&output));
    let output = packetdrill(folder.path(), &["six.pkt", "--option", "mtu"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("NAME=VALUE"), "{}", stderr(&output));
}
