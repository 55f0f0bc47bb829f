//! The UDP socket between the two ends of a link.

use crate::error::Error;
use crate::sys;
use bytes::Bytes;
use hopline_proxy::Turn;
use rustix::net::netdevice::{index_to_name, name_to_index};
use rustix::net::{RecvFlags, recv, sockopt};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, BorrowedFd};

/// Datagrams received by one system call.
const AT_ONCE: usize = 32;
/// Longest datagram.
const LONGEST: usize = 65_535;
/// Receive buffer in bytes: some 1,700 datagrams with what the kernel keeps beside them.
const RECEIVE_BUFFER: usize = 4 << 20;
/// Errors taken from the queue of errors at a time.
const ERRORS: usize = 64;
/// Priority of what has its turn first: the band of interactive traffic (tc-prio(8)), which `pfifo_fast` serves before others.
const FIRST: u32 = 6;
const LAST: u32 = 0;

/// A socket that hears the other end alone: what has another sender the kernel turns away.
#[derive(Debug)]
pub(crate) struct PeerSocket {
    socket: Socket,
    buffers: Vec<Box<[u8]>>,
    priority: u32,
    /// Datagrams that were longer than any can be here.
    pub(crate) cut: u64,
    /// Times that the network said that the other end is not there.
    pub(crate) unreachable: u64,
}

/// What became of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Sent {
    /// It is on its way.
    Yes,
    /// The queue of the interface, or of the socket, has no room; or there is no way.
    Refused,
}

impl Sent {
    pub(crate) const fn is_sent(self) -> bool {
        matches!(self, Self::Yes)
    }
}

impl PeerSocket {
    /// A socket between two addresses, on the same port of both. `interface`: the one that leads to the other end, if it is known;
    /// link-local addresses are on it.
    pub(crate) fn open(
        local: IpAddr,
        peer: IpAddr,
        port: u16,
        interface: Option<&str>,
    ) -> Result<Self, Error> {
        let domain = if local.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
        let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))
            .map_err(|e| Error::new("opening a UDP socket", e))?;
        let at = |address| on(&socket, address, port, interface);
        let (local, peer) = (at(local)?, at(peer)?);
        let bound = socket.bind(&local.into());
        bound.map_err(|e| Error::of_address(format!("binding UDP {local}"), local.ip(), e))?;
        socket.connect(&peer.into()).map_err(|e| Error::new(format!("connecting to UDP {peer}"), e))?;
        let set_up = || {
            socket.set_nonblocking(true)?;
            sockopt::set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER)?;
            be_told_of_drops(&socket, local.ip())
        };
        set_up().map_err(|e| Error::new(format!("setting the options of UDP {local}"), e))?;
        let buffers = (0..AT_ONCE).map(|_| vec![0; LONGEST].into_boxed_slice()).collect();
        Ok(Self { socket, buffers, priority: LAST, cut: 0, unreachable: 0 })
    }

    /// Binds the socket to the interface of this number; `None`: datagrams leave, and come, by any.
    pub(crate) fn bind_to(&self, interface: Option<u32>) -> io::Result<()> {
        let name = interface.map(|index| index_to_name(&self.socket, index)).transpose()?;
        self.socket.bind_device(name.as_deref().map(str::as_bytes))
    }

    /// Gives the payloads of the datagrams that have come, as many as one system call brings. Whether there may be more.
    pub(crate) fn receive(&mut self, mut take: impl FnMut(Bytes)) -> io::Result<bool> {
        let received = match sys::receive_many(&self.socket, &mut self.buffers) {
            Ok(received) => received,
            Err(error) => return self.outlive(error),
        };
        for (datagram, buffer) in received.iter().zip(&self.buffers) {
            self.cut += u64::from(datagram.cut);
            if !datagram.cut {
                take(Bytes::copy_from_slice(&buffer[..datagram.len]));
            }
        }
        Ok(received.len() == AT_ONCE)
    }

    /// Sends a datagram, ahead of others if it has its turn first.
    pub(crate) fn send(&mut self, turn: Turn, datagram: &[u8]) -> Sent {
        let priority = if turn == Turn::First { FIRST } else { LAST };
        // Where it cannot be changed, things have their turn as they come.
        if priority != self.priority && self.socket.set_priority(priority).is_ok() {
            self.priority = priority;
        }
        match self.socket.send(datagram) {
            Ok(_) => Sent::Yes,
            // That was said of an earlier one.
            Err(error) if is_of_the_path(&error) => {
                self.unreachable += 1;
                if self.socket.send(datagram).is_ok() { Sent::Yes } else { Sent::Refused }
            }
            Err(_) => Sent::Refused,
        }
    }

    /// Makes nothing of errors that pass.
    fn outlive(&mut self, error: io::Error) -> io::Result<bool> {
        let mut said = [0; 128];
        for _ in 0..ERRORS {
            if recv(&self.socket, &mut said, RecvFlags::ERRQUEUE | RecvFlags::DONTWAIT).is_err() {
                break;
            }
        }
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(false),
            _ if is_of_the_path(&error) => {
                self.unreachable += 1;
                Ok(true)
            }
            _ => Err(error),
        }
    }
}

/// An address and port. The scope of a link-local address is an interface (RFC 4007 §6).
fn on(socket: &Socket, address: IpAddr, port: u16, interface: Option<&str>) -> Result<SocketAddr, Error> {
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

/// A life for an end that begins: it differs from those before, whatever the clock says.
pub(crate) fn random_life() -> Result<u64, Error> {
    let of =
        |e: getrandom::Error| Error::system("asking for random numbers", io::Error::other(e.to_string()));
    getrandom::u64().map_err(of)
}

/// Datagrams that are too long for a part of the path are cut in pieces; what the interface's queue drops is told (ENOBUFS), which the
/// kernel does for those that hear of errors.
fn be_told_of_drops(socket: &Socket, local: IpAddr) -> io::Result<()> {
    if local.is_ipv4() {
        sys::set_option(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DONT)?;
        sys::set_option(socket, libc::IPPROTO_IP, libc::IP_RECVERR, 1)
    } else {
        sys::set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DONT)?;
        sys::set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1)
    }
}

/// Whether somebody on the way says that the other end is not there.
fn is_of_the_path(error: &io::Error) -> bool {
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
