//! TCP segments (RFC 9293 §3.1) with the options MSS, window scale and timestamps (RFC 7323), SACK-permitted and
//! SACK (RFC 2018), that of AccECN (RFC 9768), and that of TCP-DOOR.

use crate::checksum::ChecksumSum;
use crate::emit::{Emit, be16, be32};
use crate::error::{ParseError, require};
use crate::ip::{Ecn, IpHeader, Protocol};
use crate::ipv4;
use bytes::Bytes;
use hopline_core::{Length, Payload, Seq32};

mod acc_ecn;
mod door;
mod options;

pub use acc_ecn::{AccEcnCounters, AccEcnOption, AccEcnOrder};
pub use door::{DOOR_LEN, DoorFeatures, DoorOption, DoorReport};
pub use options::MAX_OPTIONS_LEN;

/// Length of a header without options, in bytes.
pub const HEADER_LEN: usize = 20;
/// The control bits among the 16 bits with the data offset and the reserved bits.
const FLAG_BITS: u16 = 0x1ff;

/// The control bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Flags(pub u16);

impl Flags {
    /// No more data from sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronize sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgment field is significant.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is significant.
    pub const URG: Self = Self(0x20);
    /// ECN-Echo (RFC 3168).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(0x80);
    /// Accurate ECN (RFC 9768), once the nonce sum (RFC 3540).
    pub const AE: Self = Self(0x100);
    /// The bits of ECN: AE, CWR and ECE. With AccECN in use, a segment without SYN has its ACE field there (RFC 9768
    /// §3.2.2).
    pub const ECN: Self = Self(Self::AE.0 | Self::CWR.0 | Self::ECE.0);

    /// Returns whether every bit of `other` is set here.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the flags without those of `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns AE, CWR and ECE as a number of three bits, of which ECE is the least significant: the ACE field of AccECN.
    #[must_use]
    pub const fn ace(self) -> u8 {
        ((self.0 & Self::ECN.0) >> Self::ECE.0.trailing_zeros()) as u8
    }

    /// Returns AE, CWR and ECE with the three least significant bits of a number.
    #[must_use]
    pub const fn from_ace(ace: u8) -> Self {
        Self(((ace & 7) as u16) << Self::ECE.0.trailing_zeros())
    }
}

impl core::ops::BitOr for Flags {
    type Output = Self;
    fn bitor(self, rhs: Self) -> Self {
        Self(self.0 | rhs.0)
    }
}

impl core::ops::BitOrAssign for Flags {
    fn bitor_assign(&mut self, rhs: Self) {
        self.0 |= rhs.0;
    }
}

/// The timestamps option (RFC 7323 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the value being echoed; 0 on a segment without ACK.
    pub echo: u32,
}

/// Block of the SACK option: received bytes from `left` up to, not including, `right`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct SackBlock {
    /// First sequence number of the block.
    pub left: Seq32,
    /// Sequence number after the last of the block.
    pub right: Seq32,
}

/// Up to four SACK blocks, most recent first (RFC 2018 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct SackBlocks {
    len: u8,
    blocks: [SackBlock; 4],
}

impl SackBlocks {
    /// Most blocks that fit into the option space.
    pub const MAX: usize = 4;

    /// Adds a block. Returns whether there was room.
    pub fn push(&mut self, block: SackBlock) -> bool {
        let room = self.len() < Self::MAX;
        if room {
            self.blocks[self.len()] = block;
            self.len += 1;
        }
        room
    }

    /// Number of blocks.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Returns whether there are no blocks.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The blocks.
    #[must_use]
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..self.len()]
    }
}

/// The options of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Options {
    /// Maximum segment size, on a SYN only (RFC 9293 §3.2).
    pub mss: Option<u16>,
    /// Window scale shift, on a SYN only (RFC 7323 §2).
    pub window_scale: Option<u8>,
    /// SACK-permitted, on a SYN only (RFC 2018 §2).
    pub sack_permitted: bool,
    /// Timestamps (RFC 7323 §3).
    pub timestamps: Option<Timestamps>,
    /// TCP-DOOR option: order of packets.
    pub door: Option<DoorOption>,
    /// AccECN option: byte counters (RFC 9768 §3.2.3).
    pub acc_ecn: Option<AccEcnOption>,
    /// Selective acknowledgments (RFC 2018 §3).
    pub sack: SackBlocks,
    /// `true` if `sack` lists missing instead of received bytes: the negative acknowledgment of a base station to a mobile
    /// host (Snoop, §3). An experimental option (RFC 6994) with identifier 0x4e4b, then blocks as those of SACK.
    pub nack: bool,
}

/// A segment: header values and payload.
///
/// # Example
///
/// ```
/// use bytes::Bytes;
/// use hopline_core::Seq32;
/// use hopline_wire::ip::{Header, Protocol};
/// use hopline_wire::tcp::{Flags, Segment};
///
/// let ip = Header::new([192, 0, 2, 1].into(), [192, 0, 2, 2].into(), Protocol::Tcp);
/// let mut segment = Segment {
///     src_port: 40_000,
///     dst_port: 80,
///     seq: Seq32(1),
///     flags: Flags::ACK | Flags::PSH,
///     payload: Bytes::from_static(b"GET"),
///     ..Segment::default()
/// };
/// segment.options.mss = Some(1460);
/// let mut bytes = Vec::new();
/// segment.emit(&ip, &mut bytes);
/// assert_eq!(bytes.len(), segment.wire_len());
/// assert_eq!(Segment::parse(&ip, &Bytes::from(bytes)), Ok(segment));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Segment<P> {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Sequence number of the first byte, or of the SYN.
    pub seq: Seq32,
    /// Next sequence number expected; meaningful with [`Flags::ACK`].
    pub ack: Seq32,
    /// Control bits.
    pub flags: Flags,
    /// Receive window as it stands in the header, before scaling.
    pub window: u16,
    /// Urgent pointer; meaningful with [`Flags::URG`].
    pub urgent: u16,
    /// Options.
    pub options: Options,
    /// ECN field of the IP packet around the segment (RFC 3168 §5): the sender's wish, or the value on arrival. Not among
    /// the segment's own bytes; the IP layer puts it into the IP header.
    pub ecn: Ecn,
    /// Data.
    pub payload: P,
}

