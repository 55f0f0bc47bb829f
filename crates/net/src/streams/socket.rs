//! The UDP socket below.

use super::protocol::Fragments;
use super::train::Departure;
use crate::sys;
use hopline_wire::ipv4::Ecn;
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use rustix::net::sockopt::{
    Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
};
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

/// Where datagrams of a connection go, or came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// The peer's address.
    pub peer: SocketAddr,
    /// Our address that the peer knows, if we are known by one; otherwise the kernel chooses.
    pub local: Option<IpAddr>,
}

/// What becomes of the word that nobody is there (ICMP).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusals {
    /// Who connects need not wait for long.
    Heard,
    /// Who listens is not drowned: a flood of forged openings has each answer to them refused, and each refusal takes room from
    /// datagrams and makes a system call fail.
    Ignored,
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
    pub(super) fn bind(address: SocketAddr, sharing: Sharing) -> io::Result<Self> {
        let socket = socket2::Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_reuse_address(sharing == Sharing::Allowed)?;
        if matches!(address, SocketAddr::V6(address) if address.ip().is_unspecified()) {
            // All addresses are those of IPv4, too, whatever net.ipv6.bindv6only says.
            socket.set_only_v6(false)?;
        }
        socket.bind(&address.into())?;
        // With less, more is lost when the machine is busy.
        let _ = socket.set_recv_buffer_size(BUFFER);
        let _ = socket.set_send_buffer_size(BUFFER);
        let udp = UdpSocket::from(socket);
        let state = UdpSocketState::new((&udp).into())?;
        // quinn-udp 0.6 asks when each datagram came and has 96 bytes for all that the kernel says beside a datagram. Of a train, the
        // time leaves no room for what routers said of congestion.
        sys::set_option(&udp, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 0)?;
        let socket = Self { udp, state };
        socket.set_fragments(Fragments::Allowed);
        Ok(socket)
    }

    /// Whether hosts are heard that say that nobody is behind a port which we sent to.
    pub(super) fn set_refusals(&self, refusals: Refusals) -> io::Result<()> {
        match refusals {
            Refusals::Heard => self.state.enable_transport_errors((&self.udp).into()),
            Refusals::Ignored => sys::ignore_icmp_errors(&self.udp),
        }
    }

    /// A socket of IPv6 may have peers of IPv4, too.
    fn set_fragments(&self, fragments: Fragments) {
        let (v4, v6) = match fragments {
            Fragments::Allowed => (Ipv4PathMtuDiscovery::DONT, Ipv6PathMtuDiscovery::DONT),
            Fragments::Forbidden => (Ipv4PathMtuDiscovery::PROBE, Ipv6PathMtuDiscovery::PROBE),
        };
        // A socket of IPv4 has no such option of IPv6; and without either, datagrams go as the system likes.
        let _ = set_ip_mtu_discover(&self.udp, v4);
        let _ = set_ipv6_mtu_discover(&self.udp, v6);
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
        let Departure { path, ecn, contents, each } = departure;
        let segment_size = (contents.len() > each).then_some(each);
        let transmit = Transmit {
            destination: path.peer,
            ecn: codepoint(ecn),
            contents,
            segment_size,
            src_ip: path.local,
        };
        let send = || self.state.try_send((&self.udp).into(), &transmit);
        // The first failure may be the word of an earlier datagram.
        match send().or_else(|e| if e.kind() == io::ErrorKind::WouldBlock { Err(e) } else { send() }) {
            Ok(()) => Sent::Yes,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Sent::Blocked,
            Err(e) => Sent::Failed(e),
        }
    }

    /// Sends what no router may cut into fragments. The only sender at this moment: the table is held.
    pub(super) fn send_whole(&self, departure: Departure<'_>) -> Sent {
        self.set_fragments(Fragments::Forbidden);
        let sent = self.send(departure);
        self.set_fragments(Fragments::Allowed);
        sent
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

    /// The datagrams read last, each to be changed at will: what is encrypted is decrypted in its place.
    pub(super) fn datagrams(&mut self) -> impl Iterator<Item = (Path, Ecn, &mut [u8])> {
        let read = self.bytes.chunks_mut(LONGEST).zip(&self.metas).take(self.filled);
        read.flat_map(|(bytes, meta)| {
            let (path, ecn) = (Path { peer: meta.addr, local: meta.dst_ip }, heard(meta.ecn));
            let bytes = &mut bytes[..meta.len.min(LONGEST)];
            bytes.chunks_mut(meta.stride.max(1)).map(move |datagram| (path, ecn, datagram))
        })
    }
}

/// As quinn calls it.
const fn codepoint(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotCapable => None,
        Ecn::Capable0 => Some(EcnCodepoint::Ect0),
        Ecn::Capable1 => Some(EcnCodepoint::Ect1),
        Ecn::CongestionExperienced => Some(EcnCodepoint::Ce),
    }
}

/// As we call it.
const fn heard(codepoint: Option<EcnCodepoint>) -> Ecn {
    match codepoint {
        None => Ecn::NotCapable,
        Some(EcnCodepoint::Ect0) => Ecn::Capable0,
        Some(EcnCodepoint::Ect1) => Ecn::Capable1,
        Some(EcnCodepoint::Ce) => Ecn::CongestionExperienced,
    }
}
