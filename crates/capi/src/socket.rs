//! Socket of the C interface: its state, and its calls.

use crate::abi::tpa_option::{self, TPA_ERROR, TPA_PROTOCOL};
use crate::clock::{now, timespec};
use crate::error::{Error, Result};
use crate::identity::PeerCheck;
use crate::options::{BlockingMode, Settings, Value};
use crate::protocol::Protocol;
use crate::transport::{Bound, ConnectingStream, Info, Listener, Stream, start_connect};
use hopline_streams::fallback;
use libc::c_int;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Poll;
use std::time::Duration;

/// Time limit of calls without one: longer than any connection lasts.
const NO_LIMIT: Duration = Duration::from_secs(u32::MAX as u64);
/// Longest sleep of a call that waits for the selection of a protocol: another call may have consumed its result.
pub(crate) const MAX_SLEEP: Duration = Duration::from_millis(20);

/// Socket. Its locks are held briefly: no call waits while it holds one.
#[derive(Debug)]
pub(crate) struct Socket {
    /// Epoll instance with the descriptor of the stream or listener, once there is one. Its number stays the same.
    descriptor: OwnedFd,
    /// Descriptor that is always readable, in `descriptor`. Set once the listener is closed.
    closed_event: OnceLock<OwnedFd>,
    /// `true` if the descriptor also reports room in the send buffer of TCP. Streams of TPA report theirs themselves.
    waits_for_room: AtomicBool,
    settings: Mutex<Settings>,
    state: Mutex<State>,
}

#[derive(Debug)]
pub(crate) enum State {
    /// New, or bound.
    Idle(Option<Bound>),
    /// A connection is being opened. Nothing is sent or received before the check.
    Connecting(ConnectingStream, PeerCheck, Option<Bound>),
    /// A connection failed to open, and no call has reported it yet. The binding remains.
    Failed(Option<Bound>, Error),
    Open(Arc<Stream>),
    Listening(Arc<Listener>),
    Closed,
}

/// Way to close a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseMode {
    /// All data sent before still arrive.
    Graceful,
    /// The peer receives a reset.
    Abort,
}

