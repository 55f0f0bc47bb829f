//! `hopline bench` with iperf3 at the other end, in both roles, over TCP and UDP. Tests are reported as ignored if iperf3 is
//! not installed.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]
#![allow(clippy::disallowed_methods, reason = "what servers print is read on the side")]

use hopline_harness::{Need, Test};
use serde_json::Value as Json;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::sleep;
use std::time::Duration;

const HOPLINE: &str = env!("CARGO_BIN_EXE_hopline");
/// Options of the tests, which both programs have.
const TESTS: [&[&str]; 9] = [
    &[],
    &["-R"],
    &["-P", "2"],
    &["--bidir", "-P", "2"],
    &["-u", "-b", "5M", "-l", "1000"],
    &["-u", "-b", "5M", "-l", "1000", "-R", "-P", "2"],
    &["-u", "-b", "5M", "-l", "1000", "--bidir"],
    &["-C", "reno", "-N", "-M", "1000", "-S", "16", "-w", "200K", "-Z"],
    &["-b", "20M/2", "-l", "10K", "-R", "-T", "title", "--get-server-output"],
];

pub(crate) fn tests() -> Vec<Test> {
    let mut trials = Vec::new();
    for options in TESTS {
        let name = options.join(" ");
        trials.push(trial(format!("hopline measures with an iperf3 server: {name}"), || {
            let server = Server::iperf3();
            check(options, run(HOPLINE, &["bench"], &server, options));
        }));
        trials.push(trial(format!("iperf3 measures with a hopline server: {name}"), || {
            let server = Server::hopline();
            check(options, run("iperf3", &[], &server, options));
        }));
    }
    for way in [&[][..], &["--bidir"]] {
        let options = [&["-u", "-b", "10M", "-O", "1"], way].concat();
        let name = options.join(" ");
        let of_hopline = options.clone();
        trials.push(trial(
            format!("hopline leaves out what it omits with an iperf3 server: {name}"),
            move || {
                check_packets(&run(HOPLINE, &["bench"], &Server::iperf3(), &of_hopline));
            },
        ));
        trials.push(trial(
            format!("iperf3 leaves out what it omits with a hopline server: {name}"),
            move || {
                check_packets(&run("iperf3", &[], &Server::hopline(), &options));
            },
        ));
    }
    trials.push(trial("json is iperf3's key by key".into(), json_is_iperf3s));
    trials.push(trial("iperf3 is told in its own words why a hopline server refuses".into(), || {
        let server = Server::hopline();
        let output = client("iperf3", &[], &server, &["-R", "-C", "nosuch"]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("unable to set TCP_CONGESTION"), "{said}");
        let many = client("iperf3", &[], &server, &["-P", "65", "--bidir"]).output().unwrap();
        let said = String::from_utf8(many.stderr).unwrap();
        assert!(said.contains("number of parallel streams too large"), "{said}");
    }));
    for options in [&["-O", "1", "-n", "1M"][..], &["-O", "1", "-n", "1M", "--bidir"]] {
        let name = options.join(" ");
        trials.push(trial(format!("a hopline server omits before bytes count for iperf3: {name}"), || {
            run_for("iperf3", &[], &Server::hopline(), options, &[]);
        }));
        trials.push(trial(format!("hopline omits before bytes count with an iperf3 server: {name}"), || {
            let document = run_for(HOPLINE, &["bench"], &Server::iperf3(), options, &[]);
            let sent = document["end"]["sum_sent"]["bytes"].as_u64().unwrap();
            assert!((1 << 20..2 << 20).contains(&sent), "{document:#}");
        }));
    }
    trials.push(trial("an iperf3 server is told apart from one of TPA".into(), || {
        for (transport, called) in [("tpa", "TPA,"), ("tpa-wide", "TPA-wide,")] {
            let server = Server::iperf3();
            let output = client(HOPLINE, &["bench"], &server, &["--transport", transport]).output().unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(said.contains(called) && said.contains("--transport tcp"), "{said}");
        }
    }));
    trials.push(trial("a hopline server that has a test tells iperf3 so".into(), || {
        let server = Server::hopline();
        let mut first = client("iperf3", &[], &server, &["-t", "5"]).stdout(Stdio::null()).spawn().unwrap();
        sleep(Duration::from_millis(500));
        let second = client("iperf3", &[], &server, &[]).output().unwrap();
        first.kill().unwrap();
        first.wait().unwrap();
        let said = String::from_utf8(second.stderr).unwrap();
        assert!(said.contains("the server is busy"), "{said}");
        // Killed in the midst; the next client has its test anyway.
        check(&[], run("iperf3", &[], &server, &[]));
    }));
    trials.push(trial("noise on its port does not keep a hopline server from a test".into(), || {
        let server = Server::hopline();
        for noise in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            &[0; 64],
            b"abc",
            b"lkbkflypniop5vcgazn3itll7ghnvjtqjb2t\0\xff\xff\xff\xff",
        ] {
            TcpStream::connect(("127.0.0.1", server.port)).unwrap().write_all(noise).unwrap();
        }
        let _half_open = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        check(&[], run("iperf3", &[], &server, &[]));
    }));
    trials
}

fn trial(name: String, body: impl Fn() + Send + 'static) -> Test {
    Test::new(name, [Need::Program("iperf3")], body)
}

struct Server {
    child: Child,
    port: u16,
    /// Message each time an iperf3 server listens: it closes its port after every test and opens it again.
    listening: Option<Receiver<()>>,
}

