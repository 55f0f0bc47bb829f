//! Ethernet II frames (IEEE Std 802.3-2018 §3), without preamble and frame check sequence, as a TAP interface carries them.
//!
//! A frame is forwarded as it is, whatever it contains. Of IP packets in it, hopline reads what a queue needs: the flow and
//! the ECN field, which a queue may set.

use crate::dot11::MacAddr;
use crate::emit::{array, be16};
use crate::error::{ParseError, require};
use crate::ip::{Ecn, Protocol};
use crate::ipv4::RawPacket;
use crate::ipv6;
use bytes::Bytes;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Length of destination, source and EtherType, in bytes.
pub const HEADER_LEN: usize = 14;
/// EtherType of IPv4.
pub const IPV4: u16 = 0x0800;
/// EtherType of IPv6.
pub const IPV6: u16 = 0x86dd;

/// A frame as received. It is forwarded unchanged, but for a congestion mark.
///
/// # Example
///
/// ```
/// use bytes::Bytes;
/// use hopline_wire::dot11::MacAddr;
/// use hopline_wire::ethernet::Frame;
///
/// let bytes = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 7], &[0x88, 0xb5], b"hello"].concat();
/// let frame = Frame::parse(&Bytes::from(bytes)).expect("valid");
/// assert!(frame.destination().is_group());
/// assert_eq!(frame.source(), MacAddr([2, 0, 0, 0, 0, 7]));
/// assert_eq!((frame.ethertype(), frame.payload()), (0x88b5, &b"hello"[..]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    bytes: Bytes,
}

/// IP packet in a frame, as far as a queue needs to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpFields {
    /// Source address. Of IPv6 the exclusive or of its four words, which tells flows apart as well.
    pub src: Ipv4Addr,
    /// Destination address, in the same way.
    pub dst: Ipv4Addr,
    /// Source and destination port of TCP and UDP; zeros for other protocols and for fragments.
    pub ports: [u16; 2],
    /// ECN field.
    pub ecn: Ecn,
}

impl Frame {
    /// Parses a frame that a bridge would forward.
    ///
    /// # Errors
    /// `Truncated` if the header is incomplete; `Unsupported` if the source is a group address or zero, which no
    /// station has (IEEE Std 802.3-2018 §3.2.3). The value is then the first two bytes of the address.
    pub fn parse(frame: &Bytes) -> Result<Self, ParseError> {
        require(frame, HEADER_LEN)?;
        let source = MacAddr(array(frame, 6));
        if source.is_group() || source == MacAddr::default() {
            return Err(ParseError::Unsupported { what: "source address", value: be16(frame, 6).into() });
        }
        Ok(Self { bytes: frame.clone() })
    }

    /// Returns the address of the receiver, or of a group.
    #[must_use]
    pub fn destination(&self) -> MacAddr {
        MacAddr(array(&self.bytes, 0))
    }

    /// Returns the address of the sender.
    #[must_use]
    pub fn source(&self) -> MacAddr {
        MacAddr(array(&self.bytes, 6))
    }

    /// Returns the EtherType; below 1536 it is a length, and an LLC header follows.
    #[must_use]
    pub fn ethertype(&self) -> u16 {
        be16(&self.bytes, 12)
    }

    /// Returns the bytes behind the header.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.bytes[HEADER_LEN..]
    }

    /// Returns the frame's bytes.
    #[must_use]
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns the fields of the IP packet in it; `None` if it contains no valid one.
    #[must_use]
    pub fn ip_fields(&self) -> Option<IpFields> {
        match self.ethertype() {
            IPV4 => {
                let packet = self.ipv4()?;
                let header = packet.header();
                let ports = packet.ports().unwrap_or_default();
                Some(IpFields { src: header.src, dst: header.dst, ports, ecn: header.ecn })
            }
            IPV6 => {
                let (header, payload) = ipv6::Header::parse(self.payload()).ok()?;
                let transport = &self.payload()[payload];
                let has_ports =
                    matches!(header.protocol, Protocol::Tcp | Protocol::Udp) && transport.len() >= 4;
                let ports = if has_ports { [be16(transport, 0), be16(transport, 2)] } else { [0; 2] };
                let [src, dst] = [header.src, header.dst].map(fold);
                Some(IpFields { src, dst, ports, ecn: header.ecn })
            }
            _ => None,
        }
    }

    /// Returns the frame's bytes with the ECN field of its IP packet set to "congestion experienced" (RFC 3168 §5);
    /// unchanged if it contains no valid IP packet.
    #[must_use]
    pub fn with_congestion_mark(&self) -> Bytes {
        let mut out = self.bytes[..HEADER_LEN].to_vec();
        match self.ethertype() {
            IPV4 => {
                let Some(packet) = self.ipv4() else { return self.bytes.clone() };
                packet.emit(packet.header().ttl, Ecn::CongestionExperienced, &mut out);
                // Padding.
                out.extend_from_slice(&self.bytes[out.len()..]);
            }
            IPV6 if ipv6::Header::parse(self.payload()).is_ok() => {
                out.extend_from_slice(self.payload());
                out[HEADER_LEN + 1] |= Ecn::CongestionExperienced.bits() << 4;
            }
            _ => return self.bytes.clone(),
        }
        out.into()
    }

    fn ipv4(&self) -> Option<RawPacket> {
        RawPacket::parse(&self.bytes.slice(HEADER_LEN..)).ok()
    }
}

