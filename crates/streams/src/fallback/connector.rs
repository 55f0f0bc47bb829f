//! Both attempts of a connection, with their sockets and a timer.

use super::Config;
use super::port::Port;
use super::race::{Decision, Event, Race};
use super::silent_peers::SilentPeers;
use super::stream::Stream;
use super::tcp_attempt::{LastAck, TcpAttempt};
use crate::tpa::{Host, TpaStream};
use crate::udp::unspecified;
use hopline_core::Instant;
use hopline_linux::event_loop::Clock;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

/// Opens connections, and remembers peers that do not answer over TPA. Clones share the memory.
#[derive(Clone, Debug)]
pub struct Connector {
    silent: Arc<Mutex<SilentPeers>>,
    clock: Clock,
}

impl Default for Connector {
    fn default() -> Self {
        Self { silent: Arc::default(), clock: Clock::start() }
    }
}

impl Connector {
    /// Connects to `peer` and waits until the decision, for at most `timeout`. Without `timeout`, a silent peer is given
    /// up when the kernel gives up its SYN, after some two minutes.
    ///
    /// # Errors
    /// The error of TCP, if neither transport connects; `TimedOut`, by `timeout`; `InvalidInput` for a parameter of TPA out of its range.
    pub fn connect(
        &self,
        peer: SocketAddr,
        config: &Config,
        timeout: Option<Duration>,
    ) -> io::Result<Stream> {
        self.begin(None, peer, config)?.wait(timeout)
    }

    /// Starts both attempts, from a given port or from any, without waiting.
    ///
    /// # Errors
    /// `InvalidInput` for a parameter of TPA out of its range; a lack of descriptors or threads.
    pub fn begin(
        &self,
        port: Option<&Port>,
        peer: SocketAddr,
        config: &Config,
    ) -> io::Result<PendingConnection> {
        let now = self.clock.now();
        let is_silent = self.lock().contains(now, peer);
        let ready = epoll::create(CreateFlags::CLOEXEC)?;
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        watch(&ready, timer.as_fd(), EventFlags::IN)?;
        let mut attempts = Attempts {
            connector: self.clone(),
            peer,
            race: if is_silent { Race::tcp_only(now) } else { Race::new(now, config.timeouts) },
            tcp: None,
            tpa: None,
            timer,
            failure: None,
        };
        // TPA is sent first: on a path without losses and queues its answer then also arrives first.
        if !is_silent {
            attempts.start_tpa(&ready, port, config)?;
        }
        let last_ack = if is_silent { LastAck::AtOnce } else { LastAck::Withheld };
        attempts.start_tcp(&ready, port, last_ack)?;
        Ok(PendingConnection { attempts: Mutex::new(Some(attempts)), ready })
    }

    /// Returns whether TPA is not tried with `peer` at present, since the peer has answered over TCP only.
    #[must_use]
    pub fn is_silent(&self, peer: SocketAddr) -> bool {
        self.lock().contains(self.clock.now(), peer)
    }

    fn lock(&self) -> MutexGuard<'_, SilentPeers> {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection attempt. Dropping it before the decision gives both attempts up.
///
/// The descriptor of [`AsFd`] is for `poll`, `epoll` or an event loop, for reading only: it is readable when
/// [`poll`](Self::poll) has to be called.
#[derive(Debug)]
pub struct PendingConnection {
    /// `None` after the decision.
    attempts: Mutex<Option<Attempts>>,
    ready: OwnedFd,
}

#[derive(Debug)]
struct Attempts {
    connector: Connector,
    peer: SocketAddr,
    race: Race,
    tcp: Option<TcpAttempt>,
    tpa: Option<TpaStream>,
    timer: OwnedFd,
    /// Error of TCP, or of TPA if TCP has none.
    failure: Option<io::Error>,
}

impl PendingConnection {
    /// Returns the connection after the decision, once. Does not wait.
    ///
    /// # Errors
    /// As [`Connector::connect`], once.
    pub fn poll(&self) -> Poll<io::Result<Stream>> {
        let mut place = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(attempts) = &mut *place else { return Poll::Pending };
        let decision = match attempts.poll_attempts(&self.ready) {
            Ok(Some(decision)) => decision,
            Ok(None) => return Poll::Pending,
            Err(error) => {
                *place = None;
                return Poll::Ready(Err(error));
            }
        };
        Poll::Ready(place.take().expect("it was there").into_stream(decision))
    }

