//! What the two ends of a lossy link tell each other so that its losses are repaired there: D-Proxy (Murray, Koziniec, Dixon, "Solving
//! Ack Inefficiencies in 802.11 Networks", IMSAA 2009, §III-C). The paper names what is said (a TCP flow and a sequence number, over
//! UDP); the bytes are ours.
//!
//! The payload of a UDP datagram, 44 bytes:
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |  version = 2  |     type      |   length of the range [bytes] |
//! +---------------+---------------+-------------------------------+
//! |       address that the data of the flow come from             |
//! +---------------------------------------------------------------+
//! |       address that they go to                                 |
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
//! The ends greet each other as those of tunnels do ([`tunnel`]): that gives the keys, and shows that the other end is there.
//!
//! Links whose ends number the packets themselves have frames of their own: [`frame`]. Both may share a port: no message begins like a
//! frame.

pub mod frame;
pub mod tunnel;

use crate::emit::{address, array, be16, be32};
use crate::error::{ParseError, require};
use hopline_core::Seq32;
use std::net::Ipv4Addr;

/// UDP port of messages: one that RFC 4727 §6 sets aside for experiments.
pub const PORT: u16 = 1022;
/// The version that is spoken here.
pub const VERSION: u8 = 2;
/// Length of a message without its tag.
pub const MESSAGE_LEN: usize = 28;
/// Length of the tag.
pub const TAG_LEN: usize = 16;
/// Length of a message with its tag.
pub const SEALED_LEN: usize = MESSAGE_LEN + TAG_LEN;

const REQUEST: u8 = 1;
const NOT_CACHED: u8 = 2;
const TAIL: u8 = 3;

/// What one end of the link says to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    /// Rises from one message of its sender to the next, within a session.
    pub number: u64,
    /// Whose bytes it is about: the direction of the data, not of the message.
    pub flow: Flow,
    /// Which bytes.
    pub range: Range,
    /// What of them.
    pub says: Says,
}

/// What a [`Message`] says of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Says {
    /// It is missing: send it again (§III-C.1).
    Request,
    /// It was asked for and is not kept: nobody should wait for it.
    NotCached,
    /// It is the last that was sent.
    Tail,
}

/// One direction of a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Flow {
    /// Address and port that the data come from.
    pub src: (Ipv4Addr, u16),
    /// Address and port that they go to.
    pub dst: (Ipv4Addr, u16),
}

/// A range of sequence numbers, at least one long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Range {
    /// The first.
    pub seq: Seq32,
    /// How many. A FIN is one.
    pub len: u16,
}

/// A message with its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sealed {
    /// The message.
    pub message: Message,
    /// What proves that its sender knows the key.
    pub tag: [u8; TAG_LEN],
}

impl Range {
    /// The number after the last.
    #[must_use]
    pub fn end(self) -> Seq32 {
        self.seq + u32::from(self.len)
    }
}

impl Says {
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
    /// The bytes before the tag: what the tag is computed over.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; MESSAGE_LEN] {
        let mut out = [0; MESSAGE_LEN];
        (out[0], out[1]) = (VERSION, self.says.code());
        out[2..4].copy_from_slice(&self.range.len.to_be_bytes());
        out[4..8].copy_from_slice(&self.flow.src.0.octets());
        out[8..12].copy_from_slice(&self.flow.dst.0.octets());
        out[12..14].copy_from_slice(&self.flow.src.1.to_be_bytes());
        out[14..16].copy_from_slice(&self.flow.dst.1.to_be_bytes());
        out[16..20].copy_from_slice(&self.range.seq.0.to_be_bytes());
        out[20..].copy_from_slice(&self.number.to_be_bytes());
        out
    }
}

impl Sealed {
    /// Parses the payload of a datagram.
    ///
    /// # Errors
    /// `Truncated`; `Unsupported` of another version or type; `BadLength` of an empty range, and of bytes after the message.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        require(bytes, 2)?;
        if bytes[0] != VERSION {
            return Err(ParseError::Unsupported { what: "D-Proxy version", value: bytes[0].into() });
        }
        let says = Says::of(bytes[1])?;
        require(bytes, SEALED_LEN)?;
        if bytes.len() > SEALED_LEN {
            return Err(ParseError::BadLength { what: "D-Proxy message", value: bytes.len() });
        }
        let range = Range { seq: Seq32(be32(bytes, 16)), len: be16(bytes, 2) };
        if range.len == 0 {
            return Err(ParseError::BadLength { what: "D-Proxy range", value: 0 });
        }
        let flow =
            Flow { src: (address(bytes, 4), be16(bytes, 12)), dst: (address(bytes, 8), be16(bytes, 14)) };
        let number = u64::from_be_bytes(array(bytes, 20));
        Ok(Self { message: Message { number, flow, range, says }, tag: array(bytes, MESSAGE_LEN) })
    }

    /// Appends the message and its tag, to follow a UDP header.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.message.to_bytes());
        out.extend_from_slice(&self.tag);
    }

    /// Length in bytes.
    #[must_use]
    pub const fn wire_len(&self) -> usize {
        SEALED_LEN
    }
}

#[cfg(test)]
mod tests;
