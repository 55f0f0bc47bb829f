//! User's half of a connection: requested operations and reported events.

use super::notice::{PendingWakeups, Readiness, Wakeup};
use super::protocol::{Endpoint, Reason};
use bytes::{Buf, Bytes};
use hopline_core::{Duration, Instant};
use hopline_transport::connection::{CloseReason, Event, SendError, State};
use std::io::{self, ErrorKind};
use std::task::Poll;

/// Maximum bytes taken by one write.
const MAX_WRITE: usize = 1 << 16;
/// Time without progress after which an abandoned connection is given up, if its configuration has no limit.
const ABANDON_TIMEOUT: Duration = Duration::from_secs(120);

/// State of the user. The endpoint belongs to the protocol and is borrowed for each call.
#[derive(Debug)]
pub(super) struct User {
    pub(super) notice: Wakeup,
    /// Time at which the table will give it up.
    pub(super) deadline: Option<Instant>,
    pub(super) waiting: Waiting,
    ownership: Ownership,
    end: Option<End>,
    /// `Some` if the endpoint has reported events for which the user has not been woken.
    unreported: Unreported,
    /// Received data to be read next.
    next: Bytes,
    receiving: HalfState,
    sending: HalfState,
    room: WriteRoom,
    open_state: OpenState,
    may_transmit: MayTransmit,
    /// Last state for which the user has been woken.
    seen: State,
}

/// Timeouts of calls; `None`: unlimited.
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

/// Ownership of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ownership {
    /// Owned by a stream or by the accept queue.
    Owned,
    /// Abandoned: it ends by itself. It had `left` bytes to send at `since`.
    Abandoned { left: u64, since: Instant },
}

/// End of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    Closed(CloseReason),
    /// For a reason that the endpoint does not know: the peer's host reported the port as unreachable.
    Failed(Reason),
}

/// Reports whether a call may make the endpoint send, for instance because there is room again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MayTransmit {
    No,
    Yes,
}

/// Reports whether there are events for which the user has not been woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unreported {
    None,
    Some,
}

/// Room for writes, as the user knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteRoom {
    /// No write was rejected.
    Sufficient,
    /// A write was rejected.
    Wanted,
    /// Since then there is room again.
    Regained,
}

/// State of the user's knowledge about an opening connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenState {
    /// The user knows the outcome, or waits for it in a call.
    Seen,
    /// The user has to be notified of the outcome.
    Awaited,
}

/// Operation for which a task that waits for many streams is interested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Either of the two.
    Both,
}

/// Operations on a stream that do not block, including the return of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// A read returns data, the end of the stream or an error.
    pub readable: bool,
    /// A write has room, or fails. After a lack of room, a quarter of the buffer must be free.
    pub writable: bool,
    /// The connection has ended, regularly or not.
    pub over: bool,
}

/// State of a direction, as the user has set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HalfState {
    Open,
    Shut,
}

impl User {
    pub(super) fn new(notice: Wakeup) -> Self {
        Self {
            notice,
            deadline: None,
            waiting: Waiting { blocking: Blocking::Yes, read: None, write: None },
            ownership: Ownership::Owned,
            end: None,
            unreported: Unreported::None,
            next: Bytes::new(),
            receiving: HalfState::Open,
            sending: HalfState::Open,
            room: WriteRoom::Sufficient,
            open_state: OpenState::Seen,
            may_transmit: MayTransmit::No,
            seen: State::Closed,
        }
    }

    /// Creates the user of a non-blocking connection attempt.
    pub(super) fn connecting(notice: Wakeup) -> Self {
        Self { open_state: OpenState::Awaited, ..Self::new(notice) }
    }

    // ---- application calls ----

    /// Like [`opened`](Self::opened), and clears the event.
    pub(super) fn poll_opened(&mut self, endpoint: &impl Endpoint) -> Poll<io::Result<()>> {
        let opened = self.opened(endpoint);
        if opened.is_ready() {
            self.open_state = OpenState::Seen;
        }
        opened
    }

