//! UDP socket between the two ends of a link.

use bytes::Bytes;
use hopline_linux::Error;
use hopline_linux::sys;
use hopline_proxy::QueuePosition;
use rustix::net::netdevice::{index_to_name, name_to_index};
use rustix::net::{RecvFlags, recv, sockopt};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, BorrowedFd};

/// Maximum datagrams received by one system call.
const BATCH: usize = 32;
/// Maximum bytes of a datagram.
const MAX_DATAGRAM: usize = 65_535;
/// Receive buffer in bytes: some 1,700 datagrams with the kernel's overhead.
const RECEIVE_BUFFER: usize = 4 << 20;
/// Maximum errors read from the socket's error queue at a time.
const MAX_ERRORS: usize = 64;
/// Priority of urgent datagrams: the band of interactive traffic (tc-prio(8)), which `pfifo_fast` serves first.
const PRIORITY_URGENT: u32 = 6;
const PRIORITY_NORMAL: u32 = 0;

/// A UDP socket connected to the peer: the kernel rejects datagrams from other addresses.
#[derive(Debug)]
pub(crate) struct PeerSocket {
    socket: Socket,
    buffers: Vec<Box<[u8]>>,
    priority: u32,
    /// Datagrams that were longer than any valid one.
    pub(crate) truncated: u64,
    /// ICMP messages that report the peer as unreachable.
    pub(crate) unreachable: u64,
}

/// Result of sending a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum SendResult {
    /// It was sent.
    Sent,
    /// The queue of the interface or of the socket is full, or there is no route.
    Failed,
}

impl SendResult {
    pub(crate) const fn is_sent(self) -> bool {
        matches!(self, Self::Sent)
    }
}

impl PeerSocket {
    /// Opens a socket between two addresses, with the same port on both. `interface`: the one that leads to the peer, if
    /// it is known; link-local addresses belong to it.
    pub(crate) fn open(
        local: IpAddr,
        peer: IpAddr,
        port: u16,
        interface: Option<&str>,
    ) -> Result<Self, Error> {
        let domain = if local.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
        let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))
            .map_err(|e| Error::new("opening a UDP socket", e))?;
        let at = |address| socket_address(&socket, address, port, interface);
        let (local, peer) = (at(local)?, at(peer)?);
        let bound = socket.bind(&local.into());
        bound.map_err(|e| Error::of_address(format!("binding UDP {local}"), local.ip(), e))?;
        socket.connect(&peer.into()).map_err(|e| Error::new(format!("connecting to UDP {peer}"), e))?;
        let set_up = || {
            socket.set_nonblocking(true)?;
            sockopt::set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER)?;
            enable_icmp_errors(&socket, local.ip())
        };
        set_up().map_err(|e| Error::new(format!("setting the options of UDP {local}"), e))?;
        let buffers = (0..BATCH).map(|_| vec![0; MAX_DATAGRAM].into_boxed_slice()).collect();
        Ok(Self { socket, buffers, priority: PRIORITY_NORMAL, truncated: 0, unreachable: 0 })
    }

    /// Binds the socket to the interface with this index; `None`: datagrams use any interface.
    pub(crate) fn bind_to(&self, interface: Option<u32>) -> io::Result<()> {
        let name = interface.map(|index| index_to_name(&self.socket, index)).transpose()?;
        self.socket.bind_device(name.as_deref().map(str::as_bytes))
    }

    /// Passes the payloads of received datagrams to `take`, by one system call. Returns whether more may be waiting.
    pub(crate) fn receive(&mut self, mut take: impl FnMut(Bytes)) -> io::Result<bool> {
        let received = match sys::receive_many(&self.socket, &mut self.buffers) {
            Ok(received) => received,
            Err(error) => return self.ignore_transient(error),
        };
        for (datagram, buffer) in received.iter().zip(&self.buffers) {
            self.truncated += u64::from(datagram.truncated);
            if !datagram.truncated {
                take(Bytes::copy_from_slice(&buffer[..datagram.len]));
            }
        }
        Ok(received.len() == BATCH)
    }

    /// Sends a datagram. An urgent one goes ahead of those that wait at the interface.
    pub(crate) fn send(&mut self, turn: QueuePosition, datagram: &[u8]) -> SendResult {
        let priority = if turn == QueuePosition::Front { PRIORITY_URGENT } else { PRIORITY_NORMAL };
        // If the priority cannot be changed, datagrams keep their order.
        if priority != self.priority && self.socket.set_priority(priority).is_ok() {
            self.priority = priority;
        }
        match self.socket.send(datagram) {
            Ok(_) => SendResult::Sent,
            // The error belongs to an earlier datagram.
            Err(error) if is_path_error(&error) => {
                self.unreachable += 1;
                if self.socket.send(datagram).is_ok() { SendResult::Sent } else { SendResult::Failed }
            }
            Err(_) => SendResult::Failed,
        }
    }

    /// Ignores transient errors.
    fn ignore_transient(&mut self, error: io::Error) -> io::Result<bool> {
        let mut said = [0; 128];
        for _ in 0..MAX_ERRORS {
            if recv(&self.socket, &mut said, RecvFlags::ERRQUEUE | RecvFlags::DONTWAIT).is_err() {
                break;
            }
        }
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(false),
            _ if is_path_error(&error) => {
                self.unreachable += 1;
                Ok(true)
            }
            _ => Err(error),
        }
    }
}

/// Returns a socket address. The scope of a link-local address is an interface (RFC 4007 §6).
fn socket_address(
    socket: &Socket,
    address: IpAddr,
    port: u16,
    interface: Option<&str>,
) -> Result<SocketAddr, Error> {
    let IpAddr::V6(v6) = address else { return Ok(SocketAddr::new(address, port)) };
    if !v6.is_unicast_link_local() {
        return Ok(SocketAddr::new(address, port));
    }
    let interface = interface.ok_or_else(|| {
        let why = "it is a link-local address, and its interface is not known; a global or unique local address would do";
        Error::system(format!("using {address}"), io::Error::new(ErrorKind::InvalidInput, why))
    })?;
    let scope = name_to_index(socket, interface).map_err(|e| Error::of_interface(interface, e))?;
    Ok(SocketAddrV6::new(v6, port, 0, scope).into())
}

/// Returns the incarnation number of a starting end. It differs from earlier ones, regardless of the clock.
pub(crate) fn random_incarnation() -> Result<u64, Error> {
    let of =
        |e: getrandom::Error| Error::system("asking for random numbers", io::Error::other(e.to_string()));
    getrandom::u64().map_err(of)
}

/// Lets routers fragment datagrams that are too long for a part of the path. Also makes the kernel report drops of the
/// interface's queue (ENOBUFS), which it does for sockets that receive errors.
fn enable_icmp_errors(socket: &Socket, local: IpAddr) -> io::Result<()> {
    if local.is_ipv4() {
        sys::set_option(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DONT)?;
        sys::set_option(socket, libc::IPPROTO_IP, libc::IP_RECVERR, 1)
    } else {
        sys::set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DONT)?;
        sys::set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1)
    }
}

/// Returns whether the error comes from the path: the peer is unreachable.
fn is_path_error(error: &io::Error) -> bool {
    let said =
        [libc::ECONNREFUSED, libc::EHOSTUNREACH, libc::ENETUNREACH, libc::EHOSTDOWN, libc::ENOPROTOOPT];
    let also = [libc::EACCES, libc::EPROTO, libc::EMSGSIZE, libc::ENETDOWN];
    error.raw_os_error().is_some_and(|code| said.contains(&code) || also.contains(&code))
}

impl AsFd for PeerSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
