//! Packets as machines in the path see them, and what becomes of them.

use hopline_core::{Payload, Seq32};
use hopline_wire::ip::IpHeader;
use hopline_wire::tcp::{Flags, Options, SackBlocks, Segment, Timestamps};
use hopline_wire::{ipv4, ipv6};
use std::net::IpAddr;

/// A TCP packet as it passes.
#[derive(Debug)]
pub struct Packet<'a, P> {
    /// Its source address.
    pub src: IpAddr,
    /// Its destination address.
    pub dst: IpAddr,
    /// What it carries.
    pub segment: &'a Segment<P>,
}

impl<'a, P> Packet<'a, P> {
    /// A packet with this IP header around this segment.
    #[must_use]
    pub fn new(ip: &impl IpHeader, segment: &'a Segment<P>) -> Self {
        Self { src: ip.src(), dst: ip.dst(), segment }
    }
}

impl<P: Payload> Packet<'_, P> {
    /// Its length in bytes, without IPv4 options and IPv6 extension headers.
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

/// The two sides of a machine in the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The wired network.
    Fixed,
    /// The last hop.
    Mobile,
}

impl Side {
    /// The other one.
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
    /// The end in the wired network.
    pub fixed: (IpAddr, u16),
    /// The end beyond the wireless hop.
    pub mobile: (IpAddr, u16),
}

impl Connection {
    /// That of a packet which goes to the mobile host.
    #[must_use]
    pub const fn to_mobile<P>(packet: Packet<'_, P>) -> Self {
        let Packet { src, dst, segment } = packet;
        Self { fixed: (src, segment.src_port), mobile: (dst, segment.dst_port) }
    }

    /// That of a packet which comes from the mobile host.
    #[must_use]
    pub const fn from_mobile<P>(packet: Packet<'_, P>) -> Self {
        let Packet { src, dst, segment } = packet;
        Self { fixed: (dst, segment.dst_port), mobile: (src, segment.src_port) }
    }
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// It goes on as it is.
    Forward,
    /// It goes on, and says this.
    ForwardWith(Says),
    /// It goes no further: nobody misses it.
    Absorb,
}

/// What an ACK says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Says {
    /// The next byte that is expected.
    pub ack: Seq32,
    /// What has arrived beyond it. No more blocks than the packet had.
    pub sack: SackBlocks,
}

impl Says {
    /// What a segment says.
    #[must_use]
    pub const fn of<P>(segment: &Segment<P>) -> Self {
        Self { ack: segment.ack, sack: segment.options.sack }
    }

    /// The segment, saying this.
    #[must_use]
    pub fn put_into<P: Payload>(self, segment: &Segment<P>) -> Segment<P> {
        let mut said = segment.clone();
        (said.ack, said.options.sack) = (self.ack, self.sack);
        said
    }
}

/// An ACK without data that a machine makes in the name of the mobile host, for the fixed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BareAck {
    /// Whose it is.
    pub connection: Connection,
    /// Sequence number: that of the mobile host's next byte.
    pub seq: Seq32,
    /// Next byte that the mobile host expects.
    pub ack: Seq32,
    /// Its window, as it stands in the header.
    pub window: u16,
    /// Its clock when it was last seen, and what it echoed.
    pub timestamps: Option<Timestamps>,
}

impl BareAck {
    /// The segment.
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

/// A station asks a mobile host for what it has sent and what has not come, in the name of the fixed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nack {
    /// Whose it is.
    pub connection: Connection,
    /// Sequence number: that of the fixed host's next byte.
    pub seq: Seq32,
    /// Next byte that the fixed host expects: nothing new is acknowledged.
    pub ack: Seq32,
    /// Its window, as it stands in the header.
    pub window: u16,
    /// Its clock when it was last seen, and what it echoed.
    pub timestamps: Option<Timestamps>,
    /// What is missing, at least one range.
    pub missing: SackBlocks,
}

impl Nack {
    /// The segment.
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
