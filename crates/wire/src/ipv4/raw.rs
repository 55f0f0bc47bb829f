//! Whole IPv4 packets that are forwarded, whatever their payload.

use super::{Ecn, Header, Protocol, header_len};
use crate::checksum;
use crate::emit::{address, be16};
use crate::error::{ParseError, require};
use bytes::Bytes;

/// Any fragment but the first.
const FRAGMENT_OFFSET: u16 = 0x1fff;

/// A packet as received. Options, DSCP, fragments and contents are forwarded unchanged.
///
/// # Example
///
/// ```
/// use bytes::Bytes;
/// use hopline_wire::ipv4::{Ecn, Header, RawPacket, Protocol};
///
/// let (src, dst) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
/// let header = Header { src, dst, ttl: 64, protocol: Protocol::Other(99), ecn: Ecn::Capable0, id: 0 };
/// let mut packet = Vec::new();
/// header.emit(0, &mut packet);
/// // A router decrements the TTL and may set a congestion mark.
/// let forwarded = RawPacket::parse(&Bytes::from(packet)).expect("valid");
/// let mut out = Vec::new();
/// forwarded.emit(forwarded.header().ttl - 1, Ecn::CongestionExperienced, &mut out);
/// let (header, _) = Header::parse(&Bytes::from(out)).expect("valid");
/// assert_eq!((header.ttl, header.ecn), (63, Ecn::CongestionExperienced));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawPacket {
    /// Bytes up to the total length, which covers the header.
    bytes: Bytes,
}

impl RawPacket {
    /// Parses a packet that a router would forward (RFC 1812 §5.2.2). Link-layer padding after the total length is cut off.
    ///
    /// # Errors
    /// `Truncated`; `BadLength` of the header or the total; `BadChecksum` of the header; `Unsupported` for another IP
    /// version.
    pub fn parse(packet: &Bytes) -> Result<Self, ParseError> {
        let header_len = header_len(packet)?;
        if checksum::internet(&packet[..header_len]) != 0 {
            return Err(ParseError::BadChecksum);
        }
        let total = usize::from(be16(packet, 2));
        if total < header_len {
            return Err(ParseError::BadLength { what: "ip total", value: total });
        }
        require(packet, total)?;
        Ok(Self { bytes: packet.slice(..total) })
    }

    /// Returns its header.
    #[must_use]
    pub fn header(&self) -> Header {
        Header {
            src: address(&self.bytes, 12),
            dst: address(&self.bytes, 16),
            ttl: self.bytes[8],
            protocol: Protocol::from(self.bytes[9]),
            ecn: Ecn::from_bits(self.bytes[1]),
            id: be16(&self.bytes, 4),
        }
    }

    /// Returns source and destination port of TCP and UDP; `None` for other protocols, and for fragments other than the
    /// first.
    #[must_use]
    pub fn ports(&self) -> Option<[u16; 2]> {
        let has_ports = matches!(Protocol::from(self.bytes[9]), Protocol::Tcp | Protocol::Udp);
        let transport = self.payload();
        if !has_ports || be16(&self.bytes, 6) & FRAGMENT_OFFSET != 0 || transport.len() < 4 {
            return None;
        }
        Some([be16(transport, 0), be16(transport, 2)])
    }

    /// Returns its payload.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.bytes[usize::from(self.bytes[0] & 0xf) * 4..]
    }

    /// Length in bytes, header included: 20 to 65,535.
    #[must_use]
    pub fn wire_len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends the packet with this TTL and ECN field in its header, and the corrected checksum.
    pub fn emit(&self, ttl: u8, ecn: Ecn, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        let packet = &mut out[start..];
        packet[1] = packet[1] & !0b11 | ecn.bits();
        packet[8] = ttl;
        packet[10..12].fill(0);
        let header_len = usize::from(packet[0] & 0xf) * 4;
        let checksum = checksum::internet(&packet[..header_len]);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 192.0.2.1 to 192.0.2.9: options of four bytes, DSCP 10, ECT(0), and UDP from port 7 to 9 with two bytes of data.
    fn packet(flags: u16) -> Vec<u8> {
        let mut bytes = vec![0x46, 0x2a, 0, 34, 0xbe, 0xef];
        bytes.extend(flags.to_be_bytes());
        bytes.extend([5, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 9, 1, 1, 1, 0]);
        let checksum = checksum::internet(&bytes);
        bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
        bytes.extend([0, 7, 0, 9, 0, 10, 0, 0, 0xca, 0xfe]);
        bytes
    }

    fn parse(bytes: Vec<u8>) -> Result<RawPacket, ParseError> {
        RawPacket::parse(&Bytes::from(bytes))
    }

    #[test]
    fn unchanged_packets_are_emitted_unchanged() {
        let opaque = parse(packet(0)).unwrap();
        let mut out = vec![1];
        opaque.emit(5, Ecn::Capable0, &mut out);
        assert_eq!(out[1..], packet(0));
        assert_eq!((opaque.wire_len(), opaque.ports()), (34, Some([7, 9])));
        let header = opaque.header();
        assert_eq!((header.ttl, header.ecn, header.id), (5, Ecn::Capable0, 0xbeef));
        assert_eq!((header.dst.octets(), header.protocol), ([192, 0, 2, 9], Protocol::Udp));
    }

    #[test]
    fn ttl_and_ecn_change_only_the_header_and_its_checksum() {
        let mut out = Vec::new();
        parse(packet(0)).unwrap().emit(3, Ecn::CongestionExperienced, &mut out);
        let again = parse(out.clone()).expect("the checksum is that of the new header");
        assert_eq!((again.header().ttl, again.header().ecn), (3, Ecn::CongestionExperienced));
        let mut expected = packet(0);
        (expected[1], expected[8]) = (0x2b, 3);
        expected[10..12].copy_from_slice(&out[10..12]);
        assert_eq!(out, expected);
    }

    #[test]
    fn fragments_pass_and_only_the_first_has_ports() {
        assert_eq!(parse(packet(0x2000)).unwrap().ports(), Some([7, 9]));
        assert_eq!(parse(packet(0x2001)).unwrap().ports(), None);
    }

    #[test]
    fn padding_is_removed() {
        let mut padded = packet(0);
        padded.extend([0; 12]);
        assert_eq!(parse(padded), parse(packet(0)));
    }

    #[test]
    fn packets_that_no_router_forwards_are_refused() {
        let changed = |at: usize, value: u8| {
            let mut bytes = packet(0);
            bytes[at] = value;
            parse(bytes)
        };
        assert!(matches!(changed(0, 0x66), Err(ParseError::Unsupported { .. })));
        assert!(matches!(changed(0, 0x44), Err(ParseError::BadLength { .. })));
        assert!(matches!(changed(8, 6), Err(ParseError::BadChecksum)));
        for len in 0..34 {
            assert!(parse(packet(0)[..len].to_vec()).is_err(), "{len} bytes");
        }
        let mut short = packet(0);
        short[3] = 23;
        short[10..12].fill(0);
        let checksum = checksum::internet(&short[..24]);
        short[10..12].copy_from_slice(&checksum.to_be_bytes());
        assert!(matches!(parse(short), Err(ParseError::BadLength { .. })));
    }
}
