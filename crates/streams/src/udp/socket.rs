//! UDP socket.

use super::gso_burst::Transmission;
use super::protocol::Fragments;
use hopline_linux::sys;
use hopline_wire::ipv4::Ecn;
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use rustix::net::sockopt::{
    Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
};
use socket2::{Domain, Protocol, SockRef, Type};
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// Requested socket buffer in each direction, in bytes; the kernel may grant less (`net.core.rmem_max`).
const BUFFER: usize = 1 << 20;
/// Datagrams, or GSO groups of datagrams, read by one system call.
const BATCH: usize = 32;
/// Maximum bytes of a GSO group.
const MAX_GSO_BYTES: usize = 1 << 16;

/// A non-blocking UDP socket.
#[derive(Debug)]
pub(super) struct Socket {
    udp: UdpSocket,
    state: UdpSocketState,
}

/// Path of a connection's datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Address of the peer.
    pub peer: SocketAddr,
    /// Local address that the peer uses, if it is known; otherwise the kernel chooses one.
    pub local: Option<IpAddr>,
}

/// Treatment of ICMP port-unreachable messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IcmpErrors {
    /// They are reported, so that a failed connection attempt ends early.
    Reported,
    /// They are ignored. Under a flood of forged connection attempts, each answer would cause an ICMP error, which takes
    /// room from datagrams and makes a system call fail.
    Ignored,
}

/// Result of sending a datagram.
#[derive(Debug)]
pub(super) enum SendResult {
    Sent,
    /// The socket has no room at present.
    Blocked,
    Failed(io::Error),
}

/// Permission for another socket to bind to the same port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortSharing {
    /// Permitted to a socket that permits it too (`SO_REUSEADDR`).
    Allowed,
    /// Not permitted.
    Forbidden,
}

/// Receive buffers.
pub(super) struct Buffers {
    bytes: Vec<u8>,
    metas: [RecvMeta; BATCH],
    filled: usize,
}

impl Socket {
    pub(super) fn bind(address: SocketAddr, sharing: PortSharing) -> io::Result<Self> {
        let socket = socket2::Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_reuse_address(sharing == PortSharing::Allowed)?;
        if matches!(address, SocketAddr::V6(address) if address.ip().is_unspecified()) {
            // The IPv6 wildcard address covers IPv4 too, whatever net.ipv6.bindv6only says.
            socket.set_only_v6(false)?;
        }
        socket.bind(&address.into())?;
        // With smaller buffers, more is lost when the host is busy.
        let _ = socket.set_recv_buffer_size(BUFFER);
        let _ = socket.set_send_buffer_size(BUFFER);
        let udp = UdpSocket::from(socket);
        let state = UdpSocketState::new((&udp).into())?;
        // quinn-udp 0.6 requests the arrival time of each datagram, and has 96 bytes for all control messages. For a GSO
        // group, the time leaves no room for the ECN field.
        sys::set_option(&udp, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 0)?;
        let socket = Self { udp, state };
        socket.set_fragments(Fragments::Allowed);
        Ok(socket)
    }

    /// Sets whether ICMP port-unreachable messages are reported.
    pub(super) fn set_icmp_errors(&self, refusals: IcmpErrors) -> io::Result<()> {
        match refusals {
            IcmpErrors::Reported => self.state.enable_transport_errors((&self.udp).into()),
            IcmpErrors::Ignored => sys::ignore_icmp_errors(&self.udp),
        }
    }

    /// Sets the fragmentation of datagrams. An IPv6 socket may have IPv4 peers too.
    fn set_fragments(&self, fragments: Fragments) {
        let (v4, v6) = match fragments {
            Fragments::Allowed => (Ipv4PathMtuDiscovery::DONT, Ipv6PathMtuDiscovery::DONT),
            Fragments::Forbidden => (Ipv4PathMtuDiscovery::PROBE, Ipv6PathMtuDiscovery::PROBE),
        };
        // An IPv4 socket has no such IPv6 option. If neither can be set, the system's default applies.
        let _ = set_ip_mtu_discover(&self.udp, v4);
        let _ = set_ipv6_mtu_discover(&self.udp, v6);
    }

