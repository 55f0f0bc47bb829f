//! A socket of C: what state it is in, and what calls make of it.

use crate::abi::tpa_option::{self, TPA_ERROR};
use crate::error::{Error, Result};
use crate::ffi;
use crate::identity::Check;
use crate::options::{Settings, Value, Waiting};
use hopline_net::wide::{Host, Info, State as TransportState, WideListener, WideStream};
use libc::c_int;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Longer than any connection lives: what "as long as it takes" is to calls that want a limit.
const NO_LIMIT: Duration = Duration::from_secs(u32::MAX as u64);

/// Locks are held for moments only: whoever waits does it without one.
#[derive(Debug)]
pub(crate) struct Socket {
    /// An epoll instance with the descriptor of the stream or listener, once there is one: a descriptor that stays the same.
    descriptor: OwnedFd,
    /// Readable for ever, and in `descriptor`: the listener is gone.
    bell: OnceLock<OwnedFd>,
    settings: Mutex<Settings>,
    state: Mutex<State>,
}

#[derive(Debug)]
pub(crate) enum State {
    /// Fresh, or bound.
    Idle(Option<Host>),
    /// A connection is being opened; nothing is sent or received before the check is made.
    Calling(Arc<WideStream>, Check),
    /// A connection that was begun came to nothing, and nobody has been told. The host is bound still.
    Failed(Host, Error),
    Open(Arc<WideStream>),
    Listening(Arc<WideListener>),
    Closed,
}

/// How a socket is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// What was sent arrives.
    Orderly,
    /// The peer is told by a reset.
    Abort,
}

