//! TCP connections of other hosts that are terminated here under both original addresses (`IP_TRANSPARENT`, for IPv4 and
//! IPv6; ip(7)).
//!
//! A firewall rule with the target `TPROXY` passes forwarded connections to a [`TransparentListener`]; a [`AcceptedConnection`] has the
//! addresses of both hosts. [`connect_from`] connects onward under the client's address. The caller is responsible for
//! the rules.
//!
//! **A process that dies resets its connections.** The kernel closes the sockets of a killed process, and would signal to
//! both hosts that a truncated stream was complete. Every socket of this module therefore has a linger time of zero
//! (`SO_LINGER`, socket(7)) from the start: however it is dropped, it resets. Only [`close_cleanly`] closes it cleanly.

use crate::error::Error;
use crate::{sys, tcp};
use hopline_core::settings;
use socket2::{Domain, Protocol, SockAddr, Socket, TcpKeepalive, Type};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// Backlog of the listener; the system may limit it further (`net.core.somaxconn`).
const BACKLOG: i32 = 4096;
/// Retransmissions of a SYN-ACK (`TCP_SYNCNT`), after 1 and 3 s: the connection is given up after 7 s. The system's
/// default of 5 takes a minute, during which forged connections keep their places.
const SYN_ACK_RETRIES: i32 = 2;

/// Default mark of the packets of onward connections ([`connect_from`]), unless [`LegOptions::mark`] sets one: 0x6870.
///
/// Conntrack rules need it to distinguish an onward connection from the client's, which has the same addresses and ports.
pub const ONWARD_MARK: u32 = 0x6870;

/// State of the marking of this process. There is one for the process, as there is one network namespace.
static MARKING: AtomicU8 = AtomicU8::new(OnwardMarking::Marked as u8);

/// Marking of onward connections ([`ONWARD_MARK`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum OnwardMarking {
    /// Packets have no mark, since no rule would remove it and other rules would see it.
    Unmarked,
    /// Packets have the mark, which conntrack rules match and remove. The default.
    Marked,
}

/// Sets whether onward connections of this process are marked from now on. Existing connections stay as they are:
/// conntrack would treat marked packets of an established connection as a new one, and change its port.
pub fn set_onward_marking(marking: OnwardMarking) {
    MARKING.store(marking as u8, Ordering::Relaxed);
}

/// Returns the mark of a new onward connection, unless [`LegOptions::mark`] sets one.
pub fn onward_mark() -> u32 {
    if MARKING.load(Ordering::Relaxed) == OnwardMarking::Marked as u8 { ONWARD_MARK } else { 0 }
}

/// Accepts the connections that a rule diverts, with any destination. Does not block.
#[derive(Debug)]
pub struct TransparentListener(Socket);

/// An accepted connection. The kernel has already answered the client.
#[derive(Debug)]
pub struct AcceptedConnection {
    /// The connection. Non-blocking; reset when dropped, see [`close_cleanly`].
    pub stream: TcpStream,
    /// Address of the client.
    pub client: SocketAddr,
    /// Address of the server.
    pub server: SocketAddr,
}

settings! {
    /// Socket options of a half of a connection. The defaults leave to the system what this host cannot know better.
    /// Start from the default and use the setters. The kernel checks the ranges when a connection gets them.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct LegOptions {
        /// Congestion control algorithm of the sending direction, such as `bbr`. `None`, the default: the system's.
        /// Algorithms outside `net.ipv4.tcp_allowed_congestion_control` need `CAP_NET_ADMIN`.
        congestion, with_congestion: Option<String> as owned,
        /// `true` if small segments leave at once (`TCP_NODELAY`). Default `true`: the original sender has already decided
        /// whether to wait for more data.
        nodelay, with_nodelay: bool,
        /// Keep-alive probes to a silent host. `None`: none. Default [`Keepalive::default`].
        keepalive, with_keepalive: Option<Keepalive>,
        /// Time for which the host may leave data unacknowledged, its window closed or probes of `keepalive` unanswered,
        /// until the connection is given up (`TCP_USER_TIMEOUT`, RFC 5482). Milliseconds up to 2^32. `None`, the default: the
        /// system's rule, which is 15 retransmissions or about a quarter of an hour (`net.ipv4.tcp_retries2`); a window may
        /// then stay closed without limit while probes are answered (RFC 1122 §4.2.2.17). With a value, a host that pauses
        /// reading for that time is reset.
        user_timeout, with_user_timeout: Option<Duration>,
        /// Firewall mark of the packets (`SO_MARK`). 0, the default: none, or [`ONWARD_MARK`] for an onward connection.
        mark, with_mark: u32,
        /// Send buffer, in bytes (`SO_SNDBUF`; the kernel doubles it for its overhead). `None`, the default: adapted by the
        /// system (`net.ipv4.tcp_wmem`).
        send_buffer, with_send_buffer: Option<usize>,
        /// Receive buffer, likewise (`SO_RCVBUF`, `net.ipv4.tcp_rmem`).
        receive_buffer, with_receive_buffer: Option<usize>,
    }
}

settings! {
    /// Keep-alive probes to a silent host (`SO_KEEPALIVE`, tcp(7)). By default, it counts as lost after eight minutes. Start
    /// from the default and use the setters.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Keepalive {
        /// Silence before the first probe: 1 to 32,767 s. Default 300 s, less than the timeout of most address translators.
        idle, with_idle: Duration as into,
        /// Interval between probes: 1 to 32,767 s. Default 30 s.
        interval, with_interval: Duration as into,
        /// Unanswered probes after which the host counts as lost: 1 to 127. Default 6.
        probes, with_probes: u32,
    }
}

