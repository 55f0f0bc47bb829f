//! TCP and UDP packets in Ethernet frames, as far as flows need to know them.

use hopline_wire::ethernet::{Frame, HEADER_LEN, IPV4, IPV6};
use hopline_wire::ip::Protocol;
use hopline_wire::ipv4::RawPacket;
use hopline_wire::ipv6;
use std::hash::{DefaultHasher, Hasher};
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

/// Transport protocol of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlowProtocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// TCP flag of the first segment of each direction.
const SYN: u8 = 2;
/// Bytes that identify a packet: its headers, and the first of its payload. The checksum stands for the rest.
const IDENTIFYING: usize = 128;

/// A packet of a flow between two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlowPacket {
    pub(super) protocol: FlowProtocol,
    pub(super) src: SocketAddr,
    pub(super) dst: SocketAddr,
    /// Bytes, IP header included.
    pub(super) len: u32,
    /// Bytes for the application.
    pub(super) payload: u32,
    /// Hash over what routers leave as it is. Equal for a packet and itself at a later hop; of other packets with a
    /// probability that does not matter.
    pub(super) identity: u64,
    /// Fields of a segment of TCP.
    pub(super) segment: Option<SegmentFields>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentFields {
    /// Sequence number of the first byte of the payload.
    pub(super) sequence: u32,
    /// `true` with a SYN.
    pub(super) is_first: bool,
}

impl FlowPacket {
    /// Returns the packet in a frame; `None` without TCP or UDP, of a fragment, and if it is for a group of hosts.
    pub(super) fn of(frame: &Frame) -> Option<Self> {
        if frame.destination().is_group() {
            return None;
        }
        let ip = frame.payload();
        let (src, dst, protocol, range): (IpAddr, IpAddr, Protocol, Range<usize>) = match frame.ethertype() {
            IPV4 => {
                let packet = RawPacket::parse(&frame.bytes().slice(HEADER_LEN..)).ok()?;
                let header = packet.header();
                let start = usize::from(ip[0] & 0xf) * 4;
                // More fragments, or a later one (RFC 791 §3.1).
                if ip[6] & 0x3f != 0 || ip[7] != 0 {
                    return None;
                }
                (header.src.into(), header.dst.into(), header.protocol, start..packet.wire_len())
            }
            IPV6 => {
                let (header, payload) = ipv6::Header::parse(ip).ok()?;
                (header.src.into(), header.dst.into(), header.protocol, payload)
            }
            _ => return None,
        };
        let len = range.end;
        let transport = ip.get(range)?;
        let (protocol, header) = match protocol {
            Protocol::Tcp => (FlowProtocol::Tcp, usize::from(transport.get(12)? >> 4) * 4),
            Protocol::Udp => (FlowProtocol::Udp, 8),
            _ => return None,
        };
        let port = |at: usize| Some(u16::from_be_bytes([*transport.get(at)?, *transport.get(at + 1)?]));
        let segment = match protocol {
            FlowProtocol::Tcp => Some(segment(transport)?),
            FlowProtocol::Udp => None,
        };
        Some(Self {
            protocol,
            src: SocketAddr::new(src, port(0)?),
            dst: SocketAddr::new(dst, port(2)?),
            len: len as u32,
            payload: transport.len().checked_sub(header)? as u32,
            identity: identity(frame.ethertype(), &ip[..len]),
            segment,
        })
    }
}

fn segment(transport: &[u8]) -> Option<SegmentFields> {
    let sequence = u32::from_be_bytes(*transport.get(4..)?.first_chunk()?);
    let flags = transport.get(13)?;
    let is_first = flags & SYN != 0;
    // A SYN has a number of its own (RFC 9293 §3.4).
    let sequence = sequence.wrapping_add(u32::from(is_first));
    Some(SegmentFields { sequence, is_first })
}

/// Hashes a packet without traffic class, hop limit and header checksum.
fn identity(ethertype: u16, ip: &[u8]) -> u64 {
    let mut bytes = [0; IDENTIFYING];
    let len = ip.len().min(IDENTIFYING);
    bytes[..len].copy_from_slice(&ip[..len]);
    let mutable: &[usize] = if ethertype == IPV4 { &[1, 8, 10, 11] } else { &[0, 1, 7] };
    for &at in mutable {
        bytes[at] = 0;
    }
    let mut hasher = DefaultHasher::new();
    hasher.write(&bytes[..len]);
    hasher.finish()
}
