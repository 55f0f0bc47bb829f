//! Frames of a link whose ends number the packets themselves, whatever is in them.
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
//! `epoch` is the life of the end that sends the packets, whoever sends the frame. `number` is that of the packet, of the first one that
//! is missing or gone, of the last one that was sent, of the first that has not arrived, of the first that parity covers.

use crate::emit::{be16, be32};
use crate::error::{ParseError, require};
use bytes::Bytes;

/// The first byte of each frame: no version of IP begins like this.
pub const MAGIC: u8 = 0xd5;
/// Length of what all frames have.
pub const HEADER_LEN: usize = 8;
/// Most numbers in a frame.
pub const MOST_NUMBERS: usize = 64;

const VERSION: u8 = 1;
const DATA: u8 = 0;
const REPLAY: u8 = 1;
const REQUEST: u8 = 2;
const GONE: u8 = 3;
const TAIL: u8 = 4;
const REPORT: u8 = 5;
const PARITY: u8 = 6;
/// Length of what parity has beside the bytes.
const PARITY_LEN: usize = 4;

/// A frame as it is on the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Which life of the end that sends the packets.
    pub epoch: u16,
    /// What it carries.
    pub body: Body,
}

/// What a [`Frame`] carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A packet.
    Data {
        /// Its number.
        number: u32,
        /// Whether it was sent before.
        sending: Sending,
        /// The packet.
        packet: Bytes,
    },
    /// Packets of these numbers are missing.
    Request(Numbers),
    /// Packets of these numbers are not kept.
    Gone(Numbers),
    /// This is the number of the last packet that was sent.
    Tail(u32),
    /// Everything before this number has arrived or is not waited for.
    Report(u32),
    /// What makes any one of these packets again.
    Parity(Parity),
}

/// Whether a packet is on the link for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sending {
    /// It is.
    First,
    /// It was asked for.
    Again,
}

/// One number or more, [`MOST_NUMBERS`] at most, in the order in which they are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbers(Vec<u32>);

/// The exclusive-or of packets with successive numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parity {
    /// The first number.
    pub first: u32,
    /// How many, at least one.
    pub count: u16,
    /// Of their lengths.
    pub lengths: u16,
    /// Of their bytes; as long as the longest of them.
    pub bytes: Bytes,
}

impl Numbers {
    /// These, unless there is none or are too many.
    #[must_use]
    pub fn new(numbers: Vec<u32>) -> Option<Self> {
        (1..=MOST_NUMBERS).contains(&numbers.len()).then_some(Self(numbers))
    }

    /// The numbers.
    #[must_use]
    pub fn as_slice(&self) -> &[u32] {
        &self.0
    }
}

impl Parity {
    /// Over these packets, the first of which has the number `first`. `None` if there are none, or too many.
    #[must_use]
    pub fn over<'a>(first: u32, packets: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        let (mut count, mut lengths, mut bytes) = (0u16, 0, Vec::new());
        for packet in packets {
            count = count.checked_add(1)?;
            lengths ^= u16::try_from(packet.len()).ok()?;
            mix(&mut bytes, packet);
        }
        (count > 0).then(|| Self { first, count, lengths, bytes: bytes.into() })
    }

    /// The one packet that is not among `others`, which are all the others. `None` if these cannot be the others.
    #[must_use]
    pub fn missing<'a>(&self, others: impl Iterator<Item = &'a [u8]>) -> Option<Bytes> {
        let (mut count, mut len, mut bytes) = (1u16, self.lengths, self.bytes.to_vec());
        for packet in others {
            count = count.checked_add(1)?;
            len ^= u16::try_from(packet.len()).ok()?;
            mix(&mut bytes, packet);
        }
        let len = usize::from(len);
        let is_padding = bytes.len() == self.bytes.len() && bytes.get(len..)?.iter().all(|byte| *byte == 0);
        (count == self.count && is_padding).then(|| Bytes::from(bytes).slice(..len))
    }
}

fn mix(sum: &mut Vec<u8>, packet: &[u8]) {
    sum.resize(sum.len().max(packet.len()), 0);
    sum.iter_mut().zip(packet).for_each(|(sum, byte)| *sum ^= byte);
}

impl Frame {
    /// Parses a frame.
    ///
    /// # Errors
    /// `Truncated`; `Unsupported` of another magic number, version or kind; `BadLength` of numbers, parity, and of bytes where there
    /// are to be none.
    pub fn parse(bytes: &Bytes) -> Result<Self, ParseError> {
        require(bytes, HEADER_LEN)?;
        if bytes[0] != MAGIC || bytes[1] >> 4 != VERSION {
            return Err(ParseError::Unsupported { what: "D-Proxy frame", value: be16(bytes, 0).into() });
        }
        let (number, rest) = (be32(bytes, 4), bytes.slice(HEADER_LEN..));
        let bad = |what| Err(ParseError::BadLength { what, value: bytes.len() });
        let data = |sending| Body::Data { number, sending, packet: rest.clone() };
        let body = match bytes[1] & 0xf {
            DATA => data(Sending::First),
            REPLAY => data(Sending::Again),
            REQUEST => Body::Request(numbers(number, &rest)?),
            GONE => Body::Gone(numbers(number, &rest)?),
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
            Body::Data { number, sending: Sending::First, .. } => (DATA, *number),
            Body::Data { number, sending: Sending::Again, .. } => (REPLAY, *number),
            Body::Request(numbers) => (REQUEST, numbers.0[0]),
            Body::Gone(numbers) => (GONE, numbers.0[0]),
            Body::Tail(number) => (TAIL, *number),
            Body::Report(number) => (REPORT, *number),
            Body::Parity(parity) => (PARITY, parity.first),
        };
        out.extend_from_slice(&[MAGIC, VERSION << 4 | kind]);
        out.extend_from_slice(&self.epoch.to_be_bytes());
        out.extend_from_slice(&number.to_be_bytes());
        match &self.body {
            Body::Data { packet, .. } => out.extend_from_slice(packet),
            Body::Request(numbers) | Body::Gone(numbers) => {
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
                Body::Request(numbers) | Body::Gone(numbers) => 4 * (numbers.0.len() - 1),
                Body::Tail(_) | Body::Report(_) => 0,
                Body::Parity(parity) => PARITY_LEN + parity.bytes.len(),
            }
    }
}

/// The number in the header, and those behind it.
fn numbers(first: u32, rest: &[u8]) -> Result<Numbers, ParseError> {
    let (words, odd) = rest.as_chunks::<4>();
    let numbers = [first].into_iter().chain(words.iter().map(|word| u32::from_be_bytes(*word))).collect();
    let bad = ParseError::BadLength { what: "D-Proxy numbers", value: rest.len() };
    Numbers::new(numbers).filter(|_| odd.is_empty()).ok_or(bad)
}

#[cfg(test)]
mod tests;