impl Default for Keepalive {
    fn default() -> Self {
        Self { idle: Duration::from_secs(300), interval: Duration::from_secs(30), probes: 6 }
    }
}

impl LegOptions {
    /// Congestion control algorithm of the sending direction, such as `bbr`. `None`, the default: the system's.
    #[must_use]
    pub fn congestion(&self) -> Option<&str> {
        self.congestion.as_deref()
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
    /// Listens at `address`, in the calling thread's namespace. With a loopback address, the listener is reachable by a
    /// rule only (`--on-ip`). An IPv6 address does not cover IPv4.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without `CAP_NET_ADMIN` or `CAP_NET_RAW`; if the address is in use, or is not local.
    pub fn bind(address: SocketAddr) -> Result<Self, Error> {
        let socket =
            transparent_socket(address).map_err(|e| Error::new("opening a transparent socket", e))?;
        let listen = || {
            socket.bind(&address.into())?;
            sys::set_option(&socket, libc::IPPROTO_TCP, libc::TCP_SYNCNT, SYN_ACK_RETRIES)?;
            socket.listen(BACKLOG)
        };
        listen().map_err(|e| Error::new(format!("listening at {address}"), e))?;
        Ok(Self(socket))
    }

    /// Returns the next connection, if there is one.
    ///
    /// # Errors
    /// Errors of the system. Without descriptors (`EMFILE`, `ENFILE`) or memory, the connection stays in the queue, and
    /// the listener readable.
    pub fn accept(&self) -> io::Result<Option<AcceptedConnection>> {
        loop {
            match self.0.accept() {
                Ok((socket, client)) => return AcceptedConnection::of(socket, &client).map(Some),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                // The connection was reset before it was accepted, or a signal interrupted the call.
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Sets the mark of all packets that the listener and its connections send.
    pub fn mark(&self, mark: u32) -> Result<(), Error> {
        self.0.set_mark(mark).map_err(|e| Error::new("marking what a listener sends", e))
    }

    /// Returns the maximum number of queued connections: those not yet accepted, and those with unanswered SYN-ACKs.
    pub fn queue_length(&self) -> Result<usize, Error> {
        let info = sys::tcp_info(&self.0).map_err(|e| Error::system("reading TCP_INFO", e))?;
        // For a listening socket this field is the limit of its queue (tcp_get_info in the kernel).
        Ok(info.tcpi_sacked as usize)
    }

    /// Returns the listening address.
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

impl AcceptedConnection {
    /// Creates a call. The socket inherits the listener's options: it resets, and is closed on exec (`accept4`).
    fn of(socket: Socket, client: &SockAddr) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let server = address(&socket.local_addr()?)?;
        Ok(Self { client: address(client)?, server, stream: TcpStream::from(OwnedFd::from(socket)) })
    }
}

/// Starts a connection to `server` under the address and port of `client`. Once it becomes writable, it is connected or
/// has failed ([`TcpStream::take_error`]). Does not block; resets when dropped, see [`close_cleanly`].
///
/// Packets from the server must be routed to this host, by a rule that matches packets of sockets (`-m socket
/// --transparent`).
///
/// # Errors
/// Errors of the system: `EPERM` without `CAP_NET_ADMIN` or `CAP_NET_RAW`, `EADDRNOTAVAIL` while an earlier connection
/// between the same ports is in TIME-WAIT, `ENETUNREACH` without a route, `EMFILE`.
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

/// Marks the packets of an onward connection, unless `options` sets a mark.
pub fn mark_onward(socket: &Socket, options: &LegOptions) -> io::Result<()> {
    match (options.mark, onward_mark()) {
        (0, mark) if mark != 0 => socket.set_mark(mark),
        _ => Ok(()),
    }
}

impl LegOptions {
    /// Applies the options to a socket. The receive buffer must be set before connecting to affect the window.
    ///
    /// # Errors
    /// Errors of the system, such as `ENOENT` or `EPERM` for the congestion control algorithm.
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

    /// Checks that this kernel accepts the options, on an unused socket.
    ///
    /// # Errors
    /// [`Error::NoSuchCongestionControl`], [`Error::ForbiddenCongestionControl`], [`Error::Unavailable`] if a privilege
    /// is missing, and errors of the system for the remaining options.
    pub fn check(&self) -> Result<(), Error> {
        let trial = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))
            .map_err(|e| Error::new("opening a socket", e))?;
        if let Some(name) = &self.congestion {
            tcp::set_congestion_control(&trial, name)?;
        }
        self.apply(&trial).map_err(|e| Error::new(format!("setting {self:?}"), e))
    }
}

/// Closes a socket of this module cleanly: the kernel still sends the written data, and then a FIN.
///
/// # Errors
/// Errors of the system; the socket is reset then.
pub fn close_cleanly(stream: TcpStream) -> io::Result<()> {
    socket2::SockRef::from(&stream).set_linger(None)
}

/// Opens a socket of the family of `address` that may have foreign addresses, resets when it is closed, and reads urgent
/// data inline (RFC 6093 §2). Accepted sockets inherit all that.
pub fn transparent_socket(address: SocketAddr) -> io::Result<Socket> {
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

/// Returns whether the error belongs to the next connection instead of the listener (accept(2)).
fn is_of_one_connection(error: &io::Error) -> bool {
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
