//! Frames of a link that numbers its packets itself, whatever they contain.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+-------+-------+-------------------------------+
//! |  magic = 0xd5 | ver=1 | kind  |             epoch             |
//! +---------------+-------+-------+-------------------------------+
//! |                            number                             |
//! +---------------------------------------------------------------+
//! |  data, replay: the packet                                     |
//! |  request, gone: up to 63 further numbers of 32 bits           |
//! |  tail, report: nothing                                        |
//! |  parity: how many packets (16 bits), all their lengths and    |
//! |  then all their bytes, exclusive-or (shorter ones end in 0)   |
//! +---------------------------------------------------------------+
//! ```
//!
//! `epoch` is the connection epoch of the data sender, in frames of both directions. `number` depends on the kind of the
//! frame:
//!
//! - data, replay: the packet;
//! - request, gone: the first packet that is missing or gone;
//! - tail: the last packet sent;
//! - report: the first packet that has not arrived;
//! - parity: the first packet that the parity covers.

use crate::emit::{be16, be32};
use crate::error::{ParseError, require};
use bytes::Bytes;

/// The first byte of each frame: no version of IP begins like this.
pub const MAGIC: u8 = 0xd5;
/// Length of the common header.
pub const HEADER_LEN: usize = 8;
/// Most numbers in a frame.
pub const MAX_NUMBERS: usize = 64;

const VERSION: u8 = 1;
const DATA: u8 = 0;
const REPLAY: u8 = 1;
const REQUEST: u8 = 2;
const NOT_CACHED: u8 = 3;
const TAIL: u8 = 4;
const REPORT: u8 = 5;
const PARITY: u8 = 6;
/// Length of the parity fields before the bytes.
const PARITY_LEN: usize = 4;

/// A frame as it is on the link.
///
/// # Example
///
/// ```
/// use bytes::Bytes;
/// use hopline_wire::dproxy::frame::{Body, Frame, PacketNumbers};
///
/// let missing = PacketNumbers::new(vec![3, 5]).expect("1 to 64 numbers");
/// let frame = Frame { epoch: 1, body: Body::Request(missing) };
/// let mut bytes = Vec::new();
/// frame.emit(&mut bytes);
/// assert_eq!(Frame::parse(&Bytes::from(bytes)), Ok(frame));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Connection epoch of the data sender.
    pub epoch: u16,
    /// Content.
    pub body: Body,
}

/// Content of a [`Frame`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A packet.
    Data {
        /// Packet number.
        number: u32,
        /// Original transmission or retransmission.
        transmission: TransmissionKind,
        /// The packet.
        packet: Bytes,
    },
    /// Request for missing packets with these numbers.
    Request(PacketNumbers),
    /// Numbers of requested packets that are not cached.
    NotCached(PacketNumbers),
    /// Number of the last packet sent.
    Tail(u32),
    /// First number that has not arrived and is still awaited.
    Report(u32),
    /// Parity, from which any one of the covered packets can be recovered.
    Parity(Parity),
}

/// Kind of a packet's transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransmissionKind {
    /// Original transmission.
    Original,
    /// Retransmission on request.
    Retransmission,
}

/// Packet numbers, 1 to [`MAX_NUMBERS`], in the order in which they are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketNumbers(Vec<u32>);

/// The exclusive-or of packets with successive numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parity {
    /// First packet number.
    pub first: u32,
    /// Number of packets, at least one.
    pub count: u16,
    /// Exclusive or of their lengths.
    pub lengths: u16,
    /// Exclusive or of their bytes; as long as the longest of them.
    pub bytes: Bytes,
}

impl PacketNumbers {
    /// Creates the list; `None` if it is empty or too long.
    #[must_use]
    pub fn new(numbers: Vec<u32>) -> Option<Self> {
        (1..=MAX_NUMBERS).contains(&numbers.len()).then_some(Self(numbers))
    }

    /// The numbers.
    #[must_use]
    pub fn as_slice(&self) -> &[u32] {
        &self.0
    }
}

impl Parity {
    /// Computes the parity of these packets, the first of which has the number `first`. `None` if there are none, or too
    /// many.
    #[must_use]
    pub fn over<'a>(first: u32, packets: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        let (mut count, mut lengths, mut bytes) = (0u16, 0, Vec::new());
        for packet in packets {
            count = count.checked_add(1)?;
            lengths ^= u16::try_from(packet.len()).ok()?;
            xor_into(&mut bytes, packet);
        }
        (count > 0).then(|| Self { first, count, lengths, bytes: bytes.into() })
    }

    /// Recovers the missing packet from `others`, which must be all other covered packets. `None` if they cannot be these.
    #[must_use]
    pub fn recover<'a>(&self, others: impl Iterator<Item = &'a [u8]>) -> Option<Bytes> {
        let (mut count, mut len, mut bytes) = (1u16, self.lengths, self.bytes.to_vec());
        for packet in others {
            count = count.checked_add(1)?;
            len ^= u16::try_from(packet.len()).ok()?;
            xor_into(&mut bytes, packet);
        }
        let len = usize::from(len);
        let is_padding = bytes.len() == self.bytes.len() && bytes.get(len..)?.iter().all(|byte| *byte == 0);
        (count == self.count && is_padding).then(|| Bytes::from(bytes).slice(..len))
    }
}

