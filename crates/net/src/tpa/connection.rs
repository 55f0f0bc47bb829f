//! One connection in the table of its host.

use super::notice::{Notice, Shown, Sleepers};
use super::route::Route;
use super::socket::Path;
use bytes::{Buf, Bytes};
use hopline_core::{Duration, Instant, Machine};
use hopline_transport::connection::{CloseReason, Event, SendError, State};
use hopline_transport::tpa::Endpoint;
use hopline_wire::tpa::Tag;
use std::io::{self, ErrorKind};
use std::task::Poll;

/// Most bytes taken by one write.
const MOST_AT_ONCE: usize = 1 << 16;
/// How long an abandoned connection may make no progress if its configuration does not say.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) endpoint: Endpoint<Bytes>,
    pub(super) route: Route,
    /// By which tag of its peer the table knows it.
    pub(super) known_as: Option<Tag>,
    pub(super) origin: Origin,
    pub(super) notice: Notice,
    /// When the table looks after it next.
    pub(super) armed: Option<Instant>,
    pub(super) waiting: Waiting,
    user: User,
    end: Option<End>,
    /// What was received and is to be read next.
    next: Bytes,
    reading: Half,
    writing: Half,
    room: Room,
    /// The state that the user was last woken for.
    seen: State,
}

/// Who began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Connected,
    Accepted,
}

/// How long a call waits; `None`: as long as it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) blocking: Blocking,
    pub(super) read: Option<std::time::Duration>,
    pub(super) write: Option<std::time::Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blocking {
    Yes,
    No,
}

/// Whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum User {
    /// A stream's, or the accept queue's.
    Present,
    /// Nobody's: it is left to end, having had `left` bytes to send since `since`.
    Gone { left: u64, since: Instant },
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Closed(CloseReason),
    /// The peer's host says that nobody is there.
    NobodyThere,
}

/// What the user knows of the room for what it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// No write was refused.
    Enough,
    /// A write was refused.
    Wanted,
    /// Since then room has come.
    Again,
}

/// Whether the user still reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    Open,
    Shut,
}

impl Connection {
    pub(super) fn new(endpoint: Endpoint<Bytes>, path: Path, origin: Origin, notice: Notice) -> Self {
        let mut connection = Self {
            route: Route::new(path, endpoint.config().mss),
            known_as: None,
            endpoint,
            origin,
            notice,
            armed: None,
            waiting: Waiting { blocking: Blocking::Yes, read: None, write: None },
            user: User::Present,
            end: None,
            next: Bytes::new(),
            reading: Half::Open,
            writing: Half::Open,
            room: Room::Enough,
            seen: State::Closed,
        };
        connection.fit_path();
        connection
    }

    /// Segments are as long as datagrams may be.
    pub(super) fn fit_path(&mut self) {
        self.endpoint.set_path_mss(self.route.mss());
    }

    // ---- application calls ----

