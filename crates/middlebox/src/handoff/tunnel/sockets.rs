//! The ends of tunnels: raw(7).

use hopline_linux::Error;
use hopline_linux::sys;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd};

/// Entrance of the tunnel. It sends whole packets: to groups through each of the interfaces, to other addresses by the
/// routes.
#[derive(Debug)]
pub(crate) struct Encapsulator {
    by_routes: Socket,
    to_groups: Vec<Socket>,
}

/// Outcome of sending a packet at an [`Encapsulator`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendResult {
    /// It is on its way, through one interface at least.
    Sent,
    /// It is longer than what the way takes.
    TooLong,
    /// The system did not take it: there is no way, or no room.
    Failed,
}

impl Encapsulator {
    pub(crate) fn open(interfaces: &[String]) -> Result<Self, Error> {
        let to_groups = interfaces.iter().map(|name| raw(libc::IPPROTO_RAW, Some(name)));
        let to_groups = to_groups.collect::<Result<_, _>>()?;
        Ok(Self { by_routes: raw(libc::IPPROTO_RAW, None)?, to_groups })
    }

    /// Sends a packet that has its header. A packet to an address in 239.0.0.0/8 goes to the members of that group.
    pub(crate) fn send(&self, to: Ipv4Addr, packet: &[u8]) -> SendResult {
        let address = SocketAddrV4::new(to, 0).into();
        let ways =
            if to.is_multicast() { &self.to_groups[..] } else { std::slice::from_ref(&self.by_routes) };
        let mut sent = SendResult::Failed;
        for way in ways {
            match way.send_to(packet, &address) {
                Ok(_) => sent = SendResult::Sent,
                Err(e) if e.raw_os_error() == Some(libc::EMSGSIZE) && sent != SendResult::Sent => {
                    sent = SendResult::TooLong
                }
                Err(_) => {}
            }
        }
        sent
    }
}

/// Exit of the tunnel. It receives, with their outer headers, all packets of protocol 4 for this host or for a group of
/// which it is a member.
#[derive(Debug)]
pub(crate) struct Decapsulator(Socket);

impl Decapsulator {
    /// One that takes what comes by this interface, with a receive buffer of so many bytes.
    pub(crate) fn open(interface: &str, receive_buffer: usize) -> Result<Self, Error> {
        let socket = raw(libc::IPPROTO_IPIP, Some(interface))?;
        // Without the privilege to force it, as much as the system grants.
        let _ = sys::set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, receive_buffer as i32)
            .or_else(|_| socket.set_recv_buffer_size(receive_buffer));
        Ok(Self(socket))
    }

    /// The next packet; `None` if there is none now.
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self.0.read(buffer) {
            Ok(len) => Ok(Some(len)),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
            // The interface is down; it may come up again.
            Err(e) if e.raw_os_error() == Some(libc::ENETDOWN) => Ok(None),
            Err(e) => Err(e),
        }
    }
}

impl AsFd for Decapsulator {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn raw(protocol: i32, interface: Option<&str>) -> Result<Socket, Error> {
    let open = || {
        let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(protocol)))?;
        socket.set_nonblocking(true)?;
        socket.bind_device(interface.map(str::as_bytes))?;
        Ok(socket)
    };
    let on = interface.map_or(String::new(), |name| format!(" on {name}"));
    open().map_err(|e: io::Error| Error::new(format!("opening a raw socket{on} (CAP_NET_RAW)"), e))
}
