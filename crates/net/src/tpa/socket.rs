//! The UDP socket below.

use super::train::Departure;
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use rustix::net::sockopt::{Ipv4PathMtuDiscovery, set_ip_mtu_discover};
use socket2::{Domain, Protocol, SockRef, Type};
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// What the kernel is asked to keep for us in each direction, bytes; it may give less (`net.core.rmem_max`).
const BUFFER: usize = 1 << 20;
/// Datagrams, or trains of datagrams, read with one system call.
const BATCH: usize = 8;
/// Longest train of datagrams.
const LONGEST: usize = 1 << 16;

/// A UDP socket that does not block.
#[derive(Debug)]
pub(super) struct Socket {
    udp: UdpSocket,
    state: UdpSocketState,
}

/// Where datagrams of a connection go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Path {
    pub(super) peer: SocketAddr,
    /// Our address that the peer knows, if we are known by one; otherwise the kernel chooses.
    pub(super) local: Option<IpAddr>,
}

/// What became of a datagram.
#[derive(Debug)]
pub(super) enum Sent {
    Yes,
    /// No room now.
    Blocked,
    Failed(io::Error),
}

/// Whether another socket may be bound to a port that has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// One that allows it too may (`SO_REUSEADDR`).
    Allowed,
    /// None may.
    Refused,
}

/// Where datagrams are read to.
pub(super) struct Buffers {
    bytes: Vec<u8>,
    metas: [RecvMeta; BATCH],
    filled: usize,
}

impl Socket {
    pub(super) fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = socket2::Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        socket.bind(&address.into())?;
        // With less, more is lost when the machine is busy.
        let _ = socket.set_recv_buffer_size(BUFFER);
        let _ = socket.set_send_buffer_size(BUFFER);
        let udp = UdpSocket::from(socket);
        let state = UdpSocketState::new((&udp).into())?;
        state.enable_transport_errors((&udp).into())?;
        if address.is_ipv4() {
            // Fragments arrive; what is too long for the path does not.
            set_ip_mtu_discover(&udp, Ipv4PathMtuDiscovery::WANT)?;
        }
        Ok(Self { udp, state })
    }

    pub(super) fn share_port(&self, sharing: Sharing) -> io::Result<()> {
        SockRef::from(&self.udp).set_reuse_address(sharing == Sharing::Allowed)
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.udp.local_addr()
    }

    /// Datagrams that may leave at once: 1 where the kernel or a card cannot cut them apart (GSO).
    pub(super) fn longest_train(&self) -> usize {
        self.state.max_gso_segments()
    }

    pub(super) fn send(&self, departure: Departure<'_>) -> Sent {
        let Departure { path, contents, each } = departure;
        let segment_size = (contents.len() > each).then_some(each);
        let transmit =
            Transmit { destination: path.peer, ecn: None, contents, segment_size, src_ip: path.local };
        let send = || self.state.try_send((&self.udp).into(), &transmit);
        // The first failure may be the word of an earlier datagram.
        match send().or_else(|e| if e.kind() == io::ErrorKind::WouldBlock { Err(e) } else { send() }) {
            Ok(()) => Sent::Yes,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Sent::Blocked,
            Err(e) => Sent::Failed(e),
        }
    }

    /// Reads what is there, up to what fits.
    pub(super) fn receive(&self, buffers: &mut Buffers) {
        let mut slices: Vec<_> = buffers.bytes.chunks_mut(LONGEST).map(IoSliceMut::new).collect();
        // What failed is either nothing to read, or the word of an earlier datagram.
        buffers.filled =
            self.state.recv((&self.udp).into(), &mut slices, &mut buffers.metas).unwrap_or_default();
    }

    /// A host that says that nobody is behind a port which we sent to.
    pub(super) fn next_refusal(&self) -> Option<IpAddr> {
        loop {
            let error = self.state.recv_transport_error((&self.udp).into()).ok().flatten()?;
            if error.raw_errno == libc::ECONNREFUSED
                && let Some(address) = error.addr
            {
                return Some(address.ip());
            }
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.udp.as_fd()
    }
}

impl Buffers {
    pub(super) fn new() -> Self {
        Self { bytes: vec![0; BATCH * LONGEST], metas: [RecvMeta::default(); BATCH], filled: 0 }
    }

    pub(super) fn is_full(&self) -> bool {
        self.filled == BATCH
    }

    /// The datagrams read last.
    pub(super) fn datagrams(&self) -> impl Iterator<Item = (Path, &[u8])> {
        let read = self.bytes.chunks(LONGEST).zip(&self.metas).take(self.filled);
        read.flat_map(|(bytes, meta)| {
            let path = Path { peer: meta.addr, local: meta.dst_ip };
            let bytes = &bytes[..meta.len.min(LONGEST)];
            bytes.chunks(meta.stride.max(1)).map(move |datagram| (path, datagram))
        })
    }
}
