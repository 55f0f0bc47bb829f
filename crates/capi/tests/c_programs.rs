//! C programs against the installed library: the examples, and those of `tests/c`, which check their own results.

#![allow(clippy::unwrap_used, reason = "helpers of tests, though without `#[test]`")]

use hopline_harness::{Need, run, tests};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitCode, Output, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;

const CRATE: &str = env!("CARGO_MANIFEST_DIR");
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Compiler flags: every warning is an error.
const STRICT: [&str; 5] = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic"];

fn main() -> ExitCode {
    let tests = tests!([Need::Of(no_compiler)];
        a_file_arrives_unchanged,
        a_file_arrives_unchanged_through_a_statically_linked_program,
        a_truncated_file_is_not_stored,
        an_event_loop_serves_nonblocking_sockets,
        invalid_calls_are_errors_and_never_crash,
        failures_have_their_errno,
        peers_are_authenticated,
        threads_do_not_block_each_other,
        closed_connections_leave_no_state,
        tpa_or_tcp_is_used_as_the_peer_supports,
    );
    let cpp = tests!([Need::Of(no_compiler), Need::Program("c++")]; the_header_works_in_cpp);
    let nm = tests!([Need::Of(no_compiler), Need::Program("nm")]; the_library_exports_exactly_the_functions_of_the_header);
    run(tests.into_iter().chain(cpp).chain(nm), None)
}

fn a_file_arrives_unchanged() {
    transfer("send", "recv", 10_000_000);
    transfer("send", "recv", 0);
}

fn a_file_arrives_unchanged_through_a_statically_linked_program() {
    let folder = folder();
    let to = folder.path().join("send");
    let mut cc = cc();
    cc.args(STRICT).arg("-I").arg(installed().join("include")).arg("-o").arg(&to);
    cc.arg(example("send.c")).arg(installed().join("lib/libhopline.a")).args([
        "-lgcc_s",
        "-lm",
        "-lpthread",
        "-ldl",
    ]);
    done(cc.output().unwrap());
    transfer(&to.display().to_string(), "recv", 100_000);
}

/// Sends `len` bytes, and compares the result.
fn transfer(sender: &str, receiver: &str, len: usize) {
    let folder = folder();
    let [key, source, target] = ["key", "source", "target"].map(|name| folder.path().join(name));
    shared_key(&key);
    fs::write(&source, pattern(len)).unwrap();
    let (receiver, port, mut said) =
        serving(program(receiver).arg("127.0.0.1").arg("0").args([&key, &target]));
    done(program(sender).args(["127.0.0.1", &port]).args([&key, &source]).output().unwrap());
    done(receiver.end());
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, format!("received {len} bytes\n"));
    assert!(fs::read(&target).unwrap() == pattern(len), "not what was sent");
}

/// The sender cannot read on: the receiver must not take the part that arrived for the whole file.
fn a_truncated_file_is_not_stored() {
    let folder = folder();
    let [key, target] = ["key", "target"].map(|name| folder.path().join(name));
    shared_key(&key);
    let (receiver, port, _) = serving(program("recv").arg("127.0.0.1").arg("0").args([&key, &target]));
    // A folder can be opened but not read: this fails after the connection is open.
    let ended =
        program("send").args(["127.0.0.1", &port]).args([&key, &folder.path().to_owned()]).output().unwrap();
    assert!(!ended.status.success());
    let received = receiver.end();
    assert_eq!(received.status.code(), Some(1));
    assert!(text(&received.stderr).contains("tpa_recv: connection reset"), "{}", text(&received.stderr));
    assert!(!target.exists());
}

fn an_event_loop_serves_nonblocking_sockets() {
    let folder = folder();
    let key = folder.path().join("key");
    shared_key(&key);
    let (server, port, _) = serving(program("echo").arg("0").arg(&key).arg("3"));
    done(program("poll").arg(port).arg(&key).output().unwrap());
    done(server.end());
}

fn invalid_calls_are_errors_and_never_crash() {
    done(program("wrong").output().unwrap());
}

fn failures_have_their_errno() {
    done(program("failures").output().unwrap());
}

fn peers_are_authenticated() {
    done(program("identity").arg(folder().path()).output().unwrap());
}

fn threads_do_not_block_each_other() {
    done(program("threads").output().unwrap());
}

fn tpa_or_tcp_is_used_as_the_peer_supports() {
    done(program("published").output().unwrap());
}

fn the_header_works_in_cpp() {
    let header = installed().join("include/hopline.h");
    done(
        Command::new("c++")
            .args(["-x", "c++", "-fsyntax-only", "-Wall", "-Werror"])
            .arg(header)
            .output()
            .unwrap(),
    );
}

fn closed_connections_leave_no_state() {
    done(program("leaves_nothing").output().unwrap());
}

