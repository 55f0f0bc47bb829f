//! `hopline send` without a user, with hosts and disks of its own.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

use hopline_harness::{Need, Test};
use serde_json::Value as Json;
use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use tempfile::TempDir;

pub(crate) fn tests() -> Vec<Test> {
    vec![
        Test::new(
            "a_name_is_resolved_anew_at_every_try",
            [Need::Mounts],
            a_name_is_resolved_at_every_attempt,
        ),
        Test::new(
            "what_cannot_be_read_keeps_nothing_else_from_being_sent",
            [Need::Mounts],
            an_unreadable_file_does_not_block_the_rest,
        ),
        Test::new("a_full_disk_is_waited_for", [Need::Mounts], a_sender_waits_while_the_disk_is_full),
        Test::new(
            "patience_ends_though_bytes_are_sent_again_and_again",
            [Need::Mounts],
            patience_ends_although_bytes_are_sent_repeatedly,
        ),
    ]
}

/// Program that is killed with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns a command of `hopline` with these arguments, in a mount namespace after `script`.
fn after(script: &str, folder: &Path, arguments: &[&str]) -> Command {
    let mut unshare = Command::new("unshare");
    let script = format!("{script} && exec \"$0\" \"$@\"");
    unshare.args(["--map-root-user", "--mount", "sh", "-c", &script, env!("CARGO_BIN_EXE_hopline")]);
    unshare.args(arguments).current_dir(folder).env("NO_COLOR", "1");
    unshare.stdout(Stdio::piped()).stderr(Stdio::piped());
    unshare
}

/// Starts a receiver. Returns it with its port.
fn receiver(script: &str, folder: &Path, output: &str) -> (Running, u16) {
    let args = ["recv", "--transport", "tpa", "--anyone", "--bind", "127.0.0.1", "-p", "0", "-o", output];
    let mut receiver = Running(after(script, folder, &args).spawn().unwrap());
    let mut said = BufReader::new(receiver.0.stderr.take().unwrap()).lines().map(Result::unwrap);
    let line = said.find(|line| line.contains("UDP port ")).expect("it says where it waits");
    let port = line.split("UDP port ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    (receiver, port.parse().unwrap())
}

/// Starts a sender. Returns it with its output.
fn sender(script: &str, folder: &Path, peer: &str) -> (Running, SenderOutput) {
    patient(script, folder, peer, "60")
}

fn patient(script: &str, folder: &Path, peer: &str, patience_s: &str) -> (Running, SenderOutput) {
    let args = ["send", "--transport", "tpa", "f", peer, "--patience", patience_s, "--json"];
    let mut sender = Running(after(script, folder, &args).spawn().unwrap());
    let lines = BufReader::new(sender.0.stdout.take().unwrap()).lines();
    (sender, SenderOutput(lines))
}

struct SenderOutput(Lines<BufReader<ChildStdout>>);

impl SenderOutput {
    /// Returns the next line for which `holds` is true.
    fn until(&mut self, holds: impl Fn(&Json) -> bool) -> Json {
        let lines = self.0.by_ref().map(|line| serde_json::from_str::<Json>(&line.unwrap()).unwrap());
        lines.into_iter().find(holds).expect("it says so")
    }

    fn until_it_waits_for(&mut self, what: &str) {
        self.until(|line| line["state"] == "waiting" && line["waits_for"] == what);
    }
}

fn a_name_is_resolved_at_every_attempt() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("f"), b"content").unwrap();
    let hosts = folder.path().join("hosts");
    fs::write(&hosts, "127.0.0.1 localhost\n").unwrap();
    let (_receiver, port) = receiver("true", folder.path(), "in");
    let peer = format!("mobile.invalid:{port}");
    let (mut sender, mut said) = sender("mount --bind hosts /etc/hosts", folder.path(), &peer);
    said.until_it_waits_for("name");
    // Another host, without a receiver.
    fs::write(&hosts, "127.0.0.1 localhost\n127.0.0.2 mobile.invalid\n").unwrap();
    said.until_it_waits_for("connection-refused");
    fs::write(&hosts, "127.0.0.1 localhost mobile.invalid\n").unwrap();
    let summary = said.until(|line| line["event"] == "summary");
    assert_eq!(summary["stored"], 1, "{summary}");
    assert_eq!(sender.0.wait().unwrap().code(), Some(0));
    assert_eq!(fs::read(folder.path().join("in/f")).unwrap(), b"content");
}

