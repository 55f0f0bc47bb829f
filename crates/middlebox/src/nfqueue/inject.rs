//! Injection of packets under foreign source addresses: raw(7).

use hopline_linux::Error;
use hopline_linux::route_lookup::Hop;
use hopline_linux::sys;
use hopline_proxy::{InjectResult, QueuePosition};
use socket2::{Domain, Protocol, Socket, Type};
use std::cell::Cell;
use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, BorrowedFd};

/// Priority of urgent packets: the band of interactive traffic (tc-prio(8)), which `pfifo_fast` serves first.
const PRIORITY_URGENT: u32 = 6;
/// Priority of all other packets.
const PRIORITY_NORMAL: u32 = 0;

/// Sends whole IPv4 and IPv6 packets by the routes of the namespace in which it was created. They traverse the hook
/// `output`, not `forward`, and have a mark that rules at other hooks can match.
#[derive(Debug)]
pub struct Injector {
    v4: Sockets,
    /// Sockets for IPv6. `None` if the kernel has no IPv6; then no IPv6 packet arrives either.
    v6: Option<Sockets>,
}

/// The sockets of an IP version, by the priority of their packets.
#[derive(Debug)]
struct Sockets {
    urgent: RawSocket,
    normal: RawSocket,
}

/// A raw socket.
#[derive(Debug)]
struct RawSocket {
    socket: Socket,
    /// Index of the outgoing interface (`IP_UNICAST_IF`); 0: that of the kernel's route.
    interface: Cell<u32>,
}

impl Injector {
    /// Creates an injector with this mark for its packets; 0 means no mark.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without `CAP_NET_RAW` and `CAP_NET_ADMIN`.
    pub fn new(mark: u32) -> Result<Self, Error> {
        let failed = |e| Error::new("opening a raw socket", e);
        let v4 = Sockets::open(Domain::IPV4, mark).map_err(failed)?;
        let v6 = match Sockets::open(Domain::IPV6, mark) {
            Ok(lane) => Some(lane),
            Err(error) if error.raw_os_error() == Some(libc::EAFNOSUPPORT) => None,
            Err(error) => return Err(failed(error)),
        };
        Ok(Self { v4, v6 })
    }

    /// Sends a packet. In an IPv4 header, the kernel writes the checksum, and an identification if it is 0. The result is
    /// `NoRoute` if the kernel rejects the packet: there is no route, it is too long, or a rule forbids it. A packet that
    /// the interface's queue drops at once is reported as such.
    pub fn send(&self, turn: QueuePosition, packet: &[u8]) -> InjectResult {
        let to = destination(packet);
        to.map_or(InjectResult::NoRoute, |to| self.send_to(turn, packet, to, 0))
    }

    /// Sends a packet to a next hop, regardless of the destination address in its header.
    pub(crate) fn send_by(
        &self,
        Hop { interface, next }: Hop,
        turn: QueuePosition,
        packet: &[u8],
    ) -> InjectResult {
        let to = match next {
            IpAddr::V4(_) => SocketAddr::new(next, 0),
            // A link-local address needs the interface (ipv6(7)).
            IpAddr::V6(next) => SocketAddrV6::new(next, 0, 0, interface).into(),
        };
        self.send_to(turn, packet, to, interface)
    }

    fn send_to(&self, turn: QueuePosition, packet: &[u8], to: SocketAddr, interface: u32) -> InjectResult {
        let Some(lane) = self.sockets_for(packet) else { return InjectResult::NoRoute };
        let sending = lane.of(turn);
        let sent = sending
            .set_out_interface(interface, to.is_ipv4())
            .and_then(|()| sending.socket.send_to(packet, &to.into()));
        match sent {
            Ok(_) => InjectResult::Sent,
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => InjectResult::QueueFull,
            Err(_) => InjectResult::NoRoute,
        }
    }

    fn sockets_for(&self, packet: &[u8]) -> Option<&Sockets> {
        if version(packet)? == 6 { self.v6.as_ref() } else { Some(&self.v4) }
    }
}

impl AsFd for Injector {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.v4.normal.socket.as_fd()
    }
}

impl Sockets {
    fn open(domain: Domain, mark: u32) -> io::Result<Self> {
        let [first, last] =
            [PRIORITY_URGENT, PRIORITY_NORMAL].map(|priority| raw_socket(domain, mark, priority));
        let sending = |socket| RawSocket { socket, interface: Cell::new(0) };
        Ok(Self { urgent: sending(first?), normal: sending(last?) })
    }

    const fn of(&self, turn: QueuePosition) -> &RawSocket {
        match turn {
            QueuePosition::Front => &self.urgent,
            QueuePosition::Back => &self.normal,
        }
    }
}

impl RawSocket {
    /// Selects the outgoing interface for subsequent packets.
    fn set_out_interface(&self, interface: u32, is_v4: bool) -> io::Result<()> {
        if self.interface.get() == interface {
            return Ok(());
        }
        let (level, option) = if is_v4 {
            (libc::IPPROTO_IP, libc::IP_UNICAST_IF)
        } else {
            (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_IF)
        };
        // In network byte order (ip(7)).
        sys::set_option(&self.socket, level, option, interface.to_be().cast_signed())?;
        self.interface.set(interface);
        Ok(())
    }
}

fn version(packet: &[u8]) -> Option<u8> {
    packet.first().map(|first| first >> 4)
}

/// Returns the destination in the header. The port of a raw socket's destination is 0 (raw(7), ipv6(7)).
pub(crate) fn destination(packet: &[u8]) -> Option<SocketAddr> {
    let address: IpAddr = match version(packet)? {
        4 => <[u8; 4]>::try_from(packet.get(16..20)?).ok()?.into(),
        6 => <[u8; 16]>::try_from(packet.get(24..40)?).ok()?.into(),
        _ => return None,
    };
    Some(SocketAddr::new(address, 0))
}

/// Opens a socket for whole packets of an IP version.
pub(crate) fn raw_socket(domain: Domain, mark: u32, priority: u32) -> io::Result<Socket> {
    // Packets include their headers: for both versions, this protocol implies it (raw(7), ipv6(7)).
    let socket = Socket::new(domain, Type::RAW, Some(Protocol::from(libc::IPPROTO_RAW)))?;
    socket.set_nonblocking(true)?;
    socket.set_priority(priority)?;
    socket.set_mark(mark)?;
    // Without this option the kernel does not report drops of the queue (raw(7)).
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
    fn the_destination_is_read_from_ipv4_and_ipv6_headers() {
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
