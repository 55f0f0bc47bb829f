//! Messages between the two ends of a lossy link that repairs its losses locally: D-Proxy (Murray, Koziniec, Dixon, "Solving
//! Ack Inefficiencies in 802.11 Networks", IMSAA 2009, §III-C). The paper names the content (a TCP flow and a sequence
//! number, over UDP); the encoding is hopline's.
//!
//! The payload of a UDP datagram, 44 bytes for a flow over IPv4 and 68 for one over IPv6:
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |  version = 3  | IP 4/6| type  |   length of the range [bytes] |
//! +---------------+-------+-------+-------------------------------+
//! |       address that the data of the flow come from,            |
//! |       4 or 16 bytes                                           |
//! +---------------------------------------------------------------+
//! |       address that they go to, as long                        |
//! +-------------------------------+-------------------------------+
//! |       port they come from     |       port they go to         |
//! +-------------------------------+-------------------------------+
//! |       sequence number of the first byte of the range          |
//! +---------------------------------------------------------------+
//! |       number: rises from one message of its sender to the     |
//! |       next                                                    |
//! +---------------------------------------------------------------+
//! |       tag, 16 bytes: proof that the sender knows the key of   |
//! |       its direction of the session                            |
//! +---------------------------------------------------------------+
//! ```
//!
//! The ends exchange greetings as those of tunnels do ([`tunnel`]). Greetings establish the keys and show that the other end
//! is alive.
//!
//! Links that number the packets themselves have frames of their own: [`frame`]. Messages and frames may share a port, as
//! they differ in the first byte.

pub mod frame;
pub mod tunnel;

use crate::emit::{address, array, be16, be32};
use crate::error::{ParseError, require};
use hopline_core::Seq32;
use std::net::{IpAddr, Ipv6Addr};

/// UDP port of messages, reserved for experiments by RFC 4727 §6.
pub const PORT: u16 = 1022;
/// Protocol version of this implementation.
pub const VERSION: u8 = 3;
/// Length of the tag.
pub const TAG_LEN: usize = 16;

/// Length of a message without its addresses and its tag.
const FIXED_LEN: usize = 20;
/// Lengths of a message with its tag, about a flow over IPv4 and over IPv6.
pub const SEALED_LENS: [usize; 2] = [sealed_len(Family::V4), sealed_len(Family::V6)];

const REQUEST: u8 = 1;
const NOT_CACHED: u8 = 2;
const TAIL: u8 = 3;

/// Message from one end of the link to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    /// Message number, which rises from one message of a sender to the next within a session.
    pub number: u64,
    /// Flow of the bytes: the direction of the data, not of the message.
    pub flow: Flow,
    /// Sequence numbers of the bytes.
    pub range: Range,
    /// Statement about the range.
    pub kind: MessageKind,
}

/// Statement of a [`Message`] about its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageKind {
    /// The range is missing: retransmit it (§III-C.1).
    Request,
    /// The range was requested and is not cached: the peer must not wait for it.
    NotCached,
    /// The range is the last that was sent.
    Tail,
}

/// One direction of a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Flow {
    /// Source address and port of the data.
    pub src: (IpAddr, u16),
    /// Destination address and port of the data.
    pub dst: (IpAddr, u16),
}

/// IP version of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    V4,
    V6,
}

impl Family {
    /// Returns the IP version, as encoded in the first four bits of the type.
    const fn code(self) -> u8 {
        match self {
            Self::V4 => 4,
            Self::V6 => 6,
        }
    }

    const fn of(code: u8) -> Result<Self, ParseError> {
        match code {
            4 => Ok(Self::V4),
            6 => Ok(Self::V6),
            other => Err(ParseError::Unsupported { what: "D-Proxy IP version", value: other as u32 }),
        }
    }

    const fn address_len(self) -> usize {
        match self {
            Self::V4 => 4,
            Self::V6 => 16,
        }
    }

    fn address(self, bytes: &[u8], at: usize) -> IpAddr {
        match self {
            Self::V4 => address(bytes, at).into(),
            Self::V6 => Ipv6Addr::from(array::<16>(bytes, at)).into(),
        }
    }
}

const fn sealed_len(family: Family) -> usize {
    FIXED_LEN + 2 * family.address_len() + TAG_LEN
}

impl Flow {
    /// Returns the IP version; both addresses of a packet have the same.
    const fn family(&self) -> Family {
        match (self.src.0, self.dst.0) {
            (IpAddr::V4(_), IpAddr::V4(_)) => Family::V4,
            _ => Family::V6,
        }
    }
}

