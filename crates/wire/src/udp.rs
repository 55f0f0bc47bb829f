//! UDP datagrams (RFC 768).

use crate::checksum::ChecksumSum;
use crate::emit::{Emit, be16};
use crate::error::{ParseError, require};
use crate::ip::IpHeader;
use bytes::Bytes;
use hopline_core::Payload;

/// Length of a header, in bytes.
pub const HEADER_LEN: usize = 8;

/// A datagram: ports and payload.
///
/// # Example
///
/// ```
/// use bytes::Bytes;
/// use hopline_wire::ip::{Header, Protocol};
/// use hopline_wire::udp::Datagram;
///
/// let ip = Header::new([192, 0, 2, 1].into(), [192, 0, 2, 2].into(), Protocol::Udp);
/// let datagram = Datagram { src_port: 5000, dst_port: 53, payload: Bytes::from_static(b"query") };
/// let mut bytes = Vec::new();
/// datagram.emit(&ip, &mut bytes);
/// assert_eq!(Datagram::parse(&ip, &Bytes::from(bytes)), Ok(datagram));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Datagram<P> {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Data.
    pub payload: P,
}

impl<P: Payload> Datagram<P> {
    /// Length of header and data, in bytes.
    #[must_use]
    pub fn wire_len(&self) -> usize {
        HEADER_LEN + self.payload.len() as usize
    }
}

impl Datagram<Bytes> {
    /// Parses the payload of the IP packet with header `ip`. In IPv4, a checksum of zero means that the sender computed
    /// none; in IPv6 it is mandatory (RFC 8200 §8.1). Bytes behind the datagram's own length are cut off.
    ///
    /// # Errors
    /// `Truncated`; `BadLength` of the length field; `BadChecksum`.
    pub fn parse(ip: &impl IpHeader, bytes: &Bytes) -> Result<Self, ParseError> {
        require(bytes, HEADER_LEN)?;
        let len = usize::from(be16(bytes, 4));
        if len < HEADER_LEN {
            return Err(ParseError::BadLength { what: "udp datagram", value: len });
        }
        require(bytes, len)?;
        let has_checksum = be16(bytes, 6) != 0;
        if !has_checksum && ip.src().is_ipv6() {
            return Err(ParseError::BadChecksum);
        }
        if has_checksum {
            let mut sum = ChecksumSum::pseudo_header(ip, len);
            sum.add(&bytes[..len]);
            if sum.finish() != 0 {
                return Err(ParseError::BadChecksum);
            }
        }
        Ok(Self { src_port: be16(bytes, 0), dst_port: be16(bytes, 2), payload: bytes.slice(HEADER_LEN..len) })
    }
}

impl<P: Emit> Datagram<P> {
    /// Appends the datagram, to follow the IP header `ip`, which the checksum covers.
    ///
    /// # Panics
    /// If the datagram would be longer than 65,535 bytes: callers cut payloads to the path's MTU.
    pub fn emit(&self, ip: &impl IpHeader, out: &mut Vec<u8>) {
        let len = u16::try_from(self.wire_len()).expect("a datagram is at most 65,535 bytes long");
        let start = out.len();
        out.extend(self.src_port.to_be_bytes());
        out.extend(self.dst_port.to_be_bytes());
        out.extend(len.to_be_bytes());
        out.extend([0, 0]);
        self.payload.emit(out);
        let mut sum = ChecksumSum::pseudo_header(ip, usize::from(len));
        sum.add(&out[start..]);
        // RFC 768: a computed zero is sent as all ones, for zero means none.
        let checksum = if sum.finish() == 0 { 0xffff } else { sum.finish() };
        out[start + 6..start + 8].copy_from_slice(&checksum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests;
