//! The user's half of a connection: what is asked of it, and what was told of it.

use super::notice::{Notice, Shown, Sleepers};
use super::protocol::{Endpoint, Reason};
use bytes::{Buf, Bytes};
use hopline_core::{Duration, Instant};
use hopline_transport::connection::{CloseReason, Event, SendError, State};
use std::io::{self, ErrorKind};
use std::task::Poll;

/// Most bytes taken by one write.
const MOST_AT_ONCE: usize = 1 << 16;
/// How long an abandoned connection may make no progress if its configuration does not say.
const PATIENCE: Duration = Duration::from_secs(120);

/// The endpoint is the protocol's; it is lent for each call.
#[derive(Debug)]
pub(super) struct User {
    pub(super) notice: Notice,
    /// When the table will give it up.
    pub(super) armed: Option<Instant>,
    pub(super) waiting: Waiting,
    presence: Presence,
    end: Option<End>,
    /// Whether its endpoint has told anything that it was not woken for.
    news: News,
    /// What was received and is to be read next.
    next: Bytes,
    reading: Half,
    writing: Half,
    room: Room,
    opening: Opening,
    called: Called,
    /// The state that the user was last woken for.
    seen: State,
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

/// Whose the connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    /// A stream's, or the accept queue's.
    Present,
    /// Nobody's: it is left to end, having had `left` bytes to send since `since`.
    Gone { left: u64, since: Instant },
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    Closed(CloseReason),
    /// Its endpoint does not know why: the peer's host says that nobody is there.
    Failed(Reason),
}

/// Whether its endpoint was called in a way that may make it send something, such as that there is room again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Called {
    No,
    Yes,
}

/// Whether there is something that the user was not woken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    None,
    Some,
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

/// Whether the user knows what came of opening the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opening {
    /// It does, or waits for it in a call.
    Seen,
    /// It is to be told.
    Awaited,
}

/// What somebody who waits for many streams wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// To read.
    Read,
    /// To write.
    Write,
    /// Whatever can be done.
    Both,
}

/// What can be done with a stream without waiting; that may be to learn of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// A read has something: data, the end, an error.
    pub readable: bool,
    /// A write has room, or fails. Once there was none, only room that is worth it counts: a quarter of the buffer.
    pub writable: bool,
    /// The connection is over, well or not.
    pub over: bool,
}

/// Whether the user still reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    Open,
    Shut,
}

impl User {
    pub(super) fn new(notice: Notice) -> Self {
        Self {
            notice,
            armed: None,
            waiting: Waiting { blocking: Blocking::Yes, read: None, write: None },
            presence: Presence::Present,
            end: None,
            news: News::None,
            next: Bytes::new(),
            reading: Half::Open,
            writing: Half::Open,
            room: Room::Enough,
            opening: Opening::Seen,
            called: Called::No,
            seen: State::Closed,
        }
    }

    /// Who calls a peer without waiting for it.
    pub(super) fn that_calls(notice: Notice) -> Self {
        Self { opening: Opening::Awaited, ..Self::new(notice) }
    }

    // ---- application calls ----

    /// The same as [`opened`](Self::opened), after which it is no news.
    pub(super) fn see_opened(&mut self, endpoint: &impl Endpoint) -> Poll<io::Result<()>> {
        let opened = self.opened(endpoint);
        if opened.is_ready() {
            self.opening = Opening::Seen;
        }
        opened
    }

    /// Whether the connection is open, or why it never will be.
    pub(super) fn opened(&self, endpoint: &impl Endpoint) -> Poll<io::Result<()>> {
        match (&self.end, endpoint.state()) {
            (Some(_), _) => Poll::Ready(Err(self.error())),
            (None, State::SynSent | State::SynReceived) => Poll::Pending,
            _ => Poll::Ready(Ok(())),
        }
    }

