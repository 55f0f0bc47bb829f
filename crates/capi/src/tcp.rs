//! TCP connection of a socket, for a peer that does not know TPA.

use crate::clock::{now, timespec};
use crate::options::{BlockingMode, Settings};
use hopline_linux::tcp;
use hopline_streams::fallback;
use rustix::event::{PollFd, PollFlags, poll};
use socket2::{SockRef, TcpKeepalive};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Parts of the silence limit: the kernel sends the first probe after one part, and three unanswered ones take the rest.
const PROBE_INTERVALS: u32 = 4;

/// TCP connection that waits as TPA streams do. Its descriptor never blocks.
#[derive(Debug)]
pub(crate) struct Tcp {
    stream: TcpStream,
    limits: Mutex<Limits>,
    silence_monitor: Mutex<SilenceMonitor>,
}

/// Detection of a silent peer.
#[derive(Clone, Copy, Debug)]
struct SilenceMonitor {
    silence: Silence,
    /// Earliest time of the next look. `None`: the first look is due.
    next_check: Option<Instant>,
}

/// Time limits of calls.
#[derive(Clone, Copy, Debug)]
struct Limits {
    waiting: BlockingMode,
    receive: Option<Duration>,
    send: Option<Duration>,
    silence: Option<Duration>,
}

/// Silence of the peer, as observed from time to time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Silence {
    /// All data are acknowledged.
    None,
    /// Data are unacknowledged, at least since this time.
    Since(Instant),
    /// The connection was aborted.
    TooLong,
}

impl Silence {
    /// Returns the silence at `now` if the last segment arrived `unanswered` ago and data are unacknowledged. It counts from
    /// the first observation: the connection may have been idle before.
    fn after(self, now: Instant, unanswered: Option<Duration>, limit: Duration) -> Self {
        match (self, unanswered) {
            (Self::TooLong, _) => Self::TooLong,
            (_, None) => Self::None,
            (Self::Since(seen), Some(heard)) if heard >= now - seen => {
                if now - seen >= limit {
                    Self::TooLong
                } else {
                    self
                }
            }
            // First observation, or a segment of the peer arrived in between.
            (_, Some(_)) => Self::Since(now),
        }
    }
}

impl Tcp {
    pub(crate) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let limits = Limits { waiting: BlockingMode::Blocking, receive: None, send: None, silence: None };
        let watch = SilenceMonitor { silence: Silence::None, next_check: None };
        Ok(Self { stream, limits: Mutex::new(limits), silence_monitor: Mutex::new(watch) })
    }

    pub(crate) fn apply(&self, settings: &Settings) {
        let Settings { blocking: waiting, receive, send, idle_timeout: silence, no_delay, .. } = *settings;
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner) =
            Limits { waiting, receive, send, silence };
        let socket = SockRef::from(&self.stream);
        // An ended connection rejects the option, and does not need it.
        let _ = self.stream.set_nodelay(no_delay);
        // Not TCP_USER_TIMEOUT: it also ends a connection if the peer answers with a closed window.
        let _ = match silence {
            None => socket.set_keepalive(false),
            Some(silence) => {
                let part =
                    Duration::from_secs((silence / PROBE_INTERVALS).as_millis().div_ceil(1000).max(1) as u64);
                let asked =
                    TcpKeepalive::new().with_time(part).with_interval(part).with_retries(PROBE_INTERVALS - 1);
                socket.set_tcp_keepalive(&asked)
            }
        };
    }

    /// Returns the interval between checks for a silent peer; `None` if there is no limit.
    pub(crate) fn check_interval(&self) -> Option<Duration> {
        self.limits().silence.map(|silence| silence / PROBE_INTERVALS)
    }

    /// Aborts the connection if the peer was silent for too long. Returns whether it was aborted. The kernel probes idle
    /// connections, but keeps those with data in flight for a quarter of an hour.
    pub(crate) fn abort_if_silent(&self) -> bool {
        let Some(limit) = self.limits().silence else { return false };
        let now = now();
        let mut watch = self.silence_monitor.lock().unwrap_or_else(PoisonError::into_inner);
        // A check takes the lock of the socket in the kernel, and this is called for each piece of data.
        if watch.next_check.is_some_and(|at| now < at) {
            return watch.silence == Silence::TooLong;
        }
        watch.next_check = Some(now + limit / PROBE_INTERVALS);
        let before = watch.silence;
        watch.silence = before.after(now, tcp::unanswered_time(&self.stream).ok().flatten(), limit);
        if before != Silence::TooLong && watch.silence == Silence::TooLong {
            self.abort();
        }
        watch.silence == Silence::TooLong
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
        let began = now();
        loop {
            let left = limit.saturating_sub(began.elapsed());
            let part = self.check_interval().map_or(left, |look| look.min(left));
            match fallback::close_tcp_within(&self.stream, part) {
                Err(error) if error.kind() == ErrorKind::WouldBlock && part < left => {}
                result => return result,
            }
            if self.abort_if_silent() {
                return Err(ErrorKind::TimedOut.into());
            }
        }
    }

    /// Resets the connection, and ends calls that wait.
    pub(crate) fn abort(&self) {
        // The kernel's way to abort without closing (connect(2)). An ended connection needs no reset.
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
        waiting: BlockingMode,
        limit: Option<Duration>,
        mut attempt: impl FnMut() -> io::Result<T>,
    ) -> io::Result<T> {
        let began = now();
        loop {
            if self.abort_if_silent() {
                return Err(ErrorKind::TimedOut.into());
            }
            match attempt() {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock && waiting == BlockingMode::Blocking => {}
                result => return result,
            }
            let left = limit.map(|limit| limit.saturating_sub(began.elapsed()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(ErrorKind::WouldBlock.into());
            }
            let sleep = [left, self.check_interval()].into_iter().flatten().min();
            match poll(&mut [PollFd::new(&self.stream, event)], sleep.map(timespec).as_ref()) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_counts_from_the_first_unanswered_probe() {
        let start = now();
        let at = |s| start + Duration::from_secs(s);
        let limit = Duration::from_secs(10);
        let heard = |s| Some(Duration::from_secs(s));
        // The connection was idle for an hour. Its first loss ends nothing.
        let mut silence = Silence::None.after(at(0), heard(3600), limit);
        assert_eq!(silence, Silence::Since(at(0)));
        silence = silence.after(at(9), heard(3609), limit);
        assert_eq!(silence, Silence::Since(at(0)));
        // A segment of the peer, after which it is silent anew.
        silence = silence.after(at(12), heard(2), limit);
        assert_eq!(silence, Silence::Since(at(12)));
        assert_eq!(silence.after(at(14), None, limit), Silence::None);
        silence = silence.after(at(22), heard(12), limit);
        assert_eq!(silence, Silence::TooLong);
        assert_eq!(silence.after(at(23), None, limit), Silence::TooLong);
    }
}