/// The library must not export other functions than those of the header.
fn the_library_exports_exactly_the_functions_of_the_header() {
    let library = installed().join("lib/libhopline.so");
    let names =
        done(Command::new("nm").args(["--dynamic", "--defined-only"]).arg(&library).output().unwrap());
    let exported: BTreeSet<&str> = names.lines().filter_map(|line| line.split_whitespace().last()).collect();
    let header = fs::read_to_string(installed().join("include/hopline.h")).unwrap();
    // The type stands before the last word of a declaration.
    let declared = header.lines().filter(|line| line.ends_with(");") && !line.starts_with(' '));
    let declared: BTreeSet<&str> =
        declared.filter_map(|line| line.split('(').next()?.rsplit([' ', '*']).next()).collect();
    assert_eq!(exported, declared);
    assert!(declared.contains("tpa_connect"));
}

// ---- the programs ----

/// Returns the folder with the library, the header and the programs.
fn installed() -> &'static Path {
    static INSTALLED: OnceLock<TempDir> = OnceLock::new();
    INSTALLED.get_or_init(install).path()
}

fn install() -> TempDir {
    let folder = folder();
    // Cargo leaves the libraries of the crate under test in the folder of the tests.
    let tests = std::env::current_exe().unwrap();
    let built = tests.parent().unwrap();
    done(
        Command::new(Path::new(CRATE).join("install"))
            .args([built, folder.path()])
            .arg(VERSION)
            .output()
            .unwrap(),
    );
    let flags = flags(folder.path());
    let programs = ["send", "recv", "echo"].map(|name| example(&format!("{name}.c")));
    let tests = ["wrong", "failures", "identity", "threads", "leaves_nothing", "poll", "published"];
    let tests = tests.map(|name| Path::new(CRATE).join("tests/c").join(name).with_extension("c"));
    for source in programs.iter().chain(&tests) {
        let mut cc = cc();
        cc.args(STRICT).args(["-O1", "-pthread"]).arg(format!("-DVERSION=\"{VERSION}\""));
        cc.arg("-o").arg(folder.path().join(source.file_stem().unwrap())).arg(source).args(&flags);
        done(cc.output().unwrap());
    }
    folder
}

/// Returns the compiler flags that pkg-config prints, or equivalents if there is none.
fn flags(installed: &Path) -> Vec<String> {
    let mut pkg_config = Command::new("pkg-config");
    pkg_config.args(["--cflags", "--libs", "hopline"]);
    match pkg_config.env("PKG_CONFIG_PATH", installed.join("lib/pkgconfig")).output() {
        Ok(said) => done(said).split_whitespace().map(Into::into).collect(),
        Err(_) => {
            let [include, lib] = ["include", "lib"].map(|name| installed.join(name).display().to_string());
            vec![format!("-I{include}"), format!("-L{lib}"), "-lhopline".into()]
        }
    }
}

/// Returns a command that runs one of the programs, by its name or path.
fn program(name: &str) -> Command {
    let mut command = Command::new(installed().join(name));
    command.env("LD_LIBRARY_PATH", installed().join("lib"));
    // A program without a key setting must not find a key of a user.
    command.env("XDG_CONFIG_HOME", installed().join("nobody"));
    command
}

/// Program that listens; killed when the test fails.
struct Running(Option<Child>);

impl Running {
    fn end(mut self) -> Output {
        self.0.take().unwrap().wait_with_output().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Starts a program that prints its address; its later output can be read.
fn serving(command: &mut Command) -> (Running, String, BufReader<ChildStdout>) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    let port = line.trim_end().rsplit(' ').next().unwrap().to_owned();
    assert!(port.parse::<u16>().is_ok(), "no port in {line:?}");
    (Running(Some(child)), port, said)
}

/// Returns the output of a program that succeeded.
fn done(ended: Output) -> String {
    assert!(ended.status.success(), "{}: {}{}", ended.status, text(&ended.stdout), text(&ended.stderr));
    text(&ended.stdout)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn cc() -> Command {
    let named = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut words = named.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("cc"));
    command.args(words);
    command
}

fn no_compiler() -> Option<String> {
    let answer = cc().arg("--version").output();
    let works = answer.is_ok_and(|answer| answer.status.success());
    (!works).then(|| "there is no C compiler, neither $CC nor cc".into())
}

fn example(name: &str) -> PathBuf {
    Path::new(CRATE).join("examples").join(name)
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn shared_key(path: &Path) {
    let file = File::options().write(true).create_new(true).mode(0o600).open(path).unwrap();
    std::io::Write::write_all(&mut { file }, format!("{:064x}\n", 0x7a1).as_bytes()).unwrap();
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + i / 251) as u8).collect()
}
