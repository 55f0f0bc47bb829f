//! One connection of a stack, and how it ended.

use crate::icmp::UnreachableReason;
use crate::window::ReceiveWindow;
use bytes::Bytes;
use hopline_core::Instant;
use hopline_transport::connection::CloseReason;
use hopline_transport::tcp::{Endpoint, State};
use std::net::SocketAddr;

/// Name of a connection in its stack. No two connections of a stack ever have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub(crate) u64);

/// End of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// Both directions were closed in order.
    Closed,
    /// The peer refused the connection.
    Refused,
    /// The peer reset the connection.
    Reset,
    /// The peer did not answer.
    TimedOut,
    /// The application aborted.
    Aborted,
    /// A router or the peer's host reported that the peer is not reached.
    Unreachable(UnreachableReason),
}

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// State of TCP.
    pub state: State,
    /// `None` while the connection lasts.
    pub end: Option<EndReason>,
    /// Received data wait, or the peer's end of them.
    pub readable: bool,
    /// Bytes that `send` would take now.
    pub capacity: u64,
    /// Bytes that were sent or wait to be, and are not acknowledged.
    pub unacknowledged: u64,
}

/// Addresses and ports of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FourTuple {
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
}

/// Relation between a connection and the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Not accepted yet. The number is its place among half-open connections.
    HalfOpen(u64),
    /// The application knows it.
    Application,
    /// The application has let go of it.
    Orphaned,
}

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) endpoint: Endpoint<Bytes>,
    pub(crate) tuple: FourTuple,
    pub(crate) owner: Owner,
    pub(crate) end: Option<EndReason>,
    /// The peer has closed, and all its data were received.
    pub(crate) peer_closed: bool,
    /// Rest of a piece of received data of which the application took the beginning.
    pub(crate) partial_read: Option<Bytes>,
    /// Entry among those that may have a packet to send.
    pub(crate) is_queued: bool,
    /// Entry among those of which the application is to be told.
    pub(crate) is_changed: bool,
    /// Entry among the timers.
    pub(crate) timer: Option<Instant>,
    /// Growth of the receive window.
    pub(crate) window: ReceiveWindow,
    /// Bytes of the stack's memory that are set aside for it.
    pub(crate) reserved_memory: u64,
    /// Length of the path, as the peer's packets tell.
    pub(crate) path_hops: Option<u8>,
}

impl Connection {
    pub(crate) fn new(endpoint: Endpoint<Bytes>, ends: FourTuple, owner: Owner) -> Self {
        let window = ReceiveWindow::new(endpoint.config());
        Self {
            endpoint,
            tuple: ends,
            owner,
            end: None,
            peer_closed: false,
            partial_read: None,
            is_queued: false,
            is_changed: false,
            timer: None,
            window,
            reserved_memory: 0,
            path_hops: None,
        }
    }

    /// Returns whether nothing is left to do for it.
    pub(crate) fn is_over(&self) -> bool {
        self.endpoint.state() == State::Closed && self.owner != Owner::Application
    }
}

impl From<CloseReason> for EndReason {
    fn from(reason: CloseReason) -> Self {
        match reason {
            CloseReason::Finished => Self::Closed,
            CloseReason::Refused => Self::Refused,
            CloseReason::TimedOut => Self::TimedOut,
            CloseReason::Aborted => Self::Aborted,
            // Of a reset, and of any reason that a later version adds: the peer ended it out of order.
            _ => Self::Reset,
        }
    }
}