impl<P: Payload> Segment<P> {
    /// Sequence space the segment takes: its data, plus one for SYN and one for FIN (RFC 9293 §3.4).
    #[must_use]
    pub fn seq_len(&self) -> u32 {
        self.payload.len() as u32
            + u32::from(self.flags.contains(Flags::SYN))
            + u32::from(self.flags.contains(Flags::FIN))
    }

    /// Sequence number after the last one the segment takes.
    #[must_use]
    pub fn seq_end(&self) -> Seq32 {
        self.seq + self.seq_len()
    }

    /// Length of header and data, in bytes.
    #[must_use]
    pub fn wire_len(&self) -> usize {
        self.header_len() + self.payload.len() as usize
    }
}

impl<P> Segment<P> {
    /// Length of the header with its padded options, in bytes: 20 to 60.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        HEADER_LEN + self.options.len()
    }
}

impl Segment<Bytes> {
    /// Parses the payload of the IP packet with header `ip`. Reserved bits are ignored, unknown options skipped.
    ///
    /// # Errors
    /// `Truncated` of header or an option; `BadLength` of the data offset or an option; `BadChecksum`.
    pub fn parse(ip: &impl IpHeader, bytes: &Bytes) -> Result<Self, ParseError> {
        let header_len = header_len(bytes)?;
        let mut sum = ChecksumSum::pseudo_header(ip, bytes.len());
        sum.add(bytes);
        if sum.finish() != 0 {
            return Err(ParseError::BadChecksum);
        }
        Self::from_header(&bytes[..header_len], ip.ecn(), bytes.slice(header_len..))
    }
}

impl Segment<Length> {
    /// Reads the headers of a packet over IPv4 that a host sends. It may be truncated behind them, and its checksums need
    /// not be filled in yet.
    ///
    /// # Errors
    /// `Unsupported` for another protocol or a fragment; otherwise as [`Segment::parse`].
    pub fn parse_headers(packet: &[u8]) -> Result<(ipv4::Header, Self), ParseError> {
        let (ip, start, total) = ipv4::Header::read(packet)?;
        if ip.protocol != Protocol::Tcp {
            return Err(ParseError::Unsupported { what: "ip protocol", value: ip.protocol.number().into() });
        }
        let bytes = &packet[start..];
        let len = header_len(bytes)?;
        let data = total.checked_sub(start + len);
        let data = data.ok_or(ParseError::BadLength { what: "ip total", value: total })?;
        Ok((ip, Self::from_header(&bytes[..len], ip.ecn, Length(data as u64))?))
    }
}

/// Returns the length of the header at the start of `bytes`, which must be complete.
fn header_len(bytes: &[u8]) -> Result<usize, ParseError> {
    require(bytes, HEADER_LEN)?;
    let header_len = usize::from(bytes[12] >> 4) * 4;
    if header_len < HEADER_LEN {
        return Err(ParseError::BadLength { what: "tcp header", value: header_len });
    }
    require(bytes, header_len)?;
    Ok(header_len)
}

impl<P> Segment<P> {
    fn from_header(header: &[u8], ecn: Ecn, payload: P) -> Result<Self, ParseError> {
        Ok(Self {
            src_port: be16(header, 0),
            dst_port: be16(header, 2),
            seq: Seq32(be32(header, 4)),
            ack: Seq32(be32(header, 8)),
            flags: Flags(be16(header, 12) & FLAG_BITS),
            window: be16(header, 14),
            urgent: be16(header, 18),
            options: Options::parse(&header[HEADER_LEN..])?,
            ecn,
            payload,
        })
    }
}

impl<P: Emit> Segment<P> {
    /// Appends the segment, to follow the IP header `ip`, which the checksum covers. SACK blocks beyond
    /// [`Options::sack_room`] are left out.
    pub fn emit(&self, ip: &impl IpHeader, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend(self.src_port.to_be_bytes());
        out.extend(self.dst_port.to_be_bytes());
        out.extend(self.seq.0.to_be_bytes());
        out.extend(self.ack.0.to_be_bytes());
        let length = (self.header_len() / 4) as u16;
        out.extend((length << 12 | self.flags.0 & FLAG_BITS).to_be_bytes());
        out.extend(self.window.to_be_bytes());
        out.extend([0, 0]);
        out.extend(self.urgent.to_be_bytes());
        self.options.emit(out);
        self.payload.emit(out);
        let mut sum = ChecksumSum::pseudo_header(ip, out.len() - start);
        sum.add(&out[start..]);
        out[start + 16..start + 18].copy_from_slice(&sum.finish().to_be_bytes());
    }
}

#[cfg(test)]
mod tests;
