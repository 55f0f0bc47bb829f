//! Listener for connections.

use super::host::{Host, first_that_works};
use super::protocol::{Endpoint as _, Protocol};
use super::stream::Stream;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Default backlog.
const DEFAULT_BACKLOG: usize = 128;

/// Accepts connections over UDP, all on one socket.
///
/// Connections in the accept queue are established and may carry data. When the queue is full, peers are rejected.
/// Dropping the listener resets those in the queue; accepted ones continue.
///
/// The descriptor of [`AsFd`] is readable while a connection waits, for `poll` and the like.
#[derive(Debug)]
pub struct Listener<P: Protocol> {
    host: Host<P>,
    descriptor: Arc<OwnedFd>,
    nonblocking: AtomicBool,
}

impl<P: Protocol> Listener<P> {
    pub(super) fn new(host: Host<P>, descriptor: Arc<OwnedFd>) -> Self {
        Self { host, descriptor, nonblocking: AtomicBool::new(false) }
    }

    /// Listens at `address` with a socket of its own and a backlog of 128. [`Host::listen`] has more options.
    ///
    /// # Errors
    /// As [`Host::bind`] and [`Host::listen`].
    pub fn bind(address: impl ToSocketAddrs, config: &P::Config) -> io::Result<Self> {
        first_that_works(address, |address| Host::bind(address)?.listen(config, DEFAULT_BACKLOG))
    }

    /// Returns the next connection and the address of its peer. Blocks unless the listener is non-blocking.
    ///
    /// # Errors
    /// `WouldBlock`, if the listener is non-blocking.
    pub fn accept(&self) -> io::Result<(Stream<P>, SocketAddr)> {
        let shared = self.host.shared();
        let mut table = shared.table();
        loop {
            let queue = table.queue.as_mut().expect("a queue stays as long as its listener");
            if let Some(key) = queue.pop() {
                table.protocol.mark_accepted(key);
                let (descriptor, peer) = (table.user(key).notice.descriptor(), table.protocol.path(key).peer);
                drop(table);
                return Ok((Stream::new(self.host.clone(), key, descriptor), peer));
            }
            if self.nonblocking.load(Relaxed) {
                return Err(ErrorKind::WouldBlock.into());
            }
            let changed = queue.notice.begin_wait();
            table = changed.wait(table).expect("nobody panics while holding the table");
            table.queue.as_mut().expect("a queue stays as long as its listener").notice.end_wait();
        }
    }

    /// Sets whether [`accept`](Self::accept) returns `WouldBlock` instead of blocking. It blocks by default.
    pub fn set_nonblocking(&self, nonblocking: bool) {
        self.nonblocking.store(nonblocking, Relaxed);
    }

    /// Returns the listening address.
    ///
    /// # Errors
    /// If the system fails.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.host.local_addr()
    }

    /// Returns the host of the listener.
    #[must_use]
    pub fn host(&self) -> &Host<P> {
        &self.host
    }
}

impl<P: Protocol> AsFd for Listener<P> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.host.with(|table, _| {
            table.queue.as_mut().expect("a queue stays as long as its listener").notice.enable_descriptor();
        });
        self.descriptor.as_fd()
    }
}

impl<P: Protocol> Drop for Listener<P> {
    fn drop(&mut self) {
        self.host.with(|table, io| {
            let queue = table.queue.take().expect("a queue stays as long as its listener");
            table.protocol.unlisten();
            for key in queue.into_keys() {
                table.call(io, key, |user, endpoint| {
                    endpoint.abort(io.now);
                    user.abandon(endpoint, io.now);
                });
            }
        });
    }
}
