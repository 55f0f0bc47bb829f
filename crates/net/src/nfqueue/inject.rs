//! Packets of our own, under addresses of others: raw(7).

use crate::error::Error;
use crate::routes::Hop;
use crate::sys;
use hopline_proxy::{Injected, Turn};
use socket2::{Domain, Protocol, Socket, Type};
use std::cell::Cell;
use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, BorrowedFd};

/// Priority of what has its turn first: the band of interactive traffic (tc-prio(8)), which `pfifo_fast` serves before others.
const FIRST: u32 = 6;
/// Priority of everything else.
const LAST: u32 = 0;

/// Sends whole packets of either version of IP from the namespace in which it was made, wherever its routes lead. They leave by the hook
/// `output`, not `forward`, and have a mark by which rules at other hooks can tell them.
#[derive(Debug)]
pub struct Injector {
    v4: Lane,
    /// `None`: the kernel has no IPv6, so that no such packet comes either.
    v6: Option<Lane>,
}

/// The sockets of a version of IP, by the turn of what they send.
#[derive(Debug)]
struct Lane {
    first: Sending,
    last: Sending,
}

/// A raw socket.
#[derive(Debug)]
struct Sending {
    socket: Socket,
    /// Number of the interface through which its packets leave (`IP_UNICAST_IF`); 0: the one to which the kernel's route leads.
    interface: Cell<u32>,
}

impl Injector {
    /// One whose packets have this mark; 0 is none.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without `CAP_NET_RAW` and `CAP_NET_ADMIN`.
    pub fn new(mark: u32) -> Result<Self, Error> {
        let failed = |e| Error::new("opening a raw socket", e);
        let v4 = Lane::open(Domain::IPV4, mark).map_err(failed)?;
        let v6 = match Lane::open(Domain::IPV6, mark) {
            Ok(lane) => Some(lane),
            Err(error) if error.raw_os_error() == Some(libc::EAFNOSUPPORT) => None,
            Err(error) => return Err(failed(error)),
        };
        Ok(Self { v4, v6 })
    }

    /// Sends a packet. In an IPv4 header, the kernel writes the checksum, and an identification where that is 0. What the kernel does not
    /// take for want of a route, because it is too long or because a rule forbids it, is refused; what the interface's queue drops at once
    /// has found no room.
    pub fn send(&self, turn: Turn, packet: &[u8]) -> Injected {
        let to = destination(packet);
        to.map_or(Injected::Refused, |to| self.send_to(turn, packet, to, 0))
    }

    /// Sends a packet to a next hop, whatever the address in its header.
    pub(crate) fn send_by(&self, Hop { interface, next }: Hop, turn: Turn, packet: &[u8]) -> Injected {
        let to = match next {
            IpAddr::V4(_) => SocketAddr::new(next, 0),
            // An address of the link has the link beside it (ipv6(7)).
            IpAddr::V6(next) => SocketAddrV6::new(next, 0, 0, interface).into(),
        };
        self.send_to(turn, packet, to, interface)
    }

    fn send_to(&self, turn: Turn, packet: &[u8], to: SocketAddr, interface: u32) -> Injected {
        let Some(lane) = self.lane(packet) else { return Injected::Refused };
        let sending = lane.of(turn);
        let sent = sending
            .leave_by(interface, to.is_ipv4())
            .and_then(|()| sending.socket.send_to(packet, &to.into()));
        match sent {
            Ok(_) => Injected::Sent,
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => Injected::NoRoom,
            Err(_) => Injected::Refused,
        }
    }

    fn lane(&self, packet: &[u8]) -> Option<&Lane> {
        if version(packet)? == 6 { self.v6.as_ref() } else { Some(&self.v4) }
    }
}

impl AsFd for Injector {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.v4.last.socket.as_fd()
    }
}

impl Lane {
    fn open(domain: Domain, mark: u32) -> io::Result<Self> {
        let [first, last] = [FIRST, LAST].map(|priority| raw_socket(domain, mark, priority));
        let sending = |socket| Sending { socket, interface: Cell::new(0) };
        Ok(Self { first: sending(first?), last: sending(last?) })
    }

    const fn of(&self, turn: Turn) -> &Sending {
        match turn {
            Turn::First => &self.first,
            Turn::Last => &self.last,
        }
    }
}

impl Sending {
    /// Has packets leave through an interface from now on.
    fn leave_by(&self, interface: u32, is_v4: bool) -> io::Result<()> {
        if self.interface.get() == interface {
            return Ok(());
        }
        let (level, option) = if is_v4 {
            (libc::IPPROTO_IP, libc::IP_UNICAST_IF)
        } else {
            (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_IF)
        };
        // In the byte order of the network (ip(7)).
        sys::set_option(&self.socket, level, option, interface.to_be().cast_signed())?;
        self.interface.set(interface);
        Ok(())
    }
}

fn version(packet: &[u8]) -> Option<u8> {
    packet.first().map(|first| first >> 4)
}

/// The destination in the header. The port of a raw socket's destination is 0 (raw(7), ipv6(7)).
pub(crate) fn destination(packet: &[u8]) -> Option<SocketAddr> {
    let address: IpAddr = match version(packet)? {
        4 => <[u8; 4]>::try_from(packet.get(16..20)?).ok()?.into(),
        6 => <[u8; 16]>::try_from(packet.get(24..40)?).ok()?.into(),
        _ => return None,
    };
    Some(SocketAddr::new(address, 0))
}

/// A socket for whole packets of a version of IP.
pub(crate) fn raw_socket(domain: Domain, mark: u32, priority: u32) -> io::Result<Socket> {
    // Packets have their headers: for both versions, that is what this protocol means (raw(7), ipv6(7)).
    let socket = Socket::new(domain, Type::RAW, Some(Protocol::from(libc::IPPROTO_RAW)))?;
    socket.set_nonblocking(true)?;
    socket.set_priority(priority)?;
    socket.set_mark(mark)?;
    // Without it the kernel does not say what the queue has dropped (raw(7)).
    let (level, option) = if domain == Domain::IPV6 {
        (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)
    } else {
        (libc::IPPROTO_IP, libc::IP_RECVERR)
    };
    sys::set_option(&socket, level, option, 1)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_destination_is_that_of_the_header_of_either_version() {
        let mut v4 = vec![0; 20];
        v4[0] = 0x45;
        v4[16..20].copy_from_slice(&[192, 0, 2, 1]);
        let mut v6 = vec![0; 40];
        v6[0] = 0x6a;
        v6[24..40].copy_from_slice(&[0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]);
        assert_eq!(destination(&v4), Some("192.0.2.1:0".parse().unwrap()));
        assert_eq!(destination(&v6), Some("[2001:db8::9]:0".parse().unwrap()));
        for packet in [&v4[..19], &v6[..39], &[], &[0x50; 60]] {
            assert_eq!(destination(packet), None, "{packet:02x?}");
        }
    }
}