    /// Becomes ready once the connection is open or has failed.
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
            _ if self.receiving == HalfState::Shut || self.peer_has_ended(endpoint) => Poll::Ready(Ok(0)),
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
        // A write without any room is rejected; the endpoint reports room later.
        let len = data.len().min(MAX_WRITE).min(free.max(1));
        match endpoint.send(now, Bytes::copy_from_slice(&data[..len])) {
            Ok(()) => {
                self.room = WriteRoom::Sufficient;
                Poll::Ready(Ok(len))
            }
            Err(SendError::Full { .. }) => {
                self.room = WriteRoom::Wanted;
                Poll::Pending
            }
            Err(_) => Poll::Ready(Err(match self.sending {
                HalfState::Shut => ErrorKind::BrokenPipe.into(),
                HalfState::Open => self.error(),
            })),
        }
    }

    /// Returns the operations that do not block. A user that cannot write is notified of room, as after a rejected write.
    pub(super) fn ready(&mut self, endpoint: &mut impl Endpoint, interest: Interest) -> Ready {
        let over = self.end.is_some();
        let readable = self.refill(endpoint)
            || self.receiving == HalfState::Shut
            || self.peer_has_ended(endpoint)
            || over;
        let opening = self.opened(endpoint).is_pending();
        let room = !opening && endpoint.send_capacity() >= Self::wake_threshold(endpoint);
        let writable = room || self.sending == HalfState::Shut || over;
        if !writable && !opening && interest != Interest::Read {
            self.room = WriteRoom::Wanted;
        }
        Ready { readable, writable, over }
    }

    pub(super) fn shutdown_write(&mut self, endpoint: &mut impl Endpoint, now: Instant) -> io::Result<()> {
        match (self.sending, &self.end) {
            (HalfState::Shut, _) => Ok(()),
            (HalfState::Open, Some(_)) => Err(ErrorKind::NotConnected.into()),
            (HalfState::Open, None) => {
                self.sending = HalfState::Shut;
                endpoint.close(now).map_err(|_| ErrorKind::NotConnected.into())
            }
        }
    }

    /// Closes the receiving direction and notifies waiting readers.
    pub(super) fn shutdown_read(&mut self) {
        self.receiving = HalfState::Shut;
        self.unreported = Unreported::Some;
    }

    /// Becomes ready once the peer has everything including the end of the stream, or the connection has failed.
    pub(super) fn delivered(&self, endpoint: &impl Endpoint) -> Poll<io::Result<()>> {
        match (&self.end, endpoint.state()) {
            (Some(End::Closed(CloseReason::Finished)), _) | (None, State::FinWait2 | State::TimeWait) => {
                Poll::Ready(Ok(()))
            }
            (Some(_), _) => Poll::Ready(Err(self.error())),
            _ => Poll::Pending,
        }
    }

    /// Abandons the connection. Written data are sent and the stream is ended. Received data that were not read, or that
    /// arrive later, reset the connection (RFC 1122 §4.2.2.13).
    pub(super) fn abandon(&mut self, endpoint: &mut impl Endpoint, now: Instant) {
        let unread = self.refill(endpoint) && self.receiving == HalfState::Open;
        self.ownership = Ownership::Abandoned { left: endpoint.unacknowledged(), since: now };
        if unread {
            endpoint.abort(now);
        } else if self.sending == HalfState::Open {
            self.sending = HalfState::Shut;
            // It may be closed by now.
            let _ = endpoint.close(now);
        }
    }

    // ---- what the table does ----

    /// Handles an event of the endpoint.
    pub(super) fn handle_event(&mut self, event: Event) {
        if event != Event::Writable {
            self.unreported = Unreported::Some;
        }
        if let Event::Closed(reason) = event {
            self.end.get_or_insert(End::Closed(reason));
        }
    }

    /// Marks the connection as failed.
    pub(super) fn fail(&mut self, why: impl Into<Reason>) {
        self.unreported = Unreported::Some;
        self.end.get_or_insert(End::Failed(why.into()));
    }

    /// Handles the events of the endpoint, before its data are sent. Returns whether that may make it send more.
    pub(super) fn process(
        &mut self,
        now: Instant,
        endpoint: &mut impl Endpoint,
        sleepers: &mut PendingWakeups,
    ) -> MayTransmit {
        self.may_transmit = MayTransmit::No;
        // The acknowledgement of the end of the stream is not an event.
        let state = endpoint.state();
        let mut news = std::mem::replace(&mut self.seen, state) != state;
        news |= std::mem::replace(&mut self.unreported, Unreported::None) == Unreported::Some;
        let has_room =
            self.room == WriteRoom::Wanted && endpoint.send_capacity() >= Self::wake_threshold(endpoint);
        if has_room {
            (self.room, news) = (WriteRoom::Regained, true);
        }
        self.drain_abandoned(endpoint, now);
        if self.receiving == HalfState::Shut {
            while self.refill(endpoint) {
                self.next.clear();
            }
        }
        let readable = self.refill(endpoint) || self.peer_has_ended(endpoint) || self.end.is_some();
        let opened = self.open_state == OpenState::Awaited && self.opened(endpoint).is_ready();
        let something = readable || opened || self.room == WriteRoom::Regained;
        self.notice.set_readiness(if something { Readiness::Ready } else { Readiness::Idle });
        if has_room {
            self.notice.signal_again();
        }
        if news {
            self.notice.wake(sleepers);
        }
        self.may_transmit
    }

    /// Returns the free bytes at which a writer is woken; more than one block, or it would be woken for each.
    fn wake_threshold(endpoint: &impl Endpoint) -> u64 {
        (endpoint.send_buffer().unwrap_or(0) / 4).max(1)
    }

    /// Returns whether neither peer needs the connection any more.
    pub(super) fn is_over(&self, endpoint: &impl Endpoint) -> bool {
        matches!(self.ownership, Ownership::Abandoned { .. }) && endpoint.state() == State::Closed
    }

    fn drain_abandoned(&mut self, endpoint: &mut impl Endpoint, now: Instant) {
        let Ownership::Abandoned { left, .. } = self.ownership else { return };
        if self.receiving == HalfState::Open && self.refill(endpoint) && endpoint.state() != State::Closed {
            endpoint.abort(now);
            self.may_transmit = MayTransmit::Yes;
        }
        let unacknowledged = endpoint.unacknowledged();
        if unacknowledged != left {
            self.ownership = Ownership::Abandoned { left: unacknowledged, since: now };
        }
    }

    /// Returns the time at which to abort an abandoned connection.
    pub(super) fn abort_deadline(&self, endpoint: &impl Endpoint) -> Option<Instant> {
        match self.ownership {
            Ownership::Abandoned { since, .. } if endpoint.state() != State::Closed => {
                Some(since + endpoint.silence_limit().unwrap_or(ABANDON_TIMEOUT))
            }
            _ => None,
        }
    }

    /// Fetches received data. Returns whether there is something to read.
    fn refill(&mut self, endpoint: &mut impl Endpoint) -> bool {
        if self.next.is_empty() {
            self.next = endpoint.recv().unwrap_or_default();
            if !self.next.is_empty() {
                self.may_transmit = MayTransmit::Yes;
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
            Some(End::Closed(_)) | None => ErrorKind::NotConnected,
        }
        .into()
    }
}
