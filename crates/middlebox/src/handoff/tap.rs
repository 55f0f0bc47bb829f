//! Taps: headers of the packets that come for a host, or leave it: packet(7).

use super::BATCH;
use hopline_linux::Error;
use hopline_linux::sys;
use hopline_wire::handoff::PacketId;
use rustix::net::netdevice::name_to_index;
use socket2::{Domain, Socket, Type};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};

/// Length of an IP header without options, bytes.
const IP_HEADER: usize = 20;
/// The longest headers of IPv4 and TCP together, bytes.
const MAX_TCP_HEADERS: usize = 60 + 60;
/// Packets that one call takes at most, so that a flood does not stop the rest of the service.
const MAX_PACKETS: usize = 2048;

/// Sees the headers of packets of one address by an interface, beside the kernel.
#[derive(Debug)]
pub(super) struct Tap {
    socket: Socket,
    buffers: Vec<Box<[u8]>>,
}

impl Tap {
    /// Opens a tap of the packets that come for `host`, before the kernel takes them. It sees their IP headers.
    pub(super) fn incoming(interface: &str, host: Ipv4Addr) -> Result<Self, Error> {
        // Packets of the one protocol alone: each comes once.
        Self::open((interface, "comes"), &mut headers_for(host), libc::ETH_P_IP, IP_HEADER)
    }

    /// Opens a tap of the segments of TCP that leave from `host`. It sees their headers of IP and TCP.
    pub(super) fn outgoing_tcp(interface: &str, host: Ipv4Addr) -> Result<Self, Error> {
        // The kernel shows packets that leave to sockets of all protocols alone.
        Self::open((interface, "leaves"), &mut segments_from(host), libc::ETH_P_ALL, MAX_TCP_HEADERS)
    }

    fn open(
        (interface, direction): (&str, &str),
        filter: &mut [libc::sock_filter],
        protocol: i32,
        seen: usize,
    ) -> Result<Self, Error> {
        let mut open = || {
            // Of no protocol yet: nothing comes before the filter is there.
            let socket = Socket::new(Domain::PACKET, Type::DGRAM, None)?;
            socket.set_nonblocking(true)?;
            sys::attach_filter(&socket, filter)?;
            let index = name_to_index(&socket, interface)?;
            sys::bind_to_interface(&socket, index, protocol as u16)?;
            Ok(socket)
        };
        let doing = || format!("looking at what {direction} by {interface} (CAP_NET_RAW)");
        let refused = |error: io::Error| match error.raw_os_error() {
            Some(libc::ENODEV) => Error::of_interface(interface, error),
            _ => Error::new(doing(), error),
        };
        let socket = open().map_err(refused)?;
        Ok(Self { socket, buffers: (0..BATCH).map(|_| vec![0; seen].into()).collect() })
    }

    /// Gives `take` the headers of packets, oldest first, 2,048 at most.
    pub(super) fn receive(&mut self, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        for _ in 0..MAX_PACKETS / BATCH {
            if self.receive_some(&mut take)? < BATCH {
                break;
            }
        }
        Ok(())
    }

    /// Gives `take` the packets that one call of the system brings, and returns their number.
    fn receive_some(&mut self, take: &mut impl FnMut(&[u8])) -> io::Result<usize> {
        match sys::receive_many(&self.socket, &mut self.buffers) {
            Ok(datagrams) => {
                for (buffer, datagram) in self.buffers.iter().zip(&datagrams) {
                    take(&buffer[..datagram.len]);
                }
                Ok(datagrams.len())
            }
            // The interface is down; it may come up again.
            Err(e) if e.raw_os_error() == Some(libc::ENETDOWN) => Ok(0),
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0),
            Err(e) => Err(e),
        }
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Returns the name by which stations know a packet with this IP header; `None` if the header is cut short.
pub(super) fn packet_id(header: &[u8]) -> Option<PacketId> {
    let header: &[u8; IP_HEADER] = header.first_chunk()?;
    let id = u16::from_be_bytes([header[4], header[5]]);
    Some(PacketId { source: Ipv4Addr::new(header[12], header[13], header[14], header[15]), id })
}

/// Returns a program that lets through the first bytes of packets for `host`. They begin with their IP headers here.
fn headers_for(host: Ipv4Addr) -> [libc::sock_filter; 4] {
    filter([load(libc::BPF_W, 16), jump_if_equal(host.to_bits()), accept(IP_HEADER), accept(0)])
}

/// Returns a program that lets through the headers of TCP over IPv4 that leave, from `host`. Packets begin with their IP headers here.
fn segments_from(host: Ipv4Addr) -> [libc::sock_filter; 10] {
    // Facts of the kernel about a packet beside its bytes (linux/filter.h).
    let known = |fact: i32| load(libc::BPF_W, (libc::SKF_AD_OFF + fact).cast_unsigned());
    filter([
        known(libc::SKF_AD_PKTTYPE),
        jump_if_equal(libc::PACKET_OUTGOING.into()),
        known(libc::SKF_AD_PROTOCOL),
        jump_if_equal(libc::ETH_P_IP as u32),
        load(libc::BPF_W, 12),
        jump_if_equal(host.to_bits()),
        load(libc::BPF_B, 9),
        jump_if_equal(libc::IPPROTO_TCP as u32),
        accept(MAX_TCP_HEADERS),
        accept(0),
    ])
}

/// Code and operand of a step.
type Instruction = (u32, u32);

const fn load(size: u32, at: u32) -> Instruction {
    (libc::BPF_LD | size | libc::BPF_ABS, at)
}

const fn jump_if_equal(value: u32) -> Instruction {
    (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, value)
}

const fn accept(bytes: usize) -> Instruction {
    (libc::BPF_RET | libc::BPF_K, bytes as u32)
}

/// Returns a program of `steps`. A comparison that fails goes to the last step.
fn filter<const N: usize>(steps: [Instruction; N]) -> [libc::sock_filter; N] {
    let otherwise = |at: usize, code: u32| match code & 0x07 == libc::BPF_JMP {
        true => (N - 2 - at) as u8,
        false => 0,
    };
    std::array::from_fn(|at| {
        let (code, k) = steps[at];
        libc::sock_filter { code: code as u16, jt: 0, jf: otherwise(at, code), k }
    })
}
