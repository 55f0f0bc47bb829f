//! TCP connections of other hosts that end here: both addresses stay (`IP_TRANSPARENT`, for IPv4 and IPv6; ip(7)).
//!
//! A rule with the target `TPROXY` hands connections that pass through this machine to a [`TransparentListener`]; a [`Call`] has the
//! addresses that both hosts use. [`connect_from`] goes on under the client's address. The rules are those of its users.
//!
//! **Whoever dies resets.** The kernel closes what a killed process had open, and would tell both hosts that a stream which was cut off
//! had come to its end. So every socket from here lingers for no time (`SO_LINGER`, socket(7)) from its first moment: dropped, in whatever
//! way, it resets. Only [`end`] closes it in order.

use crate::error::Error;
use crate::{sys, tcp};
use socket2::{Domain, Protocol, SockAddr, Socket, TcpKeepalive, Type};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// Connections that wait to be accepted; the system may have less (`net.core.somaxconn`).
const BACKLOG: i32 = 4096;
/// Times that a SYN with ACK is sent again (`TCP_SYNCNT`), after 1 and 3 s: after 7 s the call is given up. The system's 5 make a minute,
/// in which forged calls keep their places.
const ANSWERS_AGAIN: i32 = 2;

/// Mark of the packets of onward connections ([`connect_from`]) where [`LegOptions::mark`] names none: 0x6870.
///
/// Rules of conntrack need it to tell an onward connection from the client's, which has the same addresses and ports.
pub const ONWARD_MARK: u32 = 0x6870;

/// State of marking: `true` while onward connections of this process get [`ONWARD_MARK`]. One for the process, as its network namespace is.
static MARKING: AtomicU8 = AtomicU8::new(OnwardMarking::Marked as u8);

/// Marking of onward connections ([`ONWARD_MARK`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum OnwardMarking {
    /// No rule reads the mark, so that it stays on the packets and other rules would see it.
    Unmarked,
    /// Rules of conntrack read it, and take it off. The default.
    Marked,
}

/// Sets whether onward connections of this process are marked from now on. Those that are there stay as they are: conntrack would take
/// packets of an established connection with a mark for a new connection, and change its port.
pub fn set_onward_marking(marking: OnwardMarking) {
    MARKING.store(marking as u8, Ordering::Relaxed);
}

/// Returns the mark of the packets of an onward connection that begins now, where [`LegOptions::mark`] names none.
pub(crate) fn onward_mark() -> u32 {
    if MARKING.load(Ordering::Relaxed) == OnwardMarking::Marked as u8 { ONWARD_MARK } else { 0 }
}

/// Takes the connections that a rule hands it, whomever they are for. Does not block.
#[derive(Debug)]
pub struct TransparentListener(Socket);

/// A connection that was taken. The client has been answered already: the kernel does that.
#[derive(Debug)]
pub struct Call {
    /// It. Does not block; resets when dropped, see [`end`].
    pub stream: TcpStream,
    /// Who calls.
    pub client: SocketAddr,
    /// Whom it calls.
    pub server: SocketAddr,
}

/// What a half of a connection is told. The defaults leave to the system what this machine cannot know better.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegOptions {
    /// Congestion control of what is sent, such as `bbr`. `None`, the default: the system's. What is not in
    /// `net.ipv4.tcp_allowed_congestion_control` takes `CAP_NET_ADMIN`.
    pub congestion: Option<String>,
    /// Whether what is written leaves at once, though segments may be small (`TCP_NODELAY`). Default true: whoever wrote it first has
    /// decided already whether to wait for more.
    pub nodelay: bool,
    /// How a host that says nothing is asked whether it is still there. `None`: never. Default [`Keepalive::default`].
    pub keepalive: Option<Keepalive>,
    /// How long the host may leave data unacknowledged, or its window closed, or questions of `keepalive` unanswered, before it counts as
    /// gone (`TCP_USER_TIMEOUT`, RFC 5482), in milliseconds of up to 2^32. `None`, the default: the system's way, 15 retransmissions or
    /// about a quarter of an hour (`net.ipv4.tcp_retries2`), and a window may stay closed for ever while it is answered for
    /// (RFC 1122 §4.2.2.17). With a value a host whose user has pressed "pause" for so long is reset.
    pub user_timeout: Option<Duration>,
    /// Mark of its packets, for rules and routes (`SO_MARK`). 0, the default: none, or [`ONWARD_MARK`] of an onward connection.
    pub mark: u32,
    /// Bytes that may wait to be sent (`SO_SNDBUF`; the kernel takes twice as much, for what it keeps beside them). `None`, the default: as the
    /// system adapts it (`net.ipv4.tcp_wmem`).
    pub send_buffer: Option<usize>,
    /// The same for what was received (`SO_RCVBUF`, `net.ipv4.tcp_rmem`).
    pub receive_buffer: Option<usize>,
}

