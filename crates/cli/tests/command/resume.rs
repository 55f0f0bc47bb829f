//! A transfer with a killed sender or receiver is resumed by the same commands.

use crate::transfer::{Receiver, pattern};
use crate::{command, hopline, names, stderr};
use serde_json::Value as Json;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Bytes of the file.
const SIZE: usize = 2_000_000;
/// Bytes of the sender's datagrams that pass before the gate closes, so that the transfer cannot end on any machine.
const PASS: u64 = 600_000;
/// Bytes that the receiver has before a process is killed.
const ENOUGH: u64 = 100_000;
const SIGKILL: i32 = 9;

/// Path from a sender to a receiver that closes after a number of bytes, until it is opened.
struct LimitedPath {
    port: u16,
    /// Bytes that may still pass.
    remaining: Arc<AtomicU64>,
    stopped: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl LimitedPath {
    fn to(receiver: u16) -> Self {
        let socket = || Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
        let (front, back) = (socket(), socket());
        for socket in [&front, &back] {
            socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        }
        back.connect(("127.0.0.1", receiver)).unwrap();
        let (left, gone) = (Arc::new(AtomicU64::new(PASS)), Arc::new(AtomicBool::new(false)));
        let port = front.local_addr().unwrap().port();
        // Port of the sender of the last datagram.
        let sender = Arc::new(AtomicU64::new(0));
        let forth = {
            let (front, back, left, sender) = (front.clone(), back.clone(), left.clone(), sender.clone());
            pump(&gone, move |buffer| {
                let Ok((len, SocketAddr::V4(from))) = front.recv_from(buffer) else { return };
                sender.store(from.port().into(), Ordering::Relaxed);
                let pays =
                    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(len as u64));
                if pays.is_ok() {
                    let _ = back.send(&buffer[..len]);
                }
            })
        };
        let home = pump(&gone, move |buffer| {
            // Fails while no receiver listens.
            let Ok(len) = back.recv(buffer) else { return };
            let port = sender.load(Ordering::Relaxed) as u16;
            let _ = front.send_to(&buffer[..len], ("127.0.0.1", port));
        });
        Self { port, remaining: left, stopped: gone, threads: vec![forth, home] }
    }

    fn open(&self) {
        self.remaining.store(u64::MAX, Ordering::Relaxed);
    }
}

impl Drop for LimitedPath {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "each way has a thread of its own")]
fn pump(gone: &Arc<AtomicBool>, mut once: impl FnMut(&mut [u8]) + Send + 'static) -> JoinHandle<()> {
    let gone = gone.clone();
    thread::spawn(move || {
        let mut buffer = [0; 65_536];
        while !gone.load(Ordering::Relaxed) {
            once(&mut buffer);
        }
    })
}

/// Returns name and size of the partial file, if there is one.
fn part(folder: &Path) -> Option<(String, u64)> {
    let name = names(folder).into_iter().find(|name| name.starts_with(".hopline-part-"))?;
    let size = fs::metadata(folder.join(&name)).ok()?.len();
    Some((name, size))
}