fn xor_into(sum: &mut Vec<u8>, packet: &[u8]) {
    sum.resize(sum.len().max(packet.len()), 0);
    sum.iter_mut().zip(packet).for_each(|(sum, byte)| *sum ^= byte);
}

impl Frame {
    /// Parses a frame.
    ///
    /// # Errors
    /// `Truncated`; `Unsupported` for another magic number, version or kind; `BadLength` of numbers or parity, and of a
    /// payload in a frame without payload.
    pub fn parse(bytes: &Bytes) -> Result<Self, ParseError> {
        require(bytes, HEADER_LEN)?;
        if bytes[0] != MAGIC || bytes[1] >> 4 != VERSION {
            return Err(ParseError::Unsupported { what: "D-Proxy frame", value: be16(bytes, 0).into() });
        }
        let (number, rest) = (be32(bytes, 4), bytes.slice(HEADER_LEN..));
        let bad = |what| Err(ParseError::BadLength { what, value: bytes.len() });
        let data = |sending| Body::Data { number, transmission: sending, packet: rest.clone() };
        let body = match bytes[1] & 0xf {
            DATA => data(TransmissionKind::Original),
            REPLAY => data(TransmissionKind::Retransmission),
            REQUEST => Body::Request(parse_numbers(number, &rest)?),
            NOT_CACHED => Body::NotCached(parse_numbers(number, &rest)?),
            TAIL | REPORT if !rest.is_empty() => return bad("D-Proxy frame"),
            TAIL => Body::Tail(number),
            REPORT => Body::Report(number),
            PARITY => {
                require(bytes, HEADER_LEN + PARITY_LEN)?;
                let (count, lengths) = (be16(&rest, 0), be16(&rest, 2));
                if count == 0 {
                    return bad("D-Proxy parity");
                }
                Body::Parity(Parity { first: number, count, lengths, bytes: rest.slice(PARITY_LEN..) })
            }
            other => {
                return Err(ParseError::Unsupported { what: "D-Proxy kind", value: other.into() });
            }
        };
        Ok(Self { epoch: be16(bytes, 2), body })
    }

    /// Appends the frame.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let (kind, number) = match &self.body {
            Body::Data { number, transmission: TransmissionKind::Original, .. } => (DATA, *number),
            Body::Data { number, transmission: TransmissionKind::Retransmission, .. } => (REPLAY, *number),
            Body::Request(numbers) => (REQUEST, numbers.0[0]),
            Body::NotCached(numbers) => (NOT_CACHED, numbers.0[0]),
            Body::Tail(number) => (TAIL, *number),
            Body::Report(number) => (REPORT, *number),
            Body::Parity(parity) => (PARITY, parity.first),
        };
        out.extend_from_slice(&[MAGIC, VERSION << 4 | kind]);
        out.extend_from_slice(&self.epoch.to_be_bytes());
        out.extend_from_slice(&number.to_be_bytes());
        match &self.body {
            Body::Data { packet, .. } => out.extend_from_slice(packet),
            Body::Request(numbers) | Body::NotCached(numbers) => {
                numbers.0[1..].iter().for_each(|number| out.extend_from_slice(&number.to_be_bytes()));
            }
            Body::Tail(_) | Body::Report(_) => {}
            Body::Parity(parity) => {
                out.extend_from_slice(&parity.count.to_be_bytes());
                out.extend_from_slice(&parity.lengths.to_be_bytes());
                out.extend_from_slice(&parity.bytes);
            }
        }
    }

    /// Length in bytes.
    #[must_use]
    pub fn wire_len(&self) -> usize {
        HEADER_LEN
            + match &self.body {
                Body::Data { packet, .. } => packet.len(),
                Body::Request(numbers) | Body::NotCached(numbers) => 4 * (numbers.0.len() - 1),
                Body::Tail(_) | Body::Report(_) => 0,
                Body::Parity(parity) => PARITY_LEN + parity.bytes.len(),
            }
    }
}

/// The number in the header, and those behind it.
fn parse_numbers(first: u32, rest: &[u8]) -> Result<PacketNumbers, ParseError> {
    let (words, odd) = rest.as_chunks::<4>();
    let numbers = [first].into_iter().chain(words.iter().map(|word| u32::from_be_bytes(*word))).collect();
    let bad = ParseError::BadLength { what: "D-Proxy numbers", value: rest.len() };
    PacketNumbers::new(numbers).filter(|_| odd.is_empty()).ok_or(bad)
}

#[cfg(test)]
mod tests;
