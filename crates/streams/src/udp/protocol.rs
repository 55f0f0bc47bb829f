//! Interface of a protocol that carries streams over a UDP socket.

use super::socket::Path;
use super::traffic::Traffic;
use bytes::Bytes;
use hopline_core::{Duration, Instant};
use hopline_transport::connection::{CloseError, Event, SendError, State};
use hopline_wire::ipv4::Ecn;
use std::fmt::Debug;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// All connections of one UDP socket, as a sans-I/O state machine: it opens no socket, reads no clock and wakes no
/// thread.
///
/// After any input (a datagram, the time, a call) the caller polls events until there are none, then datagrams, and then
/// calls [`handle_drained`](Self::handle_drained). While the socket has no room, it polls no datagrams.
pub trait Protocol: Debug + Send + Sized + 'static {
    /// Identifier of a connection. It is not reused while a stream of it exists.
    type Key: Copy + Ord + Debug + Send + Sync + Unpin + 'static;
    /// Configuration for opening or accepting a connection.
    type Config;
    /// Access to one connection, for the calls of its user.
    type Endpoint<'a>: Endpoint;
    /// State of a connection.
    type Info;
    /// Statistics of a host.
    type HostStats;

    /// Name of the thread that serves a host: at most 15 bytes.
    const NAME: &'static str;

    /// Creates a host without connections, with the default configuration.
    ///
    /// # Errors
    /// The system has no random numbers.
    fn new() -> io::Result<Self>;

    // ---- connections ----

    /// Opens a connection.
    ///
    /// # Errors
    /// `InvalidInput` for a parameter out of its range; the system has no random numbers.
    fn connect(&mut self, now: Instant, path: Path, config: &Self::Config) -> io::Result<Self::Key>;

    /// Lets peers connect to `local`, with at most `backlog` (at least 1) connections that are not
    /// [picked](Self::mark_accepted). There is no listener yet.
    ///
    /// # Errors
    /// `InvalidInput` for a parameter out of its range; the system has no random numbers.
    fn listen(&mut self, local: SocketAddr, config: &Self::Config, backlog: usize) -> io::Result<()>;

    /// Removes the listener. Connections stay.
    fn unlisten(&mut self);

    /// Reports that an [accepted](ProtocolEvent::Accepted) connection has been passed to its user.
    fn mark_accepted(&mut self, key: Self::Key);

    /// Discards a connection that was [accepted](ProtocolEvent::Accepted) just now, without an answer to its peer, which may
    /// retry.
    fn reject(&mut self, key: Self::Key);

    /// Removes a connection that neither peer needs any more, after its last datagrams have been sent.
    fn remove(&mut self, now: Instant, key: Self::Key);

    /// Returns the endpoint of a connection, also before it is [picked](Self::mark_accepted). It exists at least until the
    /// connection is closed and all data are read; a missing endpoint counts as that. [`handle_user_call`](Self::handle_user_call) reports
    /// calls that have consequences.
    fn endpoint(&mut self, key: Self::Key) -> Option<Self::Endpoint<'_>>;

    /// Reports a call of the endpoint: it may have data to send or events to report.
    fn handle_user_call(&mut self, key: Self::Key);

    /// Returns the validated path to the peer. A connection in use has one even after its end.
    fn path(&self, key: Self::Key) -> Path;

    /// Returns the state of the connection.
    fn info(&self, key: Self::Key) -> Self::Info;

    /// Handles an ICMP message of the host at `address` that a port is unreachable. The port is unknown. Returns the
    /// connection that must be meant, if it is unambiguous.
    fn unreachable_connection(&self, address: IpAddr) -> Option<Self::Key>;

    // ---- inputs ----

    /// Handles a received datagram, which it may overwrite. `ecn` is the ECN field of its IP header.
    fn handle_datagram(&mut self, now: Instant, path: Path, ecn: Ecn, datagram: &mut [u8]);

    /// Handles expired timers.
    fn handle_timeout(&mut self, now: Instant);

    /// Returns the time of the next timer.
    fn poll_timeout(&self) -> Option<Instant>;

    // ---- outputs ----

    /// Returns the next event.
    fn poll_event(&mut self, now: Instant) -> Option<ProtocolEvent<Self::Key>>;

    /// Appends the next datagram to `buffer`, and returns its metadata.
    fn poll_transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit<Self::Key>>;

    /// Reports that all datagrams for which there is room have been sent. Unpolled replies that a repeated request would
    /// produce again should be discarded.
    fn handle_drained(&mut self, now: Instant);

    /// Reports that datagrams of a connection leave as a GSO group.
    fn handle_gso_group(&mut self, key: Self::Key);

    /// Reports that a datagram of `len` bytes, which must not be [fragmented](Fragments::Forbidden), exceeds the MTU of
    /// the interface.
    fn handle_mtu_exceeded(&mut self, now: Instant, key: Self::Key, len: usize);

    /// Returns the statistics of the protocol, with those of the socket.
    fn stats(&self, traffic: &Traffic) -> Self::HostStats;
}

