//! IPv4 headers (RFC 791), with ECN (RFC 3168) and without options.

mod raw;

use crate::checksum;
use crate::emit::{address, be16};
use crate::error::{ParseError, require};
use crate::ip::IpHeader;
use bytes::Bytes;
use core::ops::Range;
use std::net::{IpAddr, Ipv4Addr};

pub use crate::ip::{Ecn, Protocol};
pub use raw::RawPacket;

/// Length of a header without options, in bytes.
pub const HEADER_LEN: usize = 20;

/// IPv4 header fields that hopline uses.
///
/// # Example
///
/// ```
/// use bytes::Bytes;
/// use hopline_wire::ParseError;
/// use hopline_wire::ipv4::{Ecn, Header, Protocol};
///
/// let (src, dst) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
/// let header = Header { src, dst, ttl: 64, protocol: Protocol::Udp, ecn: Ecn::NotCapable, id: 0 };
/// let mut packet = Vec::new();
/// header.emit(3, &mut packet);
/// packet.extend(b"abc");
/// assert_eq!(Header::parse(&Bytes::from(packet.clone())), Ok((header, Bytes::from_static(b"abc"))));
/// packet[8] -= 1; // The TTL, without the checksum.
/// assert_eq!(Header::parse(&Bytes::from(packet)), Err(ParseError::BadChecksum));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Header {
    /// Source address.
    pub src: Ipv4Addr,
    /// Destination address.
    pub dst: Ipv4Addr,
    /// Hops the packet may still take.
    pub ttl: u8,
    /// Protocol of the payload.
    pub protocol: Protocol,
    /// ECN field.
    pub ecn: Ecn,
    /// Identification.
    pub id: u16,
}

/// Don't Fragment: hopline sends atomic datagrams only (RFC 6864 §4).
const DONT_FRAGMENT: u16 = 0x4000;
/// More Fragments and the fragment offset; a fragment has any of them set.
const FRAGMENT: u16 = 0x3fff;

impl Header {
    /// Splits a packet into header and payload. Options are skipped, DSCP is ignored, and what the link padded after
    /// the total length is cut off.
    ///
    /// # Errors
    /// `Truncated`; `BadLength` of the header or the total; `BadChecksum` of the header; `Unsupported` for another IP
    /// version and for a fragment; the value for a fragment is the flags and offset word.
    pub fn parse(packet: &Bytes) -> Result<(Self, Bytes), ParseError> {
        let (header, payload) = Self::locate(packet)?;
        Ok((header, packet.slice(payload)))
    }

    /// Reads a header, and returns it with the range of the payload in the packet.
    pub(crate) fn locate(packet: &[u8]) -> Result<(Self, Range<usize>), ParseError> {
        let header_len = header_len(packet)?;
        if checksum::internet(&packet[..header_len]) != 0 {
            return Err(ParseError::BadChecksum);
        }
        let (header, header_len, total) = Self::read(packet)?;
        require(packet, total)?;
        Ok((header, header_len..total))
    }

    /// Reads a header that may be quoted: its checksum may be stale and its packet truncated. Returns with it its length and
    /// that of the packet.
    pub(crate) fn read(packet: &[u8]) -> Result<(Self, usize, usize), ParseError> {
        let header_len = header_len(packet)?;
        let total = usize::from(be16(packet, 2));
        if total < header_len {
            return Err(ParseError::BadLength { what: "ip total", value: total });
        }
        let fragment = be16(packet, 6);
        if fragment & FRAGMENT != 0 {
            return Err(ParseError::Unsupported { what: "ip fragment", value: u32::from(fragment) });
        }
        let header = Self {
            src: address(packet, 12),
            dst: address(packet, 16),
            ttl: packet[8],
            protocol: Protocol::from(packet[9]),
            ecn: Ecn::from_bits(packet[1]),
            id: be16(packet, 4),
        };
        Ok((header, header_len, total))
    }

    /// Appends the header of a packet with `payload_len` bytes of payload; the payload is to follow. DSCP is 0, Don't
    /// Fragment is set.
    ///
    /// # Panics
    /// If the packet would be longer than 65,535 bytes: callers cut payloads to the path's MTU.
    pub fn emit(&self, payload_len: usize, out: &mut Vec<u8>) {
        let total = u16::try_from(HEADER_LEN + payload_len).expect("a packet is at most 65,535 bytes long");
        let start = out.len();
        out.extend([0x45, self.ecn.bits()]);
        out.extend(total.to_be_bytes());
        out.extend(self.id.to_be_bytes());
        out.extend(DONT_FRAGMENT.to_be_bytes());
        out.extend([self.ttl, self.protocol.number(), 0, 0]);
        out.extend(self.src.octets());
        out.extend(self.dst.octets());
        let checksum = checksum::internet(&out[start..]);
        out[start + 10..start + 12].copy_from_slice(&checksum.to_be_bytes());
    }
}

impl IpHeader for Header {
    fn src(&self) -> IpAddr {
        self.src.into()
    }

    fn dst(&self) -> IpAddr {
        self.dst.into()
    }

    fn protocol(&self) -> Protocol {
        self.protocol
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }
}

/// Returns the length of the header at the start of `packet`, which must be complete.
fn header_len(packet: &[u8]) -> Result<usize, ParseError> {
    require(packet, HEADER_LEN)?;
    let version = packet[0] >> 4;
    if version != 4 {
        return Err(ParseError::Unsupported { what: "ip version", value: u32::from(version) });
    }
    let header_len = usize::from(packet[0] & 0xf) * 4;
    if header_len < HEADER_LEN {
        return Err(ParseError::BadLength { what: "ip header", value: header_len });
    }
    require(packet, header_len)?;
    Ok(header_len)
}

#[cfg(test)]
mod tests;