/// Waits until the receiver has enough of the file; fails after a minute.
fn await_partial_file(folder: &Path) {
    for _ in 0..6000 {
        if part(folder).is_some_and(|(_, size)| size >= ENOUGH) {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("the partial file does not grow: {:?}", names(folder));
}

/// Sends SIGINT, as Ctrl-C does.
fn interrupt(child: &Child) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
}

fn killed(child: &mut Child) -> ExitStatus {
    child.kill().unwrap();
    child.wait().unwrap()
}

/// Transfer through a gate that has closed.
struct Transfer {
    folders: [tempfile::TempDir; 2],
    receiver: Receiver,
    gate: LimitedPath,
    sender: Child,
}

impl Transfer {
    fn halfway() -> Self {
        Self::halfway_to(Receiver::start)
    }

    fn halfway_to(receiver: fn(&Path, &[&str]) -> Receiver) -> Self {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        fs::write(folders[0].path().join("big"), pattern(SIZE)).unwrap();
        let receiver = receiver(folders[1].path(), &["--port", "0"]);
        let gate = LimitedPath::to(receiver.port);
        let mut send = command();
        send.args(send_arguments(folders[0].path(), &gate));
        let sender = send.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let transfer = Self { folders, receiver, gate, sender };
        await_partial_file(transfer.folders[1].path());
        transfer
    }

    /// Runs the same commands again after both ends are gone, and checks their output and the files.
    fn resume_and_check(self, port: u16) {
        let [from, to] = &self.folders;
        let (name, here) = part(to.path()).expect("what has arrived is kept");
        assert_eq!(names(to.path()), [name], "and nothing else is there");
        assert!(here >= ENOUGH && here < SIZE as u64, "{here}");
        self.gate.open();
        let receiver = Receiver::start(to.path(), &["--port", &port.to_string()]);
        let sent = hopline(send_arguments(from.path(), &self.gate));
        assert_eq!(sent.status.code(), Some(0), "{}", stderr(&sent));
        let lines: Vec<Json> =
            sent.stdout.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
        let begun = lines.iter().find(|line| line["event"] == "begun").expect("a file is begun");
        assert_eq!(
            (&begun["path"], &begun["size"], &begun["offset"]),
            (&"big".into(), &SIZE.into(), &here.into())
        );
        let summary = lines.last().unwrap();
        assert_eq!((&summary["stored"], &summary["bytes"]), (&1.into(), &(SIZE as u64 - here).into()));
        let (code, _, said) = receiver.end();
        assert_eq!(code, Some(0), "{said}");
        assert_eq!(names(to.path()), ["big"], "no partial file is left");
        assert!(fs::read(to.path().join("big")).unwrap() == pattern(SIZE), "not the bytes that were sent");
    }
}

/// Kills both processes when a test fails.
impl Drop for Transfer {
    fn drop(&mut self) {
        for child in [&mut self.sender, &mut self.receiver.child] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn send_arguments(from: &Path, gate: &LimitedPath) -> [String; 6] {
    let file = from.join("big").to_str().unwrap().to_owned();
    [
        "send".into(),
        "--transport".into(),
        "tpa".into(),
        file,
        format!("127.0.0.1:{}", gate.port),
        "--json".into(),
    ]
}

/// Sends SIGTERM, as `systemctl restart` does.
fn terminate(child: &Child) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
}

/// Waits until the child ends by itself.
fn ended(child: &mut Child, within: Duration) -> ExitStatus {
    for _ in 0..within.as_millis() / 10 {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("it goes on and on");
}

impl Transfer {
    /// Runs the sender again, to its end.
    fn send_again(&self) -> std::process::Output {
        hopline(send_arguments(self.folders[0].path(), &self.gate))
    }

    fn assert_arrived(&self) {
        let to = self.folders[1].path();
        assert_eq!(names(to), ["big"], "no partial file is left");
        assert!(fs::read(to.join("big")).unwrap() == pattern(SIZE), "not the bytes that were sent");
    }
}

#[test]
fn a_killed_sender_resumes_within_a_second() {
    let mut transfer = Transfer::halfway_to(Receiver::persistent);
    assert_eq!(killed(&mut transfer.sender).signal(), Some(SIGKILL));
    let (_, here) = part(transfer.folders[1].path()).unwrap();
    transfer.gate.open();
    let sent = transfer.send_again();
    assert_eq!(sent.status.code(), Some(0), "{}", stderr(&sent));
    assert_eq!(stderr(&sent), "", "nobody was in the way");
    let lines: Vec<Json> =
        sent.stdout.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    let begun = lines.iter().find(|line| line["event"] == "begun").unwrap();
    assert!(begun["offset"].as_u64().unwrap() >= here, "{begun}");
    transfer.assert_arrived();
}

#[test]
fn an_interrupted_sender_reports_it_and_resumes() {
    let mut transfer = Transfer::halfway_to(Receiver::persistent);
    transfer.gate.open();
    interrupt(&transfer.sender);
    let status = ended(&mut transfer.sender, Duration::from_secs(10));
    // 130, unless it was done before.
    assert!(matches!(status.code(), Some(130 | 0)), "{status}");
    let sent = transfer.send_again();
    assert_eq!(sent.status.code(), Some(0), "{}", stderr(&sent));
    transfer.assert_arrived();
}

#[test]
fn the_later_of_two_equal_senders_takes_over_and_the_earlier_ends() {
    let mut transfer = Transfer::halfway_to(Receiver::persistent);
    // The earlier one gets no more data through, but receives replies.
    let another = LimitedPath::to(transfer.receiver.port);
    another.open();
    let again = hopline(send_arguments(transfer.folders[0].path(), &another));
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    transfer.assert_arrived();
    let status = ended(&mut transfer.sender, Duration::from_secs(30));
    assert_eq!(status.code(), Some(1), "it does not try again");
}

#[test]
fn the_sender_resumes_by_itself_after_the_receiver_restarts() {
    let mut transfer = Transfer::halfway();
    let port = transfer.receiver.port;
    assert_eq!(killed(&mut transfer.receiver.child).signal(), Some(SIGKILL));
    transfer.gate.open();
    transfer.receiver = Receiver::start(transfer.folders[1].path(), &["--port", &port.to_string()]);
    assert_eq!(ended(&mut transfer.sender, Duration::from_secs(60)).code(), Some(0));
    transfer.assert_arrived();
}

#[test]
fn senders_wait_while_a_receiver_service_restarts() {
    let mut transfer = Transfer::halfway_to(Receiver::persistent);
    let port = transfer.receiver.port;
    terminate(&transfer.receiver.child);
    let status = ended(&mut transfer.receiver.child, Duration::from_secs(10));
    assert_eq!(status.code(), Some(0), "a service was stopped");
    assert!(transfer.sender.try_wait().unwrap().is_none(), "the sender waits");
    transfer.gate.open();
    transfer.receiver = Receiver::persistent(transfer.folders[1].path(), &["--port", &port.to_string()]);
    assert_eq!(ended(&mut transfer.sender, Duration::from_secs(60)).code(), Some(0));
    transfer.assert_arrived();
}

#[test]
fn a_silence_longer_than_both_timeouts_is_survived() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    fs::write(folders[0].path().join("big"), pattern(SIZE)).unwrap();
    let mut receiver = Receiver::persistent(folders[1].path(), &["--port", "0", "--silence", "2"]);
    let gate = LimitedPath::to(receiver.port);
    let mut send = command();
    send.args(send_arguments(folders[0].path(), &gate)).args(["--silence", "2"]);
    let mut sender = send.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // The gate has closed. Both ends close the connection; the sender reports it.
    let mut said = std::io::BufReader::new(sender.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(said.any(|line| line.contains("trying again")), "it gave up");
    gate.open();
    assert_eq!(ended(&mut sender, Duration::from_secs(60)).code(), Some(0));
    assert!(fs::read(folders[1].path().join("big")).unwrap() == pattern(SIZE));
    killed(&mut receiver.child);
}

#[test]
fn the_state_is_printed_every_second_during_an_outage() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    fs::write(folders[0].path().join("big"), pattern(SIZE)).unwrap();
    let mut receiver = Receiver::persistent(folders[1].path(), &["--port", "0"]);
    // It closes in the middle.
    let gate = LimitedPath::to(receiver.port);
    let mut send = command();
    send.args(send_arguments(folders[0].path(), &gate));
    let mut sender = send.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = std::io::BufReader::new(sender.stdout.take().unwrap()).lines();
    let mut lines = lines.map(|line| serde_json::from_str::<Json>(&line.unwrap()).unwrap());
    let mut waiting =
        lines.by_ref().filter(|line| line["state"] == "sending" && line["waits_for"] == "receiver");
    let [first, second] = [(); 2].map(|()| waiting.next().unwrap());
    assert!(first["bytes"].as_u64().unwrap() >= ENOUGH && second["rate_bps"] == 0.0, "{first} {second}");
    let apart = second["time_s"].as_f64().unwrap() - first["time_s"].as_f64().unwrap();
    assert!(apart > 0.5 && second["idle_s"].as_f64() > first["idle_s"].as_f64(), "{first} {second}");
    gate.open();
    let summary = lines.last().unwrap();
    assert_eq!((&summary["event"], &summary["stored"]), (&"summary".into(), &1.into()));
    assert_eq!(ended(&mut sender, Duration::from_secs(10)).code(), Some(0));
    killed(&mut receiver.child);
}

#[test]
fn a_transfer_resumes_after_both_ends_were_killed() {
    let mut transfer = Transfer::halfway();
    let port = transfer.receiver.port;
    assert_eq!(killed(&mut transfer.receiver.child).signal(), Some(SIGKILL));
    assert_eq!(killed(&mut transfer.sender).signal(), Some(SIGKILL));
    transfer.resume_and_check(port);
}

#[test]
fn an_idle_receiver_that_is_stopped_exits_successfully() {
    for stop in [interrupt, terminate] {
        let folder = tempfile::tempdir().unwrap();
        let mut receiver = Receiver::persistent(folder.path(), &["--port", "0"]);
        stop(&receiver.child);
        assert_eq!(ended(&mut receiver.child, Duration::from_secs(10)).code(), Some(0));
    }
}

#[test]
fn a_sender_with_silent_standard_input_can_be_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(folder.path(), &["--port", "0"]);
    let (mut sender, _pipe) = silent_sender(&receiver, folder.path());
    let mut said = BufReader::new(sender.stdout.take().unwrap())
        .lines()
        .map(|line| serde_json::from_str::<Json>(&line.unwrap()).unwrap());
    assert!(said.any(|line| line["state"] == "sending" && line["waits_for"] == "input"));
    interrupt(&sender);
    assert_eq!(ended(&mut sender, Duration::from_secs(10)).code(), Some(130));
    let last = said.last().unwrap();
    assert_eq!((&last["event"], &last["reason"]), (&"failed".into(), &"interrupted".into()), "{last}");
    let (code, _, said) = receiver.end();
    assert!(code == Some(1) && said.contains("the peer gave up: interrupted"), "{said}");
    assert!(names(folder.path()).is_empty(), "a stream cannot be gone on with");
}

#[test]
fn a_receiver_of_one_conversation_that_is_terminated_during_it_exits_successfully() {
    let folder = tempfile::tempdir().unwrap();
    let mut receiver = Receiver::start(folder.path(), &["--port", "0"]);
    let (mut sender, _pipe) = silent_sender(&receiver, folder.path());
    terminate(&receiver.child);
    assert_eq!(ended(&mut receiver.child, Duration::from_secs(10)).code(), Some(0));
    killed(&mut sender);
}

/// Returns a sender of standard input that has sent nine bytes, and the other end of its pipe.
fn silent_sender(receiver: &Receiver, to: &Path) -> (Child, ChildStdin) {
    let mut send = command();
    send.args(["send", "--transport", "tpa", "-", &receiver.peer(), "--name", "f", "--json"]);
    send.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut sender = send.spawn().unwrap();
    let mut pipe = sender.stdin.take().unwrap();
    std::io::Write::write_all(&mut pipe, b"something").unwrap();
    // Written data arrive even if none follow.
    while part(to).is_none_or(|(_, size)| size < 9) {
        assert!(sender.try_wait().unwrap().is_none());
        thread::sleep(Duration::from_millis(10));
    }
    (sender, pipe)
}

#[test]
fn a_sender_without_an_answer_can_be_interrupted_at_once() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("big"), b"x").unwrap();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut send = command();
    send.args(["send", "--transport", "tpa"])
        .arg(folder.path().join("big"))
        .arg(silent.local_addr().unwrap().to_string());
    let mut sender = send.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // It has sent its first datagram.
    silent.recv(&mut [0; 2000]).unwrap();
    interrupt(&sender);
    assert_eq!(ended(&mut sender, Duration::from_secs(5)).code(), Some(130));
}

#[test]
fn patience_limits_the_silence_of_an_established_connection() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    fs::write(folders[0].path().join("big"), pattern(SIZE)).unwrap();
    let mut receiver = Receiver::persistent(folders[1].path(), &["--port", "0"]);
    // It closes, and is never opened.
    let gate = LimitedPath::to(receiver.port);
    let mut send = command();
    send.args(send_arguments(folders[0].path(), &gate)).args(["--patience", "3"]);
    let mut sender = send.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    assert_eq!(ended(&mut sender, Duration::from_secs(30)).code(), Some(1));
    killed(&mut receiver.child);
}