/// A connection, as its user's half needs it. Calls never fail because of the network.
pub trait Endpoint {
    /// Connection state.
    fn state(&self) -> State;

    /// Takes data to send, all of it or none.
    ///
    /// # Errors
    /// The connection is not open for sending, or the buffer has no room.
    fn send(&mut self, now: Instant, data: Bytes) -> Result<(), SendError>;

    /// Sends the data given to [`send`](Self::send) at once.
    fn flush(&mut self, now: Instant);

    /// Returns the next piece of received data, in order.
    fn recv(&mut self) -> Option<Bytes>;

    /// Closes the sending direction after all data have been sent.
    ///
    /// # Errors
    /// The connection is not open, or the user has closed it already.
    fn close(&mut self, now: Instant) -> Result<(), CloseError>;

    /// Aborts the connection.
    fn abort(&mut self, now: Instant);

    /// Returns the bytes that [`send`](Self::send) would take now.
    fn send_capacity(&self) -> u64;

    /// Returns the size of the send buffer, in bytes; `None`: unlimited.
    fn send_buffer(&self) -> Option<u64>;

    /// Returns the bytes taken that the peer has not acknowledged.
    fn unacknowledged(&self) -> u64;

    /// Returns the idle timeout; `None`: there is none.
    fn silence_limit(&self) -> Option<Duration>;
}

/// A missing endpoint behaves as a closed one.
impl<E: Endpoint> Endpoint for Option<E> {
    fn state(&self) -> State {
        self.as_ref().map_or(State::Closed, E::state)
    }

    fn send(&mut self, now: Instant, data: Bytes) -> Result<(), SendError> {
        self.as_mut().map_or(Err(SendError::NotOpen), |endpoint| endpoint.send(now, data))
    }

    fn flush(&mut self, now: Instant) {
        if let Some(endpoint) = self {
            endpoint.flush(now);
        }
    }

    fn recv(&mut self) -> Option<Bytes> {
        self.as_mut().and_then(E::recv)
    }

    fn close(&mut self, now: Instant) -> Result<(), CloseError> {
        self.as_mut().map_or(Err(CloseError::NotOpen), |endpoint| endpoint.close(now))
    }

    fn abort(&mut self, now: Instant) {
        if let Some(endpoint) = self {
            endpoint.abort(now);
        }
    }

    fn send_capacity(&self) -> u64 {
        self.as_ref().map_or(0, E::send_capacity)
    }

    fn send_buffer(&self) -> Option<u64> {
        self.as_ref().and_then(E::send_buffer)
    }

    fn unacknowledged(&self) -> u64 {
        self.as_ref().map_or(0, E::unacknowledged)
    }

    fn silence_limit(&self) -> Option<Duration> {
        self.as_ref().and_then(E::silence_limit)
    }
}

/// Reason that a connection failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Kind of the error, for programs.
    pub kind: ErrorKind,
    /// Text for users, if the kind does not say everything.
    pub text: Option<Arc<str>>,
}

impl From<ErrorKind> for Reason {
    fn from(kind: ErrorKind) -> Self {
        Self { kind, text: None }
    }
}

impl From<Reason> for io::Error {
    fn from(reason: Reason) -> Self {
        match reason.text {
            Some(text) => Self::new(reason.kind, &*text),
            None => reason.kind.into(),
        }
    }
}

/// Event of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProtocolEvent<K> {
    /// A peer has opened the connection. It is its first event.
    Accepted(K),
    /// The endpoint reports an event to its user.
    Event(K, Event),
    /// The connection failed for a reason that its endpoint does not know.
    Failed(K, Reason),
    /// A datagram arrived or a timer expired: the state may have changed, and the sender may have room. It covers every
    /// change without an event, such as the acknowledgement of the end of the stream.
    Touched(K),
}

/// Metadata of a datagram that was appended to a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit<K> {
    /// Destination.
    pub path: Path,
    /// Length in bytes.
    pub len: usize,
    /// ECN field of the IP header.
    pub ecn: Ecn,
    /// Connection of the datagram, if it belongs to one.
    pub key: Option<K>,
    /// Datagrams with which it may share a GSO group.
    pub gso_grouping: GsoGrouping,
    /// Permission for routers to fragment it.
    pub fragments: Fragments,
}

/// Eligibility of a datagram for a GSO group: datagrams with one path, all but the last of the same length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GsoGrouping {
    /// With no other datagram.
    Alone,
    /// With datagrams of the same connection.
    SameConnection,
    /// With any datagrams to the same path.
    SamePath,
}

/// Permission for routers to fragment a datagram. A datagram that exceeds the path MTU then either arrives at a higher
/// cost, or it is lost, which reveals that it is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fragments {
    /// Fragmentation is permitted. While the socket has no room, the datagram waits.
    Allowed,
    /// Fragmentation is forbidden. Without room in the socket, the datagram is dropped. It is sent alone.
    Forbidden,
}
