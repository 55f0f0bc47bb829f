//! The examples, as readers of `docs/rust.md` and of README.md run them.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

use hopline_harness::{Need, Test, tests};
use hopline_streams::key_files::{add_peer, store_key};
use hopline_streams::wide::PrivateKey;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::thread;
use tempfile::TempDir;

const NAMES: [&str; 4] = ["server", "client", "event_loop", "asynchronous"];

pub(crate) fn tests() -> Vec<Test> {
    tests!([Need::Of(why_not_built)];
        data_are_echoed_with_a_shared_key_and_with_key_pairs,
        data_are_echoed_by_the_event_loop,
        a_server_with_another_key_receives_nothing,
        a_client_with_an_unknown_key_is_refused,
        tasks_of_a_runtime_echo,
    )
    .into()
}

fn program(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.ancestors().nth(2).unwrap().join("examples").join(name)
}

/// `cargo test` builds examples, but not if it is told to build a certain program of tests.
fn why_not_built() -> Option<String> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let changed = |path: &Path| fs::metadata(path).and_then(|found| found.modified()).ok();
    let is_old = |name: &&&str| {
        changed(&program(name)).is_none_or(|built| Some(built) < changed(&sources.join(format!("{name}.rs"))))
    };
    NAMES.iter().find(is_old).map(|name| {
        format!(
            "example {name} is not built: cargo build --locked -p hopline-streams --features tokio --examples"
        )
    })
}

/// A server that has said where it listens.
struct Server(Child, #[expect(dead_code, reason = "or its next line would end it")] BufReader<ChildStdout>);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serve(name: &str, keys: &[&Path]) -> (Server, SocketAddr) {
    let mut command = Command::new(program(name));
    let mut child = command.arg("127.0.0.1:0").args(keys).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    let address = line.trim().rsplit(' ').next().unwrap().parse();
    (Server(child, said), address.unwrap_or_else(|error| panic!("{line:?}: {error}")))
}

/// Output of a client that sends `data`.
fn call(server: SocketAddr, keys: &[&str], data: &[u8]) -> Output {
    let mut command = Command::new(program("client"));
    command.arg(server.to_string()).args(keys);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    thread::scope(|scope| {
        // A client that is refused reads nothing.
        scope.spawn(move || input.write_all(data));
        child.wait_with_output().unwrap()
    })
}

/// More than waits in all buffers together.
fn data() -> Vec<u8> {
    hopline_testkit::streams::pattern(1, 12_000_000)
}

fn assert_echoed(server: SocketAddr, keys: &[&str]) {
    let data = data();
    let ended = call(server, keys, &data);
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    assert!(ended.stdout == data, "{} of {} bytes came back", ended.stdout.len(), data.len());
}

/// Key files of a server and a client that know each other.
struct Keys(TempDir);

impl Keys {
    fn new() -> Self {
        let keys = Self(tempfile::tempdir().unwrap());
        let key = |byte| PrivateKey::new([byte; 32]);
        for (own, byte, peer, of_peer) in
            [("server", 1, "client", 2), ("client", 2, "server", 1), ("stranger", 3, "server", 1)]
        {
            store_key(&keys.path(&format!("{own}.key")), &key(byte)).unwrap();
            let known = keys.path(&format!("{own}.peers"));
            add_peer(&known, &peer.parse().unwrap(), &key(of_peer).public()).unwrap();
        }
        let mut shared = File::options();
        let shared = shared.write(true).create_new(true).mode(0o600).open(keys.path("shared.key"));
        shared.unwrap().write_all("07".repeat(32).as_bytes()).unwrap();
        keys
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn word(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }
}

fn data_are_echoed_with_a_shared_key_and_with_key_pairs() {
    let keys = Keys::new();
    let (_server, address) = serve("server", &[&keys.path("shared.key")]);
    assert_echoed(address, &[&keys.word("shared.key")]);
    let (_server, address) = serve("server", &[&keys.path("server.key"), &keys.path("server.peers")]);
    assert_echoed(address, &[&keys.word("client.key"), &keys.word("client.peers"), "server"]);
}

fn data_are_echoed_by_the_event_loop() {
    let keys = Keys::new();
    let (_server, address) = serve("event_loop", &[&keys.path("shared.key")]);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| assert_echoed(address, &[&keys.word("shared.key")]));
        }
    });
}

fn a_server_with_another_key_receives_nothing() {
    let keys = Keys::new();
    let (_server, address) = serve("server", &[&keys.path("stranger.key"), &keys.path("stranger.peers")]);
    let ended = call(address, &[&keys.word("client.key"), &keys.word("client.peers"), "server"], b"secret");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(!ended.status.success() && said.contains("another key than expected"), "{said}");
}

fn a_client_with_an_unknown_key_is_refused() {
    let keys = Keys::new();
    let (_server, address) = serve("server", &[&keys.path("server.key"), &keys.path("server.peers")]);
    let ended = call(address, &[&keys.word("stranger.key"), &keys.word("stranger.peers"), "server"], b"x");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(!ended.status.success() && said.contains("did not accept"), "{said}");
}

fn tasks_of_a_runtime_echo() {
    let ended = Command::new(program("asynchronous")).arg("2").output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    assert!(ended.stdout.starts_with(b"2 MB echoed"), "{}", String::from_utf8_lossy(&ended.stdout));
}
