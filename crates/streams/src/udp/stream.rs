//! User's interface of a connection.

use super::host::{Host, first_that_works, unspecified};
use super::notice::WaiterRole;
use super::protocol::{Endpoint as _, Protocol};
use super::table::{Io, Table};
use super::user::{Blocking, Interest, Ready, User, Waiting};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// A connection over UDP: a byte stream in each direction.
///
/// Reading and writing block unless [`set_nonblocking`](Self::set_nonblocking) changes that, and work through `&Stream`
/// from two threads. Writing blocks while the send buffer is full. The protocol decides when written data leave; `flush`
/// sends them at once.
///
/// Dropping the stream closes both directions without waiting: written data still arrive, if the process and the peer
/// continue to run. Data that were received and not read, or that arrive later, reset the connection, so that the peer
/// learns that they were not read. TCP does the same.
///
/// # Polling
///
/// The descriptor of [`AsFd`] is for `poll`, `epoll` or an event loop, for *reading* only. It is readable as long as
/// there is something to read (data, the end, an error). It is also readable once a write that would have blocked is
/// worth a retry, until the retry. Room for writing causes an edge of its own (`EPOLLET`), even while there is something
/// to read. Do not read from or write to the descriptor itself.
#[derive(Debug)]
pub struct Stream<P: Protocol> {
    host: Host<P>,
    key: P::Key,
    descriptor: Arc<OwnedFd>,
}

impl<P: Protocol> Stream<P> {
    pub(super) fn new(host: Host<P>, key: P::Key, descriptor: Arc<OwnedFd>) -> Self {
        Self { host, key, descriptor }
    }

    /// Connects to `peer` from a socket of its own; of several addresses, to the first that answers. With
    /// [`Host::connect`], connections share a socket.
    ///
    /// # Errors
    /// As [`Host::connect`].
    pub fn connect(peer: impl ToSocketAddrs, config: &P::Config) -> io::Result<Self> {
        first_that_works(peer, |peer| Host::bind(unspecified(peer))?.connect(peer, config, None))
    }

    /// Connects to `peer` and waits for at most `timeout`.
    ///
    /// # Errors
    /// As [`Host::connect`].
    pub fn connect_timeout(peer: SocketAddr, config: &P::Config, timeout: Duration) -> io::Result<Self> {
        Host::bind(unspecified(peer))?.connect(peer, config, Some(timeout))
    }

    /// Returns whether a connection that was [begun](Host::begin_connect) is open. Does not block.
    ///
    /// # Errors
    /// The reason that the connection failed, as for [`Host::connect`].
    pub fn is_open(&self) -> io::Result<bool> {
        match self.call(|user, endpoint, _| user.poll_opened(endpoint)) {
            Poll::Ready(opened) => opened.map(|()| true),
            Poll::Pending => Ok(false),
        }
    }

