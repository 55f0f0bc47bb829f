//! All acceptance tests over the real link, for TPA and TPA-wide: 10 MB through each case, and many connections at once.
//! They take minutes: `make must-hold`, which prints a table of durations.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

use crate::over_udp::OverUdp;
use hopline_core::{Duration, Instant};
use hopline_harness::Test;
use hopline_streams::tpa::{self, Tpa};
use hopline_streams::wide::{self, Credentials, PrivateKey, Trust, Wide};
use hopline_streams::{Host, Protocol, Stream};
use hopline_testkit::Emulation;
use hopline_testkit::cases::{Outcome, acceptance_cases, arrives_byte_exact};
use hopline_testkit::namespace::{LINK, NamespaceLink, OverSockets};
use hopline_testkit::reference_stream::InOrder;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::Mutex;
use std::thread;

/// Bytes that the simultaneous connections carry in total.
const TOGETHER: u64 = 10_000_000;
const CONNECTIONS: u64 = 200;
const AT_ONCE: &str = "200 connections on one listener";

/// Transport under test.
trait TransportUnderTest: Protocol<Config: Sync> {
    const COLUMN: Column;
    /// Data of a full packet, bytes.
    const FULL: u64;

    /// Returns the parameters for a single connection.
    fn alone() -> OverUdp<Self>;

    /// Returns the parameters for many connections.
    fn among_many() -> OverUdp<Self>;
}

impl TransportUnderTest for Tpa {
    const COLUMN: Column = Column::Tpa;
    const FULL: u64 = 1448;

    /// A window of a whole block: the paper's 2 and 3 take three times as long.
    fn alone() -> OverUdp<Self> {
        OverUdp { initiator: tpa::config(12), responder: tpa::config(12) }
    }

    fn among_many() -> OverUdp<Self> {
        OverUdp { initiator: tpa::config(3), responder: tpa::config(3) }
    }
}

impl TransportUnderTest for Wide {
    const COLUMN: Column = Column::TpaWide;
    const FULL: u64 = 1437;

    fn alone() -> OverUdp<Self> {
        let [near, far] = [1, 2].map(|byte| PrivateKey::new([byte; 32]));
        let (to_near, to_far) = (near.public(), far.public());
        let config =
            |private, peer| wide::config(Credentials::Keys { private, trust: Trust::Only(vec![peer]) });
        OverUdp { initiator: config(near, to_far), responder: config(far, to_near) }
    }

    fn among_many() -> OverUdp<Self> {
        Self::alone()
    }
}

/// Column of a transport in the table.
#[derive(Clone, Copy, Debug)]
enum Column {
    Tpa,
    TpaWide,
}

/// Rows of the table by position, each with a name and the measured value of each transport.
static ROWS: Mutex<BTreeMap<usize, Row>> = Mutex::new(BTreeMap::new());

type Row = (&'static str, [Option<String>; 2]);

/// Returns all tests of TPA-wide, then all of TPA. With fewer links at a time, a late link is less likely.
pub(crate) fn tests() -> Vec<Test> {
    tests_of::<Wide>().chain(tests_of::<Tpa>()).collect()
}

fn tests_of<P: TransportUnderTest>() -> impl Iterator<Item = Test> {
    let cases = acceptance_cases().into_iter().enumerate().map(|(place, case)| {
        let name = case.name;
        let body = move || {
            let outcome = arrives_byte_exact(&OverSockets(P::alone()), &case);
            note::<P>(place, name, case.bytes, &outcome);
        };
        test::<P>(name, body)
    });
    cases.chain([test::<P>(AT_ONCE, many_connections::<P>)])
}

fn test<P: TransportUnderTest>(name: &str, body: impl Fn() + Send + 'static) -> Test {
    Test::new(format!("{}: {name}", P::NAME), [LINK], body).long()
}

fn many_connections<P: TransportUnderTest>() {
    let link = usual_link();
    let OverUdp { initiator: caller, responder } = P::among_many();
    let (listener, server) = link.run_in_b(|| {
        let host = Host::<P>::bind((link.address_b(), 5201)).unwrap();
        (host.listen(&responder, CONNECTIONS as usize).unwrap(), host)
    });
    let client = link.run_in_a(|| Host::<P>::bind((link.address_a(), 0)).unwrap());
    let each = TOGETHER / CONNECTIONS;
    let to = server.local_addr().unwrap();
    // All connections are open before the first sends, because a SYN does not get through a full link.
    let near: Vec<_> = thread::scope(|scope| {
        let connect = || client.connect(to, &caller, None).unwrap();
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
    let counts = [stats.forward, stats.reverse];
    let outcome = Outcome { received: TOGETHER, ended: true, at: link.now(), counts };
    note::<P>(usize::MAX, AT_ONCE, TOGETHER, &outcome);
}

fn send<P: Protocol>(mut stream: Stream<P>, bytes: u64) {
    stream.write_all(&InOrder::bytes(0, bytes as usize)).unwrap();
    stream.close().unwrap();
}

/// Receives to the end, and returns the number of bytes. Each is checked.
fn receive<P: Protocol>(mut stream: &Stream<P>) -> u64 {
    let mut oracle = InOrder::default();
    let mut buffer = vec![0; 1 << 14];
    loop {
        match stream.read(&mut buffer).unwrap() {
            0 => return oracle.received(),
            n => oracle.check(&bytes::Bytes::copy_from_slice(&buffer[..n])),
        }
    }
}

/// 2 Mb/s, 25 ms each way, 50 packets.
fn usual_link() -> NamespaceLink {
    let way = || Emulation::delay(Duration::from_millis(25)).with_rate(Some(2_000_000)).with_queue(Some(50));
    NamespaceLink::new(way(), way(), 1).unwrap()
}

fn note<P: TransportUnderTest>(place: usize, name: &'static str, bytes: u64, outcome: &Outcome) {
    let seconds = (outcome.at - Instant::ZERO).as_secs_f64();
    let [forth, back] = outcome.counts;
    let packets = bytes as f64 / P::FULL as f64;
    let cells = format!(
        "{seconds:.0} | {:.2} | {:.2} | {:.2}",
        bytes as f64 * 8.0 / seconds / 1e6,
        forth.sent as f64 / packets,
        back.sent as f64 / packets,
    );
    let mut rows = ROWS.lock().unwrap();
    rows.entry(place).or_insert((name, [None, None])).1[P::COLUMN as usize] = Some(cells);
}

/// Prints the table, if there are results.
pub(crate) fn print_table() {
    let rows = ROWS.lock().unwrap();
    if !rows.is_empty() {
        let mut out = std::io::stdout();
        let of = |name: &str| format!("{name}: s | Mb/s | packets there | back");
        writeln!(out, "\nPackets are for each full packet's worth.\n").unwrap();
        writeln!(out, "| 10 MB | {} | {} |", of("TPA"), of("TPA-wide")).unwrap();
        writeln!(out, "|---{}|", "|--:".repeat(8)).unwrap();
        for (name, cells) in rows.values() {
            let [tpa, wide] = cells.each_ref().map(|cells| cells.as_deref().unwrap_or("– | – | – | –"));
            writeln!(out, "| {name} | {tpa} | {wide} |").unwrap();
        }
    }
}
