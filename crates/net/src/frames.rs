//! Frames of an interface, whoever they are for: packet(7).

use crate::error::Error;
use crate::sys;
use hopline_wire::dot11::MacAddr;
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socket_with, sockopt};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Bytes of an Ethernet header: to whom, from whom, what follows.
pub const HEADER_LEN: usize = 14;
/// `EtherType` of IPv4.
pub const IPV4: u16 = 0x0800;
/// The address of all.
pub const EVERYONE: MacAddr = MacAddr([0xff; 6]);

/// Bytes of a frame that are looked at: headers with all options, and a short message.
const LOOKED_AT: usize = 192;
/// Frames received by one system call.
const AT_ONCE: usize = 64;
/// Receive buffer, bytes: some thousands of frames with what the kernel keeps beside them.
const RECEIVE_BUFFER: usize = 4 << 20;
/// `PACKET_IGNORE_OUTGOING` of linux/if_packet.h.
const IGNORE_OUTGOING: libc::c_int = 23;

/// Hears the beginnings of frames that come to an Ethernet interface, and sends frames there. Frames for others are among them where
/// the interface lets them in (`ip link set wlan0 promisc on`, and a driver that heeds it); those that this host sends are not.
#[derive(Debug)]
pub struct FrameSocket {
    fd: OwnedFd,
    interface: u32,
    address: MacAddr,
    ip: Ipv4Addr,
    buffers: Vec<Box<[u8]>>,
}

impl FrameSocket {
    /// One at the interface called `name`, in the calling thread's namespace.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without `CAP_NET_RAW` and `CAP_NET_ADMIN`, or where there is no such interface; if it has no IPv4 address or is none of
    /// Ethernet.
    pub fn open(name: &str) -> Result<Self, Error> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // Of no kind of frames, so that it hears nothing before it is bound.
        let fd = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)
            .map_err(|e| Error::new("opening a packet socket (CAP_NET_RAW)", e))?;
        let inet = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
            .map_err(|e| Error::new("opening a socket", e))?;
        let asking = |what: &str, error: io::Error| Error::new(format!("looking for {what} {name}"), error);
        let interface = name_to_index(&inet, name).map_err(|e| Error::of_interface(name, e))?;
        let ip = sys::address(&inet, name).map_err(|e| asking("the IPv4 address of", e))?;
        let no_ethernet =
            || io::Error::new(io::ErrorKind::Unsupported, "it is no interface of Ethernet or 802.11");
        let address = sys::ethernet_address(&inet, name)
            .and_then(|address| address.ok_or_else(no_ethernet))
            .map_err(|e| asking("the address of the link layer of", e))?;
        sockopt::set_socket_recv_buffer_size_force(&fd, RECEIVE_BUFFER)
            .map_err(|e| Error::new("enlarging the receive buffer (SO_RCVBUFFORCE)", e))?;
        sys::set_option(&fd, libc::SOL_PACKET, IGNORE_OUTGOING, 1)
            .and_then(|()| sys::bind_to_frames(&fd, interface))
            .map_err(|e| asking("frames of", e))?;
        let buffers = (0..AT_ONCE).map(|_| vec![0; LOOKED_AT].into_boxed_slice()).collect();
        Ok(Self { fd, interface, address: MacAddr(address), ip, buffers })
    }

    /// Number of the interface.
    #[must_use]
    pub const fn interface(&self) -> u32 {
        self.interface
    }

    /// Its address at the link layer.
    #[must_use]
    pub const fn address(&self) -> MacAddr {
        self.address
    }

    /// Its first IPv4 address.
    #[must_use]
    pub const fn ip(&self) -> Ipv4Addr {
        self.ip
    }

    /// Gives the first 192 bytes of each frame that has come, 64 frames at most, to `take`. Does not wait. Gives how many there were.
    ///
    /// # Errors
    /// `ENETDOWN` when the interface goes down; what the system says beside.
    pub fn receive(&mut self, mut take: impl FnMut(&[u8])) -> io::Result<usize> {
        let received = match sys::receive_many(&self.fd, &mut self.buffers) {
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
            Err(error) => return Err(error),
        };
        for (frame, buffer) in received.iter().zip(&self.buffers) {
            take(&buffer[..frame.len]);
        }
        Ok(received.len())
    }

    /// Sends a frame, header and all.
    ///
    /// # Errors
    /// If the interface is down or has no room, or the frame is longer than it takes.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        send(&self.fd, frame, SendFlags::empty())?;
        Ok(())
    }
}

impl AsFd for FrameSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
