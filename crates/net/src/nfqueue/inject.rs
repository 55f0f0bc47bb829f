//! Packets of our own, under addresses of others: raw(7).

use crate::error::Error;
use crate::sys;
use hopline_proxy::{Injected, Turn};
use socket2::{Domain, Protocol, Socket, Type};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd};

/// Priority of what has its turn first: the band of interactive traffic (tc-prio(8)), which `pfifo_fast` serves before others.
const FIRST: u32 = 6;
/// Priority of everything else.
const LAST: u32 = 0;

/// Sends whole IPv4 packets from the namespace in which it was made, wherever its routes lead. They leave by the hook `output`, not
/// `forward`, and have a mark by which rules at other hooks can tell them.
#[derive(Debug)]
pub struct Injector {
    first: Socket,
    last: Socket,
}

impl Injector {
    /// One whose packets have this mark; 0 is none.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without `CAP_NET_RAW` and `CAP_NET_ADMIN`.
    pub fn new(mark: u32) -> Result<Self, Error> {
        Ok(Self { first: raw_socket(mark, FIRST)?, last: raw_socket(mark, LAST)? })
    }

    /// Sends a packet; the kernel writes the checksum of its IP header, and an identification where that is 0. What the kernel does not
    /// take for want of a route, because it is too long or because a rule forbids it, is refused; what the interface's queue drops at once
    /// has found no room.
    pub fn send(&self, turn: Turn, packet: &[u8]) -> Injected {
        let Some(&[a, b, c, d]) = packet.get(16..20) else { return Injected::Refused };
        let to = SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), 0);
        let socket = match turn {
            Turn::First => &self.first,
            Turn::Last => &self.last,
        };
        match socket.send_to(packet, &to.into()) {
            Ok(_) => Injected::Sent,
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => Injected::NoRoom,
            Err(_) => Injected::Refused,
        }
    }
}

impl AsFd for Injector {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.last.as_fd()
    }
}

fn raw_socket(mark: u32, priority: u32) -> Result<Socket, Error> {
    let raw = Protocol::from(libc::IPPROTO_RAW);
    let socket =
        Socket::new(Domain::IPV4, Type::RAW, Some(raw)).map_err(|e| Error::new("opening a raw socket", e))?;
    let set_up = || {
        socket.set_nonblocking(true)?;
        socket.set_header_included_v4(true)?;
        socket.set_priority(priority)?;
        socket.set_mark(mark)?;
        // Without it the kernel does not say what the queue has dropped (raw(7)).
        sys::set_option(&socket, libc::IPPROTO_IP, libc::IP_RECVERR, 1)
    };
    set_up().map_err(|e| Error::new("setting the options of a raw socket", e))?;
    Ok(socket)
}
