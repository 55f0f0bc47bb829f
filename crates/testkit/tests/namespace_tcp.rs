//! The kernel's TCP, in real time, through what a reliable transport must stand: the same bodies as in virtual time.

use bytes::Bytes;
use hopline_core::Instant;
use hopline_testkit::cases::{Case, arrives_byte_exact, must_hold};
use hopline_testkit::namespace::{OverSockets, Sockets, Talk, run_tests};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

fn main() -> ExitCode {
    run_tests(&[
        ("nothing_lost", || holds("nothing lost")),
        ("loss", || holds("5 % lost")),
        ("bursts", || holds("5 % lost in bursts of 4")),
        ("reordering", || holds("5 % reordered by 30 ms")),
        ("duplication", || holds("1 % duplicated")),
        ("corruption", || holds("0.1 % corrupted")),
        ("rebinding_is_not_for_tcp", || holds("rebound, the old port forgotten")),
    ])
}

fn holds(name: &str) {
    let case = must_hold().into_iter().find(|case| case.name == name).expect("it is one of them");
    // Little enough to be done in a few seconds; the full length is for virtual time.
    let case = Case { deadline: Instant::from_secs(120), ..case.with_bytes(200_000) };
    let outcome = arrives_byte_exact(&OverSockets(Kernel), &case);
    assert!(outcome.counts[0].sent >= 138, "{name}: {outcome:?}");
}

struct Kernel;

const LOOK: Duration = Duration::from_millis(100);
/// Longer than the link is ever silent in these cases.
const PATIENCE: Duration = Duration::from_secs(60);

impl Sockets for Kernel {
    fn receive(&self, talk: &Talk<'_>, take: &mut dyn FnMut(&Bytes)) -> io::Result<()> {
        let listener = TcpListener::bind(talk.address)?;
        listener.set_nonblocking(true)?;
        talk.listening();
        let mut stream = accept(&listener, talk)?;
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(LOOK))?;
        let mut buffer = vec![0; 1 << 16];
        while !talk.is_too_late() {
            match stream.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(n) => take(&Bytes::copy_from_slice(&buffer[..n])),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(e) => return Err(e),
            }
        }
        Err(ErrorKind::TimedOut.into())
    }

    fn send(&self, talk: &Talk<'_>, next: &mut dyn FnMut() -> Option<Bytes>) -> io::Result<()> {
        let mut stream = TcpStream::connect(talk.address)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        while let Some(data) = next() {
            stream.write_all(&data)?;
        }
        stream.shutdown(Shutdown::Write)?;
        match stream.read(&mut [0])? {
            0 => Ok(()),
            _ => Err(ErrorKind::InvalidData.into()),
        }
    }
}

fn accept(listener: &TcpListener, talk: &Talk<'_>) -> io::Result<TcpStream> {
    while !talk.is_too_late() {
        match listener.accept() {
            Ok((stream, _)) => return Ok(stream),
            Err(e) if e.kind() == ErrorKind::WouldBlock => thread::sleep(Duration::from_millis(1)),
            Err(e) => return Err(e),
        }
    }
    Err(ErrorKind::TimedOut.into())
}
