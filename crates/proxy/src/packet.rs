//! Packets as middleboxes see them, and verdicts on them.

use hopline_core::{Payload, Seq32};
use hopline_wire::ip::IpHeader;
use hopline_wire::tcp::{Flags, Options, SackBlocks, Segment, Timestamps};
use hopline_wire::{ipv4, ipv6};
use std::net::IpAddr;

/// A TCP packet that passes.
#[derive(Debug)]
pub struct Packet<'a, P> {
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
    /// TCP segment.
    pub segment: &'a Segment<P>,
}

impl<'a, P> Packet<'a, P> {
    /// Creates a packet from its IP header and segment.
    #[must_use]
    pub fn new(ip: &impl IpHeader, segment: &'a Segment<P>) -> Self {
        Self { src: ip.src(), dst: ip.dst(), segment }
    }
}

impl<P: Payload> Packet<'_, P> {
    /// Returns the length in bytes, without IPv4 options and IPv6 extension headers.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        let header_len = if self.src.is_ipv4() { ipv4::HEADER_LEN } else { ipv6::HEADER_LEN };
        header_len + self.segment.wire_len()
    }
}

impl<P> Clone for Packet<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Packet<'_, P> {}

/// Side of a middlebox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The wired network.
    Fixed,
    /// The last hop.
    Mobile,
}

impl Side {
    /// Returns the other side.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Fixed => Self::Mobile,
            Self::Mobile => Self::Fixed,
        }
    }
}

/// A connection between a fixed and a mobile host: address and port of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Connection {
    /// Endpoint in the wired network.
    pub fixed: (IpAddr, u16),
    /// Endpoint beyond the wireless hop.
    pub mobile: (IpAddr, u16),
}

impl Connection {
    /// Returns the connection of a packet to the mobile host.
    #[must_use]
    pub const fn to_mobile<P>(packet: Packet<'_, P>) -> Self {
        let Packet { src, dst, segment } = packet;
        Self { fixed: (src, segment.src_port), mobile: (dst, segment.dst_port) }
    }

    /// Returns the connection of a packet from the mobile host.
    #[must_use]
    pub const fn from_mobile<P>(packet: Packet<'_, P>) -> Self {
        let Packet { src, dst, segment } = packet;
        Self { fixed: (dst, segment.dst_port), mobile: (src, segment.src_port) }
    }
}

/// Verdict on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// The packet is forwarded unchanged.
    Forward,
    /// The packet is forwarded with this acknowledgment.
    ForwardWith(AckContent),
    /// The packet is dropped; no host needs it.
    Absorb,
}

/// Acknowledgment number and SACK blocks of an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckContent {
    /// Next byte that is expected.
    pub ack: Seq32,
    /// SACK blocks; no more than the packet had.
    pub sack: SackBlocks,
}

impl AckContent {
    /// Returns the acknowledgment of a segment.
    #[must_use]
    pub const fn from_segment<P>(segment: &Segment<P>) -> Self {
        Self { ack: segment.ack, sack: segment.options.sack }
    }

    /// Returns the segment with this acknowledgment.
    #[must_use]
    pub fn apply_to<P: Payload>(self, segment: &Segment<P>) -> Segment<P> {
        let mut said = segment.clone();
        (said.ack, said.options.sack) = (self.ack, self.sack);
        said
    }
}

/// An ACK without data that a middlebox sends to the fixed host on behalf of the mobile one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BareAck {
    /// Connection of the ACK.
    pub connection: Connection,
    /// Sequence number: the mobile host's next byte.
    pub seq: Seq32,
    /// Next byte that the mobile host expects.
    pub ack: Seq32,
    /// Window field of the header.
    pub window: u16,
    /// Last seen timestamp of the mobile host, and its echo.
    pub timestamps: Option<Timestamps>,
}

impl BareAck {
    /// Returns the segment.
    #[must_use]
    pub fn segment<P: Payload>(&self) -> Segment<P> {
        Segment {
            src_port: self.connection.mobile.1,
            dst_port: self.connection.fixed.1,
            seq: self.seq,
            ack: self.ack,
            flags: Flags::ACK,
            window: self.window,
            options: Options { timestamps: self.timestamps, ..Options::default() },
            ..Segment::default()
        }
    }
}

/// A negative acknowledgment: a base station requests missing data from a mobile host, on behalf of the fixed
/// one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nack {
    /// Connection of the request.
    pub connection: Connection,
    /// Sequence number: the fixed host's next byte.
    pub seq: Seq32,
    /// Next byte that the fixed host expects: nothing new is acknowledged.
    pub ack: Seq32,
    /// Window field of the header.
    pub window: u16,
    /// Last seen timestamp of the fixed host, and its echo.
    pub timestamps: Option<Timestamps>,
    /// Missing ranges, at least one.
    pub missing: SackBlocks,
}

impl Nack {
    /// Returns the segment.
    #[must_use]
    pub fn segment<P: Payload>(&self) -> Segment<P> {
        let options =
            Options { timestamps: self.timestamps, sack: self.missing, nack: true, ..Options::default() };
        Segment {
            src_port: self.connection.fixed.1,
            dst_port: self.connection.mobile.1,
            seq: self.seq,
            ack: self.ack,
            flags: Flags::ACK,
            window: self.window,
            options,
            ..Segment::default()
        }
    }
}