/// Returns the exclusive or of the four words of an address.
fn fold(address: Ipv6Addr) -> Ipv4Addr {
    let octets = address.octets();
    let (words, _) = octets.as_chunks::<4>();
    Ipv4Addr::from_bits(words.iter().fold(0, |sum, &word| sum ^ u32::from_be_bytes(word)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipv4;

    fn frame(ethertype: u16, payload: &[u8]) -> Frame {
        let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        bytes.extend(ethertype.to_be_bytes());
        bytes.extend_from_slice(payload);
        Frame::parse(&Bytes::from(bytes)).expect("valid")
    }

    /// From port 7 to 9, with ECT(0).
    fn ipv4_packet() -> Vec<u8> {
        let header = ipv4::Header {
            src: [192, 0, 2, 1].into(),
            dst: [192, 0, 2, 9].into(),
            ttl: 5,
            protocol: Protocol::Udp,
            ecn: Ecn::Capable0,
            id: 3,
        };
        let mut packet = Vec::new();
        header.emit(6, &mut packet);
        packet.extend([0, 7, 0, 9, 0, 10]);
        packet
    }

    fn ipv6_packet() -> Vec<u8> {
        let header = ipv6::Header {
            src: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1),
            dst: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2),
            hop_limit: 9,
            protocol: Protocol::Tcp,
            ecn: Ecn::Capable0,
            flow_label: 0xabcde,
        };
        let mut packet = Vec::new();
        header.emit(4, &mut packet);
        packet.extend([1, 0, 2, 0]);
        packet
    }

    #[test]
    fn short_frames_and_impossible_sources_are_refused() {
        let parse = |bytes: &[u8]| Frame::parse(&Bytes::copy_from_slice(bytes));
        let good = frame(0x88b5, &[]);
        for len in 0..HEADER_LEN {
            assert_eq!(
                parse(&good.bytes()[..len]),
                Err(ParseError::Truncated { needed: HEADER_LEN, got: len })
            );
        }
        assert_eq!(parse(good.bytes()), Ok(good));
        for source in [[1, 0, 0x5e, 0, 0, 1], [0xff; 6], [0; 6]] {
            let bytes = [&[0xff; 6][..], &source, &[8, 0]].concat();
            assert!(matches!(parse(&bytes), Err(ParseError::Unsupported { .. })), "{source:?}");
        }
    }

    #[test]
    fn fields_of_both_ip_versions_tell_flows_apart() {
        let fields = frame(IPV4, &ipv4_packet()).ip_fields().expect("IPv4");
        assert_eq!((fields.dst.octets(), fields.ports, fields.ecn), ([192, 0, 2, 9], [7, 9], Ecn::Capable0));
        let fields = frame(IPV6, &ipv6_packet()).ip_fields().expect("IPv6");
        assert_eq!(fields.src.to_bits(), 0x2001_0db8 ^ 1);
        assert_eq!((fields.dst.to_bits() ^ fields.src.to_bits(), fields.ports), (3, [256, 512]));
        assert_eq!(fields.ecn, Ecn::Capable0);
    }

    #[test]
    fn frames_without_a_valid_ip_packet_have_no_fields_and_no_mark() {
        for (ethertype, payload) in [
            (0x0806, ipv4_packet()),
            (IPV4, ipv4_packet()[..19].to_vec()),
            (IPV4, ipv6_packet()),
            (IPV6, ipv6_packet()[..39].to_vec()),
            (IPV6, ipv4_packet()),
            (IPV4, Vec::new()),
        ] {
            let frame = frame(ethertype, &payload);
            assert_eq!(frame.ip_fields(), None);
            assert_eq!(frame.with_congestion_mark(), frame.bytes());
        }
    }

    #[test]
    fn a_mark_changes_the_ecn_field_and_the_checksum_alone() {
        // With padding.
        let old = frame(IPV4, &[ipv4_packet(), vec![0xaa; 9]].concat());
        let marked = Frame::parse(&old.with_congestion_mark()).expect("a frame");
        assert_eq!(marked.ip_fields().expect("the checksum is right").ecn, Ecn::CongestionExperienced);
        let differ = |a: &Frame, b: &Frame| {
            let pairs = a.bytes().iter().zip(b.bytes()).enumerate();
            pairs.filter(|(_, (a, b))| a != b).map(|(n, _)| n).collect::<Vec<_>>()
        };
        assert_eq!(marked.bytes().len(), old.bytes().len());
        assert_eq!(differ(&old, &marked), [HEADER_LEN + 1, HEADER_LEN + 11]);

        let old = frame(IPV6, &ipv6_packet());
        let marked = Frame::parse(&old.with_congestion_mark()).expect("a frame");
        assert_eq!(marked.ip_fields().expect("IPv6").ecn, Ecn::CongestionExperienced);
        assert_eq!(differ(&old, &marked), [HEADER_LEN + 1]);
    }
}
