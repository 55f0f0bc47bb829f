//! UDP and TCP sockets with the same port number, and the listener on both.

use super::Config;
use super::connector::watch;
use super::stream::Stream;
use crate::tpa::{Host, TpaListener};
use rustix::event::epoll::{self, CreateFlags, EventFlags};
use rustix::event::{PollFd, PollFlags, poll};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Attempts to find a free port: one that is free for UDP may be in use for TCP.
const PORTS_TRIED: usize = 16;

/// A UDP socket for TPA and a TCP socket, bound to the same address and port.
#[derive(Debug)]
pub struct Port {
    host: Host,
    local: SocketAddr,
    /// TCP socket, until its first use.
    tcp: Mutex<Option<Socket>>,
}

impl Port {
    /// Binds both sockets; port 0 is any that is free for both.
    ///
    /// # Errors
    /// Errors of `bind`, and of the system if it has no thread.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let mut tries = if address.port() == 0 { PORTS_TRIED } else { 1 };
        loop {
            let host = Host::bind(address)?;
            let local = host.local_addr()?;
            match bound(local) {
                Ok(tcp) => return Ok(Self { host, local, tcp: Mutex::new(Some(tcp)) }),
                Err(error) if error.kind() != ErrorKind::AddrInUse || tries <= 1 => return Err(error),
                Err(_) => tries -= 1,
            }
        }
    }

    /// Returns the address of both sockets.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Lets peers connect over either transport. For each, `backlog` (at least 1) connections may wait to be accepted.
    ///
    /// # Errors
    /// `AddrInUse` if there is a listener already; `InvalidInput` for a parameter out of its range.
    pub fn listen(&self, config: &Config, backlog: usize) -> io::Result<Listener> {
        let tpa = self.host.listen(&config.tpa, backlog)?;
        tpa.set_nonblocking(true);
        let tcp = self.tcp()?;
        tcp.set_nonblocking(true)?;
        tcp.listen(i32::try_from(backlog.max(1)).unwrap_or(i32::MAX))?;
        let tcp = TcpListener::from(tcp);
        let ready = epoll::create(CreateFlags::CLOEXEC)?;
        watch(&ready, tpa.as_fd(), EventFlags::IN)?;
        watch(&ready, tcp.as_fd(), EventFlags::IN)?;
        let (nonblocking, tcp_is_next) = (AtomicBool::new(false), AtomicBool::new(false));
        Ok(Listener { tpa, tcp, ready, local: self.local, nonblocking, tcp_is_next })
    }

    /// Returns the TPA host.
    pub(super) fn host(&self) -> &Host {
        &self.host
    }

    /// Returns the TCP socket, or another one with its address.
    pub(super) fn tcp(&self) -> io::Result<Socket> {
        let kept = self.tcp.lock().unwrap_or_else(PoisonError::into_inner).take();
        kept.map_or_else(|| bound(self.local), Ok)
    }
}

fn bound(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // As for listeners: connections of an earlier process in TIME-WAIT do not prevent binding.
    socket.set_reuse_address(true)?;
    if matches!(address, SocketAddr::V6(address) if address.ip().is_unspecified()) {
        socket.set_only_v6(false)?;
    }
    socket.bind(&address.into())?;
    Ok(socket)
}

/// Accepts connections over TPA and over TCP.
///
/// A peer that chooses between both, as a [`Connector`](super::Connector) does, appears once, with the transport of its choice.
///
/// The descriptor of [`AsFd`] is readable while a connection waits, for `poll` and the like.
#[derive(Debug)]
pub struct Listener {
    tpa: TpaListener,
    tcp: TcpListener,
    ready: OwnedFd,
    local: SocketAddr,
    nonblocking: AtomicBool,
    /// Alternates between the transports, so that a flood over one does not delay the other.
    tcp_is_next: AtomicBool,
}

impl Listener {
    /// Listens at `address`; port 0 is any that is free for both transports.
    ///
    /// # Errors
    /// As [`Port::bind`] and [`Port::listen`].
    pub fn bind(address: SocketAddr, config: &Config, backlog: usize) -> io::Result<Self> {
        Port::bind(address)?.listen(config, backlog)
    }

    /// Returns the next connection and the address of its peer. Blocks unless the listener is non-blocking.
    ///
    /// # Errors
    /// `WouldBlock`, if the listener is non-blocking; a lack of descriptors.
    pub fn accept(&self) -> io::Result<(Stream, SocketAddr)> {
        loop {
            if let Some(accepted) = self.poll_accept()? {
                return Ok(accepted);
            }
            if self.nonblocking.load(Relaxed) {
                return Err(ErrorKind::WouldBlock.into());
            }
            match poll(&mut [PollFd::new(&self.ready, PollFlags::IN)], None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sets whether [`accept`](Self::accept) returns `WouldBlock` instead of blocking. It blocks by default.
    pub fn set_nonblocking(&self, nonblocking: bool) {
        self.nonblocking.store(nonblocking, Relaxed);
    }

    /// Returns the listening address.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    fn poll_accept(&self) -> io::Result<Option<(Stream, SocketAddr)>> {
        if self.tcp_is_next.fetch_not(Relaxed) {
            self.accept_tcp()?.map_or_else(|| self.accept_tpa(), |accepted| Ok(Some(accepted)))
        } else {
            self.accept_tpa()?.map_or_else(|| self.accept_tcp(), |accepted| Ok(Some(accepted)))
        }
    }

    fn accept_tpa(&self) -> io::Result<Option<(Stream, SocketAddr)>> {
        match self.tpa.accept() {
            Ok((stream, peer)) => Ok(Some((Stream::Tpa(stream), peer))),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn accept_tcp(&self) -> io::Result<Option<(Stream, SocketAddr)>> {
        loop {
            match self.tcp.accept() {
                Ok((stream, peer)) => return Ok(Some((Stream::Tcp(stream), peer))),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                // An error of one connection, not of the listener (accept(2)).
                Err(error) if !is_of_listener(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Returns whether `accept` would fail again.
fn is_of_listener(error: &io::Error) -> bool {
    const LASTING: [i32; 6] =
        [libc::EBADF, libc::EINVAL, libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM];
    error.raw_os_error().is_none_or(|errno| LASTING.contains(&errno))
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }
}