    pub(super) fn read(
        &mut self,
        endpoint: &mut impl Endpoint,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut read = 0;
        while read < buffer.len() && self.refill(endpoint) {
            let len = self.next.len().min(buffer.len() - read);
            self.next.copy_to_slice(&mut buffer[read..read + len]);
            read += len;
        }
        match &self.end {
            _ if read > 0 || buffer.is_empty() => Poll::Ready(Ok(read)),
            _ if self.reading == Half::Shut || self.peer_has_ended(endpoint) => Poll::Ready(Ok(0)),
            Some(_) => Poll::Ready(Err(self.error())),
            None => Poll::Pending,
        }
    }

    pub(super) fn write(
        &mut self,
        endpoint: &mut impl Endpoint,
        now: Instant,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        if data.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let free = usize::try_from(endpoint.send_capacity()).unwrap_or(usize::MAX);
        // With no room at all it is refused, and the endpoint tells when there is some.
        let len = data.len().min(MOST_AT_ONCE).min(free.max(1));
        match endpoint.send(now, Bytes::copy_from_slice(&data[..len])) {
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

    /// What can be done at once. Who wants to write and cannot is told of room as after a write that was refused.
    pub(super) fn ready(&mut self, endpoint: &mut impl Endpoint, interest: Interest) -> Ready {
        let over = self.end.is_some();
        let readable =
            self.refill(endpoint) || self.reading == Half::Shut || self.peer_has_ended(endpoint) || over;
        let opening = self.opened(endpoint).is_pending();
        let room = !opening && endpoint.send_capacity() >= Self::worth_waking(endpoint);
        let writable = room || self.writing == Half::Shut || over;
        if !writable && !opening && interest != Interest::Read {
            self.room = Room::Wanted;
        }
        Ready { readable, writable, over }
    }

    pub(super) fn shut_writing(&mut self, endpoint: &mut impl Endpoint, now: Instant) -> io::Result<()> {
        match (self.writing, &self.end) {
            (Half::Shut, _) => Ok(()),
            (Half::Open, Some(_)) => Err(ErrorKind::NotConnected.into()),
            (Half::Open, None) => {
                self.writing = Half::Shut;
                endpoint.close(now).map_err(|_| ErrorKind::NotConnected.into())
            }
        }
    }

    /// Who waits to read is told.
    pub(super) fn shut_reading(&mut self) {
        self.reading = Half::Shut;
        self.news = News::Some;
    }

    /// Whether the peer has everything, the end included, or why it never will.
    pub(super) fn delivered(&self, endpoint: &impl Endpoint) -> Poll<io::Result<()>> {
        match (&self.end, endpoint.state()) {
            (Some(End::Closed(CloseReason::Finished)), _) | (None, State::FinWait2 | State::TimeWait) => {
                Poll::Ready(Ok(()))
            }
            (Some(_), _) => Poll::Ready(Err(self.error())),
            _ => Poll::Pending,
        }
    }

    /// Nobody is interested any more: what was written is sent, the stream ended; what was received and not read, or
    /// comes later, resets the connection (RFC 1122 §4.2.2.13).
    pub(super) fn leave(&mut self, endpoint: &mut impl Endpoint, now: Instant) {
        let unread = self.refill(endpoint) && self.reading == Half::Open;
        self.presence = Presence::Gone { left: endpoint.unacknowledged(), since: now };
        if unread {
            endpoint.abort(now);
        } else if self.writing == Half::Open {
            self.writing = Half::Shut;
            // It may be closed by now.
            let _ = endpoint.close(now);
        }
    }

    // ---- what the table does ----

    /// Its endpoint tells something.
    pub(super) fn hear(&mut self, event: Event) {
        if event != Event::Writable {
            self.news = News::Some;
        }
        if let Event::Closed(reason) = event {
            self.end.get_or_insert(End::Closed(reason));
        }
    }

    /// It will never be what it was meant to be.
    pub(super) fn fail(&mut self, why: impl Into<Reason>) {
        self.news = News::Some;
        self.end.get_or_insert(End::Failed(why.into()));
    }

    /// Acts on what the endpoint told, before what it wants to send is sent. Returns whether that may make it want more.
    pub(super) fn settle(
        &mut self,
        now: Instant,
        endpoint: &mut impl Endpoint,
        sleepers: &mut Sleepers,
    ) -> Called {
        self.called = Called::No;
        // That the peer has our end is no event.
        let state = endpoint.state();
        let mut news = std::mem::replace(&mut self.seen, state) != state;
        news |= std::mem::replace(&mut self.news, News::None) == News::Some;
        let has_room = self.room == Room::Wanted && endpoint.send_capacity() >= Self::worth_waking(endpoint);
        if has_room {
            (self.room, news) = (Room::Again, true);
        }
        self.go_on_alone(endpoint, now);
        if self.reading == Half::Shut {
            while self.refill(endpoint) {
                self.next.clear();
            }
        }
        let readable = self.refill(endpoint) || self.peer_has_ended(endpoint) || self.end.is_some();
        let opened = self.opening == Opening::Awaited && self.opened(endpoint).is_ready();
        let something = readable || opened || self.room == Room::Again;
        self.notice.show(if something { Shown::Something } else { Shown::Nothing });
        if has_room {
            self.notice.show_anew();
        }
        if news {
            self.notice.wake(sleepers);
        }
        self.called
    }

    /// Room for which a writer is woken: not a block's, or it would be woken for each.
    fn worth_waking(endpoint: &impl Endpoint) -> u64 {
        (endpoint.send_buffer().unwrap_or(0) / 4).max(1)
    }

    /// Whether nobody wants it, neither here nor there.
    pub(super) fn is_over(&self, endpoint: &impl Endpoint) -> bool {
        matches!(self.presence, Presence::Gone { .. }) && endpoint.state() == State::Closed
    }

    fn go_on_alone(&mut self, endpoint: &mut impl Endpoint, now: Instant) {
        let Presence::Gone { left, .. } = self.presence else { return };
        if self.reading == Half::Open && self.refill(endpoint) && endpoint.state() != State::Closed {
            endpoint.abort(now);
            self.called = Called::Yes;
        }
        let unacknowledged = endpoint.unacknowledged();
        if unacknowledged != left {
            self.presence = Presence::Gone { left: unacknowledged, since: now };
        }
    }

    /// When to end it, whose user has left.
    pub(super) fn gives_up_at(&self, endpoint: &impl Endpoint) -> Option<Instant> {
        match self.presence {
            Presence::Gone { since, .. } if endpoint.state() != State::Closed => {
                Some(since + endpoint.silence_limit().unwrap_or(PATIENCE))
            }
            _ => None,
        }
    }

    /// Whether there is something to read.
    fn refill(&mut self, endpoint: &mut impl Endpoint) -> bool {
        if self.next.is_empty() {
            self.next = endpoint.recv().unwrap_or_default();
            if !self.next.is_empty() {
                self.called = Called::Yes;
            }
        }
        !self.next.is_empty()
    }

    fn peer_has_ended(&self, endpoint: &impl Endpoint) -> bool {
        match (&self.end, endpoint.state()) {
            (Some(end), _) => *end == End::Closed(CloseReason::Finished),
            (None, state) => {
                matches!(state, State::CloseWait | State::LastAck | State::Closing | State::TimeWait)
            }
        }
    }

    fn error(&self) -> io::Error {
        match &self.end {
            Some(End::Failed(why)) => return why.clone().into(),
            Some(End::Closed(CloseReason::Refused)) => ErrorKind::ConnectionRefused,
            Some(End::Closed(CloseReason::Reset)) => ErrorKind::ConnectionReset,
            Some(End::Closed(CloseReason::TimedOut)) => ErrorKind::TimedOut,
            Some(End::Closed(CloseReason::Aborted)) => ErrorKind::ConnectionAborted,
            Some(End::Closed(CloseReason::Finished)) | None => ErrorKind::NotConnected,
        }
        .into()
    }
}
