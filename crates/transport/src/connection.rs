//! Common parts of the connections of all transports: states, events and the errors of application calls.

use crate::Signal;
use hopline_core::{Instant, Payload, StateMachine};

/// Calls of the application to the endpoints of all transports, in addition to those of [`StateMachine`].
pub trait Connection<P: Payload>: StateMachine<Signal = Signal, Event = Event> {
    /// Opens the connection.
    ///
    /// # Errors
    /// The connection is already open.
    fn connect(&mut self, now: Instant) -> Result<(), OpenError>;

    /// Waits for the peer to open the connection.
    ///
    /// # Errors
    /// The connection is already open.
    fn listen(&mut self) -> Result<(), OpenError>;

    /// Accepts data to send, all or none.
    ///
    /// # Errors
    /// The connection is not open for sending, or the send buffer has no room.
    fn send(&mut self, now: Instant, data: P) -> Result<(), SendError>;

    /// Returns the next piece of received data, in order.
    fn recv(&mut self) -> Option<P>;

    /// Closes the sending direction after all accepted data are sent.
    ///
    /// # Errors
    /// The connection is not open, or was closed by the user before.
    fn close(&mut self, now: Instant) -> Result<(), CloseError>;

    /// Ends the connection at once.
    fn abort(&mut self, now: Instant);

    /// Returns the connection state.
    fn state(&self) -> State;
}

/// Implements [`Connection`] by the methods of the same names of the endpoint.
macro_rules! connection_of {
    ($endpoint:ty $(, $parameter:ident: $bound:path)?) => {
        impl<P: hopline_core::Payload $(, $parameter: $bound)?> crate::connection::Connection<P> for $endpoint {
            fn connect(&mut self, now: hopline_core::Instant) -> Result<(), crate::connection::OpenError> {
                self.connect(now)
            }

            fn listen(&mut self) -> Result<(), crate::connection::OpenError> {
                self.listen()
            }

            fn send(
                &mut self,
                now: hopline_core::Instant,
                data: P,
            ) -> Result<(), crate::connection::SendError> {
                self.send(now, data)
            }

            fn recv(&mut self) -> Option<P> {
                self.recv()
            }

            fn close(&mut self, now: hopline_core::Instant) -> Result<(), crate::connection::CloseError> {
                self.close(now)
            }

            fn abort(&mut self, now: hopline_core::Instant) {
                self.abort(now);
            }

            fn state(&self) -> crate::connection::State {
                self.state()
            }
        }
    };
}
pub(crate) use connection_of;

/// Connection state (RFC 9293 §3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// No connection.
    Closed,
    /// Waiting for a connection request.
    Listen,
    /// Connection request sent.
    SynSent,
    /// Request received and answered.
    SynReceived,
    /// Open.
    Established,
    /// Closed by the user; FIN not yet acknowledged.
    FinWait1,
    /// FIN acknowledged; waiting for the peer's.
    FinWait2,
    /// The peer closed; the user has not.
    CloseWait,
    /// Both closed at once; FIN not yet acknowledged.
    Closing,
    /// The peer closed first; waiting for the acknowledgment of our FIN.
    LastAck,
    /// Both FINs exchanged; waiting for old segments to die out.
    TimeWait,
}

impl State {
    /// Returns whether both ends know each other's sequence numbers (RFC 9293 §3.5.2: "synchronized state").
    #[must_use]
    pub const fn is_synchronized(self) -> bool {
        !matches!(self, Self::Closed | Self::Listen | Self::SynSent | Self::SynReceived)
    }

    /// Returns whether a reset has an addressee: the peer has the connection, or may have it.
    #[must_use]
    pub(crate) const fn is_known_to_peer(self) -> bool {
        self.is_synchronized() || matches!(self, Self::SynReceived)
    }

    /// Returns whether the user may still send data.
    #[must_use]
    pub const fn may_send(self) -> bool {
        matches!(self, Self::Listen | Self::SynSent | Self::SynReceived | Self::Established | Self::CloseWait)
    }

    /// Returns whether data of the peer may still arrive.
    #[must_use]
    pub const fn may_receive(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }

