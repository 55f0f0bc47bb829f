//! A look at the packets that come for a host: packet(7).

use super::BATCH;
use crate::error::Error;
use crate::sys;
use hopline_wire::handoff::PacketId;
use rustix::net::netdevice::name_to_index;
use socket2::{Domain, Socket, Type};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};

/// Of each packet: its IP header without options.
const SEEN: usize = 20;
/// Packets looked at before others have their turn.
const MOST: usize = 2048;

/// Sees the IP headers of what comes by an interface for one address, before the kernel takes it.
#[derive(Debug)]
pub(super) struct Tap {
    socket: Socket,
    buffers: Vec<Box<[u8]>>,
}

impl Tap {
    /// Begins to look.
    pub(super) fn open(interface: &str, host: Ipv4Addr) -> Result<Self, Error> {
        let open = || {
            // Of no protocol yet: nothing comes before the filter is there.
            let socket = Socket::new(Domain::PACKET, Type::DGRAM, None)?;
            socket.set_nonblocking(true)?;
            sys::attach_filter(&socket, &mut headers_for(host))?;
            let index = name_to_index(&socket, interface)?;
            sys::bind_to_interface(&socket, index, libc::ETH_P_IP as u16)?;
            Ok(socket)
        };
        let doing = || format!("looking at what comes by {interface} (CAP_NET_RAW)");
        let refused = |error: io::Error| match error.raw_os_error() {
            Some(libc::ENODEV) => Error::of_interface(interface, error),
            _ => Error::new(doing(), error),
        };
        let socket = open().map_err(refused)?;
        Ok(Self { socket, buffers: (0..BATCH).map(|_| vec![0; SEEN].into()).collect() })
    }

    /// Gives `take` the packets that have come, oldest first, 2,048 at most.
    pub(super) fn receive(&mut self, mut take: impl FnMut(PacketId)) -> io::Result<()> {
        for _ in 0..MOST / BATCH {
            if self.receive_some(&mut take)? < BATCH {
                break;
            }
        }
        Ok(())
    }

    /// The same of what one call of the system brings: so many.
    fn receive_some(&mut self, take: &mut impl FnMut(PacketId)) -> io::Result<usize> {
        match sys::receive_many(&self.socket, &mut self.buffers) {
            Ok(datagrams) => {
                for (buffer, _) in self.buffers.iter().zip(&datagrams).filter(|(_, d)| d.len >= SEEN) {
                    let id = u16::from_be_bytes([buffer[4], buffer[5]]);
                    let source = Ipv4Addr::new(buffer[12], buffer[13], buffer[14], buffer[15]);
                    take(PacketId { source, id });
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

/// A program that lets through the first bytes of packets for `host`. They begin with their IP headers here.
fn headers_for(host: Ipv4Addr) -> [libc::sock_filter; 4] {
    let load_destination = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 16);
    let is_host = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, host.to_bits());
    let take = |bytes| (libc::BPF_RET | libc::BPF_K, bytes);
    let steps = [load_destination, is_host, take(SEEN as u32), take(0)];
    // Where the address is another one, the last but one is left out.
    let leaves_out = [0, 1, 0, 0];
    std::array::from_fn(|at| {
        let (code, k) = steps[at];
        libc::sock_filter { code: code as u16, jt: 0, jf: leaves_out[at], k }
    })
}
