//! Parts that the headers of both versions of IP share.

mod fields;

pub use self::fields::{Ecn, IpHeader, Protocol};
use crate::error::{ParseError, require};
use crate::{ipv4, ipv6};
use core::ops::Range;
use std::net::{IpAddr, Ipv6Addr};

/// A header of either version.
///
/// # Example
///
/// ```
/// use hopline_wire::ip::{Header, Protocol};
///
/// let new = |src: &str, dst: &str| {
///     Header::new(src.parse().expect("an address"), dst.parse().expect("an address"), Protocol::Udp)
/// };
/// assert_eq!(new("192.0.2.1", "192.0.2.2").min_len(), 20);
/// let header = new("2001:db8::1", "2001:db8::2");
/// let mut packet = Vec::new();
/// header.emit(0, &mut packet);
/// assert_eq!(Header::parse(&packet), Ok((header, 40..40)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Header {
    /// IPv4.
    V4(ipv4::Header),
    /// IPv6.
    V6(ipv6::Header),
}

impl Header {
    /// Reads the header of a packet. Returns with it the range of its payload in `packet`, which ends with the packet:
    /// link-layer padding lies behind it. IPv4 options and IPv6 extension headers are skipped.
    ///
    /// # Errors
    /// Those of [`ipv4::Header::parse`] and [`ipv6::Header::parse`]; `Unsupported` for another IP version.
    pub fn parse(packet: &[u8]) -> Result<(Self, Range<usize>), ParseError> {
        require(packet, 1)?;
        if packet[0] >> 4 == ipv6::VERSION {
            let (header, payload) = ipv6::Header::parse(packet)?;
            return Ok((Self::V6(header), payload));
        }
        let (header, payload) = ipv4::Header::locate(packet)?;
        Ok((Self::V4(header), payload))
    }

    /// Returns the header of a packet between two addresses of one version, with a hop limit of 64 (RFC 1700), without ECN
    /// and identification. If only one of them is IPv4, it becomes an IPv4-mapped address in an IPv6 header (RFC 4291
    /// §2.5.5.2).
    #[must_use]
    pub const fn new(src: IpAddr, dst: IpAddr, protocol: Protocol) -> Self {
        const HOPS: u8 = 64;
        let ecn = Ecn::NotCapable;
        if let (IpAddr::V4(src), IpAddr::V4(dst)) = (src, dst) {
            return Self::V4(ipv4::Header { src, dst, ttl: HOPS, protocol, ecn, id: 0 });
        }
        let (src, dst) = (as_ipv6(src), as_ipv6(dst));
        Self::V6(ipv6::Header { src, dst, hop_limit: HOPS, protocol, ecn, flow_label: 0 })
    }

    /// Length of a header without options and extension headers, in bytes.
    #[must_use]
    pub const fn min_len(&self) -> usize {
        match self {
            Self::V4(_) => ipv4::HEADER_LEN,
            Self::V6(_) => ipv6::HEADER_LEN,
        }
    }

    /// Appends the header of a packet with `payload_len` bytes of payload; the payload is to follow.
    ///
    /// # Panics
    /// If the packet would be too long: callers cut payloads to the path's MTU.
    pub fn emit(&self, payload_len: usize, out: &mut Vec<u8>) {
        match self {
            Self::V4(header) => header.emit(payload_len, out),
            Self::V6(header) => header.emit(payload_len, out),
        }
    }
}

const fn as_ipv6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

impl IpHeader for Header {
    fn src(&self) -> IpAddr {
        match self {
            Self::V4(header) => header.src(),
            Self::V6(header) => header.src(),
        }
    }

    fn dst(&self) -> IpAddr {
        match self {
            Self::V4(header) => header.dst(),
            Self::V6(header) => header.dst(),
        }
    }

    fn protocol(&self) -> Protocol {
        match self {
            Self::V4(header) => header.protocol,
            Self::V6(header) => header.protocol,
        }
    }

    fn ecn(&self) -> Ecn {
        match self {
            Self::V4(header) => header.ecn,
            Self::V6(header) => header.ecn,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{any_payload, any_version, hex};
    use proptest::prelude::*;

    #[test]
    fn other_versions_are_refused() {
        let unsupported = |value| Err(ParseError::Unsupported { what: "ip version", value });
        assert_eq!(Header::parse(&hex("50").repeat(40)), unsupported(5));
        assert_eq!(Header::parse(&[]), Err(ParseError::Truncated { needed: 1, got: 0 }));
    }

    #[test]
    fn a_header_between_two_addresses_is_of_their_version() {
        let [v4, v6]: [IpAddr; 2] = ["192.0.2.1", "2001:db8::1"].map(|address| address.parse().unwrap());
        for (src, dst, len) in [(v4, v4, 20), (v6, v6, 40), (v4, v6, 40), (v6, v4, 40)] {
            let header = Header::new(src, dst, Protocol::Tcp);
            assert_eq!((header.min_len(), header.protocol()), (len, Protocol::Tcp));
            assert_eq!((header.src().to_canonical(), header.dst().to_canonical()), (src, dst));
        }
    }

    proptest! {
        #[test]
        fn both_versions_parse_back(
            header in any_version(Protocol::Tcp),
            payload in any_payload(),
        ) {
            let mut packet = Vec::new();
            header.emit(payload.len(), &mut packet);
            prop_assert_eq!(packet.len(), header.min_len());
            packet.extend_from_slice(&payload);
            let end = packet.len();
            packet.extend([0xee; 3]);
            prop_assert_eq!(Header::parse(&packet), Ok((header, header.min_len()..end)));
        }
    }
}
