//! A transfer whose sender or receiver is killed goes on with the same commands.

use crate::transfer::{Receiver, pattern};
use crate::{command, hopline, names, stderr};
use serde_json::Value as Json;
use std::fs;
use std::io::BufRead;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Bytes of the file.
const SIZE: usize = 2_000_000;
/// Bytes of the sender's datagrams that pass before the gate is shut: the transfer cannot end however fast the machine is.
const PASS: u64 = 600_000;
/// Bytes that the receiver has before somebody is killed.
const ENOUGH: u64 = 100_000;
const SIGKILL: i32 = 9;

/// A way from a sender to a receiver that shuts when so much has passed it, until it is opened.
struct Gate {
    port: u16,
    /// Bytes that may still pass.
    left: Arc<AtomicU64>,
    gone: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Gate {
    fn to(receiver: u16) -> Self {
        let socket = || Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
        let (front, back) = (socket(), socket());
        for socket in [&front, &back] {
            socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        }
        back.connect(("127.0.0.1", receiver)).unwrap();
        let (left, gone) = (Arc::new(AtomicU64::new(PASS)), Arc::new(AtomicBool::new(false)));
        let port = front.local_addr().unwrap().port();
        // The port of the sender that was heard last.
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
            // Refused while the receiver is not there.
            let Ok(len) = back.recv(buffer) else { return };
            let port = sender.load(Ordering::Relaxed) as u16;
            let _ = front.send_to(&buffer[..len], ("127.0.0.1", port));
        });
        Self { port, left, gone, threads: vec![forth, home] }
    }

    fn open(&self) {
        self.left.store(u64::MAX, Ordering::Relaxed);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.gone.store(true, Ordering::Relaxed);
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

/// Name and size of the partial file, if there is one.
fn part(folder: &Path) -> Option<(String, u64)> {
    let name = names(folder).into_iter().find(|name| name.starts_with(".hopline-part-"))?;
    let size = fs::metadata(folder.join(&name)).ok()?.len();
    Some((name, size))
}

/// Waits until the receiver has enough of the file; a minute without end is a failure.
fn await_enough(folder: &Path) {
    for _ in 0..6000 {
        if part(folder).is_some_and(|(_, size)| size >= ENOUGH) {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("the partial file does not grow: {:?}", names(folder));
}

/// As Ctrl-C does.
fn interrupt(child: &Child) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
}

fn killed(child: &mut Child) -> ExitStatus {
    child.kill().unwrap();
    child.wait().unwrap()
}

/// A file on its way through a gate that has shut.
struct Transfer {
    folders: [tempfile::TempDir; 2],
    receiver: Receiver,
    gate: Gate,
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
        let gate = Gate::to(receiver.port);
        let mut send = command();
        send.args(send_arguments(folders[0].path(), &gate));
        let sender = send.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let transfer = Self { folders, receiver, gate, sender };
        await_enough(transfer.folders[1].path());
        transfer
    }

    /// Both ends are gone: the same commands again, and what they say and leave behind.
    fn goes_on(self, port: u16) {
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

/// Nothing is left running when a test fails.
impl Drop for Transfer {
    fn drop(&mut self) {
        for child in [&mut self.sender, &mut self.receiver.child] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn send_arguments(from: &Path, gate: &Gate) -> [String; 4] {
    let file = from.join("big").to_str().unwrap().to_owned();
    ["send".into(), file, format!("127.0.0.1:{}", gate.port), "--json".into()]
}

#[test]
fn a_sender_that_is_killed_goes_on_where_it_was() {
    let mut transfer = Transfer::halfway();
    assert_eq!(killed(&mut transfer.sender).signal(), Some(SIGKILL));
    // The receiver would wait two minutes for a sign of life.
    let port = transfer.receiver.port;
    interrupt(&transfer.receiver.child);
    let status = transfer.receiver.child.wait().unwrap();
    assert_ne!(status.code(), Some(0), "what is not complete is no success");
    transfer.goes_on(port);
}

#[test]
fn a_sender_that_comes_again_waits_while_the_receiver_still_waits_for_it() {
    let mut transfer = Transfer::halfway_to(Receiver::that_stays);
    assert_eq!(killed(&mut transfer.sender).signal(), Some(SIGKILL));
    let mut again = command();
    again.args(send_arguments(transfer.folders[0].path(), &transfer.gate));
    transfer.gate.open();
    let mut again = again.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let said = std::io::BufReader::new(again.stderr.take().unwrap());
    let busy =
        said.lines().map(Result::unwrap).find(|line| line.contains("from somebody else; trying again"));
    assert!(busy.is_some(), "it gave up");
    killed(&mut again);
    interrupt(&transfer.receiver.child);
    transfer.receiver.child.wait().unwrap();
    let port = transfer.receiver.port;
    transfer.goes_on(port);
}

#[test]
fn a_receiver_that_is_killed_goes_on_where_it_was() {
    let mut transfer = Transfer::halfway();
    let port = transfer.receiver.port;
    assert_eq!(killed(&mut transfer.receiver.child).signal(), Some(SIGKILL));
    // The sender would wait as long, and then try again by itself.
    interrupt(&transfer.sender);
    assert_ne!(transfer.sender.wait().unwrap().code(), Some(0));
    transfer.goes_on(port);
}

#[test]
fn both_killed_at_once_go_on_where_they_were() {
    let mut transfer = Transfer::halfway();
    let port = transfer.receiver.port;
    assert_eq!(killed(&mut transfer.receiver.child).signal(), Some(SIGKILL));
    assert_eq!(killed(&mut transfer.sender).signal(), Some(SIGKILL));
    transfer.goes_on(port);
}