fn an_unreadable_file_does_not_block_the_rest() {
    let folder = TempDir::new().unwrap();
    let allow = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    allow(folder.path(), 0o755);
    let tree = folder.path().join("f");
    fs::create_dir_all(tree.join("locked")).unwrap();
    for name in ["a", "locked/b", "secret", "z"] {
        fs::write(tree.join(name), name).unwrap();
    }
    allow(&tree.join("locked"), 0);
    allow(&tree.join("secret"), 0);
    let (_receiver, port) = receiver("true", folder.path(), "in");
    // An own user namespace takes the right to read everything from root.
    let mut send = Command::new("unshare");
    send.args(["--user", env!("CARGO_BIN_EXE_hopline"), "send", "--transport", "tpa", "--json"]);
    let sent = send.arg(&tree).arg(format!("127.0.0.1:{port}")).output().unwrap();
    allow(&tree.join("locked"), 0o700);
    assert_eq!(sent.status.code(), Some(1), "{}", String::from_utf8_lossy(&sent.stderr));
    let lines: Vec<Json> = String::from_utf8(sent.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let refused: Vec<_> = lines.iter().filter(|line| line["outcome"] == "refused").collect();
    assert_eq!(refused.len(), 2, "{lines:?}");
    assert!(refused.iter().all(|line| line["reason"] == "permission"), "{refused:?}");
    assert_eq!(lines.last().unwrap()["stored"], 2);
    for name in ["a", "z"] {
        assert_eq!(fs::read_to_string(folder.path().join("in/f").join(name)).unwrap(), name);
    }
}

fn a_sender_waits_while_the_disk_is_full() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("f"), vec![7; 100_000]).unwrap();
    let script =
        "mkdir small && mount -t tmpfs -o size=256k none small && head -c 200000 /dev/zero > small/ballast";
    let (mut receiver, port) = receiver(script, folder.path(), "small");
    let (mut sender, mut said) = sender("true", folder.path(), &format!("127.0.0.1:{port}"));
    let deferred = said.until(|line| line["event"] == "deferred");
    assert_eq!((&deferred["path"], &deferred["reason"]), (&"f".into(), &"no-space".into()));
    said.until_it_waits_for("no-space");
    said.until(|line| line["state"] == "sending");
    said.until_it_waits_for("no-space");
    // The path as the receiver sees it.
    let small = format!("/proc/{}/root{}/small", receiver.0.id(), folder.path().display());
    fs::remove_file(Path::new(&small).join("ballast")).unwrap();
    let summary = said.until(|line| line["event"] == "summary");
    assert_eq!((&summary["stored"], &summary["refused"]), (&1.into(), &0.into()), "{summary}");
    assert_eq!(sender.0.wait().unwrap().code(), Some(0));
    assert_eq!(fs::read(Path::new(&small).join("f")).unwrap(), vec![7; 100_000]);
    receiver.0.kill().unwrap();
    let told = std::io::read_to_string(receiver.0.stdout.take().unwrap()).unwrap();
    assert_eq!(told.matches("f: waits: ").count(), 1, "{told}");
    assert!(told.contains("f: stored, after it had to wait "), "{told}");
}

/// The file system has room for bytes, but for no file.
fn patience_ends_although_bytes_are_sent_repeatedly() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("f"), vec![7; 100_000]).unwrap();
    let script = "mkdir small && mount -t tmpfs -o size=1m,nr_inodes=2 none small && touch small/last";
    let (_receiver, port) = receiver(script, folder.path(), "small");
    let (mut sender, mut said) = patient("true", folder.path(), &format!("127.0.0.1:{port}"), "3");
    for _ in 0..20 {
        let line = said.until(|line| line["event"] == "begun" || line["event"] == "summary");
        if line["event"] == "summary" {
            assert_eq!((&line["stored"], &line["refused"]), (&0.into(), &1.into()), "{line}");
            return assert_eq!(sender.0.wait().unwrap().code(), Some(1));
        }
    }
    panic!("it is offered again for ever");
}