    pub(super) fn share_port(&self, sharing: PortSharing) -> io::Result<()> {
        SockRef::from(&self.udp).set_reuse_address(sharing == PortSharing::Allowed)
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.udp.local_addr()
    }

    /// Returns the maximum datagrams of a GSO group: 1 if neither the kernel nor the network card can segment (GSO).
    pub(super) fn max_gso_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    pub(super) fn send(&self, departure: Transmission<'_>) -> SendResult {
        let Transmission { path, ecn, contents, segment_len: each } = departure;
        let segment_size = (contents.len() > each).then_some(each);
        let transmit = Transmit {
            destination: path.peer,
            ecn: codepoint(ecn),
            contents,
            segment_size,
            src_ip: path.local,
        };
        let send = || self.state.try_send((&self.udp).into(), &transmit);
        // The first error may belong to an earlier datagram.
        match send().or_else(|e| if e.kind() == io::ErrorKind::WouldBlock { Err(e) } else { send() }) {
            Ok(()) => SendResult::Sent,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => SendResult::Blocked,
            Err(e) => SendResult::Failed(e),
        }
    }

    /// Sends a datagram that no router may fragment. The lock of the table ensures that it is the only sender.
    pub(super) fn send_unfragmented(&self, departure: Transmission<'_>) -> SendResult {
        self.set_fragments(Fragments::Forbidden);
        let sent = self.send(departure);
        self.set_fragments(Fragments::Allowed);
        sent
    }

    /// Reads as many datagrams as fit into the buffers.
    pub(super) fn receive(&self, buffers: &mut Buffers) {
        let mut slices: Vec<_> = buffers.bytes.chunks_mut(MAX_GSO_BYTES).map(IoSliceMut::new).collect();
        // An error means that there is nothing to read, or it belongs to an earlier datagram.
        buffers.filled =
            self.state.recv((&self.udp).into(), &mut slices, &mut buffers.metas).unwrap_or_default();
    }

    /// Returns the source of the next ICMP port-unreachable message.
    pub(super) fn next_icmp_error(&self) -> Option<IpAddr> {
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
        Self { bytes: vec![0; BATCH * MAX_GSO_BYTES], metas: [RecvMeta::default(); BATCH], filled: 0 }
    }

    /// Returns the datagrams of the last read. They are mutable, so that they can be decrypted in place.
    pub(super) fn datagrams(&mut self) -> impl Iterator<Item = (Path, Ecn, &mut [u8])> {
        let read = self.bytes.chunks_mut(MAX_GSO_BYTES).zip(&self.metas).take(self.filled);
        read.flat_map(|(bytes, meta)| {
            let (path, ecn) = (Path { peer: meta.addr, local: meta.dst_ip }, from_codepoint(meta.ecn));
            let bytes = &mut bytes[..meta.len.min(MAX_GSO_BYTES)];
            bytes.chunks_mut(meta.stride.max(1)).map(move |datagram| (path, ecn, datagram))
        })
    }
}

/// Converts an ECN field to quinn's type.
const fn codepoint(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotCapable => None,
        Ecn::Capable0 => Some(EcnCodepoint::Ect0),
        Ecn::Capable1 => Some(EcnCodepoint::Ect1),
        Ecn::CongestionExperienced => Some(EcnCodepoint::Ce),
    }
}

/// Converts quinn's ECN codepoint.
const fn from_codepoint(codepoint: Option<EcnCodepoint>) -> Ecn {
    match codepoint {
        None => Ecn::NotCapable,
        Some(EcnCodepoint::Ect0) => Ecn::Capable0,
        Some(EcnCodepoint::Ect1) => Ecn::Capable1,
        Some(EcnCodepoint::Ce) => Ecn::CongestionExperienced,
    }
}
