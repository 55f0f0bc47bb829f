//! IPv4 headers (RFC 791), with ECN (RFC 3168) and without options.

use std::net::Ipv4Addr;

/// Length of a header without options, in bytes.
pub const HEADER_LEN: usize = 20;

/// Protocol numbers hopline uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
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
    /// The transport does not understand ECN.
    #[default]
    NotCapable,
    /// ECT(1).
    Capable1,
    /// ECT(0).
    Capable0,
    /// A router marked the packet.
    CongestionExperienced,
}

/// The header values a machine or the simulator cares for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Header {
    /// Source address.
    pub src: Ipv4Addr,
    /// Destination address.
    pub dst: Ipv4Addr,
    /// Hops the packet may still take.
    pub ttl: u8,
    /// What the packet carries.
    pub protocol: Protocol,
    /// ECN field.
    pub ecn: Ecn,
    /// Identification.
    pub id: u16,
}