    /// Returns the state after the user has closed, or the same state if that has no effect now (RFC 9293 §3.3.2, figure
    /// 5, as the next two).
    #[must_use]
    pub const fn after_close(self) -> Self {
        match self {
            Self::Established => Self::FinWait1,
            Self::CloseWait => Self::LastAck,
            other => other,
        }
    }

    /// Returns the state after the acknowledgment of our FIN.
    #[must_use]
    pub const fn after_fin_acked(self) -> Self {
        match self {
            Self::FinWait1 => Self::FinWait2,
            Self::Closing => Self::TimeWait,
            Self::LastAck => Self::Closed,
            other => other,
        }
    }

    /// Returns the state after the arrival of the peer's FIN and all data before it.
    #[must_use]
    pub const fn after_peer_fin(self) -> Self {
        match self {
            Self::Established => Self::CloseWait,
            Self::FinWait1 => Self::Closing,
            Self::FinWait2 => Self::TimeWait,
            other => other,
        }
    }

    /// Returns whether data, a FIN or a retransmission of them may be sent.
    #[must_use]
    pub(crate) const fn may_transmit(self) -> bool {
        matches!(self, Self::Established | Self::CloseWait | Self::FinWait1 | Self::Closing | Self::LastAck)
    }
}

/// Event for the user of an endpoint. Equal events that the user has not yet taken are reported once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// The handshake is complete.
    Connected,
    /// In-order data is waiting in `recv`.
    Readable,
    /// A `send` was refused for want of space; there is space again.
    Writable,
    /// The peer closed its direction; all its data was received.
    PeerClosed,
    /// The connection is over. No event follows.
    Closed(CloseReason),
}

/// Pending events for the user: each at most once, reported in the order of a connection's life cycle.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Events {
    connected: bool,
    readable: bool,
    writable: bool,
    peer_closed: bool,
    closed: Option<CloseReason>,
}

impl Events {
    pub(crate) fn push(&mut self, event: Event) {
        match event {
            Event::Connected => self.connected = true,
            Event::Readable => self.readable = true,
            Event::Writable => self.writable = true,
            Event::PeerClosed => self.peer_closed = true,
            Event::Closed(reason) => self.closed = Some(reason),
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Event> {
        let mut take = |flag: fn(&mut Self) -> &mut bool, event| core::mem::take(flag(self)).then_some(event);
        take(|e| &mut e.connected, Event::Connected)
            .or_else(|| take(|e| &mut e.readable, Event::Readable))
            .or_else(|| take(|e| &mut e.writable, Event::Writable))
            .or_else(|| take(|e| &mut e.peer_closed, Event::PeerClosed))
            .or_else(|| self.closed.take().map(Event::Closed))
    }
}

/// Reason for the end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CloseReason {
    /// Both directions closed in order.
    Finished,
    /// The peer answered the connection request with a reset.
    Refused,
    /// The peer reset the open connection.
    Reset,
    /// Too many retransmissions without an answer.
    TimedOut,
    /// The user aborted.
    Aborted,
}

/// Reason for the refusal of `connect` or `listen`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OpenError {
    /// The endpoint is or was already open: an endpoint lives for one connection.
    AlreadyOpened,
    /// The remote port is unknown.
    NoRemotePort,
}

/// Reason for the refusal of `send`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SendError {
    /// Not open, or already closed by the user.
    NotOpen,
    /// The send buffer has less room than the data need; nothing was accepted. [`Event::Writable`] follows.
    Full {
        /// Bytes that would be accepted now.
        free: u64,
    },
}

/// Reason for the refusal of `close`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CloseError {
    /// Not open, or already closed by the user.
    NotOpen,
}

macro_rules! error_text {
    ($name:ident { $($pattern:pat => $text:literal),* $(,)? }) => {
        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(match self { $($pattern => $text),* })
            }
        }
        impl core::error::Error for $name {}
    };
}

error_text!(OpenError {
    Self::AlreadyOpened => "the endpoint is or was already open",
    Self::NoRemotePort => "the remote port is unknown",
});
error_text!(SendError {
    Self::NotOpen => "the connection is not open for sending",
    Self::Full { .. } => "the send buffer is full",
});
error_text!(CloseError {
    Self::NotOpen => "the connection is not open",
});