    /// Waits until a connection that was [begun](Host::begin_connect) is open, for at most `timeout`.
    ///
    /// # Errors
    /// As [`Host::connect`].
    pub fn await_open(&self, timeout: Option<Duration>) -> io::Result<()> {
        let opened = self.wait(timeout, Blocking::Yes, |user, endpoint| user.opened(endpoint));
        opened.map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => ErrorKind::TimedOut.into(),
            _ => error,
        })?;
        // Clears the event of the descriptor.
        self.is_open().map(|_| ())
    }

    /// Returns the operations that are possible without blocking, for tasks that wait for many streams. `context` is
    /// woken once, at the next change of any kind. Any number of tasks may wait, in addition to the descriptor and to
    /// blocking threads.
    pub fn poll_ready(&self, interest: Interest, context: &Context<'_>) -> Ready {
        self.call(|user, endpoint, _| {
            user.notice.register_waker(WaiterRole::Observer, context);
            user.ready(endpoint, interest)
        })
    }

    /// Ends writing (`Write`: the peer reads up to the end of the data written), reading (`Read`: further data are
    /// discarded, and waiting readers reach the end), or both.
    ///
    /// # Errors
    /// `NotConnected` if the connection is over.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.call(|user, endpoint, io| {
            if how != Shutdown::Write {
                user.shutdown_read();
            }
            if how == Shutdown::Read { Ok(()) } else { user.shutdown_write(endpoint, io.now) }
        })
    }

    /// Ends writing and waits until the peer has everything. Received data that were not read are lost.
    ///
    /// # Errors
    /// If the connection failed before: the peer may not have everything.
    pub fn close(self) -> io::Result<()> {
        self.close_in(None)
    }

    /// Like [`close`](Self::close), but waits for at most `limit`. For programs that exit afterwards, while the peer may
    /// already have exited without an answer.
    ///
    /// # Errors
    /// If the connection failed before, or `limit` has expired: the peer may not have everything; possibly only the FIN
    /// is unacknowledged.
    pub fn close_within(&self, limit: Duration) -> io::Result<()> {
        self.close_in(Some(limit))
    }

    fn close_in(&self, limit: Option<Duration>) -> io::Result<()> {
        self.shutdown(Shutdown::Write).or_else(|error| {
            match self.call(|user, endpoint, _| user.delivered(endpoint)) {
                Poll::Ready(result) => result,
                Poll::Pending => Err(error),
            }
        })?;
        self.wait(limit, Blocking::Yes, |user, endpoint| user.delivered(endpoint))?;
        self.shutdown(Shutdown::Both).or(Ok(()))
    }

    /// Aborts the connection at once; the peer gets a reset.
    pub fn abort(&self) {
        self.call(|_, endpoint, io| endpoint.abort(io.now));
    }

    /// Sets whether calls return `WouldBlock` instead of blocking. They block by default.
    pub fn set_nonblocking(&self, nonblocking: bool) {
        let blocking = if nonblocking { Blocking::No } else { Blocking::Yes };
        self.call(|user, _, _| user.waiting.blocking = blocking);
    }

    /// Sets the time after which a read returns `WouldBlock`; `None` (the default): unlimited.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) {
        self.call(|user, _, _| user.waiting.read = timeout);
    }

    /// Sets the time after which a write returns `WouldBlock`; `None` (the default): unlimited.
    pub fn set_write_timeout(&self, timeout: Option<Duration>) {
        self.call(|user, _, _| user.waiting.write = timeout);
    }

    /// Returns the validated address of the peer. It may change if there is an address translator on the path.
    #[must_use]
    pub fn peer_addr(&self) -> SocketAddr {
        self.host.shared().table().protocol.path(self.key).peer
    }

    /// Returns the host of the stream.
    #[must_use]
    pub fn host(&self) -> &Host<P> {
        &self.host
    }

    /// Returns the state of the connection.
    #[must_use]
    pub fn info(&self) -> P::Info {
        self.host.shared().table().protocol.info(self.key)
    }

    pub(super) fn try_read(
        &self,
        buffer: &mut [u8],
        table: &mut Table<P>,
        io: Io<'_>,
    ) -> Poll<io::Result<usize>> {
        table.call(io, self.key, |user, endpoint| user.read(endpoint, buffer))
    }

    pub(super) fn try_write(&self, data: &[u8], table: &mut Table<P>, io: Io<'_>) -> Poll<io::Result<usize>> {
        table.call(io, self.key, |user, endpoint| user.write(endpoint, io.now, data))
    }

    pub(crate) fn push(&self) {
        self.call(|_, endpoint, io| endpoint.flush(io.now));
    }

    /// Runs `call` on the connection.
    pub(super) fn call<T>(
        &self,
        call: impl FnOnce(&mut User, &mut Option<P::Endpoint<'_>>, Io<'_>) -> T,
    ) -> T {
        self.host.with(|table, io| table.call(io, self.key, |user, endpoint| call(user, endpoint, io)))
    }

    /// Runs `call` on the endpoint, for operations of one protocol that others lack.
    pub(crate) fn call_endpoint<T>(&self, call: impl FnOnce(P::Endpoint<'_>) -> T) -> Option<T> {
        self.call(|_, endpoint, _| endpoint.take().map(call))
    }

    #[cfg(feature = "tokio")]
    pub(super) fn with<T>(&self, call: impl FnOnce(&mut Table<P>, P::Key, Io<'_>) -> T) -> T {
        self.host.with(|table, io| call(table, self.key, io))
    }

    /// Repeats `look` until it has a result or times out (`WouldBlock`).
    fn wait<T>(
        &self,
        timeout: Option<Duration>,
        blocking: Blocking,
        mut look: impl FnMut(&User, &Option<P::Endpoint<'_>>) -> Poll<io::Result<T>>,
    ) -> io::Result<T> {
        self.wait_as(|_| (timeout, blocking), |table, _| table.inspect(self.key, &mut look))
    }

    /// Repeats an operation until it succeeds or the timeout set for the connection expires (`WouldBlock`).
    fn wait_as<T>(
        &self,
        how_long: impl FnOnce(Waiting) -> (Option<Duration>, Blocking),
        mut attempt: impl FnMut(&mut Table<P>, Io<'_>) -> Poll<io::Result<T>>,
    ) -> io::Result<T> {
        const UNPOISONED: &str = "nobody panics while holding the table";
        let shared = self.host.shared();
        let began = shared.now();
        let mut table = shared.table();
        let (timeout, blocking) = how_long(table.user(self.key).waiting);
        loop {
            let io = Io { socket: &shared.socket, now: shared.now() };
            let result = attempt(&mut table, io);
            let waited = Duration::from_nanos(io.now.since(began).as_nanos());
            let left = timeout.map(|timeout| timeout.saturating_sub(waited));
            let result = match result {
                Poll::Pending if blocking == Blocking::No || left.is_some_and(|left| left.is_zero()) => {
                    Poll::Ready(Err(ErrorKind::WouldBlock.into()))
                }
                result => result,
            };
            if let Poll::Ready(result) = result {
                shared.release(table);
                return result;
            }
            if table.has_wakeups() {
                shared.release(table);
                table = shared.table();
                continue;
            }
            let changed = table.user(self.key).notice.begin_wait();
            table = match left {
                Some(left) => changed.wait_timeout(table, left).expect(UNPOISONED).0,
                None => changed.wait(table).expect(UNPOISONED),
            };
            table.user(self.key).notice.end_wait();
        }
    }
}

impl<P: Protocol> Read for &Stream<P> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wait_as(|w| (w.read, w.blocking), |table, io| self.try_read(buffer, table, io))
    }
}

impl<P: Protocol> Write for &Stream<P> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.wait_as(|w| (w.write, w.blocking), |table, io| self.try_write(data, table, io))
    }

    /// Sends the written data at once. Does not wait for their arrival.
    fn flush(&mut self) -> io::Result<()> {
        self.push();
        Ok(())
    }
}

impl<P: Protocol> Read for Stream<P> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buffer)
    }
}

impl<P: Protocol> Write for Stream<P> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        (&*self).write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        (&*self).flush()
    }
}

impl<P: Protocol> AsFd for Stream<P> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.host.with(|table, _| table.user(self.key).notice.enable_descriptor());
        self.descriptor.as_fd()
    }
}

impl<P: Protocol> Drop for Stream<P> {
    fn drop(&mut self) {
        self.call(|user, endpoint, io| user.abandon(endpoint, io.now));
    }
}
