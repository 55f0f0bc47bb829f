//! IPv6 headers (RFC 8200), with ECN (RFC 3168). Extension headers are skipped when a packet is read, and none is written.

use crate::emit::{array, be16};
use crate::error::{ParseError, require};
use crate::ip::{Ecn, IpHeader, Protocol};
use core::ops::Range;
use std::net::{IpAddr, Ipv6Addr};

/// Length of a header without extension headers, in bytes.
pub const HEADER_LEN: usize = 40;

/// The version in the first four bits.
pub(crate) const VERSION: u8 = 6;

/// Next Header values of the extension headers that are skipped (RFC 8200 §4).
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION: u8 = 60;
/// Most extension headers that are skipped. RFC 8200 §4.1 needs five; each has at least eight bytes, so that without a bound a
/// packet could have thousands.
const MAX_EXTENSIONS: usize = 16;
/// Unit of the length of extension headers, in bytes (RFC 8200 §4).
const UNIT: usize = 8;
/// The flow label in the first four bytes.
const FLOW_LABEL: u32 = 0x000f_ffff;

/// IPv6 header fields that hopline uses.
///
/// # Example
///
/// ```
/// use hopline_wire::ip::{Ecn, Protocol};
/// use hopline_wire::ipv6::Header;
/// use std::net::Ipv6Addr;
///
/// let (src, dst) = (Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST);
/// let header = Header { src, dst, hop_limit: 64, protocol: Protocol::Tcp, ecn: Ecn::Capable0, flow_label: 0 };
/// let mut packet = Vec::new();
/// header.emit(2, &mut packet);
/// packet.extend([1, 2]);
/// assert_eq!(Header::parse(&packet), Ok((header, 40..42)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Header {
    /// Source address.
    pub src: Ipv6Addr,
    /// Destination address.
    pub dst: Ipv6Addr,
    /// Hops the packet may still take.
    pub hop_limit: u8,
    /// Protocol of the payload, behind the extension headers.
    pub protocol: Protocol,
    /// ECN field.
    pub ecn: Ecn,
    /// Flow label, 20 bits (RFC 6437); 0: none.
    pub flow_label: u32,
}

impl Header {
    /// Reads the header of a packet. Returns with it the place of its payload in `packet`, which ends where the packet does: what the
    /// link padded stands behind it. DSCP is ignored, extension headers are skipped.
    ///
    /// The payload begins at the first header that is none of hop-by-hop options, routing and destination options; that is also where
    /// the chain ends of what is encrypted or authenticated. A routing header with segments left is a payload too: the destination
    /// in the header is not the last one, and the checksum of the transport behind it covers another (RFC 8200 §8.1).
    ///
    /// # Errors
    /// `Truncated`; `BadLength` of a jumbogram (RFC 2675); `Unsupported` for another IP version, for a fragment (the value
    /// is the fragment offset and flags), for hop-by-hop options at another place than the first, and for more than 16
    /// extension headers.
    pub fn parse(packet: &[u8]) -> Result<(Self, Range<usize>), ParseError> {
        require(packet, HEADER_LEN)?;
        let version = packet[0] >> 4;
        if version != VERSION {
            return Err(ParseError::Unsupported { what: "ip version", value: u32::from(version) });
        }
        let (len, next) = (usize::from(be16(packet, 4)), packet[6]);
        if len == 0 && next == HOP_BY_HOP {
            return Err(ParseError::BadLength { what: "ipv6 payload", value: len });
        }
        let end = HEADER_LEN + len;
        require(packet, end)?;
        let (protocol, start) = upper_layer(&packet[..end], next)?;
        let header = Self {
            src: Ipv6Addr::from(array::<16>(packet, 8)),
            dst: Ipv6Addr::from(array::<16>(packet, 24)),
            hop_limit: packet[7],
            protocol: Protocol::from(protocol),
            ecn: Ecn::from_bits(packet[1] >> 4),
            flow_label: u32::from_be_bytes(array(packet, 0)) & FLOW_LABEL,
        };
        Ok((header, start..end))
    }

    /// Appends the header of a packet with `payload_len` bytes of payload; the payload is to follow. DSCP is 0. Of the flow label the
    /// lower 20 bits are written.
    ///
    /// # Panics
    /// If the payload would be longer than 65,535 bytes: callers cut payloads to the path's MTU.
    pub fn emit(&self, payload_len: usize, out: &mut Vec<u8>) {
        let payload_len = u16::try_from(payload_len).expect("a payload is at most 65,535 bytes long");
        let first =
            u32::from(VERSION) << 28 | u32::from(self.ecn.bits()) << 20 | self.flow_label & FLOW_LABEL;
        out.extend(first.to_be_bytes());
        out.extend(payload_len.to_be_bytes());
        out.extend([self.protocol.number(), self.hop_limit]);
        out.extend(self.src.octets());
        out.extend(self.dst.octets());
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

/// Skips extension headers, the first of which is of kind `next`. Returns the protocol behind them and its offset.
fn upper_layer(packet: &[u8], mut next: u8) -> Result<(u8, usize), ParseError> {
    let mut at = HEADER_LEN;
    for _ in 0..=MAX_EXTENSIONS {
        match next {
            HOP_BY_HOP if at > HEADER_LEN => {
                return Err(ParseError::Unsupported {
                    what: "ipv6 extension header",
                    value: u32::from(next),
                });
            }
            HOP_BY_HOP | ROUTING | DESTINATION => {}
            FRAGMENT => {
                require(packet, at + UNIT)?;
                let fragment = u32::from(be16(packet, at + 2));
                return Err(ParseError::Unsupported { what: "ip fragment", value: fragment });
            }
            protocol => return Ok((protocol, at)),
        }
        require(packet, at + UNIT)?;
        let segments_left = packet[at + 3];
        if next == ROUTING && segments_left > 0 {
            return Ok((ROUTING, at));
        }
        let len = (usize::from(packet[at + 1]) + 1) * UNIT;
        require(packet, at + len)?;
        (next, at) = (packet[at], at + len);
    }
    Err(ParseError::Unsupported { what: "ipv6 extension headers", value: MAX_EXTENSIONS as u32 + 1 })
}

#[cfg(test)]
mod tests;
