//! All of what must hold, over the real link: 10 MB through each case, and many connections at once. It takes minutes:
//! `make must-hold`, which prints a table of how long.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

mod over_udp;

use hopline_core::{Duration, Instant};
use hopline_net::tpa::{Host, TpaStream, config};
use hopline_testkit::Emulation;
use hopline_testkit::cases::{Outcome, arrives_byte_exact, must_hold};
use hopline_testkit::namespace::{NamespaceLink, OverSockets, run_long_tests};
use hopline_testkit::oracle::InOrder;
use over_udp::OverUdp;
use std::io::{Read, Write};
use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;

/// All of a block: the paper's 2 and 3 take three times as long.
const WINDOW: u8 = 12;
/// What the connections at once carry together, bytes.
const TOGETHER: u64 = 10_000_000;
const AT_ONCE: &str = "200 connections on one listener";

/// Rows of the table, with the place of each.
static ROWS: Mutex<Vec<(usize, String)>> = Mutex::new(Vec::new());

fn main() -> ExitCode {
    let cases = must_hold().into_iter().enumerate().map(|(place, case)| {
        let name = case.name;
        let body = move || {
            let outcome = arrives_byte_exact(&OverSockets(OverUdp { window: WINDOW }), &case);
            note(place, name, case.bytes, &outcome);
        };
        (name, Box::new(body) as Box<dyn FnOnce() + Send>)
    });
    let many: (_, Box<dyn FnOnce() + Send>) = (AT_ONCE, Box::new(many_at_once));
    let code = run_long_tests(cases.chain([many]).collect());
    print_table();
    code
}

fn many_at_once() {
    const CONNECTIONS: u64 = 200;
    let link = usual_link();
    let (listener, server) = link.run_in_b(|| {
        let host = Host::bind((link.address_b(), 5201)).unwrap();
        (host.listen(&config(3), CONNECTIONS as usize).unwrap(), host)
    });
    let client = link.run_in_a(|| Host::bind((link.address_a(), 0)).unwrap());
    let each = TOGETHER / CONNECTIONS;
    let to = server.local_addr().unwrap();
    // All are open before the first sends: what a link is full of lets no SYN through.
    let near: Vec<_> = thread::scope(|scope| {
        let connect = || client.connect(to, &config(3), None).unwrap();
        let calls: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(connect)).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    let far: Vec<_> = (0..CONNECTIONS).map(|_| listener.accept().unwrap().0).collect();
    thread::scope(|scope| {
        for stream in near {
            scope.spawn(move || send(stream, each));
        }
        for stream in &far {
            scope.spawn(move || assert_eq!(receive(stream), each));
        }
    });
    let stats = link.stats();
    let counts = [stats.forth, stats.back];
    let outcome = Outcome { received: TOGETHER, ended: true, at: link.now(), counts };
    note(usize::MAX, AT_ONCE, TOGETHER, &outcome);
}

fn send(mut stream: TpaStream, bytes: u64) {
    stream.write_all(&InOrder::bytes(0, bytes as usize)).unwrap();
    stream.close().unwrap();
}

/// Bytes received to the end, each of them right.
fn receive(mut stream: &TpaStream) -> u64 {
    let mut oracle = InOrder::default();
    let mut buffer = vec![0; 1 << 14];
    loop {
        match stream.read(&mut buffer).unwrap() {
            0 => return oracle.received(),
            n => oracle.take(&bytes::Bytes::copy_from_slice(&buffer[..n])),
        }
    }
}

/// 2 Mb/s, 25 ms each way, 50 packets.
fn usual_link() -> NamespaceLink {
    let way = || Emulation {
        rate: Some(2_000_000),
        queue: Some(50),
        ..Emulation::delay(Duration::from_millis(25))
    };
    NamespaceLink::new(way(), way(), 1).unwrap()
}

fn note(place: usize, name: &str, bytes: u64, outcome: &Outcome) {
    let seconds = (outcome.at - Instant::ZERO).as_secs_f64();
    let [forth, back] = outcome.counts;
    let row = format!(
        "| {name} | {seconds:.0} | {:.2} | {:.2} | {:.2} |",
        bytes as f64 * 8.0 / seconds / 1e6,
        forth.sent as f64 / (bytes as f64 / 1448.0),
        back.sent as f64 / (bytes as f64 / 1448.0),
    );
    ROWS.lock().unwrap().push((place, row));
}

/// Past the capture of tests' output, and only if something was measured.
fn print_table() {
    let mut rows = ROWS.lock().unwrap();
    rows.sort();
    if !rows.is_empty() {
        let mut out = std::io::stdout();
        let head = "| 10 MB | s | Mb/s | packets there per full packet's worth | packets back |\n|---|--:|--:|--:|--:|";
        writeln!(out, "\n{head}").unwrap();
        rows.iter().for_each(|(_, row)| writeln!(out, "{row}").unwrap());
    }
}
