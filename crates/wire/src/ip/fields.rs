//! Fields that both versions of IP have, and the header as a transport needs it.

use std::net::IpAddr;

/// IP protocol numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Protocol {
    /// ICMP, 1.
    Icmp,
    /// An IPv4 packet, 4 (RFC 2003).
    Ipv4,
    /// TCP, 6.
    Tcp,
    /// UDP, 17.
    Udp,
    /// Any other.
    Other(u8),
}

/// The ECN field (RFC 3168 §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Ecn {
    /// Not ECN-capable transport.
    #[default]
    NotCapable,
    /// ECT(1).
    Capable1,
    /// ECT(0).
    Capable0,
    /// A router marked the packet.
    CongestionExperienced,
}

/// IP header values on which a transport depends: the pseudo header of its checksum (RFC 9293 §3.1, RFC 8200 §8.1) and ECN.
pub trait IpHeader {
    /// Source address.
    fn src(&self) -> IpAddr;

    /// Destination address.
    fn dst(&self) -> IpAddr;

    /// Protocol of the payload. In IPv6, that behind the extension headers.
    fn protocol(&self) -> Protocol;

    /// ECN field.
    fn ecn(&self) -> Ecn;
}

impl Protocol {
    /// The number in the header.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Icmp => 1,
            Self::Ipv4 => 4,
            Self::Tcp => 6,
            Self::Udp => 17,
            Self::Other(number) => number,
        }
    }
}

impl From<u8> for Protocol {
    fn from(number: u8) -> Self {
        match number {
            1 => Self::Icmp,
            4 => Self::Ipv4,
            6 => Self::Tcp,
            17 => Self::Udp,
            other => Self::Other(other),
        }
    }
}

impl Ecn {
    /// The two bits in the header.
    #[must_use]
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotCapable => 0b00,
            Self::Capable1 => 0b01,
            Self::Capable0 => 0b10,
            Self::CongestionExperienced => 0b11,
        }
    }

    /// Returns the field of a Type of Service or Traffic Class byte.
    pub(crate) const fn from_bits(tos: u8) -> Self {
        match tos & 0b11 {
            0b00 => Self::NotCapable,
            0b01 => Self::Capable1,
            0b10 => Self::Capable0,
            _ => Self::CongestionExperienced,
        }
    }
}
