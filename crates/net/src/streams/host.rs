//! One UDP socket with many connections.

use super::driver;
use super::listener::Listener;
use super::notice::Notice;
use super::protocol::Protocol;
use super::queue::Queue;
use super::socket::{Path, Refusals, Sharing, Socket};
use super::stream::Stream;
use super::table::{Driver, Holders, Io, Table};
use super::user::User;
use hopline_core::Instant;
use rustix::event::{EventfdFlags, eventfd};
use std::io::{self, ErrorKind};
use std::net::{Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

/// A UDP socket and the thread that serves its connections. Clones are the same host.
///
/// It lives for as long as a clone of it, a stream or a listener does, and then until what was written on its last
/// streams has reached the peers or was given up. A process that ends takes its hosts along: call
/// [`Stream::close`] before, which waits for delivery.
#[derive(Debug)]
pub struct Host<P: Protocol>(Arc<Holder<P>>);

/// Tells the thread when nobody holds the host any more.
#[derive(Debug)]
struct Holder<P: Protocol>(Arc<Shared<P>>);

/// What the thread and the holders of the host all see.
#[derive(Debug)]
pub(super) struct Shared<P: Protocol> {
    pub(super) socket: Socket,
    /// Readable: the thread sleeps too long.
    pub(super) wake: OwnedFd,
    clock: Clock,
    table: Mutex<Table<P>>,
}

impl<P: Protocol> Host<P> {
    /// Binds a UDP socket; port 0 is any free one. Nobody can connect before [`listen`](Self::listen).
    ///
    /// # Errors
    /// What `bind` has, and no thread to be had.
    pub fn bind(address: impl ToSocketAddrs) -> io::Result<Self> {
        Self::bind_with(address, P::new()?)
    }

    /// The same for a protocol that has been set up already.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub fn bind_with(address: impl ToSocketAddrs, protocol: P) -> io::Result<Self> {
        Self::on(first_that_works(address, |address| Socket::bind(address, Sharing::Refused))?, protocol)
    }

    /// Binds to a port that may have a socket which [shares](Self::share_port) it.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub fn bind_beside(address: SocketAddr) -> io::Result<Self> {
        Self::on(Socket::bind(address, Sharing::Allowed)?, P::new()?)
    }

    fn on(socket: Socket, protocol: P) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            socket,
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            clock: Clock::start(),
            table: Mutex::new(Table::new(protocol)),
        });
        let seen = Arc::clone(&shared);
        thread::Builder::new().name(P::NAME.into()).spawn(move || driver::run(&seen))?;
        Ok(Self(Arc::new(Holder(shared))))
    }

    /// Opens a connection to `peer` and waits until it is open, for at most `timeout`.
    ///
    /// On a host that listens, that nobody is there is learnt from the silence only: what other hosts say by ICMP is not heard
    /// there.
    ///
    /// # Errors
    /// `ConnectionRefused`; `TimedOut`, by `timeout` or when the protocol gives up; `InvalidInput` for a parameter out of its range;
    /// what the system says of `peer`.
    pub fn connect(
        &self,
        peer: SocketAddr,
        config: &P::Config,
        timeout: Option<Duration>,
    ) -> io::Result<Stream<P>> {
        let stream = self.begin_connect(peer, config)?;
        stream.await_open(timeout)?;
        Ok(stream)
    }

    /// Calls `peer` and does not wait until the connection is open. The descriptor of the stream is readable from when it is known
    /// what came of that until [`Stream::is_open`] has said it.
    ///
    /// # Errors
    /// `InvalidInput` for a parameter out of its range; what the system says of `peer`.
    pub fn begin_connect(&self, peer: SocketAddr, config: &P::Config) -> io::Result<Stream<P>> {
        let notice = Notice::new()?;
        let descriptor = notice.descriptor();
        let (key, failure) = self.with(|table, io| {
            if table.queue.is_none() {
                // Without it a refusal takes as long as silence.
                let _ = io.socket.set_refusals(Refusals::Heard);
            }
            let key = table.protocol.connect(io.now, Path { peer, local: None }, config)?;
            table.insert(key, User::that_calls(notice));
            Ok::<_, io::Error>((key, table.settle(io)))
        })?;
        let stream = Stream::new(self.clone(), key, descriptor);
        match failure.filter(|failure| failure.key == Some(key)) {
            Some(failure) => Err(failure.error),
            None => Ok(stream),
        }
    }

    /// Lets peers connect; `backlog` (at least 1) connections may wait to be accepted, and more are refused.
    ///
    /// # Errors
    /// `AddrInUse` if there is a listener already; `InvalidInput` for a parameter out of its range.
    pub fn listen(&self, config: &P::Config, backlog: usize) -> io::Result<Listener<P>> {
        let local = self.local_addr()?;
        let notice = Notice::new()?;
        let descriptor = notice.descriptor();
        self.with(|table, io| {
            if table.queue.is_some() {
                return Err(io::Error::from(ErrorKind::AddrInUse));
            }
            table.protocol.listen(local, config, backlog.max(1))?;
            io.socket.set_refusals(Refusals::Ignored).inspect_err(|_| table.protocol.unlisten())?;
            table.queue = Some(Queue::new(notice));
            Ok(())
        })?;
        Ok(Listener::new(self.clone(), descriptor))
    }

    /// The address that the socket is bound to.
    ///
    /// # Errors
    /// If the system fails.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.shared().socket.local_addr()
    }

    /// Whether another socket may be bound to its port from now on; initially none may. The kernel gives datagrams to the
    /// one that is connected to their sender, else to the one that was bound last.
    ///
    /// # Errors
    /// If the system fails.
    pub fn share_port(&self, sharing: Sharing) -> io::Result<()> {
        self.shared().socket.share_port(sharing)
    }

    /// What it counted.
    #[must_use]
    pub fn stats(&self) -> P::HostStats {
        self.shared().table().stats()
    }

    pub(super) fn shared(&self) -> &Shared<P> {
        &self.0.0
    }

    pub(super) fn with<T>(&self, call: impl FnOnce(&mut Table<P>, Io<'_>) -> T) -> T {
        self.shared().with(call)
    }
}

