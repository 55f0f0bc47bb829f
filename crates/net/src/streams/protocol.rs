//! What a protocol adds to streams over a UDP socket.

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

/// All connections of one UDP socket, as a machine: it opens no socket, reads no clock, wakes nobody.
///
/// After any of its inputs (a datagram, the time, a call) news are polled until there are none, then datagrams, then
/// [`drained`](Self::drained) follows. While the socket has no room no datagrams are polled.
pub trait Protocol: Debug + Send + Sized + 'static {
    /// What a connection is known by. Never given twice as long as somebody holds a stream.
    type Key: Copy + Ord + Debug + Send + Sync + Unpin + 'static;
    /// What is to be known before a connection is opened or accepted.
    type Config;
    /// One connection, for its user's calls.
    type Endpoint<'a>: Endpoint;
    /// How a connection stands.
    type Info;
    /// What a host counts.
    type HostStats;

    /// Of the thread that serves a host: at most 15 bytes.
    const NAME: &'static str;

    /// A host without connections, with all defaults.
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

    /// Lets peers connect to `local`: at most `backlog` (at least 1) connections that are not [picked](Self::picked). Nobody
    /// listens yet.
    ///
    /// # Errors
    /// `InvalidInput` for a parameter out of its range; the system has no random numbers.
    fn listen(&mut self, local: SocketAddr, config: &Self::Config, backlog: usize) -> io::Result<()>;

    /// Nobody listens any more. Connections stay.
    fn unlisten(&mut self);

    /// A connection that was [accepted](News::Accepted) has been given to its user.
    fn picked(&mut self, key: Self::Key);

    /// A connection that was [accepted](News::Accepted) right now is for nobody: it is as if it never had been, and its peer,
    /// who has got no answer, may ask again.
    fn turn_down(&mut self, key: Self::Key);

    /// Nobody wants a connection any more, neither here nor there, and what it had to send has been sent.
    fn remove(&mut self, now: Instant, key: Self::Key);

    /// A connection, also one that is not [picked](Self::picked) yet: at least until it is closed and nothing is left to read.
    /// What is not there any more counts as that. Whether what is done to it has consequences is told by [`touch`](Self::touch).
    fn endpoint(&mut self, key: Self::Key) -> Option<Self::Endpoint<'_>>;

    /// Its endpoint was called: it may have something to send, or to tell.
    fn touch(&mut self, key: Self::Key);

    /// Where its peer has shown to be; a connection that is held has one even when it is over.
    fn path(&self, key: Self::Key) -> Path;

    /// How it stands.
    fn info(&self, key: Self::Key) -> Self::Info;

    /// The host at `address` says that nobody is behind a port which we sent to, and does not say which: the connection that it
    /// must mean, if there can be no mistake.
    fn nobody_at(&self, address: IpAddr) -> Option<Self::Key>;

    // ---- inputs ----

    /// Takes a datagram, in which it may write. `ecn` is what its IP header said of congestion.
    fn take(&mut self, now: Instant, path: Path, ecn: Ecn, datagram: &mut [u8]);

    /// Takes the passing of time.
    fn on_time(&mut self, now: Instant);

    /// When it must be told that it is time.
    fn due(&self) -> Option<Instant>;

    // ---- outputs ----

    /// What has happened.
    fn poll_news(&mut self, now: Instant) -> Option<News<Self::Key>>;

    /// Appends the next datagram to `buffer`, and says where it goes.
    fn poll_transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit<Self::Key>>;

    /// What there is room for has been sent. Answers that were not polled, and that would be given again to who asks again, are
    /// best thrown away.
    fn drained(&mut self, now: Instant);

    /// Datagrams of a connection leave together.
    fn train_leaves(&mut self, key: Self::Key);

    /// A datagram of `len` bytes that may not be [cut](Fragments::Forbidden) is too long even to leave.
    fn cannot_leave(&mut self, now: Instant, key: Self::Key, len: usize);

    /// What was counted, by it and below it.
    fn stats(&self, traffic: &Traffic) -> Self::HostStats;
}

/// A connection, as its user's half needs it. Calls never fail for what the network does.
pub trait Endpoint {
    /// Connection state.
    fn state(&self) -> State;

    /// Takes data to send, all of it or none.
    ///
    /// # Errors
    /// Not open for sending, or no room.
    fn send(&mut self, now: Instant, data: Bytes) -> Result<(), SendError>;

    /// Lets what was given to [`send`](Self::send) leave at once.
    fn flush(&mut self, now: Instant);

    /// The next piece of received data, in order.
    fn recv(&mut self) -> Option<Bytes>;

    /// Closes our direction once all data handed over is sent.
    ///
    /// # Errors
    /// Not open, or already closed by the user.
    fn close(&mut self, now: Instant) -> Result<(), CloseError>;

    /// Ends the connection at once.
    fn abort(&mut self, now: Instant);

    /// Bytes that [`send`](Self::send) would take now.
    fn send_capacity(&self) -> u64;

    /// Bytes that it takes at most; `None`: no limit.
    fn send_buffer(&self) -> Option<u64>;

    /// Bytes taken that the peer has not acknowledged.
    fn unacknowledged(&self) -> u64;

    /// How long the peer may be silent; `None`: for ever.
    fn silence_limit(&self) -> Option<Duration>;
}

/// What is not there is closed.
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

/// Why a connection failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// For programs.
    pub kind: ErrorKind,
    /// For people, if the kind does not say everything.
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

/// What has happened to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News<K> {
    /// A peer has opened it. Nothing was told of it before.
    Accepted(K),
    /// Its endpoint tells its user.
    Event(K, Event),
    /// It failed for a reason of which its endpoint knows nothing.
    Failed(K, Reason),
    /// Something came for it, or its timer fired: its state may be another, its sender may have room. To be told of
    /// everything that no event tells, such as that the peer has our end.
    Touched(K),
}

/// A datagram that was appended to a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit<K> {
    /// Where it goes.
    pub path: Path,
    /// Bytes.
    pub len: usize,
    /// What its IP header is to say of congestion.
    pub ecn: Ecn,
    /// Whose it is, if it is a connection's.
    pub key: Option<K>,
    /// With whom it may leave.
    pub company: Company,
    /// Whether it may be cut on its way.
    pub fragments: Fragments,
}

/// Whether a datagram may leave with those before it, by one system call: to one place, all but the last of the same length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Company {
    /// Alone.
    Nobody,
    /// With those of the same connection.
    SameConnection,
    /// With whatever goes to the same place.
    SamePath,
}

/// Whether routers may cut datagrams into fragments: what is too long for a part of the path arrives, though it costs more;
/// or is lost, which tells that it is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fragments {
    /// They may. While the socket has no room, the datagram waits.
    Allowed,
    /// They may not. Without room in the socket, it is as good as lost. It leaves alone.
    Forbidden,
}
