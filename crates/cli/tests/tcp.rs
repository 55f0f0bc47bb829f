//! `hopline tcp`: the program as a TCP host, a client program, and the kernel behind a link; ended by a signal, and killed.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

use hopline_core::Duration as Span;
use hopline_harness::{Test, tests};
use hopline_link::{Emulation, Side};
use hopline_testkit::namespace::LINK;
use hopline_tools::link::{EndConfig, EndRole, NamespaceLink, Setup};
use serde_json::Value;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

const STACK: &str = "10.88.0.2";
const ENTRY: &str = "127.0.0.1:8080";
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn tests() -> Vec<Test> {
    tests!([LINK];
        a_file_is_transferred_and_counted,
        a_killed_and_restarted_stack_resets_its_connections,
    )
    .into()
}

fn link() -> NamespaceLink {
    let way = Emulation::delay(Span::from_millis(5)).with_rate(Some(50_000_000)).with_loss(0.01);
    let near = EndConfig { role: EndRole::Host, networks: vec!["10.88.0.0/24".parse().unwrap()] };
    NamespaceLink::with(Setup { ends: [near, EndConfig::default()], ..Setup::new(way.clone(), way, 7) })
        .unwrap()
}

/// Starts the program at host A, and waits until it is ready.
fn start(link: &NamespaceLink, to: SocketAddr) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hopline"));
    command.args([
        "tcp",
        "--address",
        STACK,
        "-L",
        &format!("{ENTRY}:{to}"),
        "--transport",
        "tcp-door",
        "--json",
    ]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = link.host(Side::A).spawn(command).unwrap();
    let mut said = String::new();
    BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
    assert!(said.contains("tcp-door at 10.88.0.2"), "{said}");
    child
}

fn patient(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn connect(link: &NamespaceLink) -> TcpStream {
    patient(link.run_in_a(|| TcpStream::connect(ENTRY).unwrap()))
}

fn server(link: &NamespaceLink) -> (TcpListener, SocketAddr) {
    let ip = link.address_b();
    let listener = link.run_in_b(|| TcpListener::bind((ip, 0)).unwrap());
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Sends SIGTERM.
fn tell_to_end(child: &Child) {
    let ended = Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(ended.success());
}

fn a_file_is_transferred_and_counted() {
    let link = link();
    let (listener, address) = server(&link);
    let child = start(&link, address);
    let data: Vec<u8> = (0..1_000_000_u32).map(|i| (i * 31 + i / 251) as u8).collect();
    let mut client = connect(&link);
    let mut peer = patient(listener.accept().unwrap().0);
    assert_eq!(peer.peer_addr().unwrap().ip().to_string(), STACK);
    let mut got = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            client.write_all(&data).unwrap();
            client.shutdown(Shutdown::Write).unwrap();
        });
        peer.read_to_end(&mut got).unwrap();
    });
    assert!(got == data);
    peer.write_all(b"done").unwrap();
    drop(peer);
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "done");
    // Connections that were closed in order have ended; open ones are reset.
    let open = connect(&link);
    let other = patient(listener.accept().unwrap().0);
    tell_to_end(&child);
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0));
    for mut stream in [open, other] {
        assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
    let counted: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!((&counted["outgoing_connections"], &counted["finished_connections"]), (&2.into(), &1.into()));
    assert_eq!(counted["sent_bytes"], 1_000_000);
}

/// The kernel resets the program at once. The peer receives nothing until the address answers again, by a reset.
fn a_killed_and_restarted_stack_resets_its_connections() {
    let link = link();
    let (listener, address) = server(&link);
    let mut child = start(&link, address);
    let mut client = connect(&link);
    client.write_all(b"hello").unwrap();
    let mut peer = patient(listener.accept().unwrap().0);
    peer.read_exact(&mut [0; 5]).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(client.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    peer.write_all(b"is anybody there?").unwrap();
    let again = start(&link, address);
    assert_eq!(peer.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    // It serves as before.
    let mut client = connect(&link);
    client.write_all(b"hello").unwrap();
    let mut peer = patient(listener.accept().unwrap().0);
    peer.read_exact(&mut [0; 5]).unwrap();
    tell_to_end(&again);
    again.wait_with_output().unwrap();
}
