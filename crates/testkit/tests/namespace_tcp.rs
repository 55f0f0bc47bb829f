//! Acceptance tests of the kernel's TCP in real time: the same bodies as in virtual time.

use hopline_core::Instant;
use hopline_harness::Test;
use hopline_testkit::cases::{Case, acceptance_cases, arrives_byte_exact};
use hopline_testkit::namespace::{LINK, OverSockets, READ_TIMEOUT, Sockets};
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

pub(crate) fn tests() -> Vec<Test> {
    let cases = [
        ("nothing_lost", "nothing lost"),
        ("loss", "5 % lost"),
        ("bursts", "5 % lost in bursts of 4"),
        ("reordering", "5 % reordered by 30 ms"),
        ("duplication", "1 % duplicated"),
        ("corruption", "0.1 % corrupted"),
        ("rebinding_is_not_for_tcp", "rebound, the old port forgotten"),
    ];
    cases.map(|(name, case)| Test::new(name, [LINK], move || run_case(case))).into()
}

fn run_case(name: &str) {
    let case = acceptance_cases().into_iter().find(|case| case.name == name).expect("it is one of them");
    // Few enough bytes to take only a few seconds; virtual time tests the full length.
    let case = Case { deadline: Instant::from_secs(120), ..case.with_bytes(200_000) };
    let outcome = arrives_byte_exact(&OverSockets(Kernel), &case);
    assert!(outcome.counts[0].sent >= 138, "{name}: {outcome:?}");
}

struct Kernel;

/// Longer than any silence of the link in these cases.
const PATIENCE: Duration = Duration::from_secs(60);

impl Sockets for Kernel {
    type Listener = TcpListener;
    type Stream = TcpStream;

    fn listen(&self, address: SocketAddr) -> io::Result<TcpListener> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    }

    fn accept(&self, listener: &TcpListener) -> io::Result<TcpStream> {
        let (stream, _) = listener.accept()?;
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(READ_TIMEOUT))?;
        Ok(stream)
    }

    fn connect(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(address)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    fn shutdown(&self, stream: &TcpStream) -> io::Result<()> {
        stream.shutdown(Shutdown::Write)
    }
}
