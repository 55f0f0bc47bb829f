//! Messages between home agents, stations and mobile hosts, over UDP.

use super::BATCH;
use hopline_linux::Error;
use hopline_proxy::handoff::Transmit;
use hopline_wire::handoff::{PORT, TaggedMessage};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// Longer than any message.
const MAX_MESSAGE: usize = 128;

/// Sends and receives by one address, through one interface or any.
#[derive(Debug)]
pub(super) struct Messenger {
    socket: UdpSocket,
    /// Its counters.
    pub(super) counts: Counts,
}

/// Counters of a [`Messenger`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Datagrams that were no messages.
    pub(super) malformed: u64,
    /// Messages that the system did not take.
    pub(super) send_failures: u64,
}

impl Messenger {
    /// One at `address`; through `interface` alone, if there is one named.
    pub(super) fn open(address: Ipv4Addr, interface: Option<&str>) -> Result<Self, Error> {
        let doing = || match interface {
            Some(name) => {
                format!("taking UDP port {PORT} of {address} on {name} (the host must have this address)")
            }
            None => format!("taking UDP port {PORT} of {address} (the host must have this address)"),
        };
        let open = || {
            let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
            socket.set_nonblocking(true)?;
            socket.set_broadcast(true)?;
            socket.set_reuse_address(true)?;
            socket.bind_device(interface.map(str::as_bytes))?;
            socket.bind(&SocketAddrV4::new(address, PORT).into())?;
            Ok(UdpSocket::from(socket))
        };
        let socket = open().map_err(|e: io::Error| Error::of_address(doing(), address.into(), e))?;
        Ok(Self { socket, counts: Counts::default() })
    }

    /// Passes the messages that wait to `take`, each with the address of its sender. Reads 64 datagrams at most.
    pub(super) fn receive(&mut self, mut take: impl FnMut(Ipv4Addr, &TaggedMessage)) -> io::Result<()> {
        let mut buffer = [0; MAX_MESSAGE];
        for _ in 0..BATCH {
            match self.socket.recv_from(&mut buffer) {
                Ok((len, SocketAddr::V4(from))) => match TaggedMessage::parse(&buffer[..len]) {
                    Ok(tagged) => take(*from.ip(), &tagged),
                    Err(_) => self.counts.malformed += 1,
                },
                Ok(_) => self.counts.malformed += 1,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Sends a message. One that the system does not take is lost, as any other may be.
    pub(super) fn send(&mut self, transmit: &Transmit) {
        let mut bytes = Vec::with_capacity(transmit.message.wire_len());
        transmit.message.emit(&mut bytes);
        self.counts.send_failures += u64::from(self.socket.send_to(&bytes, (transmit.to, PORT)).is_err());
    }
}

impl AsFd for Messenger {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