impl Server {
    fn iperf3() -> Self {
        // The port was free a moment ago.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new("iperf3");
        command.args(["-s", "-B", "127.0.0.1", "-p", &port.to_string(), "--forceflush"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (listens, listening) = channel();
        std::thread::spawn(move || {
            for _ in lines.map_while(Result::ok).filter(|line| line.contains("listening")) {
                // A server of one test is not used a second time.
                let _ = listens.send(());
            }
        });
        Self { child, port, listening: Some(listening) }
    }

    fn hopline() -> Self {
        let mut command = Command::new(HOPLINE);
        command.args(["bench", "-s", "-B", "127.0.0.1", "-p", "0"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = lines.next().unwrap().unwrap();
        let port = line.split("port ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, port, listening: None }
    }

    /// Waits until a test can begin.
    fn ready(&self) {
        if let Some(listening) = &self.listening {
            listening.recv_timeout(Duration::from_secs(10)).expect("an iperf3 server listens");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn client(program: &str, first: &[&str], server: &Server, options: &[&str]) -> Command {
    server.ready();
    let mut command = Command::new(program);
    command.args(first).args(["-c", "127.0.0.1", "-p", &server.port.to_string()]);
    command.args(options).stderr(Stdio::piped());
    command
}

fn run(program: &str, first: &[&str], server: &Server, options: &[&str]) -> Json {
    run_for(program, first, server, options, &["-t", "1"])
}

fn run_for(program: &str, first: &[&str], server: &Server, options: &[&str], limit: &[&str]) -> Json {
    let mut command = client(program, first, server, options);
    if program == HOPLINE && !options.iter().any(|option| ["-u", "-C"].contains(option)) {
        command.args(["--transport", "tcp"]);
    }
    let output = command.args(limit).arg("-J").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let document: Json = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {said}"));
    assert!(output.status.success() && document.get("error").is_none(), "{document:#} {said}");
    document
}

/// Checks that both sides have counted about the same.
fn check(options: &[&str], document: Json) {
    let end = &document["end"];
    let bytes = |sum: &str| end[sum]["bytes"].as_f64().unwrap_or_else(|| panic!("{sum}: {document:#}"));
    let mut sums = vec![("sum_sent", "sum_received")];
    if options.contains(&"--bidir") {
        sums.push(("sum_sent_bidir_reverse", "sum_received_bidir_reverse"));
    }
    for (sent, received) in sums {
        assert!(bytes(received) > 0.0 && bytes(received) <= bytes(sent) * 1.1, "{document:#}");
        if options.contains(&"-u") {
            assert!(end[received]["jitter_ms"].is_number() && end[received]["lost_packets"].is_number());
        }
    }
    if options.contains(&"--get-server-output") {
        let text = document["server_output_text"].as_str().unwrap();
        // To the last line: at least the sum of the server's side.
        assert!(text.contains("127.0.0.1") && text.contains("sender"), "{text}");
    }
}

/// Checks that every sum has the datagrams of one second: 38 of the length that the loopback interface suggests.
fn check_packets(document: &Json) {
    let end = document["end"].as_object().unwrap();
    let sums: Vec<_> = end.iter().filter(|(key, _)| key.starts_with("sum")).collect();
    assert!(sums.len() >= 3, "{document:#}");
    for (key, sum) in sums {
        assert!((30..=45).contains(&sum["packets"].as_i64().unwrap()), "{key}: {sum}");
    }
}

/// Documents of hopline and of iperf3 have the same keys and types, and the same truth values.
fn json_is_iperf3s() {
    let server = Server::iperf3();
    for transport in [&["-l", "20K"][..], &["-u", "-b", "8M", "-l", "1000"]] {
        for way in [&[][..], &["-R"], &["--bidir"]] {
            for streams in ["1", "2"] {
                let options = [transport, way, &["-P", streams]].concat();
                let of = |program, first: &[&str]| {
                    let mut lines = Vec::new();
                    let document = run_for(program, first, &server, &options, &["-n", "100K"]);
                    shape("", &document, &mut lines);
                    lines
                };
                assert_eq!(of(HOPLINE, &["bench"]), of("iperf3", &[]), "{options:?}");
            }
        }
    }
}

/// Lists the places of a document with their types, except where docs/bench.md names a difference.
fn shape(place: &str, value: &Json, lines: &mut Vec<String>) {
    let kind = match value {
        // iperf3 has `bidir` from 3.13 on.
        _ if place == "/start/test_start/bidir" => return,
        // Values that an iperf3 server does not report are zero there, `null` here.
        Json::Null if place.ends_with("_rtt") => "number".into(),
        Json::Null => "null".into(),
        Json::Bool(value) => value.to_string(),
        Json::Number(_) => "number".into(),
        Json::String(_) => "text".into(),
        // Their number depends on the duration of the test.
        Json::Array(values) if place == "/intervals" => {
            return values.iter().take(1).for_each(|value| shape("/intervals/0", value, lines));
        }
        Json::Array(values) => {
            let numbered = values.iter().enumerate();
            return numbered.for_each(|(at, value)| shape(&format!("{place}/{at}"), value, lines));
        }
        Json::Object(values) => {
            return values.iter().for_each(|(key, value)| shape(&format!("{place}/{key}"), value, lines));
        }
    };
    lines.push(format!("{place} {kind}"));
}
