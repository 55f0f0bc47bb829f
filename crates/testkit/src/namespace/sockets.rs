//! Cases in real time, on any transport with sockets.

use super::NamespaceLink;
use crate::cases::{Case, Environment, Outcome, Rebind};
use crate::reference_stream::InOrder;
use bytes::Bytes;
use hopline_core::Instant;
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

/// Interval between checks of the time.
const CHECK_INTERVAL: Duration = Duration::from_millis(5);
const PORT: u16 = 5201;
const CHUNK: u64 = 1 << 14;

/// Transport over sockets of the calling thread's namespace, as applications use it.
pub trait Sockets: Sync {
    /// Listener of the transport.
    type Listener;
    /// Connection of the transport.
    type Stream: Read + Write;

    /// Creates a listener that does not wait for connections.
    ///
    /// # Errors
    /// If the address cannot be bound.
    fn listen(&self, address: SocketAddr) -> io::Result<Self::Listener>;

    /// Returns the next connection. Reading from it times out after [`READ_TIMEOUT`].
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] if there is none yet, or if the listener failed.
    fn accept(&self, listener: &Self::Listener) -> io::Result<Self::Stream>;

    /// Connects to `address`. Gives up in the end if nothing gets through.
    ///
    /// # Errors
    /// If the connection cannot be opened.
    fn connect(&self, address: SocketAddr) -> io::Result<Self::Stream>;

    /// Ends the sending direction of `stream`.
    ///
    /// # Errors
    /// If the connection failed.
    fn shutdown(&self, stream: &Self::Stream) -> io::Result<()>;
}

/// Time limit of a read of an accepted connection. The deadline is checked after each read.
pub const READ_TIMEOUT: Duration = Duration::from_millis(100);

/// State that both sides of a transfer share.
#[derive(Debug)]
struct SocketTransfer<'a> {
    /// Address on which B listens.
    address: SocketAddr,
    link: &'a NamespaceLink,
    deadline: Instant,
    ready: Sender<()>,
}

impl SocketTransfer<'_> {
    /// Accepts one connection and passes the received data to `take`, until the peer has ended its stream.
    fn receive(&self, sockets: &impl Sockets, take: &mut dyn FnMut(&Bytes)) -> io::Result<()> {
        let listener = sockets.listen(self.address)?;
        // Fails if A has given up and waits no longer.
        let _ = self.ready.send(());
        let mut stream = self.accept(sockets, &listener)?;
        let mut buffer = vec![0; 1 << 16];
        while !self.is_too_late() {
            match stream.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(n) => take(&Bytes::copy_from_slice(&buffer[..n])),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(e) => return Err(e),
            }
        }
        Err(ErrorKind::TimedOut.into())
    }

    fn accept<S: Sockets>(&self, sockets: &S, listener: &S::Listener) -> io::Result<S::Stream> {
        while !self.is_too_late() {
            match sockets.accept(listener) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => thread::sleep(Duration::from_millis(1)),
                done => return done,
            }
        }
        Err(ErrorKind::TimedOut.into())
    }

    /// Sends the data that `next` returns, ends the stream, and waits until the peer has ended its own: the peer has
    /// received all data then.
    fn send(&self, sockets: &impl Sockets, next: &mut dyn FnMut() -> Option<Bytes>) -> io::Result<()> {
        let mut stream = sockets.connect(self.address)?;
        while let Some(data) = next() {
            stream.write_all(&data)?;
        }
        sockets.shutdown(&stream)?;
        match stream.read(&mut [0])? {
            0 => Ok(()),
            _ => Err(ErrorKind::InvalidData.into()),
        }
    }

    /// Returns whether the deadline has passed.
    fn is_too_late(&self) -> bool {
        self.link.now() > self.deadline
    }
}

/// Sockets of the kernel, or of this project, over a [`NamespaceLink`].
#[derive(Clone, Copy, Debug)]
pub struct OverSockets<S>(pub S);

impl<S: Sockets> Environment for OverSockets<S> {
    /// Panics if there can be no link: only tests that need [`LINK`](super::LINK) use it.
    fn transfer(&self, case: &Case) -> Outcome {
        let link = NamespaceLink::new(case.forward.clone(), case.reverse.clone(), case.seed)
            .unwrap_or_else(|error| panic!("{}: {error}", case.name));
        let address = SocketAddr::from((link.address_b(), PORT));
        let (ready, is_ready) = channel();
        let talk = SocketTransfer { address, link: &link, deadline: case.deadline, ready };
        let mut oracle = InOrder::default();
        let (mut handed, mut at) = (0, Instant::ZERO);
        let (sent, received) = thread::scope(|scope| {
            let receiver = scope.spawn(|| {
                let received = link.run_in_b(|| talk.receive(&self.0, &mut |data| oracle.check(data)));
                at = link.now();
                received
            });
            while is_ready.recv_timeout(CHECK_INTERVAL).is_err()
                && !receiver.is_finished()
                && !talk.is_too_late()
            {}
            if let Some(Rebind { at, side, old }) = case.rebind {
                let link = &link;
                scope.spawn(move || {
                    while link.now() < at {
                        thread::sleep(CHECK_INTERVAL);
                    }
                    link.rebind(side, old);
                });
            }
            let sent = link.run_in_a(|| talk.send(&self.0, &mut || next(&mut handed, case.bytes)));
            (sent, receiver.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        let stats = link.stats();
        if stats.lateness.is_late() {
            super::harness::print_uncaptured(&format!(
                "LATE: {}: what arrived counts, when does not: {}",
                case.name, stats.lateness
            ));
        }
        let ended = match (&sent, &received) {
            (Ok(()), Ok(())) => true,
            failed => {
                super::harness::print_uncaptured(&format!("{}: {failed:?}, {}", case.name, stats.lateness));
                false
            }
        };
        Outcome { received: oracle.received(), ended, at, counts: [stats.forward, stats.reverse] }
    }
}

fn next(handed: &mut u64, total: u64) -> Option<Bytes> {
    let len = CHUNK.min(total - *handed);
    let data = (len > 0).then(|| InOrder::bytes(*handed, len as usize));
    *handed += len;
    data
}