    /// Whether the connection is open, or why it never will be.
    pub(super) fn opened(&self) -> Poll<io::Result<()>> {
        match (self.end, self.endpoint.state()) {
            (Some(_), _) => Poll::Ready(Err(self.error())),
            (None, State::SynSent | State::SynReceived) => Poll::Pending,
            _ => Poll::Ready(Ok(())),
        }
    }

    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut read = 0;
        while read < buffer.len() && self.refill() {
            let len = self.next.len().min(buffer.len() - read);
            self.next.copy_to_slice(&mut buffer[read..read + len]);
            read += len;
        }
        match self.end {
            _ if read > 0 || buffer.is_empty() => Poll::Ready(Ok(read)),
            _ if self.reading == Half::Shut || self.peer_has_ended() => Poll::Ready(Ok(0)),
            Some(_) => Poll::Ready(Err(self.error())),
            None => Poll::Pending,
        }
    }

    pub(super) fn write(&mut self, now: Instant, data: &[u8]) -> Poll<io::Result<usize>> {
        if data.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let free = usize::try_from(self.endpoint.send_capacity()).unwrap_or(usize::MAX);
        // With no room at all it is refused, and the endpoint tells when there is some.
        let len = data.len().min(MOST_AT_ONCE).min(free.max(1));
        match self.endpoint.send(now, Bytes::copy_from_slice(&data[..len])) {
            Ok(()) => {
                self.room = Room::Enough;
                Poll::Ready(Ok(len))
            }
            Err(SendError::Full { .. }) => {
                self.room = Room::Wanted;
                Poll::Pending
            }
            Err(SendError::NotOpen) => Poll::Ready(Err(match self.writing {
                Half::Shut => ErrorKind::BrokenPipe.into(),
                Half::Open => self.error(),
            })),
        }
    }

    pub(super) fn shut_writing(&mut self, now: Instant) -> io::Result<()> {
        match (self.writing, self.end) {
            (Half::Shut, _) => Ok(()),
            (Half::Open, Some(_)) => Err(ErrorKind::NotConnected.into()),
            (Half::Open, None) => {
                self.writing = Half::Shut;
                self.endpoint.close(now).map_err(|_| ErrorKind::NotConnected.into())
            }
        }
    }

    pub(super) fn shut_reading(&mut self) {
        self.reading = Half::Shut;
    }

    /// Whether the peer has everything, the end included, or why it never will.
    pub(super) fn delivered(&self) -> Poll<io::Result<()>> {
        match (self.end, self.endpoint.state()) {
            (Some(End::Closed(CloseReason::Finished)), _) | (None, State::FinWait2 | State::TimeWait) => {
                Poll::Ready(Ok(()))
            }
            (Some(_), _) => Poll::Ready(Err(self.error())),
            _ => Poll::Pending,
        }
    }

    /// Nobody is interested any more: what was written is sent, the stream ended; what was received and not read, or
    /// comes later, resets the connection (RFC 1122 §4.2.2.13).
    pub(super) fn leave(&mut self, now: Instant) {
        let unread = self.refill() && self.reading == Half::Open;
        self.user = User::Gone { left: self.endpoint.unacknowledged(), since: now };
        if unread {
            self.endpoint.abort(now);
        } else if self.writing == Half::Open {
            self.writing = Half::Shut;
            // It may be closed by now.
            let _ = self.endpoint.close(now);
        }
    }

    /// The peer's host says that nobody is there.
    pub(super) fn nobody_there(&mut self, now: Instant) {
        self.end.get_or_insert(End::NobodyThere);
        self.endpoint.abort(now);
    }

    // ---- what the table does ----

    pub(super) fn on_time(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
        if self.gives_up_at().is_some_and(|at| at <= now) {
            self.endpoint.abort(now);
        }
    }

    /// Acts on what the endpoint tells, before what it wants to send is sent.
    pub(super) fn settle(&mut self, now: Instant, sleepers: &mut Sleepers) {
        // That the peer has our end is no event.
        self.route.review(self.endpoint.stats());
        let state = self.endpoint.state();
        let mut news = std::mem::replace(&mut self.seen, state) != state;
        while let Some(event) = self.endpoint.poll_event() {
            news |= event != Event::Writable;
            if let Event::Closed(reason) = event {
                self.end.get_or_insert(End::Closed(reason));
            }
        }
        if self.room == Room::Wanted && self.endpoint.send_capacity() >= self.worth_waking() {
            (self.room, news) = (Room::Again, true);
        }
        self.go_on_alone(now);
        if self.reading == Half::Shut {
            while self.refill() {
                self.next.clear();
            }
        }
        let readable = self.refill() || self.peer_has_ended() || self.end.is_some();
        let something = readable || self.room == Room::Again;
        self.notice.show(if something { Shown::Something } else { Shown::Nothing });
        if news {
            self.notice.wake(sleepers);
        }
    }

    /// Room for which a writer is woken: not a block's, or it would be woken for each.
    fn worth_waking(&self) -> u64 {
        (self.endpoint.config().send_buffer.unwrap_or(0) / 4).max(1)
    }

    /// When the endpoint must be told that it is time, or an abandoned connection is given up.
    pub(super) fn due(&self) -> Option<Instant> {
        let timer = self.endpoint.poll_timeout().map(|(at, _)| at);
        [timer, self.gives_up_at(), self.route.due(&self.endpoint)].into_iter().flatten().min()
    }

    /// Whether nobody wants it, neither here nor there.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.user, User::Gone { .. }) && self.endpoint.state() == State::Closed
    }

    fn go_on_alone(&mut self, now: Instant) {
        let User::Gone { left, .. } = self.user else { return };
        if self.reading == Half::Open && self.refill() {
            self.endpoint.abort(now);
        }
        let unacknowledged = self.endpoint.unacknowledged();
        if unacknowledged != left {
            self.user = User::Gone { left: unacknowledged, since: now };
        }
    }

    fn gives_up_at(&self) -> Option<Instant> {
        match self.user {
            User::Gone { since, .. } if self.endpoint.state() != State::Closed => {
                Some(since + self.endpoint.config().silence_limit.unwrap_or(PATIENCE))
            }
            _ => None,
        }
    }

    /// Whether there is something to read.
    fn refill(&mut self) -> bool {
        if self.next.is_empty() {
            self.next = self.endpoint.recv().unwrap_or_default();
        }
        !self.next.is_empty()
    }

    fn peer_has_ended(&self) -> bool {
        match (self.end, self.endpoint.state()) {
            (Some(end), _) => end == End::Closed(CloseReason::Finished),
            (None, state) => {
                matches!(state, State::CloseWait | State::LastAck | State::Closing | State::TimeWait)
            }
        }
    }

    fn error(&self) -> io::Error {
        match self.end {
            Some(End::NobodyThere | End::Closed(CloseReason::Refused)) => ErrorKind::ConnectionRefused,
            Some(End::Closed(CloseReason::Reset)) => ErrorKind::ConnectionReset,
            Some(End::Closed(CloseReason::TimedOut)) => ErrorKind::TimedOut,
            Some(End::Closed(CloseReason::Aborted)) => ErrorKind::ConnectionAborted,
            Some(End::Closed(CloseReason::Finished)) | None => ErrorKind::NotConnected,
        }
        .into()
    }
}
