//! TPA over UDP, in real time, through what a reliable transport must stand: the same bodies as in virtual time.

use bytes::Bytes;
use hopline_core::Instant;
use hopline_net::tpa::{TpaListener, TpaStream, config};
use hopline_testkit::cases::{Case, arrives_byte_exact, must_hold};
use hopline_testkit::namespace::{OverSockets, Sockets, Talk, run_tests};
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

fn main() -> ExitCode {
    run_tests(&[
        ("nothing_lost", || holds("nothing lost", 200_000)),
        ("loss", || holds("5 % lost", 200_000)),
        ("loss_both_ways", || holds("5 % lost, both ways", 100_000)),
        ("bursts", || holds("5 % lost in bursts of 4", 200_000)),
        ("reordering", || holds("5 % reordered by 30 ms", 200_000)),
        ("duplication", || holds("1 % duplicated", 200_000)),
        ("corruption", || holds("0.1 % corrupted", 200_000)),
        // Enough to be under way after 5 s.
        ("rebound_and_the_old_port_kept", || holds("rebound, the old port kept", 1_500_000)),
        ("rebound_and_the_old_port_forgotten", || holds("rebound, the old port forgotten", 1_500_000)),
    ])
}

fn holds(name: &str, bytes: u64) {
    let case = must_hold().into_iter().find(|case| case.name == name).expect("it is one of them");
    let case = Case { deadline: Instant::from_secs(120), ..case.with_bytes(bytes) };
    let outcome = arrives_byte_exact(&OverSockets(OverUdp), &case);
    assert!(outcome.counts[0].sent >= bytes / 1452, "{name}: {outcome:?}");
}

struct OverUdp;

const LOOK: Duration = Duration::from_millis(100);
/// The paper's larger window.
const WINDOW: u8 = 3;

impl Sockets for OverUdp {
    fn receive(&self, talk: &Talk<'_>, take: &mut dyn FnMut(&Bytes)) -> io::Result<()> {
        let listener = TpaListener::bind(talk.address, &config(WINDOW))?;
        listener.set_nonblocking(true);
        talk.listening();
        let mut stream = accept(&listener, talk)?;
        stream.set_read_timeout(Some(LOOK));
        let mut buffer = vec![0; 1 << 16];
        while !talk.is_too_late() {
            match stream.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(n) => take(&Bytes::copy_from_slice(&buffer[..n])),
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                Err(e) => return Err(e),
            }
        }
        Err(ErrorKind::TimedOut.into())
    }

    fn send(&self, talk: &Talk<'_>, next: &mut dyn FnMut() -> Option<Bytes>) -> io::Result<()> {
        let mut stream = TpaStream::connect(talk.address, &config(WINDOW))?;
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

fn accept(listener: &TpaListener, talk: &Talk<'_>) -> io::Result<TpaStream> {
    while !talk.is_too_late() {
        match listener.accept() {
            Ok((stream, _)) => return Ok(stream),
            Err(e) if e.kind() == ErrorKind::WouldBlock => thread::sleep(Duration::from_millis(1)),
            Err(e) => return Err(e),
        }
    }
    Err(ErrorKind::TimedOut.into())
}
