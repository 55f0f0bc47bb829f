//! Inputs and outputs of a host, beside datagrams.

use core::net::{IpAddr, SocketAddr};
use hopline_secure::{Failure, PublicKey};
use hopline_transport::wide::Event;
use hopline_wire::ipv4::Ecn;
use thiserror::Error;

/// A connection of a [`Host`](crate::Host): never used again for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionKey(pub(crate) u64);

/// Between whom a datagram travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Path {
    /// Address of the peer.
    pub peer: SocketAddr,
    /// Our address by which the peer knows us, if the host has several: whatever came is answered from it.
    pub local: Option<IpAddr>,
}

impl Path {
    /// Returns the path to that peer, from the address that the system chooses.
    #[must_use]
    pub const fn to(peer: SocketAddr) -> Self {
        Self { peer, local: None }
    }
}

/// A datagram that was appended to a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Destination, and the local address from which it leaves.
    pub path: Path,
    /// Its length, in bytes.
    pub len: usize,
    /// ECN codepoint of its IP header.
    pub ecn: Ecn,
    /// The connection that it belongs to; none for an answer to a peer that has none yet.
    pub key: Option<ConnectionKey>,
}

/// Event of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostEvent {
    /// A peer has opened a connection. It waits in the backlog until it is [picked](crate::Host::mark_accepted).
    Accepted(ConnectionKey),
    /// The transport says so of a connection. Behind `Closed` nothing more comes; what was received can still be read.
    Connection(ConnectionKey, Event),
    /// The state of a connection, or how much of what its user handed over is not acknowledged, has changed,
    /// by something that came or by time. Told of what no other event tells, such as that the peer has our
    /// end of the stream.
    Changed(ConnectionKey),
    /// A connection was not opened. Nothing more comes of it.
    Failed(ConnectionKey, OpenFailure),
    /// The peer is somewhere else, and has shown that it receives there.
    Moved(ConnectionKey, Path),
    /// An initiator has a key that is not trusted. Only the last few are reported.
    UntrustedKey(SocketAddr, PublicKey),
}

impl HostEvent {
    /// Returns whether nothing more is reported of the connection after this.
    #[must_use]
    pub const fn is_last(&self) -> bool {
        matches!(self, Self::Connection(_, Event::Closed(_)) | Self::Failed(..))
    }
}

/// Reason that a connection was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OpenFailure {
    /// The handshake came to nothing.
    #[error(transparent)]
    Handshake(#[from] Failure),
    /// The responder has taken part in the handshake, and knows of no connection.
    #[error(
        "the responder did not accept: perhaps our key is none of those that it trusts, or it was restarted just now"
    )]
    NotAccepted,
    /// The responder speaks of its transport in a way that is not known here.
    #[error("the responder's transport is of a kind that is not known here")]
    Transport,
}
