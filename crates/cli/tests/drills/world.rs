//! Two hosts and the two programs on them.

use hopline_link::{NatPortPolicy, Side};
use hopline_secure::PrivateKey;
use hopline_tools::link::{NamespaceLink, Setup};
use std::fs;
use std::io::Read;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Interval between checks.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Transport of the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransportProtocol {
    Tpa,
    /// Encrypted, with a shared key.
    TpaWide,
}

pub(crate) const BOTH: [TransportProtocol; 2] = [TransportProtocol::Tpa, TransportProtocol::TpaWide];

impl TransportProtocol {
    /// Returns a command of `hopline` with this transport; its key is in `folder`.
    pub(crate) fn hopline(self, folder: &Path, arguments: &[&str]) -> Command {
        let mut command = hopline(arguments);
        match self {
            Self::Tpa => command.args(["--transport", "tpa"]),
            Self::TpaWide => command.arg("--psk").arg(key_in(folder)),
        };
        command
    }

    /// Returns a receiver for senders with that key; over TPA, which has no keys, for any sender.
    pub(crate) fn receiver(self, folder: &Path, arguments: &[&str]) -> Command {
        let mut recv = self.hopline(folder, &["recv"]);
        recv.args(arguments);
        if self == Self::Tpa {
            recv.arg("--anyone");
        }
        recv
    }
}

/// Writes the shared key, readable only by its owner.
fn key_in(folder: &Path) -> PathBuf {
    let path = folder.join("key");
    if !path.exists() {
        write_secret(&path, &hex(&KEY));
    }
    path
}

/// Keys of a receiver and of the sender that it knows.
pub(crate) struct Keys {
    folder: PathBuf,
}

impl Keys {
    /// Creates them in `folder`, for a receiver at `at`.
    pub(crate) fn make(folder: &Path, at: IpAddr) -> Self {
        let own = |name: &str, key: [u8; 32]| {
            let private = PrivateKey::new(key);
            write_secret(&folder.join(name), &format!("private:{}\n", hex(&key)));
            private.public()
        };
        let [receiver, sender] = [own("receiver", [0x11; 32]), own("sender", [0x22; 32])];
        fs::write(folder.join("known-to-receiver"), format!("sender {sender}\n")).unwrap();
        fs::write(folder.join("known-to-sender"), format!("{at} {receiver}\n")).unwrap();
        Self { folder: folder.to_owned() }
    }

    pub(crate) fn of_receiver(&self, command: &mut Command) {
        self.give(command, "receiver");
    }

    pub(crate) fn of_sender(&self, command: &mut Command) {
        self.give(command, "sender");
    }

