//! ICMP Destination Unreachable (RFC 792): informs the source of a packet that a node could not forward.

use crate::checksum;
use crate::emit::{array, be16};
use crate::error::{ParseError, require};
use crate::ipv4;
use bytes::Bytes;

/// Bytes before the quotation.
const HEADER_LEN: usize = 8;
/// Bytes quoted after the IP header: RFC 792's 64 bits, which contain the ports. RFC 1812 §4.3.2.3 would have more quoted,
/// for protocols with ports further back. hopline has none of these, and airtime is scarce.
const QUOTED_LEN: usize = 8;
/// Type of the message.
const DESTINATION_UNREACHABLE: u8 = 3;

/// Destination Unreachable message for a packet.
///
/// # Example
///
/// ```
/// use bytes::Bytes;
/// use hopline_wire::icmp::{UnreachableCode, Unreachable};
/// use hopline_wire::ip::{Header, Protocol};
/// use hopline_wire::udp::Datagram;
///
/// // A packet for which a router has no route.
/// let ip = Header::new([192, 0, 2, 1].into(), [192, 0, 2, 2].into(), Protocol::Udp);
/// let datagram = Datagram { src_port: 5000, dst_port: 53, payload: Bytes::from_static(b"query") };
/// let mut packet = Vec::new();
/// ip.emit(datagram.wire_len(), &mut packet);
/// datagram.emit(&ip, &mut packet);
///
/// let report = Unreachable::for_packet(UnreachableCode::Network, &packet).expect("it has ports");
/// assert_eq!(report.ports(), Some([5000, 53]));
/// let mut bytes = Vec::new();
/// report.emit(&mut bytes);
/// assert_eq!(Unreachable::parse(&Bytes::from(bytes)), Ok(report));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Unreachable {
    /// Reason code.
    pub reason: UnreachableCode,
    /// IP header of the packet, as it arrived at the node that reports.
    pub ip: ipv4::Header,
    /// Bytes the packet had after its IP header.
    pub payload_len: u16,
    /// The first of these bytes.
    pub quoted: [u8; QUOTED_LEN],
}

/// Reason for which a packet did not reach its destination (RFC 1812 §5.2.7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnreachableCode {
    /// There is no route, code 0.
    Network,
    /// There is a route, and the next host on it does not answer, code 1.
    Host,
}

impl Unreachable {
    /// Length of every such message, in bytes.
    pub const LEN: usize = HEADER_LEN + ipv4::HEADER_LEN + QUOTED_LEN;

    /// Creates the report about `packet`, which begins with its IP header.
    ///
    /// # Errors
    /// Those of [`parse`](Self::parse) for quotations. Packets without ports cannot be reported.
    pub fn for_packet(reason: UnreachableCode, packet: &[u8]) -> Result<Self, ParseError> {
        let (ip, header_len, total) = ipv4::Header::read(packet)?;
        require(packet, header_len + QUOTED_LEN)?;
        let payload_len = u16::try_from(total - header_len).expect("a length of 16 bits less something");
        Ok(Self { reason, ip, payload_len, quoted: array(packet, header_len) })
    }

    /// Parses the payload of an IP packet. The checksum of the quoted header is ignored, as routers may leave it stale; the
    /// message has its own.
    ///
    /// # Errors
    /// `Truncated`; `BadChecksum`; `Unsupported` for another type or code; the errors of the quoted IP header, and a quoted
    /// fragment, which has no ports.
    pub fn parse(bytes: &Bytes) -> Result<Self, ParseError> {
        require(bytes, Self::LEN)?;
        if checksum::internet(bytes) != 0 {
            return Err(ParseError::BadChecksum);
        }
        if bytes[0] != DESTINATION_UNREACHABLE {
            return Err(ParseError::Unsupported { what: "icmp type", value: u32::from(bytes[0]) });
        }
        let reason = match bytes[1] {
            0 => UnreachableCode::Network,
            1 => UnreachableCode::Host,
            code => return Err(ParseError::Unsupported { what: "icmp code", value: u32::from(code) }),
        };
        Self::for_packet(reason, &bytes[HEADER_LEN..])
    }

    /// Appends the message, to follow an IP header.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let code = match self.reason {
            UnreachableCode::Network => 0,
            UnreachableCode::Host => 1,
        };
        out.extend([DESTINATION_UNREACHABLE, code, 0, 0, 0, 0, 0, 0]);
        self.ip.emit(self.payload_len.into(), out);
        out.extend(self.quoted);
        let checksum = checksum::internet(&out[start..]);
        out[start + 2..start + 4].copy_from_slice(&checksum.to_be_bytes());
    }

    /// Source and destination port of the packet, if it is one of TCP or UDP.
    #[must_use]
    pub fn ports(&self) -> Option<[u16; 2]> {
        let has_ports = matches!(self.ip.protocol, ipv4::Protocol::Tcp | ipv4::Protocol::Udp);
        has_ports.then(|| [be16(&self.quoted, 0), be16(&self.quoted, 2)])
    }
}

#[cfg(test)]
mod tests;
