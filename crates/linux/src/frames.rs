//! Raw frames of an interface, in promiscuous mode too: packet(7).

use crate::error::Error;
use crate::sys;
use hopline_wire::dot11::MacAddr;
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socket_with, sockopt};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Bytes of an Ethernet header: destination, source, `EtherType`.
pub const HEADER_LEN: usize = 14;
/// `EtherType` of IPv4.
pub const IPV4: u16 = 0x0800;
/// Broadcast address.
pub const BROADCAST: MacAddr = MacAddr([0xff; 6]);

/// Captured bytes of a frame: headers with all options, and a short message.
const SNAP_LEN: usize = 192;
/// Maximum frames received by one system call.
const BATCH: usize = 64;
/// Receive buffer in bytes: some thousands of frames with the kernel's overhead.
const RECEIVE_BUFFER: usize = 4 << 20;
/// `PACKET_IGNORE_OUTGOING` of linux/if_packet.h.
const IGNORE_OUTGOING: libc::c_int = 23;

/// Receives the beginnings of frames that arrive at an Ethernet interface, and sends frames there. It receives frames for
/// other hosts too if the interface is in promiscuous mode (`ip link set wlan0 promisc on`, and a driver that supports
/// it). It does not receive frames that this host sends.
#[derive(Debug)]
pub struct FrameSocket {
    fd: OwnedFd,
    interface: u32,
    address: MacAddr,
    ip: Ipv4Addr,
    buffers: Vec<Box<[u8]>>,
}

impl FrameSocket {
    /// Opens a socket at the interface called `name`, in the calling thread's namespace.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without `CAP_NET_RAW` and `CAP_NET_ADMIN`, or if there is no such interface; an error if
    /// the interface has no IPv4 address or is not Ethernet.
    pub fn open(name: &str) -> Result<Self, Error> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // No protocol yet, so that the socket receives nothing before it is bound.
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
        let buffers = (0..BATCH).map(|_| vec![0; SNAP_LEN].into_boxed_slice()).collect();
        Ok(Self { fd, interface, address: MacAddr(address), ip, buffers })
    }

    /// Returns the index of the interface.
    #[must_use]
    pub const fn interface(&self) -> u32 {
        self.interface
    }

    /// Returns the MAC address of the interface.
    #[must_use]
    pub const fn address(&self) -> MacAddr {
        self.address
    }

    /// Returns the first IPv4 address of the interface.
    #[must_use]
    pub const fn ip(&self) -> Ipv4Addr {
        self.ip
    }

    /// Passes the first 192 bytes of each received frame to `take`, for at most 64 frames, and returns the number of
    /// frames. Does not block.
    ///
    /// # Errors
    /// `ENETDOWN` when the interface goes down; other errors of the system.
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

    /// Sends a frame, including its header.
    ///
    /// # Errors
    /// If the interface is down, its queue is full, or the frame exceeds the MTU.
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
