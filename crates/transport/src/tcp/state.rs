//! Connection states, timers, events and the errors of application calls.

use hopline_core::TimerKind;

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
    /// Both sides know each other's sequence numbers (RFC 9293 §3.5.2: "synchronized state").
    #[must_use]
    pub const fn is_synchronized(self) -> bool {
        !matches!(self, Self::Closed | Self::Listen | Self::SynSent | Self::SynReceived)
    }

    /// The user may still hand over data.
    #[must_use]
    pub const fn may_send(self) -> bool {
        matches!(self, Self::Listen | Self::SynSent | Self::SynReceived | Self::Established | Self::CloseWait)
    }

    /// Data of the peer may still arrive.
    #[must_use]
    pub const fn may_receive(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }

    /// Data, a FIN or a retransmission of them may leave.
    #[must_use]
    pub(crate) const fn may_transmit(self) -> bool {
        matches!(self, Self::Established | Self::CloseWait | Self::FinWait1 | Self::Closing | Self::LastAck)
    }
}

/// Why an endpoint wants to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Timer {
    /// Retransmission (RFC 6298).
    Retransmit,
    /// Delayed acknowledgment (RFC 1122 §4.2.3.2).
    DelayedAck,
    /// Zero-window probe or silly-window override (RFC 9293 §3.8.6).
    Persist,
    /// End of TIME-WAIT.
    TimeWait,
}

impl TimerKind for Timer {
    const ALL: &'static [Self] = &[Self::Retransmit, Self::DelayedAck, Self::Persist, Self::TimeWait];

    fn index(self) -> usize {
        self as usize
    }
}

/// What an endpoint tells its user. Equal events that the user has not yet taken are told once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The handshake is complete.
    Connected,
    /// In-order data is waiting in [`recv`](super::Endpoint::recv).
    Readable,
    /// A [`send`](super::Endpoint::send) was refused for want of space; there is space again.
    Writable,
    /// The peer closed its direction; all its data was received.
    PeerClosed,
    /// The connection is over. No event follows.
    Closed(CloseReason),
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

/// Why `connect` or `listen` was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpenError {
    /// The endpoint is or was already open: an endpoint lives for one connection.
    AlreadyOpen,
    /// The remote port is unknown.
    NoRemotePort,
}

/// Why `send` was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SendError {
    /// Not open, or already closed by the user.
    NotOpen,
    /// The send buffer has less room than that; nothing was taken. [`Event::Writable`] follows.
    Full {
        /// Bytes that would be taken now.
        free: u64,
    },
}

/// Why `close` was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    Self::AlreadyOpen => "the endpoint is or was already open",
    Self::NoRemotePort => "the remote port is unknown",
});
error_text!(SendError {
    Self::NotOpen => "the connection is not open for sending",
    Self::Full { .. } => "the send buffer is full",
});
error_text!(CloseError {
    Self::NotOpen => "the connection is not open",
});