/// Non-empty range of sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Range {
    /// First sequence number.
    pub seq: Seq32,
    /// Length. A FIN counts as one.
    pub len: u16,
}

/// A message with its authentication tag.
///
/// # Example
///
/// ```
/// use hopline_core::Seq32;
/// use hopline_wire::dproxy::{Flow, Message, Range, MessageKind, Sealed, TAG_LEN};
///
/// let message = Message {
///     number: 1,
///     flow: Flow { src: ([192, 0, 2, 1].into(), 80), dst: ([192, 0, 2, 2].into(), 40_000) },
///     range: Range { seq: Seq32(1000), len: 1460 },
///     kind: MessageKind::Request,
/// };
/// let sealed = Sealed { message, tag: [0; TAG_LEN] };
/// let mut bytes = Vec::new();
/// sealed.emit(&mut bytes);
/// assert_eq!(Sealed::parse(&bytes), Ok(sealed));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sealed {
    /// The message.
    pub message: Message,
    /// Authentication tag: proves that the sender has the key.
    pub tag: [u8; TAG_LEN],
}

impl Range {
    /// Returns the sequence number after the last.
    #[must_use]
    pub fn end(self) -> Seq32 {
        self.seq + u32::from(self.len)
    }
}

impl MessageKind {
    const fn code(self) -> u8 {
        match self {
            Self::Request => REQUEST,
            Self::NotCached => NOT_CACHED,
            Self::Tail => TAIL,
        }
    }

    const fn of(code: u8) -> Result<Self, ParseError> {
        match code {
            REQUEST => Ok(Self::Request),
            NOT_CACHED => Ok(Self::NotCached),
            TAIL => Ok(Self::Tail),
            other => Err(ParseError::Unsupported { what: "D-Proxy type", value: other as u32 }),
        }
    }
}

impl Message {
    /// Returns the bytes before the tag, over which the tag is computed.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let Self { number, flow, range, kind: says } = self;
        let family = flow.family();
        let mut out = Vec::with_capacity(sealed_len(family));
        out.extend([VERSION, family.code() << 4 | says.code()]);
        out.extend(range.len.to_be_bytes());
        for (address, _) in [flow.src, flow.dst] {
            match (family, address) {
                (Family::V4, IpAddr::V4(address)) => out.extend(address.octets()),
                (_, IpAddr::V4(address)) => out.extend(address.to_ipv6_mapped().octets()),
                (_, IpAddr::V6(address)) => out.extend(address.octets()),
            }
        }
        out.extend(flow.src.1.to_be_bytes());
        out.extend(flow.dst.1.to_be_bytes());
        out.extend(range.seq.0.to_be_bytes());
        out.extend(number.to_be_bytes());
        out
    }
}

impl Sealed {
    /// Parses the payload of a datagram.
    ///
    /// # Errors
    /// `Truncated`; `Unsupported` for another protocol version, type or IP version; `BadLength` of an empty range, and of
    /// bytes after the message.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        require(bytes, 2)?;
        if bytes[0] != VERSION {
            return Err(ParseError::Unsupported { what: "D-Proxy version", value: bytes[0].into() });
        }
        let (family, says) = (Family::of(bytes[1] >> 4)?, MessageKind::of(bytes[1] & 0xf)?);
        require(bytes, sealed_len(family))?;
        if bytes.len() > sealed_len(family) {
            return Err(ParseError::BadLength { what: "D-Proxy message", value: bytes.len() });
        }
        let addresses = [4, 4 + family.address_len()].map(|at| family.address(bytes, at));
        let behind = &bytes[4 + 2 * family.address_len()..];
        let range = Range { seq: Seq32(be32(behind, 4)), len: be16(bytes, 2) };
        if range.len == 0 {
            return Err(ParseError::BadLength { what: "D-Proxy range", value: 0 });
        }
        let flow = Flow { src: (addresses[0], be16(behind, 0)), dst: (addresses[1], be16(behind, 2)) };
        let number = u64::from_be_bytes(array(behind, 8));
        Ok(Self { message: Message { number, flow, range, kind: says }, tag: array(behind, 16) })
    }

    /// Appends the message and its tag, to follow a UDP header.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.message.to_bytes());
        out.extend_from_slice(&self.tag);
    }

    /// Length in bytes.
    #[must_use]
    pub const fn wire_len(&self) -> usize {
        sealed_len(self.message.flow.family())
    }
}

#[cfg(test)]
mod tests;