impl Socket {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            descriptor: epoll::create(CreateFlags::CLOEXEC)?,
            bell: OnceLock::new(),
            settings: Mutex::default(),
            state: Mutex::new(State::Idle(None)),
        })
    }

    /// The number of its descriptor, which is its handle.
    pub(crate) fn number(&self) -> c_int {
        self.descriptor.as_raw_fd()
    }

    // ---- settings ----

    pub(crate) fn set(&self, option: tpa_option, bytes: &[u8]) -> Result<()> {
        let settings = {
            let mut settings = self.settings();
            settings.set(option, bytes)?;
            settings.clone()
        };
        match &*self.state() {
            State::Open(stream) | State::Calling(stream, _) => settings.apply(stream),
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn get(&self, option: tpa_option) -> Result<Value> {
        if option == TPA_ERROR {
            return Ok(Value::Number(self.take_error()));
        }
        self.settings().clone().get(option)
    }

    /// What came of a connection that was begun. An error is told once.
    fn take_error(&self) -> c_int {
        let mut state = self.progressed();
        match std::mem::replace(&mut *state, State::Closed) {
            State::Failed(host, error) => {
                *state = State::Idle(Some(host));
                error.remember("tpa_connect");
                error.errno
            }
            other => {
                let calling = matches!(other, State::Calling(..));
                *state = other;
                if calling { libc::EINPROGRESS } else { 0 }
            }
        }
    }

    // ---- before a connection ----

    pub(crate) fn bind(&self, address: SocketAddr) -> Result<()> {
        match &mut *self.state() {
            state @ State::Idle(None) => {
                *state = State::Idle(Some(host(address)?));
                Ok(())
            }
            _ => Err(Error::new(libc::EINVAL, "it is bound already")),
        }
    }

    pub(crate) fn listen(&self, backlog: usize) -> Result<()> {
        let config = self.settings().clone().to_listen()?;
        let mut state = self.state();
        let host = match &*state {
            State::Idle(Some(host)) => host.clone(),
            State::Idle(None) => host(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))?,
            _ => return Err(Error::new(libc::EINVAL, "only a socket without connection can listen")),
        };
        let listener = host.listen(&config, backlog)?;
        listener.set_nonblocking(true);
        self.watch(listener.as_fd())?;
        *state = State::Listening(Arc::new(listener));
        Ok(())
    }

    pub(crate) fn connect(&self, peer: SocketAddr) -> Result<()> {
        let settings = self.settings().clone();
        let stream = self.begin(peer, &settings)?;
        if settings.waiting == Waiting::No {
            let text = format!("{peer} is being called");
            return Err(Error::new(libc::EINPROGRESS, text));
        }
        self.await_open(&stream, settings.connect).map_err(|error| error.of(peer))
    }

    fn begin(&self, peer: SocketAddr, settings: &Settings) -> Result<Arc<WideStream>> {
        let mut state = self.progressed();
        let host = match &*state {
            State::Idle(Some(host)) | State::Failed(host, _) => host.clone(),
            State::Idle(None) => host(any_of_family(peer))?,
            State::Calling(..) => {
                return Err(Error::new(libc::EALREADY, "it is being connected already"));
            }
            State::Open(_) => return Err(Error::new(libc::EISCONN, "it is connected already")),
            State::Listening(_) => return Err(Error::new(libc::EINVAL, "it listens")),
            State::Closed => return Err(gone()),
        };
        if host.local_addr()?.is_ipv4() != peer.is_ipv4() {
            let what = format!("it is bound to an address of another family than {peer}");
            return Err(Error::new(libc::EAFNOSUPPORT, what));
        }
        let (config, check) = settings.to_connect(peer)?;
        let stream = host.begin_connect(peer, &config).map_err(|error| Error::from(error).of(peer))?;
        settings.apply(&stream);
        self.watch(stream.as_fd())?;
        let stream = Arc::new(stream);
        *state = State::Calling(Arc::clone(&stream), check);
        Ok(stream)
    }

    /// Waits until the stream that is being opened is open.
    fn await_open(&self, stream: &Arc<WideStream>, limit: Option<Duration>) -> Result<()> {
        // Why it failed is told below.
        let _ = stream.await_open(limit);
        let mut state = self.progressed();
        match &*state {
            State::Open(_) => Ok(()),
            State::Calling(..) => {
                // The limit was over: it would go on for as long as the protocol likes.
                stream.abort();
                *state = State::Idle(Some(stream.host().clone()));
                self.unwatch(stream);
                let what = "no answer in time: nobody is there, or, if there is a shared key, it is another";
                Err(Error::new(libc::ETIMEDOUT, what))
            }
            State::Failed(host, error) => {
                let (host, error) = (host.clone(), error.clone());
                *state = State::Idle(Some(host));
                Err(error)
            }
            State::Idle(_) | State::Listening(_) | State::Closed => Err(gone()),
        }
    }

    pub(crate) fn accept(&self) -> Result<(Self, SocketAddr)> {
        let Settings { waiting, receive, .. } = *self.settings();
        let began = now();
        loop {
            let listener = match &*self.state() {
                State::Listening(listener) => Arc::clone(listener),
                State::Closed => return Err(gone()),
                _ => return Err(Error::new(libc::EINVAL, "it does not listen")),
            };
            match listener.accept() {
                Ok((stream, peer)) => return Ok((Self::of(stream)?, peer)),
                Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error.into()),
                Err(_) => {}
            }
            let left = receive.map(|limit| limit.saturating_sub(began.elapsed()));
            if waiting == Waiting::No || left.is_some_and(|left| left.is_zero()) {
                return Err(Error::new(libc::EAGAIN, "nobody is there to be accepted"));
            }
            self.sleep(left)?;
        }
    }

    fn of(stream: WideStream) -> Result<Self> {
        let socket = Self::new()?;
        socket.watch(stream.as_fd())?;
        *socket.state() = State::Open(Arc::new(stream));
        Ok(socket)
    }

    // ---- with a connection ----

    /// Takes all of `data` if it may wait, or what there is room for.
    pub(crate) fn send(&self, data: &[u8]) -> Result<usize> {
        let stream = self.stream(|settings| settings.send)?;
        let mut sent = 0;
        loop {
            match (&*stream).write(&data[sent..]) {
                Ok(len) => sent += len,
                // What was taken is told, and the error next time.
                Err(_) if sent > 0 => return Ok(sent),
                Err(error) => return Err(why(error, "no room")),
            }
            if sent == data.len() {
                return Ok(sent);
            }
        }
    }

    pub(crate) fn receive(&self, buffer: &mut [u8]) -> Result<usize> {
        let stream = self.stream(|settings| settings.receive)?;
        (&*stream).read(buffer).map_err(|error| why(error, "nothing came"))
    }

    pub(crate) fn shutdown(&self, how: Shutdown) -> Result<()> {
        match &*self.progressed() {
            State::Open(stream) => Ok(stream.shutdown(how)?),
            _ => Err(unconnected()),
        }
    }

    pub(crate) fn info(&self) -> Result<Info> {
        match &*self.progressed() {
            State::Open(stream) | State::Calling(stream, _) => Ok(stream.info()),
            _ => Err(unconnected()),
        }
    }

    pub(crate) fn local(&self) -> Result<SocketAddr> {
        match &*self.state() {
            State::Idle(Some(host)) | State::Failed(host, _) => Ok(host.local_addr()?),
            State::Open(stream) | State::Calling(stream, _) => Ok(stream.host().local_addr()?),
            State::Listening(listener) => Ok(listener.local_addr()?),
            State::Idle(None) => Err(Error::new(libc::EINVAL, "it is not bound")),
            State::Closed => Err(gone()),
        }
    }

    pub(crate) fn peer(&self) -> Result<SocketAddr> {
        match &*self.progressed() {
            State::Open(stream) => Ok(stream.peer_addr()),
            _ => Err(unconnected()),
        }
    }

    /// The socket has no handle any more.
    pub(crate) fn end(&self, end: End) -> Result<()> {
        let Settings { waiting, close, .. } = *self.settings();
        let state = std::mem::replace(&mut *self.state(), State::Closed);
        match state {
            State::Open(stream) if end == End::Orderly => {
                let closed = match waiting {
                    Waiting::Yes if !is_done(&stream.info()) => {
                        stream.close_within(close.unwrap_or(NO_LIMIT))
                    }
                    _ => Ok(()),
                };
                if Arc::strong_count(&stream) > 1 {
                    // Another thread is in a call with it.
                    let _ = stream.shutdown(Shutdown::Both);
                }
                closed.map_err(|error| match error.kind() {
                    ErrorKind::WouldBlock => {
                        Error::new(libc::ETIMEDOUT, "the peer does not have everything yet")
                    }
                    _ => Error::from(error).of("the peer may not have everything"),
                })
            }
            State::Open(stream) | State::Calling(stream, _) => {
                stream.abort();
                Ok(())
            }
            State::Listening(_) => {
                self.wake_for_ever();
                Ok(())
            }
            State::Idle(_) | State::Failed(..) | State::Closed => Ok(()),
        }
    }

    /// The stream, once it is open: waited for by those who wait, for as long as is set.
    fn stream(&self, limit: impl FnOnce(&Settings) -> Option<Duration>) -> Result<Arc<WideStream>> {
        let calling = match &*self.progressed() {
            State::Open(stream) => return Ok(Arc::clone(stream)),
            State::Calling(stream, _) => Arc::clone(stream),
            State::Failed(_, error) => return Err(error.clone()),
            _ => return Err(unconnected()),
        };
        let (waiting, limit) = {
            let settings = self.settings();
            (settings.waiting, limit(&settings))
        };
        if waiting == Waiting::No {
            return Err(Error::new(libc::EAGAIN, "it is being connected"));
        }
        self.await_open(&calling, limit)?;
        Ok(calling)
    }

    // ---- state ----

    /// The state, after what is known by now of a connection that is being opened.
    pub(crate) fn progressed(&self) -> MutexGuard<'_, State> {
        let mut state = self.state();
        if let State::Calling(stream, check) = &*state {
            let checked = match stream.is_open() {
                Ok(false) => return state,
                Ok(true) => check.make(&stream.info()),
                Err(error) => Err(check.failed(error.into())),
            };
            let stream = Arc::clone(stream);
            *state = match checked {
                Ok(()) => State::Open(stream),
                Err(error) => {
                    stream.abort();
                    self.unwatch(&stream);
                    State::Failed(stream.host().clone(), error)
                }
            };
        }
        state
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // ---- the descriptor ----

    fn watch(&self, descriptor: BorrowedFd<'_>) -> Result<()> {
        Ok(epoll::add(&self.descriptor, descriptor, EventData::new_u64(0), EventFlags::IN)?)
    }

    fn unwatch(&self, stream: &WideStream) {
        // It goes anyway, as soon as the connection is forgotten.
        let _ = epoll::delete(&self.descriptor, stream.as_fd());
    }

    /// Whoever sleeps until there is something, or will, wakes up.
    fn wake_for_ever(&self) {
        if let Ok(bell) = eventfd(1, EventfdFlags::CLOEXEC) {
            let _ = self.watch(self.bell.get_or_init(|| bell).as_fd());
        }
    }

    fn sleep(&self, limit: Option<Duration>) -> Result<()> {
        let limit = limit.map(timespec);
        match poll(&mut [PollFd::new(&self.descriptor, PollFlags::IN)], limit.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

#[expect(clippy::disallowed_methods, reason = "callers are in real time")]
pub(crate) fn now() -> std::time::Instant {
    std::time::Instant::now()
}

pub(crate) fn timespec(duration: Duration) -> Timespec {
    let tv_sec = duration.as_secs().try_into().unwrap_or(i64::MAX);
    Timespec { tv_sec, tv_nsec: duration.subsec_nanos().into() }
}

fn host(address: SocketAddr) -> Result<Host> {
    // Its thread is ours: signals are for those of the program.
    ffi::without_signals(|| Host::bind(address)).map_err(|error| Error::from(error).of(address))
}

fn any_of_family(peer: SocketAddr) -> SocketAddr {
    match peer {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

/// Whether the peer has all data and wants no more: it may have left already, so that nobody would say that our end came.
fn is_done(info: &Info) -> bool {
    info.state == TransportState::CloseWait && info.unacknowledged == 0
}

fn why(error: std::io::Error, blocked: &str) -> Error {
    match error.kind() {
        ErrorKind::WouldBlock => Error::new(libc::EAGAIN, blocked),
        _ => error.into(),
    }
}

fn unconnected() -> Error {
    Error::new(libc::ENOTCONN, "it is not connected")
}

fn gone() -> Error {
    Error::new(libc::EBADF, "it was closed meanwhile")
}