/// Questions to a host that says nothing (`SO_KEEPALIVE`, tcp(7)). By default it counts as gone after eight minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// Silence before the first question: 1 to 32,767 s. Default 300 s, less than most address translators remember.
    pub idle: Duration,
    /// Between questions: 1 to 32,767 s. Default 30 s.
    pub interval: Duration,
    /// Unanswered questions after which the host counts as gone: 1 to 127. Default 6.
    pub probes: u32,
}

impl Default for Keepalive {
    fn default() -> Self {
        Self { idle: Duration::from_secs(300), interval: Duration::from_secs(30), probes: 6 }
    }
}

impl Default for LegOptions {
    fn default() -> Self {
        Self {
            congestion: None,
            nodelay: true,
            keepalive: Some(Keepalive::default()),
            user_timeout: None,
            mark: 0,
            send_buffer: None,
            receive_buffer: None,
        }
    }
}

impl TransparentListener {
    /// Listens at `address`, in the calling thread's namespace. An address of the loopback interface can be named by a rule
    /// (`--on-ip`), and by nobody elsewhere. IPv6 takes no IPv4.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without `CAP_NET_ADMIN` or `CAP_NET_RAW`; if the address is taken, or not ours.
    pub fn bind(address: SocketAddr) -> Result<Self, Error> {
        let socket =
            transparent_socket(address).map_err(|e| Error::new("opening a transparent socket", e))?;
        let listen = || {
            socket.bind(&address.into())?;
            sys::set_option(&socket, libc::IPPROTO_TCP, libc::TCP_SYNCNT, ANSWERS_AGAIN)?;
            socket.listen(BACKLOG)
        };
        listen().map_err(|e| Error::new(format!("listening at {address}"), e))?;
        Ok(Self(socket))
    }

