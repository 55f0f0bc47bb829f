//! `hopline send` and `hopline recv`, over loopback.

use crate::{command, hopline, stderr};
use serde_json::Value as Json;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

/// Receiver, and the port it listens on.
pub(crate) struct Receiver {
    pub(crate) child: Child,
    err: BufReader<ChildStderr>,
    pub(crate) port: u16,
}

impl Receiver {
    /// Starts a receiver of one conversation.
    pub(crate) fn start(directory: &Path, more: &[&str]) -> Self {
        Self::persistent(directory, &[more, &["--once"]].concat())
    }

    pub(crate) fn persistent(directory: &Path, more: &[&str]) -> Self {
        let mut command = command();
        command.args(["recv", "--transport", "tpa", "--anyone", "--bind", "127.0.0.1", "-o"]);
        command.arg(directory).args(more);
        Self::spawn(command)
    }

    /// Starts a receiver with another transport, of a user with these settings.
    pub(crate) fn with_transport(transport: &str, settings: &Path, directory: &Path, more: &[&str]) -> Self {
        let mut command = command();
        command.env("XDG_CONFIG_HOME", settings);
        command
            .args(["recv", "--transport", transport, "--bind", "127.0.0.1", "-o"])
            .arg(directory)
            .args(more);
        Self::spawn(command)
    }

    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut err = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains(" port ") {
            line.clear();
            assert!(err.read_line(&mut line).unwrap() > 0, "it says where it waits");
        }
        let port =
            line.split("port ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap().parse().unwrap();
        Self { child, err, port }
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn peer(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns the exit code, stdout, and the rest of stderr.
    pub(crate) fn end(mut self) -> (Option<i32>, String, String) {
        let mut said = String::new();
        while self.err.read_line(&mut said).unwrap() > 0 {}
        let output = self.child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), said)
    }
}

pub(crate) fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 % 251) as u8).collect()
}

#[test]
fn a_directory_arrives_unchanged() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let tree = from.path().join("logs");
    fs::create_dir_all(tree.join("deep/er")).unwrap();
    fs::write(tree.join("empty"), b"").unwrap();
    fs::write(tree.join("deep/er/big"), pattern(300_000)).unwrap();
    let receiver = Receiver::start(to.path(), &["--port", "0"]);
    let sent = hopline(["send", "--transport", "tpa", tree.to_str().unwrap(), &receiver.peer()]);
    assert_eq!(sent.status.code(), Some(0), "{}", stderr(&sent));
    let (code, out, said) = receiver.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(
        out.contains("logs/deep/er/big: stored") && out.contains("2 stored, 0 there already, 0 refused"),
        "{out}"
    );
    assert_eq!(fs::read(to.path().join("logs/deep/er/big")).unwrap(), pattern(300_000));
    assert_eq!(fs::read(to.path().join("logs/empty")).unwrap(), b"");
}

#[test]
fn existing_files_are_not_replaced_without_force_and_both_ends_report_it() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = from.path().join("a.txt");
    fs::write(&file, b"new").unwrap();
    fs::write(to.path().join("a.txt"), b"old").unwrap();
    let receiver = Receiver::start(to.path(), &["--port", "0"]);
    let sent = hopline(["send", "--transport", "tpa", file.to_str().unwrap(), &receiver.peer(), "--json"]);
    assert_eq!(sent.status.code(), Some(1));
    let lines: Vec<Json> =
        sent.stdout.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    let ended = lines.iter().find(|line| line["event"] == "ended").unwrap();
    assert_eq!((&ended["outcome"], &ended["reason"]), (&Json::from("refused"), &Json::from("exists")));
    assert_eq!(lines.last().unwrap()["refused"], 1);
    assert_eq!(receiver.end().0, Some(1));
    assert_eq!(fs::read(to.path().join("a.txt")).unwrap(), b"old");

    let receiver = Receiver::start(to.path(), &["--port", "0", "--force"]);
    let sent = hopline(["send", "--transport", "tpa", file.to_str().unwrap(), &receiver.peer()]);
    assert_eq!(sent.status.code(), Some(0), "{}", stderr(&sent));
    assert_eq!(receiver.end().0, Some(0));
    assert_eq!(fs::read(to.path().join("a.txt")).unwrap(), b"new");
}