impl Socket {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            descriptor: epoll::create(CreateFlags::CLOEXEC)?,
            closed_event: OnceLock::new(),
            waits_for_room: AtomicBool::new(false),
            settings: Mutex::default(),
            state: Mutex::new(State::Idle(None)),
        })
    }

    /// Returns the number of its descriptor, which is its handle.
    pub(crate) fn number(&self) -> c_int {
        self.descriptor.as_raw_fd()
    }

    // ---- settings ----

    pub(crate) fn set(&self, option: tpa_option, bytes: &[u8]) -> Result<()> {
        if option == TPA_PROTOCOL && !matches!(&*self.state(), State::Idle(None)) {
            return Err(Error::new(libc::EINVAL, "the protocol is set before anything else is done"));
        }
        let settings = {
            let mut settings = self.settings();
            settings.set(option, bytes)?;
            settings.clone()
        };
        match &*self.state() {
            State::Open(stream) | State::Connecting(ConnectingStream::Stream(stream), ..) => {
                stream.apply(&settings)
            }
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn get(&self, option: tpa_option) -> Result<Value> {
        if option == TPA_ERROR {
            return Ok(Value::Number(self.take_error()));
        }
        if option == TPA_PROTOCOL
            && let State::Open(stream) = &*self.updated_state()
        {
            return Ok(Value::Number(stream.protocol() as c_int));
        }
        self.settings().clone().get(option)
    }

    /// Returns the result of a connection that was begun, as an `errno`. Clears an error.
    fn take_error(&self) -> c_int {
        let mut state = self.updated_state();
        match std::mem::replace(&mut *state, State::Closed) {
            State::Failed(bound, error) => {
                *state = State::Idle(bound);
                error.remember("tpa_connect");
                error.errno
            }
            other => {
                let calling = matches!(other, State::Connecting(..));
                *state = other;
                if calling { libc::EINPROGRESS } else { 0 }
            }
        }
    }

    // ---- before a connection ----

    pub(crate) fn bind(&self, address: SocketAddr) -> Result<()> {
        let protocol = self.settings().protocol;
        match &mut *self.state() {
            state @ State::Idle(None) => {
                *state = State::Idle(Some(Bound::new(address, protocol)?));
                Ok(())
            }
            _ => Err(Error::new(libc::EINVAL, "it is bound already")),
        }
    }

    pub(crate) fn listen(&self, backlog: usize) -> Result<()> {
        let settings = self.settings().clone();
        let parameters = settings.to_listen()?;
        let mut state = self.state();
        let bound = match &*state {
            State::Idle(Some(bound)) => bound.clone(),
            State::Idle(None) => Bound::new(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)), settings.protocol)?,
            _ => return Err(Error::new(libc::EINVAL, "only a socket without connection can listen")),
        };
        let listener = bound.listen(&parameters, backlog)?;
        self.watch(listener.as_fd())?;
        *state = State::Listening(Arc::new(listener));
        Ok(())
    }

    pub(crate) fn connect(&self, peer: SocketAddr) -> Result<()> {
        let settings = self.settings().clone();
        let begun = self.start_connect(peer, &settings)?;
        if settings.blocking == BlockingMode::NonBlocking {
            let text = format!("{peer} is being called");
            return Err(Error::new(libc::EINPROGRESS, text));
        }
        self.await_open(&begun, settings.connect).map(drop).map_err(|error| error.with_context(peer))
    }

    fn start_connect(&self, peer: SocketAddr, settings: &Settings) -> Result<ConnectingStream> {
        let mut state = self.updated_state();
        let bound = match &*state {
            State::Idle(Some(bound)) | State::Failed(Some(bound), _) => Some(bound.clone()),
            // Its attempts have sockets of their own.
            State::Idle(None) | State::Failed(None, _) if settings.protocol == Protocol::TpaOrTcp => None,
            State::Idle(None) | State::Failed(None, _) => {
                Some(Bound::new(any_of_family(peer), settings.protocol)?)
            }
            State::Connecting(..) => {
                return Err(Error::new(libc::EALREADY, "it is being connected already"));
            }
            State::Open(_) => return Err(Error::new(libc::EISCONN, "it is connected already")),
            State::Listening(_) => return Err(Error::new(libc::EINVAL, "it listens")),
            State::Closed => return Err(closed_error()),
        };
        if let Some(bound) = &bound
            && bound.local_addr()?.is_ipv4() != peer.is_ipv4()
        {
            let what = format!("it is bound to an address of another family than {peer}");
            return Err(Error::new(libc::EAFNOSUPPORT, what));
        }
        let (parameters, check) = settings.to_connect(peer)?;
        let begun = start_connect(bound.as_ref(), peer, &parameters)
            .map_err(|error| Error::from(error).with_context(peer))?;
        if let ConnectingStream::Stream(stream) = &begun {
            stream.apply(settings);
        }
        self.watch(begun.as_fd())?;
        *state = State::Connecting(begun.clone(), check, bound);
        Ok(begun)
    }

    /// Waits until the connection that is being opened is open.
    fn await_open(&self, begun: &ConnectingStream, limit: Option<Duration>) -> Result<Arc<Stream>> {
        match begun {
            // The reason of a failure is reported below.
            ConnectingStream::Stream(stream) => _ = stream.await_open(limit),
            ConnectingStream::TpaOrTcp(_) => self.await_selection(limit)?,
        }
        let mut state = self.updated_state();
        match &*state {
            State::Open(stream) => Ok(Arc::clone(stream)),
            State::Connecting(begun, _, bound) => {
                // The time limit is reached. Without this the attempt would continue until the limit of the protocol.
                let (begun, bound) = (begun.clone(), bound.clone());
                *state = State::Idle(bound);
                self.unwatch(&begun);
                if let ConnectingStream::Stream(stream) = &begun {
                    stream.abort();
                }
                Err(Error::new(libc::ETIMEDOUT, self.settings().timeout_reasons()))
            }
            State::Failed(bound, error) => {
                let (bound, error) = (bound.clone(), error.clone());
                *state = State::Idle(bound);
                Err(error)
            }
            State::Idle(_) | State::Listening(_) | State::Closed => Err(closed_error()),
        }
    }

    /// Waits until the protocol of a connection is selected, or all attempts have failed.
    fn await_selection(&self, limit: Option<Duration>) -> Result<()> {
        let began = now();
        while matches!(&*self.updated_state(), State::Connecting(..)) {
            let left = limit.map_or(MAX_SLEEP, |limit| limit.saturating_sub(began.elapsed()));
            if left.is_zero() {
                break;
            }
            self.sleep(Some(left.min(MAX_SLEEP)))?;
        }
        Ok(())
    }

    pub(crate) fn accept(&self) -> Result<(Self, SocketAddr)> {
        let Settings { blocking: waiting, receive, idle_timeout: silence, .. } = *self.settings();
        let began = now();
        loop {
            let listener = match &*self.state() {
                State::Listening(listener) => Arc::clone(listener),
                State::Closed => return Err(closed_error()),
                _ => return Err(Error::new(libc::EINVAL, "it does not listen")),
            };
            match listener.accept() {
                Ok((stream, peer)) => return Ok((Self::of(stream, silence)?, peer)),
                Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error.into()),
                Err(_) => {}
            }
            let left = receive.map(|limit| limit.saturating_sub(began.elapsed()));
            if waiting == BlockingMode::NonBlocking || left.is_some_and(|left| left.is_zero()) {
                return Err(Error::new(libc::EAGAIN, "nobody is there to be accepted"));
            }
            self.sleep(left)?;
        }
    }

    /// Returns the socket of an accepted connection, with the silence limit of the listener.
    fn of(stream: Stream, silence: Option<Duration>) -> Result<Self> {
        let socket = Self::new()?;
        let settings = Settings { idle_timeout: silence, ..Settings::default() };
        stream.apply(&settings);
        *socket.settings() = settings;
        socket.watch(stream.as_fd())?;
        *socket.state() = State::Open(Arc::new(stream));
        Ok(socket)
    }

    // ---- with a connection ----

    /// Sends all of `data` if the socket may wait, else as much as there is room for.
    pub(crate) fn send(&self, data: &[u8]) -> Result<usize> {
        let stream = self.stream(|settings| settings.send)?;
        if self.waits_for_room.swap(false, Relaxed) {
            self.watch_also(&stream, EventFlags::empty());
        }
        let flush = || if self.settings().no_delay { stream.flush() } else { Ok(()) };
        match write_all(data, |rest| stream.write(rest), flush) {
            (sent, Ok(())) => Ok(sent),
            (sent, Err(error)) => {
                if error.kind() == ErrorKind::WouldBlock && matches!(&*stream, Stream::Tcp(_)) {
                    self.waits_for_room.store(true, Relaxed);
                    self.watch_also(&stream, EventFlags::OUT);
                }
                // The call returns the number of accepted bytes, and the next call the error.
                if sent > 0 { Ok(sent) } else { Err(error_of(error, "no room")) }
            }
        }
    }

    pub(crate) fn receive(&self, buffer: &mut [u8]) -> Result<usize> {
        let stream = self.stream(|settings| settings.receive)?;
        stream.read(buffer).map_err(|error| error_of(error, "nothing came"))
    }

    pub(crate) fn shutdown(&self, how: Shutdown) -> Result<()> {
        match &*self.updated_state() {
            State::Open(stream) => Ok(stream.shutdown(how)?),
            _ => Err(not_connected()),
        }
    }

    pub(crate) fn info(&self) -> Result<Info> {
        match &*self.updated_state() {
            State::Open(stream) | State::Connecting(ConnectingStream::Stream(stream), ..) => {
                Ok(stream.info()?)
            }
            _ => Err(not_connected()),
        }
    }

    pub(crate) fn local(&self) -> Result<SocketAddr> {
        match &*self.state() {
            State::Idle(Some(bound))
            | State::Failed(Some(bound), _)
            | State::Connecting(_, _, Some(bound)) => Ok(bound.local_addr()?),
            State::Open(stream) => Ok(stream.local_addr()?),
            State::Listening(listener) => Ok(listener.local_addr()?),
            State::Idle(None) | State::Failed(None, _) | State::Connecting(_, _, None) => {
                Err(Error::new(libc::EINVAL, "it is not bound"))
            }
            State::Closed => Err(closed_error()),
        }
    }

    pub(crate) fn peer(&self) -> Result<SocketAddr> {
        match &*self.updated_state() {
            State::Open(stream) => Ok(stream.peer_addr()?),
            _ => Err(not_connected()),
        }
    }

    /// Closes a socket that no longer has a handle.
    pub(crate) fn end(&self, end: CloseMode) -> Result<()> {
        let Settings { blocking: waiting, close, .. } = *self.settings();
        let state = std::mem::replace(&mut *self.state(), State::Closed);
        match state {
            State::Open(stream) if end == CloseMode::Graceful => {
                let closed = match waiting {
                    BlockingMode::Blocking if !stream.is_done() => {
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
                    _ => Error::from(error).with_context("the peer may not have everything"),
                })
            }
            State::Open(stream) | State::Connecting(ConnectingStream::Stream(stream), ..) => {
                stream.abort();
                Ok(())
            }
            State::Listening(_) => {
                self.wake_forever();
                Ok(())
            }
            // Attempts are abandoned when they are dropped.
            State::Connecting(ConnectingStream::TpaOrTcp(_), ..)
            | State::Idle(_)
            | State::Failed(..)
            | State::Closed => Ok(()),
        }
    }

    /// Returns the stream once it is open. Waits for it if the socket may wait, up to its limit.
    fn stream(&self, limit: impl FnOnce(&Settings) -> Option<Duration>) -> Result<Arc<Stream>> {
        let calling = match &*self.updated_state() {
            State::Open(stream) => return Ok(Arc::clone(stream)),
            State::Connecting(begun, ..) => begun.clone(),
            State::Failed(_, error) => return Err(error.clone()),
            _ => return Err(not_connected()),
        };
        let (waiting, limit) = {
            let settings = self.settings();
            (settings.blocking, limit(&settings))
        };
        if waiting == BlockingMode::NonBlocking {
            return Err(Error::new(libc::EAGAIN, "it is being connected"));
        }
        self.await_open(&calling, limit)
    }

    // ---- state ----

    /// Returns the state, updated by the progress of a connection that is being opened.
    pub(crate) fn updated_state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state();
        if let State::Connecting(begun, check, bound) = &*state {
            let opened = match begun {
                ConnectingStream::Stream(stream) => stream.checked(check),
                ConnectingStream::TpaOrTcp(opening) => match opening.poll() {
                    Poll::Pending => return state,
                    Poll::Ready(chosen) => self.selected(begun, chosen).map(Some),
                },
            };
            let (begun, bound) = (begun.clone(), bound.clone());
            *state = match opened {
                Ok(None) => return state,
                Ok(Some(stream)) => State::Open(stream),
                Err(error) => {
                    let shared = begun.stream().and_then(|stream| stream.bound());
                    begun.stream().iter().for_each(|stream| stream.abort());
                    self.unwatch(&begun);
                    State::Failed(bound.or(shared), error)
                }
            };
        }
        state
    }

    /// Returns the connection that an opening has resulted in.
    fn selected(
        &self,
        opening: &ConnectingStream,
        chosen: io::Result<fallback::Stream>,
    ) -> Result<Arc<Stream>> {
        let stream = Stream::of(chosen?)?;
        self.unwatch(opening);
        stream.apply(&self.settings());
        self.watch(stream.as_fd())?;
        Ok(Arc::new(stream))
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

    fn unwatch(&self, begun: &ConnectingStream) {
        // If it fails, closing the connection removes the descriptor anyway.
        let _ = epoll::delete(&self.descriptor, begun.as_fd());
    }

    /// Watches for readability and for `events`.
    fn watch_also(&self, stream: &Stream, events: EventFlags) {
        // Fails only once the descriptor is closed.
        let _ =
            epoll::modify(&self.descriptor, stream.as_fd(), EventData::new_u64(0), EventFlags::IN | events);
    }

    /// Makes the descriptor readable for ever, so that each call that waits for it wakes up.
    fn wake_forever(&self) {
        if let Ok(bell) = eventfd(1, EventfdFlags::CLOEXEC) {
            let _ = self.watch(self.closed_event.get_or_init(|| bell).as_fd());
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

/// Writes all of `data`, or as much as is accepted before an error, and flushes. Returns the number of bytes accepted.
fn write_all(
    data: &[u8],
    mut write: impl FnMut(&[u8]) -> io::Result<usize>,
    flush: impl FnOnce() -> io::Result<()>,
) -> (usize, io::Result<()>) {
    let mut sent = 0;
    let written = loop {
        match write(&data[sent..]) {
            Ok(len) => sent += len,
            Err(error) => break Err(error),
        }
        if sent == data.len() {
            break Ok(());
        }
    };
    let flushed = if sent > 0 { flush() } else { Ok(()) };
    (sent, written.and(flushed))
}

fn any_of_family(peer: SocketAddr) -> SocketAddr {
    match peer {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

fn error_of(error: std::io::Error, blocked: &str) -> Error {
    match error.kind() {
        ErrorKind::WouldBlock => Error::new(libc::EAGAIN, blocked),
        _ => error.into(),
    }
}

fn not_connected() -> Error {
    Error::new(libc::ENOTCONN, "it is not connected")
}

fn closed_error() -> Error {
    Error::new(libc::EBADF, "it was closed meanwhile")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writer that accepts `left` bytes in total.
    fn room(mut left: usize) -> impl FnMut(&[u8]) -> io::Result<usize> {
        move |data| {
            let taken = data.len().min(left).min(3);
            left -= taken;
            if taken == 0 { Err(ErrorKind::WouldBlock.into()) } else { Ok(taken) }
        }
    }

    #[test]
    fn accepted_data_are_flushed_even_if_incomplete() {
        for (room_for, flushes) in [(0, 0), (1, 1), (9, 1), (10, 1), (11, 1)] {
            let mut flushed = 0;
            let (sent, result) = write_all(&[7; 10], room(room_for), || {
                flushed += 1;
                Ok(())
            });
            assert_eq!((sent, flushed), (room_for.min(10), flushes));
            assert_eq!(result.is_ok(), room_for >= 10);
        }
    }

    #[test]
    fn an_error_of_flushing_is_reported() {
        let (sent, result) = write_all(&[7; 10], room(10), || Err(ErrorKind::ConnectionReset.into()));
        assert_eq!((sent, result.unwrap_err().kind()), (10, ErrorKind::ConnectionReset));
    }
}