    fn give(&self, command: &mut Command, name: &str) {
        command.arg("--key").arg(self.folder.join(name));
        command.arg("--known-peers").arg(self.folder.join(format!("known-to-{name}")));
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn write_secret(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

/// Shared key of all programs of these tests.
pub(crate) const KEY: [u8; 32] = [0xa7; 32];

/// Sender on A, receiver on B. A program that ends is restarted with the same command.
pub(crate) struct World {
    pub(crate) link: NamespaceLink,
    folders: TempDir,
    data: Vec<u8>,
    silence: String,
    transport: TransportProtocol,
    pub(crate) receiver: Option<Child>,
    pub(crate) sender: Option<Child>,
}

impl World {
    pub(crate) fn new(speaks: TransportProtocol, setup: Setup, bytes: usize, silence: Duration) -> Self {
        let folders = TempDir::new().unwrap();
        for name in ["from", "to"] {
            fs::create_dir(folders.path().join(name)).unwrap();
        }
        let data: Vec<u8> = (0..bytes).map(|i| (i * 31 % 251 + i / 65_536) as u8).collect();
        fs::write(folders.path().join("from/f"), &data).unwrap();
        let link = NamespaceLink::with(setup).unwrap();
        let silence = silence.as_secs().to_string();
        Self { link, folders, data, silence, transport: speaks, receiver: None, sender: None }
    }

    pub(crate) fn place(&self) -> PathBuf {
        self.folders.path().join("to")
    }

    pub(crate) fn start_receiver(&mut self) {
        let mut recv = self.transport.receiver(self.folders.path(), &["-q", "--silence", &self.silence]);
        recv.arg("-o").arg(self.place());
        self.receiver = Some(self.link.host(Side::B).spawn(recv).unwrap());
    }

    pub(crate) fn start_sender(&mut self) {
        let file = self.folders.path().join("from/f");
        let to = self.link.address_b().to_string();
        let mut send = self.hopline(&["send", "-q", "--silence", &self.silence, "--patience", "300"]);
        send.arg(file).arg(to);
        self.sender = Some(self.link.host(Side::A).spawn(send).unwrap());
    }

    fn hopline(&self, arguments: &[&str]) -> Command {
        self.transport.hopline(self.folders.path(), arguments)
    }

    pub(crate) fn rebind_sender(&self) {
        self.link.rebind(Side::A, NatPortPolicy::Forgotten);
    }

    /// Returns the exit status and output of the sender, if it has ended.
    pub(crate) fn sender_ended(&mut self) -> Option<(ExitStatus, String)> {
        let status = self.sender.as_mut()?.try_wait().unwrap()?;
        let mut said = String::new();
        let _ = self.sender.take().unwrap().stderr.unwrap().read_to_string(&mut said);
        Some((status, said))
    }

    /// Checks that all bytes are right, and that there are no other files.
    pub(crate) fn check(&self, what: &str) {
        let names: Vec<_> = fs::read_dir(self.place()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["f"], "{what}");
        assert!(
            fs::read(self.place().join("f")).unwrap() == self.data,
            "{what}: not the bytes that were sent"
        );
    }

    /// Checks that the idle receiver has kept nothing, and ends by a signal.
    pub(crate) fn check_receiver(&mut self, what: &str) {
        let receiver = self.receiver.as_mut().unwrap();
        let (memory, threads) = usage(receiver.id());
        assert!(memory < 40 << 20, "{what}: {memory} bytes resident");
        assert!(threads <= 6, "{what}: {threads} threads");
        signal(receiver, "TERM");
        let status = ended(receiver, Duration::from_secs(10));
        assert!(status.is_some_and(|status| matches!(status.code(), Some(0 | 130))), "{what}: {status:?}");
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for child in [&mut self.sender, &mut self.receiver].into_iter().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub(crate) fn hopline(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hopline"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

pub(crate) fn signal(child: &Child, name: &str) {
    let kill = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(kill.unwrap().success());
}

/// Returns the exit status, if the process ends within that time.
pub(crate) fn ended(child: &mut Child, within: Duration) -> Option<ExitStatus> {
    let since = now();
    while since.elapsed() < within {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        thread::sleep(POLL_INTERVAL);
    }
    None
}

/// Returns the resident bytes, and the number of threads.
pub(crate) fn usage(pid: u32) -> (u64, u64) {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let value = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
        line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
    };
    (value("VmRSS:") * 1024, value("Threads:"))
}

/// Returns the processor time of a process, seconds.
pub(crate) fn processor(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

#[expect(clippy::disallowed_methods, reason = "drills are in real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Mounts a disk of `bytes` bytes at `place`, for these tests alone.
pub(crate) fn mount(place: &Path, bytes: usize) -> bool {
    let size = format!("size={bytes}");
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", &size, "none"]).arg(place);
    mount.status().is_ok_and(|status| status.success())
}

/// Changes its size to `bytes`.
pub(crate) fn enlarge(place: &Path, bytes: usize) {
    let size = format!("remount,size={bytes}");
    assert!(Command::new("mount").args(["-o", &size]).arg(place).status().unwrap().success());
}

pub(crate) fn unmount(place: &Path) {
    let _ = Command::new("umount").arg("-l").arg(place).status();
}

/// Sets a flag when it is dropped, also by a panic. Without it, a scope would wait for ever for threads that check the flag.
pub(crate) struct StopOnDrop<'a>(pub(crate) &'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}