impl<P: Protocol> Shared<P> {
    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    pub(super) fn table(&self) -> MutexGuard<'_, Table<P>> {
        self.table.lock().expect("nobody panics while holding the table")
    }

    /// Does something with the table; the thread then looks whether it has to get up earlier.
    pub(super) fn with<T>(&self, call: impl FnOnce(&mut Table<P>, Io<'_>) -> T) -> T {
        let mut table = self.table();
        let io = Io { socket: &self.socket, now: self.now() };
        let result = call(&mut table, io);
        self.release(table);
        result
    }

    /// Lets go of the table, and wakes whoever has something to do.
    pub(super) fn release(&self, mut table: MutexGuard<'_, Table<P>>) {
        let sleepers = std::mem::take(&mut table.sleepers);
        let must_wake = table.must_wake();
        if must_wake {
            table.driver = Driver::Awake; // very soon
        }
        drop(table);
        if must_wake {
            // A counter that cannot be added to is above zero.
            let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
        }
        sleepers.wake();
    }
}

impl<P: Protocol> Clone for Host<P> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<P: Protocol> Drop for Holder<P> {
    fn drop(&mut self) {
        self.0.with(|table, _| table.holders = Holders::None);
    }
}

/// The real clock, counted from the making of the host.
#[derive(Clone, Copy, Debug)]
struct Clock(std::time::Instant);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "a host is in real time")]
    fn start() -> Self {
        Self(std::time::Instant::now())
    }

    fn now(self) -> Instant {
        Instant::from_nanos(self.0.elapsed().as_nanos() as u64)
    }
}

/// An address to connect to `peer` from: any.
pub(crate) fn unspecified(peer: SocketAddr) -> SocketAddr {
    match peer {
        SocketAddr::V4(_) => SocketAddr::from(([0, 0, 0, 0], 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    }
}

/// What `attempt` makes of the first of several addresses with which it succeeds.
pub(super) fn first_that_works<T>(
    addresses: impl ToSocketAddrs,
    mut attempt: impl FnMut(SocketAddr) -> io::Result<T>,
) -> io::Result<T> {
    let mut last = io::Error::new(ErrorKind::InvalidInput, "the name has no address");
    for address in addresses.to_socket_addrs()? {
        match attempt(address) {
            Ok(done) => return Ok(done),
            Err(error) => last = error,
        }
    }
    Err(last)
}