#[test]
fn refusals_determine_the_exit_code_even_without_a_reader() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = from.path().join("f");
    fs::write(&file, b"new").unwrap();
    fs::write(to.path().join("f"), b"old").unwrap();
    let receiver = Receiver::start(to.path(), &["--port", "0"]);
    let mut send = command();
    send.args(["send", "--transport", "tpa", file.to_str().unwrap(), &receiver.peer()]);
    let mut sender = send.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    drop(sender.stdout.take());
    assert_eq!(sender.wait().unwrap().code(), Some(1));
    receiver.end();
}

#[test]
fn standard_input_becomes_a_file_with_the_given_name() {
    let to = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(to.path(), &["--port", "0"]);
    let mut send = command();
    send.args(["send", "--transport", "tpa", "-", &receiver.peer(), "--name", "piped.bin", "-q"])
        .stdin(Stdio::piped());
    let mut child = send.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&pattern(50_000)).unwrap();
    let sent = child.wait_with_output().unwrap();
    assert_eq!(sent.status.code(), Some(0), "{}", stderr(&sent));
    assert_eq!(receiver.end().0, Some(0));
    assert_eq!(fs::read(to.path().join("piped.bin")).unwrap(), pattern(50_000));
}

#[test]
fn a_sender_waits_for_a_receiver_that_starts_later() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = from.path().join("late");
    fs::write(&file, pattern(10_000)).unwrap();
    let port = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let peer = format!("127.0.0.1:{port}");
    let mut send = command();
    send.args(["send", "--transport", "tpa", file.to_str().unwrap(), &peer])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = send.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("trying again"), "{line}");
    let receiver = Receiver::start(to.path(), &["--port", &port.to_string()]);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(receiver.end().0, Some(0));
    assert_eq!(fs::read(to.path().join("late")).unwrap(), pattern(10_000));
}

#[test]
fn unsendable_parts_of_a_directory_are_reported_and_the_rest_arrives() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let tree = from.path().join("in");
    fs::create_dir(&tree).unwrap();
    for name in ["a", "back\\slash", "tab\tname", "new\nline", "z"] {
        fs::write(tree.join(name), name).unwrap();
    }
    let receiver = Receiver::start(to.path(), &["--port", "0"]);
    let sent = hopline(["send", "--transport", "tpa", tree.to_str().unwrap(), &receiver.peer(), "--json"]);
    assert_eq!(sent.status.code(), Some(1), "{}", stderr(&sent));
    let lines: Vec<Json> =
        sent.stdout.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    let refused: Vec<_> =
        lines.iter().filter(|line| line["outcome"] == "refused").map(|line| &line["reason"]).collect();
    assert_eq!(refused, ["path", "path", "path"], "{lines:?}");
    let summary = lines.last().unwrap();
    assert_eq!((&summary["stored"], &summary["refused"]), (&2.into(), &3.into()));
    assert!(lines.iter().all(|line| line["time_s"].as_f64().unwrap() > 1e9), "{lines:?}");
    assert_eq!(receiver.end().0, Some(0));
    assert_eq!(crate::support::names(&to.path().join("in")), ["a", "z"]);
}

#[test]
fn an_unresolvable_name_is_retried_until_patience_ends() {
    let from = tempfile::tempdir().unwrap();
    let file = from.path().join("f");
    fs::write(&file, b"x").unwrap();
    let args =
        ["send", "--transport", "tpa", file.to_str().unwrap(), "nosuch.invalid", "--patience", "2", "--json"];
    let sent = hopline(args);
    assert_eq!(sent.status.code(), Some(1), "{}", stderr(&sent));
    let lines: Vec<Json> =
        sent.stdout.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    let waits = |line: &&Json| line["state"] == "waiting" && line["waits_for"] == "name";
    assert!(lines.iter().any(|line| waits(&line)), "{lines:?}");
    let last = lines.last().unwrap();
    assert_eq!((&last["event"], &last["reason"]), (&"failed".into(), &"name".into()));
    assert!(stderr(&sent).contains("nosuch.invalid: the name has no address"), "{}", stderr(&sent));
}

