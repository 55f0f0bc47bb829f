//! Accepting connections.

use super::host::{Host, first_that_works};
use super::stream::TpaStream;
use hopline_transport::tpa::Config;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Connections that may wait to be accepted, if nothing else is said.
const BACKLOG: usize = 128;

/// Accepts TPA connections over UDP, all on one socket.
///
/// A peer that has not shown that it receives what is sent to its address costs no memory: its SYN is answered and
/// forgotten. Connections that wait in the accept queue are full connections, with data; when it is full, SYNs are refused.
/// Dropping the listener resets those in the queue; accepted ones live on.
///
/// The descriptor of [`AsFd`] is readable while a connection waits, for `poll` and the like.
#[derive(Debug)]
pub struct TpaListener {
    host: Host,
    descriptor: Arc<OwnedFd>,
    nonblocking: AtomicBool,
}

impl TpaListener {
    pub(super) fn new(host: Host, descriptor: Arc<OwnedFd>) -> Self {
        Self { host, descriptor, nonblocking: AtomicBool::new(false) }
    }

    /// Listens at `address` with a socket of its own; 128 connections may wait. [`Host::listen`] has more choices.
    ///
    /// # Errors
    /// As [`Host::bind`] and [`Host::listen`].
    pub fn bind(address: impl ToSocketAddrs, config: &Config) -> io::Result<Self> {
        first_that_works(address, |address| Host::bind(address)?.listen(config, BACKLOG))
    }

    /// The next connection, and where it came from. Waits for one unless told not to.
    ///
    /// # Errors
    /// `WouldBlock`, if told not to wait.
    pub fn accept(&self) -> io::Result<(TpaStream, SocketAddr)> {
        let shared = self.host.shared();
        let mut table = shared.table();
        loop {
            let queue = table.queue.as_mut().expect("a queue stays as long as its listener");
            if let Some(tag) = queue.pop() {
                let connection = table.connection(tag);
                let (descriptor, peer) = (connection.notice.descriptor(), connection.route.path().peer);
                drop(table);
                return Ok((TpaStream::new(self.host.clone(), tag, descriptor), peer));
            }
            if self.nonblocking.load(Relaxed) {
                return Err(ErrorKind::WouldBlock.into());
            }
            let changed = queue.notice.begin_wait();
            table = changed.wait(table).expect("nobody panics while holding the table");
            table.queue.as_mut().expect("a queue stays as long as its listener").notice.end_wait();
        }
    }

    /// Whether [`accept`](Self::accept) returns `WouldBlock` instead of waiting. Initially it waits.
    pub fn set_nonblocking(&self, nonblocking: bool) {
        self.nonblocking.store(nonblocking, Relaxed);
    }

    /// Where it listens.
    ///
    /// # Errors
    /// If the system fails.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.host.local_addr()
    }

    /// The host that it belongs to.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }
}

impl AsFd for TpaListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.host.with(|table, _| {
            table.queue.as_mut().expect("a queue stays as long as its listener").notice.is_watched();
        });
        self.descriptor.as_fd()
    }
}

impl Drop for TpaListener {
    fn drop(&mut self) {
        self.host.with(|table, io| {
            let queue = table.queue.take().expect("a queue stays as long as its listener");
            for tag in queue.into_tags() {
                // A reset that cannot be sent is as good as lost.
                let _ = table.call(io, tag, |connection| {
                    connection.endpoint.abort(io.now);
                    connection.leave(io.now);
                });
            }
        });
    }
}