    /// Waits until the decision, for at most `timeout`.
    ///
    /// # Errors
    /// As [`Connector::connect`].
    pub fn wait(self, timeout: Option<Duration>) -> io::Result<Stream> {
        #[expect(clippy::disallowed_methods, reason = "sockets are in real time")]
        let began = std::time::Instant::now();
        loop {
            if let Poll::Ready(result) = self.poll() {
                return result;
            }
            let left = timeout.map(|timeout| timeout.saturating_sub(began.elapsed()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(ErrorKind::TimedOut.into());
            }
            match poll(&mut [PollFd::new(&self.ready, PollFlags::IN)], left.map(timespec).as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for PendingConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }
}

impl Attempts {
    fn now(&self) -> Instant {
        self.connector.clock.now()
    }

    // ---- both attempts ----

    fn start_tpa(&mut self, ready: &OwnedFd, port: Option<&Port>, config: &Config) -> io::Result<()> {
        let host = match port {
            Some(port) => port.host().clone(),
            None => Host::bind(unspecified(self.peer))?,
        };
        match host.begin_connect(self.peer, &config.tpa) {
            Ok(stream) => {
                watch(ready, stream.as_fd(), EventFlags::IN)?;
                self.tpa = Some(stream);
            }
            Err(error) if error.kind() == ErrorKind::InvalidInput => return Err(error),
            Err(error) => self.handle_tpa_failure(error),
        }
        Ok(())
    }

    fn start_tcp(&mut self, ready: &OwnedFd, port: Option<&Port>, last_ack: LastAck) -> io::Result<()> {
        let bound = port.map(Port::tcp).transpose()?;
        match TcpAttempt::connect(bound, self.peer, last_ack) {
            Ok(call) => {
                watch(ready, call.as_fd(), EventFlags::OUT)?;
                self.tcp = Some(call);
            }
            Err(error) => self.handle_tcp_failure(error),
        }
        Ok(())
    }

    fn handle_tpa_failure(&mut self, error: io::Error) {
        self.failure.get_or_insert(error);
        let now = self.now();
        self.race.handle_event(now, Event::TpaFailed);
    }

    fn handle_tcp_failure(&mut self, error: io::Error) {
        self.failure = Some(error);
        let now = self.now();
        self.race.handle_event(now, Event::TcpFailed);
    }

    // ---- their progress ----

    /// Checks both attempts, TPA first, and sets the timer.
    fn poll_attempts(&mut self, ready: &OwnedFd) -> io::Result<Option<Decision>> {
        self.poll_tpa(ready);
        self.poll_tcp(ready);
        let now = self.now();
        let decision = self.race.handle_timeout(now);
        if decision.is_none() {
            self.set_timer(now)?;
        }
        Ok(decision)
    }

    fn poll_tpa(&mut self, ready: &OwnedFd) {
        let now = self.now();
        let Some(stream) = &self.tpa else { return };
        match stream.is_open() {
            Ok(false) => {}
            Ok(true) => _ = self.race.handle_event(now, Event::TpaOpened),
            Err(error) => {
                let _ = epoll::delete(ready, stream.as_fd());
                self.tpa = None;
                self.handle_tpa_failure(error);
            }
        }
    }

    fn poll_tcp(&mut self, ready: &OwnedFd) {
        let Some(call) = &self.tcp else { return };
        let Poll::Ready(result) = call.poll() else { return };
        // It stays ready, and has no further events.
        let _ = epoll::delete(ready, call.as_fd());
        match result {
            Ok(()) => {
                let now = self.now();
                self.race.handle_event(now, Event::TcpOpened);
            }
            Err(error) => {
                self.tcp = None;
                self.handle_tcp_failure(error);
            }
        }
    }

    fn set_timer(&self, now: Instant) -> io::Result<()> {
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        // Zero would stop the timer.
        let value = self.race.poll_timeout().map_or(zero, |due| {
            timespec(Duration::from_nanos(due.as_nanos().saturating_sub(now.as_nanos()).max(1)))
        });
        timerfd_settime(
            &self.timer,
            TimerfdTimerFlags::empty(),
            &Itimerspec { it_interval: zero, it_value: value },
        )?;
        Ok(())
    }

    /// Keeps the winning attempt and drops the other; TCP is reset. If the peer has just reset the winning connection,
    /// there is none.
    fn into_stream(mut self, decision: Decision) -> io::Result<Stream> {
        let (now, peer) = (self.now(), self.peer);
        match decision {
            Decision::Tpa => {
                self.connector.lock().record_answer(peer);
                self.tpa.take().map(Stream::Tpa).ok_or_else(|| self.failure_error())
            }
            Decision::Tcp => {
                if self.race.is_tpa_silent() {
                    self.connector.lock().record_miss(now, peer);
                }
                self.tcp.take().ok_or_else(|| self.failure_error())?.complete().map(Stream::Tcp)
            }
            Decision::Neither => Err(self.failure_error()),
        }
    }

    fn failure_error(&mut self) -> io::Error {
        self.failure.take().unwrap_or_else(|| ErrorKind::TimedOut.into())
    }
}

impl Drop for Attempts {
    fn drop(&mut self) {
        if let Some(stream) = self.tpa.take() {
            stream.abort();
        }
    }
}

pub(super) fn watch(ready: &OwnedFd, descriptor: BorrowedFd<'_>, events: EventFlags) -> io::Result<()> {
    Ok(epoll::add(ready, descriptor, EventData::new_u64(0), events)?)
}

pub(super) fn timespec(duration: Duration) -> Timespec {
    let tv_sec = duration.as_secs().try_into().unwrap_or(i64::MAX);
    Timespec { tv_sec, tv_nsec: duration.subsec_nanos().into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_winning_tcp_connection_that_is_reset_is_an_error() {
        let connector = Connector::default();
        let now = connector.clock.now();
        let mut race = Race::tcp_only(now);
        assert_eq!(race.handle_event(now, Event::TcpOpened), Some(Decision::Tcp));
        let attempts = Attempts {
            connector,
            peer: "192.0.2.1:7".parse().expect("an address"),
            race,
            tcp: None,
            tpa: None,
            timer: timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC).expect("a timer"),
            failure: Some(ErrorKind::ConnectionReset.into()),
        };
        let error = attempts.into_stream(Decision::Tcp).expect_err("there is no connection");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
}