#[test]
fn a_receiver_applies_its_umask() {
    use std::os::unix::fs::PermissionsExt;
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = from.path().join("f");
    fs::write(&file, b"x").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let mut recv = Command::new("sh");
    let script =
        "umask 027; exec \"$0\" recv --transport tpa --anyone --bind 127.0.0.1 --port 0 --once -o \"$1\"";
    recv.args(["-c", script, env!("CARGO_BIN_EXE_hopline")]).arg(to.path());
    let receiver = Receiver::spawn(recv);
    let sent = hopline(["send", "--transport", "tpa", file.to_str().unwrap(), &receiver.peer()]);
    assert_eq!(sent.status.code(), Some(0), "{}", stderr(&sent));
    assert_eq!(fs::metadata(to.path().join("f")).unwrap().permissions().mode() & 0o777, 0o640);
    receiver.end();
}

#[test]
fn invalid_input_is_reported_before_sending() {
    let missing = hopline(["send", "/no/such/file", "127.0.0.1"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(stderr(&missing).contains("/no/such/file"), "{}", stderr(&missing));
    assert_eq!(hopline(["send", "-", "127.0.0.1"]).status.code(), Some(2), "standard input has no name");
    assert_eq!(hopline(["send", "/dev/null", "127.0.0.1"]).status.code(), Some(2), "a device");
    assert_eq!(hopline(["send", "/etc/hostname", "127.0.0.1", "--window", "13"]).status.code(), Some(2));
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let busy = hopline([
        "recv",
        "--transport",
        "tpa",
        "--anyone",
        "--bind",
        "127.0.0.1",
        "--port",
        &port,
        "-o",
        "/tmp",
    ]);
    assert_eq!(busy.status.code(), Some(1));
    assert!(stderr(&busy).contains("cannot listen on 127.0.0.1:"), "{}", stderr(&busy));
}

/// Returns the processor time of the process so far, seconds, and the number of its threads.
fn usage_of(child: &Child) -> (f64, usize) {
    let place = format!("/proc/{}", child.id());
    let stat = fs::read_to_string(format!("{place}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    (ticks / 100.0, fs::read_dir(format!("{place}/task")).unwrap().count())
}

#[test]
fn hundreds_of_silent_connections_do_not_block_a_sender() {
    use hopline_streams::tpa::{Host, config};
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = from.path().join("honest");
    fs::write(&file, pattern(2_000_000)).unwrap();
    let mut receiver = Receiver::persistent(to.path(), &["--port", "0"]);
    let host = Host::bind("127.0.0.1:0").unwrap();
    let address = receiver.peer().parse().unwrap();
    let mut silent = Vec::new();
    while silent.len() < 400 {
        // Fails while the accept queue is full.
        silent.extend(host.connect(address, &config(3), None));
    }
    let sent =
        hopline(["send", "--transport", "tpa", file.to_str().unwrap(), &receiver.peer(), "--patience", "20"]);
    assert_eq!(sent.status.code(), Some(0), "{}", stderr(&sent));
    let (before, threads) = usage_of(&receiver.child);
    assert!(threads < 10, "{threads} threads");
    std::thread::sleep(std::time::Duration::from_secs(1));
    let used = usage_of(&receiver.child).0 - before;
    assert!(used < 0.5, "{used} s of processor in one second, for nobody");
    // All but the 128 waiting connections have been closed.
    let gone =
        silent.iter().filter(|stream| stream.info().state == hopline_streams::tpa::State::Closed).count();
    assert!(gone >= 400 - 128, "{gone}");
    receiver.child.kill().unwrap();
    receiver.child.wait().unwrap();
}

#[test]
fn senders_above_the_limit_take_turns() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut receiver = Receiver::persistent(to.path(), &["--port", "0", "--conversations", "2"]);
    let senders: Vec<Child> = (0..4)
        .map(|number| {
            let file = from.path().join(format!("file-{number}"));
            fs::write(&file, pattern(3_000_000 + number)).unwrap();
            let mut send = command();
            send.args(["send", "--transport", "tpa", file.to_str().unwrap(), &receiver.peer(), "-q"])
                .stdout(Stdio::null());
            send.spawn().unwrap()
        })
        .collect();
    for (number, mut sender) in senders.into_iter().enumerate() {
        assert_eq!(sender.wait().unwrap().code(), Some(0), "sender {number}");
        assert_eq!(fs::read(to.path().join(format!("file-{number}"))).unwrap(), pattern(3_000_000 + number));
    }
    receiver.child.kill().unwrap();
    receiver.child.wait().unwrap();
}

#[test]
fn patience_ends_on_time() {
    let from = tempfile::tempdir().unwrap();
    let file = from.path().join("f");
    fs::write(&file, b"x").unwrap();
    // A socket that receives, and does not answer.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let peer = silent.local_addr().unwrap().to_string();
    let mut send = command();
    send.args(["send", "--transport", "tpa", file.to_str().unwrap(), &peer, "--patience", "1", "-q"])
        .stderr(Stdio::null());
    let mut sender = send.spawn().unwrap();
    for _ in 0..800 {
        if let Some(status) = sender.try_wait().unwrap() {
            return assert_eq!(status.code(), Some(1));
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    sender.kill().unwrap();
    panic!("eight seconds are no patience of one");
}

#[test]
fn partial_files_are_listed_and_removed_on_request() {
    let to = tempfile::tempdir().unwrap();
    fs::create_dir(to.path().join("deep")).unwrap();
    let part = to.path().join("deep/.hopline-part-0123456789abcdef0123456789abcdef");
    fs::write(&part, b"half").unwrap();
    fs::write(to.path().join("whole"), b"whole").unwrap();
    let cleaned = hopline(["recv", "--clean", "-o", to.path().to_str().unwrap()]);
    let out = String::from_utf8(cleaned.stdout.clone()).unwrap();
    assert_eq!(cleaned.status.code(), Some(0), "{}", stderr(&cleaned));
    assert!(out.contains("deep/.hopline-part-") && out.contains("1 removed, 0 in use"), "{out}");
    assert!(!part.exists() && to.path().join("whole").exists());
}

#[test]
fn partial_files_are_found_in_more_directories_than_descriptors() {
    let to = tempfile::tempdir().unwrap();
    for number in 0..100 {
        let inner = to.path().join(number.to_string());
        fs::create_dir(&inner).unwrap();
        fs::write(inner.join(".hopline-part-0123456789abcdef0123456789abcdef"), b"half").unwrap();
    }
    let script = "ulimit -n 32; exec \"$0\" recv --clean -o \"$1\"";
    let mut clean = std::process::Command::new("sh");
    clean.args(["-c", script, env!("CARGO_BIN_EXE_hopline")]).arg(to.path());
    let out = String::from_utf8(clean.output().unwrap().stdout).unwrap();
    assert!(out.contains("100 removed, 0 in use"), "{out}");
}

#[test]
fn deceptive_names_are_escaped_by_the_sender() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let tree = from.path().join("tree");
    fs::create_dir(&tree).unwrap();
    std::os::unix::fs::symlink("nowhere", tree.join("photo\u{202e}gpj.exe")).unwrap();
    let receiver = Receiver::start(to.path(), &["--port", "0"]);
    let sent = hopline(["send", "--transport", "tpa", tree.to_str().unwrap(), &receiver.peer()]);
    assert!(stderr(&sent).contains("tree/photo\\u{202e}gpj.exe is a symbolic link"), "{}", stderr(&sent));
    assert_eq!(receiver.end().0, Some(0));
}

#[test]
fn files_above_the_quota_are_refused_and_leave_nothing() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = from.path().join("big");
    fs::write(&file, pattern(200_000)).unwrap();
    let receiver = Receiver::start(to.path(), &["--port", "0", "--quota", "100K"]);
    let sent =
        hopline(["send", "--transport", "tpa", file.to_str().unwrap(), &receiver.peer(), "--name", "a/b"]);
    assert_eq!(sent.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&sent.stdout).contains("the receiver's quota has 102400 left"),
        "{sent:?}"
    );
    assert_eq!(receiver.end().0, Some(1));
    assert!(crate::names(to.path()).is_empty());
}
