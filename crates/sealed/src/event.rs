//! Inputs and outputs of a host, other than the bytes of datagrams.

use core::net::{IpAddr, SocketAddr};
use hopline_secure::{Failure, PublicKey};
use hopline_transport::wide::Event;
use hopline_wire::ipv4::Ecn;
use thiserror::Error;

/// Identifier of a connection of a [`Host`](crate::Host). It is never reused for another connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionKey(pub(crate) u64);

/// Addresses between which a datagram travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Path {
    /// Address of the peer.
    pub peer: SocketAddr,
    /// Address of this host at which it has received datagrams of the peer, if known. Answers are sent from this address.
    pub local: Option<IpAddr>,
}

impl Path {
    /// Returns the path to `peer`, from a local address that the system chooses.
    #[must_use]
    pub const fn to(peer: SocketAddr) -> Self {
        Self { peer, local: None }
    }
}

/// A datagram that was appended to a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Destination, and the local address from which to send.
    pub path: Path,
    /// Its length, in bytes.
    pub len: usize,
    /// ECN codepoint of its IP header.
    pub ecn: Ecn,
    /// Connection of the datagram. None for an answer that belongs to no connection, such as a message of a handshake.
    pub key: Option<ConnectionKey>,
}

/// Event of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostEvent {
    /// A peer has opened a connection. It waits in the backlog until a user [accepts](crate::Host::mark_accepted) it.
    Accepted(ConnectionKey),
    /// The transport of a connection has reported this event. No event follows `Closed`, but received data can still be read.
    Connection(ConnectionKey, Event),
    /// The state of a connection, or its number of unacknowledged bytes, has changed by a datagram or a timer. This event is
    /// reported only if no other event tells the user of the change. Example: the peer has acknowledged the end of the
    /// stream.
    Changed(ConnectionKey),
    /// A connection could not be opened. No event of it follows.
    Failed(ConnectionKey, OpenFailure),
    /// The peer has a new address, and path validation has succeeded.
    Moved(ConnectionKey, Path),
    /// An initiator at this address has a key that is not trusted. If 16 such events wait, a new one replaces the oldest.
    UntrustedKey(SocketAddr, PublicKey),
}

impl HostEvent {
    /// Returns whether this is the last event of its connection.
    #[must_use]
    pub const fn is_last(&self) -> bool {
        matches!(self, Self::Connection(_, Event::Closed(_)) | Self::Failed(..))
    }
}

/// Reason that a connection could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OpenFailure {
    /// The handshake has failed.
    #[error(transparent)]
    Handshake(#[from] Failure),
    /// The responder has taken part in the handshake, but has no connection.
    #[error(
        "the responder did not accept: perhaps our key is none of those that it trusts, or it was restarted just now"
    )]
    NotAccepted,
    /// The responder's parameters of the transport cannot be parsed.
    #[error("the responder's transport is of a kind that is not known here")]
    Transport,
}