    /// The next call, if there is one.
    ///
    /// # Errors
    /// What the system says; without descriptors (`EMFILE`, `ENFILE`) or memory the call stays where it is, and the listener readable.
    pub fn accept(&self) -> io::Result<Option<Call>> {
        loop {
            match self.0.accept() {
                Ok((socket, client)) => return Call::of(socket, &client).map(Some),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                // It was reset before somebody looked, or a signal came.
                Err(error) if is_of_one_call(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the number of calls that it can queue: those that are not accepted, and those whose clients have not answered.
    pub(crate) fn queue_length(&self) -> Result<usize, Error> {
        let info = sys::tcp_info(&self.0).map_err(|e| Error::system("reading TCP_INFO", e))?;
        // Of a socket that listens this is the limit of its queue (tcp_get_info of the kernel).
        Ok(info.tcpi_sacked as usize)
    }

    /// Where it listens.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        address(&self.0.local_addr()?)
    }
}

impl AsFd for TransparentListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Call {
    /// What the listener was told, its sockets are, too: they reset, and do not block nor outlive an exec (`accept4`).
    fn of(socket: Socket, client: &SockAddr) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let server = address(&socket.local_addr()?)?;
        Ok(Self { client: address(client)?, server, stream: TcpStream::from(OwnedFd::from(socket)) })
    }
}

/// Begins to connect to `server` as `client`: under its address, and by its port. It has been connected, or has failed
/// ([`TcpStream::take_error`]), when it can be written to. Does not block; resets when dropped, see [`end`].
///
/// The way back must lead here, by a rule that finds packets for sockets (`-m socket --transparent`).
///
/// # Errors
/// What the system says: `EPERM` without `CAP_NET_ADMIN` or `CAP_NET_RAW`, `EADDRNOTAVAIL` while an earlier connection between the
/// same ports has not been forgotten, `ENETUNREACH` without a route, `EMFILE`.
pub fn connect_from(client: SocketAddr, server: SocketAddr, options: &LegOptions) -> io::Result<TcpStream> {
    let socket = transparent_socket(client)?;
    options.apply(&socket)?;
    mark_onward(&socket, options)?;
    socket.bind(&client.into())?;
    match socket.connect(&server.into()) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(TcpStream::from(OwnedFd::from(socket))),
    }
}

/// Marks the packets of an onward connection, unless `options` name a mark.
pub(crate) fn mark_onward(socket: &Socket, options: &LegOptions) -> io::Result<()> {
    match (options.mark, onward_mark()) {
        (0, mark) if mark != 0 => socket.set_mark(mark),
        _ => Ok(()),
    }
}

impl LegOptions {
    /// Tells a socket. Buffers count from then on, and for the window only what is set before it is connected.
    ///
    /// # Errors
    /// What the system says, such as `ENOENT` or `EPERM` for the congestion control.
    pub fn apply<'a, S>(&self, socket: &'a S) -> io::Result<()>
    where
        socket2::SockRef<'a>: From<&'a S>,
    {
        let socket = socket2::SockRef::from(socket);
        if let Some(name) = &self.congestion {
            rustix::net::sockopt::set_tcp_congestion(&*socket, name)?;
        }
        socket.set_tcp_nodelay(self.nodelay)?;
        socket.set_tcp_user_timeout(self.user_timeout)?;
        match self.keepalive {
            Some(Keepalive { idle, interval, probes }) => {
                let asked = TcpKeepalive::new().with_time(idle).with_interval(interval).with_retries(probes);
                socket.set_tcp_keepalive(&asked)?;
            }
            None => socket.set_keepalive(false)?,
        }
        if self.mark != 0 {
            socket.set_mark(self.mark)?;
        }
        self.send_buffer.map_or(Ok(()), |bytes| socket.set_send_buffer_size(bytes))?;
        self.receive_buffer.map_or(Ok(()), |bytes| socket.set_recv_buffer_size(bytes))
    }

    /// Whether this kernel takes them, tried with a socket that nobody will use.
    ///
    /// # Errors
    /// [`Error::NoSuchCongestionControl`], [`Error::ForbiddenCongestionControl`], [`Error::Unavailable`] where a privilege is missing, and
    /// what the system says to the rest.
    pub fn check(&self) -> Result<(), Error> {
        let trial = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))
            .map_err(|e| Error::new("opening a socket", e))?;
        if let Some(name) = &self.congestion {
            tcp::set_congestion_control(&trial, name)?;
        }
        self.apply(&trial).map_err(|e| Error::new(format!("setting {self:?}"), e))
    }
}

/// Closes a socket from here in order: the kernel still sends what was written to it, and then that this was the end.
///
/// # Errors
/// What the system says; the socket is reset then.
pub fn end(stream: TcpStream) -> io::Result<()> {
    socket2::SockRef::from(&stream).set_linger(None)
}

/// A socket of the family of `address` that may have addresses of other hosts, resets when it is closed, and reads urgent data in its row (RFC 6093 §2).
/// What it accepts has all that from it.
pub(crate) fn transparent_socket(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
    if address.is_ipv4() {
        socket.set_ip_transparent_v4(true)?;
    } else {
        socket.set_ip_transparent_v6(true)?;
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_linger(Some(Duration::ZERO))?;
    socket.set_out_of_band_inline(true)?;
    Ok(socket)
}

/// Errors of the call that was next, not of the listener (accept(2)).
fn is_of_one_call(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted)
        || matches!(
            error.raw_os_error(),
            Some(
                libc::ENETDOWN
                    | libc::EPROTO
                    | libc::ENOPROTOOPT
                    | libc::EHOSTDOWN
                    | libc::ENONET
                    | libc::EHOSTUNREACH
                    | libc::EOPNOTSUPP
                    | libc::ENETUNREACH
            )
        )
}

fn address(socket: &SockAddr) -> io::Result<SocketAddr> {
    socket.as_socket().ok_or_else(|| ErrorKind::AddrNotAvailable.into())
}
