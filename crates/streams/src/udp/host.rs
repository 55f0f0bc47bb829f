//! UDP socket with many connections.

use super::driver;
use super::listener::Listener;
use super::notice::Wakeup;
use super::protocol::Protocol;
use super::queue::Queue;
use super::socket::{IcmpErrors, Path, PortSharing, Socket};
use super::stream::Stream;
use super::table::{Driver, HandleState, Io, Table};
use super::user::User;
use hopline_core::Instant;
use rustix::event::{EventfdFlags, eventfd};
use std::io::{self, ErrorKind};
use std::net::{Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

/// A UDP socket and the thread that serves its connections. Clones share both.
///
/// It lives as long as a clone, a stream or a listener of it. It then continues until the data written on its last
/// streams have been delivered or given up. The end of the process ends all hosts: call [`Stream::close`] before, which
/// waits for delivery.
#[derive(Debug)]
pub struct Host<P: Protocol>(Arc<Holder<P>>);

/// Ends the thread when the last handle of the host is dropped.
#[derive(Debug)]
struct Holder<P: Protocol>(Arc<Shared<P>>);

/// State shared by the thread and the handles of the host.
#[derive(Debug)]
pub(super) struct Shared<P: Protocol> {
    pub(super) socket: Socket,
    /// Becomes readable to wake the thread early.
    pub(super) wake: OwnedFd,
    clock: Clock,
    table: Mutex<Table<P>>,
}

impl<P: Protocol> Host<P> {
    /// Binds a UDP socket; port 0 is any free one. Peers can connect once [`listen`](Self::listen) is called.
    ///
    /// # Errors
    /// Those of `bind`, and the failure to start a thread.
    pub fn bind(address: impl ToSocketAddrs) -> io::Result<Self> {
        Self::bind_with(address, P::new()?)
    }

    /// Binds a UDP socket with a protocol that has been configured already.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub fn bind_with(address: impl ToSocketAddrs, protocol: P) -> io::Result<Self> {
        Self::on(
            first_that_works(address, |address| Socket::bind(address, PortSharing::Forbidden))?,
            protocol,
        )
    }

    /// Binds to a port that another socket [shares](Self::share_port).
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub fn bind_beside(address: SocketAddr) -> io::Result<Self> {
        Self::on(Socket::bind(address, PortSharing::Allowed)?, P::new()?)
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
    /// A host that listens ignores ICMP errors. There, an absent peer is detected by its silence only.
    ///
    /// # Errors
    /// `ConnectionRefused`; `TimedOut`, by `timeout` or when the protocol gives up; `InvalidInput` for a parameter out of
    /// its range; the system's errors for `peer`.
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

    /// Starts a connection to `peer` without waiting until it is open. The descriptor of the stream is readable from the
    /// time at which the outcome is known until [`Stream::is_open`] has returned it.
    ///
    /// # Errors
    /// `InvalidInput` for a parameter out of its range; the system's errors for `peer`.
    pub fn begin_connect(&self, peer: SocketAddr, config: &P::Config) -> io::Result<Stream<P>> {
        let notice = Wakeup::new()?;
        let descriptor = notice.descriptor();
        let (key, failure) = self.with(|table, io| {
            if table.queue.is_none() {
                // Without ICMP errors, a rejection takes as long as silence.
                let _ = io.socket.set_icmp_errors(IcmpErrors::Reported);
            }
            let key = table.protocol.connect(io.now, Path { peer, local: None }, config)?;
            table.insert(key, User::connecting(notice));
            Ok::<_, io::Error>((key, table.process(io)))
        })?;
        let stream = Stream::new(self.clone(), key, descriptor);
        match failure.filter(|failure| failure.key == Some(key)) {
            Some(failure) => Err(failure.error),
            None => Ok(stream),
        }
    }

    /// Lets peers connect. `backlog` (at least 1) connections may wait to be accepted; further ones are rejected.
    ///
    /// # Errors
    /// `AddrInUse` if there is a listener already; `InvalidInput` for a parameter out of its range.
    pub fn listen(&self, config: &P::Config, backlog: usize) -> io::Result<Listener<P>> {
        let local = self.local_addr()?;
        let notice = Wakeup::new()?;
        let descriptor = notice.descriptor();
        self.with(|table, io| {
            if table.queue.is_some() {
                return Err(io::Error::from(ErrorKind::AddrInUse));
            }
            table.protocol.listen(local, config, backlog.max(1))?;
            io.socket.set_icmp_errors(IcmpErrors::Ignored).inspect_err(|_| table.protocol.unlisten())?;
            table.queue = Some(Queue::new(notice));
            Ok(())
        })?;
        Ok(Listener::new(self.clone(), descriptor))
    }

    /// Returns the address that the socket is bound to.
    ///
    /// # Errors
    /// If the system fails.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.shared().socket.local_addr()
    }

    /// Sets whether another socket may be bound to its port from now on; by default none may. The kernel delivers
    /// datagrams to the socket that is connected to their sender, otherwise to the one that was bound last.
    ///
    /// # Errors
    /// If the system fails.
    pub fn share_port(&self, sharing: PortSharing) -> io::Result<()> {
        self.shared().socket.share_port(sharing)
    }

    /// Returns the statistics of the host.
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

    /// Runs `call` on the table, and wakes the thread if it has to act earlier.
    pub(super) fn with<T>(&self, call: impl FnOnce(&mut Table<P>, Io<'_>) -> T) -> T {
        let mut table = self.table();
        let io = Io { socket: &self.socket, now: self.now() };
        let result = call(&mut table, io);
        self.release(table);
        result
    }

    /// Unlocks the table, and wakes the waiting threads and tasks.
    pub(super) fn release(&self, mut table: MutexGuard<'_, Table<P>>) {
        let sleepers = std::mem::take(&mut table.sleepers);
        let must_wake = table.must_wake();
        if must_wake {
            table.driver = Driver::Awake; // very soon
        }
        drop(table);
        if must_wake {
            // The write fails only if the counter is at its maximum; then it is above zero, which is enough.
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
        self.0.with(|table, _| table.holders = HandleState::None);
    }
}

/// Real-time clock that starts with the host.
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

/// Returns the unspecified local address for connections to `peer`.
pub(crate) fn unspecified(peer: SocketAddr) -> SocketAddr {
    match peer {
        SocketAddr::V4(_) => SocketAddr::from(([0, 0, 0, 0], 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    }
}

/// Returns the result of `attempt` for the first address with which it succeeds.
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
