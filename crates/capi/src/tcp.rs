//! TCP connection of a socket, for a peer that does not know TPA.

use crate::clock::{now, timespec};
use crate::options::{Settings, Waiting};
use hopline_net::{fallback, tcp};
use rustix::event::{PollFd, PollFlags, poll};
use socket2::{SockRef, TcpKeepalive};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Probes of a silent peer within the time that it may be silent.
const PROBES: u32 = 4;

/// TCP connection that waits as streams of TPA do. Its descriptor never blocks.
#[derive(Debug)]
pub(crate) struct Tcp {
    stream: TcpStream,
    limits: Mutex<Limits>,
}

/// Time for which calls wait.
#[derive(Clone, Copy, Debug)]
struct Limits {
    waiting: Waiting,
    receive: Option<Duration>,
    send: Option<Duration>,
}

impl Tcp {
    pub(crate) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let limits = Limits { waiting: Waiting::Yes, receive: None, send: None };
        Ok(Self { stream, limits: Mutex::new(limits) })
    }

    pub(crate) fn apply(&self, settings: &Settings) {
        let Settings { waiting, receive, send, silence, no_delay, .. } = *settings;
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner) = Limits { waiting, receive, send };
        let socket = SockRef::from(&self.stream);
        // A connection that is over takes no options, and needs none.
        let _ = self.stream.set_nodelay(no_delay);
        let _ = socket.set_tcp_user_timeout(silence);
        if let Some(silence) = silence {
            let interval = (silence / PROBES).max(Duration::from_secs(1));
            let asked = TcpKeepalive::new().with_time(interval).with_interval(interval);
            let _ = socket.set_tcp_keepalive(&asked);
        }
    }

    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let Limits { waiting, receive, .. } = self.limits();
        self.wait(PollFlags::IN, waiting, receive, || (&self.stream).read(buffer))
    }

    pub(crate) fn write(&self, data: &[u8]) -> io::Result<usize> {
        let Limits { waiting, send, .. } = self.limits();
        self.wait(PollFlags::OUT, waiting, send, || (&self.stream).write(data))
    }

    pub(crate) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.stream.shutdown(how)
    }

    pub(crate) fn close_within(&self, limit: Duration) -> io::Result<()> {
        fallback::close_tcp_within(&self.stream, limit)
    }

    /// Resets the connection, and ends calls that wait.
    pub(crate) fn abort(&self) {
        // The kernel's way to abort without closing (connect(2)). A connection that is over needs no reset.
        let _ = rustix::net::connect_unspec(&self.stream);
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.stream.local_addr()
    }

    pub(crate) fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.stream.peer_addr()
    }

    pub(crate) fn info(&self) -> io::Result<tcp::Info> {
        tcp::info(&self.stream).map_err(io::Error::other)
    }

    fn limits(&self) -> Limits {
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<T>(
        &self,
        event: PollFlags,
        waiting: Waiting,
        limit: Option<Duration>,
        mut attempt: impl FnMut() -> io::Result<T>,
    ) -> io::Result<T> {
        let began = now();
        loop {
            match attempt() {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock && waiting == Waiting::Yes => {}
                result => return result,
            }
            let left = limit.map(|limit| limit.saturating_sub(began.elapsed()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(ErrorKind::WouldBlock.into());
            }
            match poll(&mut [PollFd::new(&self.stream, event)], left.map(timespec).as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for Tcp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
