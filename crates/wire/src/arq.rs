//! Frames of a link-layer ARQ that acknowledges each frame and retransmits lost ones. They travel within datagrams between
//! the ends of the link ([`tunnel`](crate::dproxy::tunnel)).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+-------+-------+-------------------------------+
//! |  magic = 0xd7 | ver=1 | kind  |             epoch             |
//! +---------------+-------+-------+-------------------------------+
//! |  data, given up: the oldest     |  data, given up: its number  |
//! |    number that is remembered   |  ack: 0                      |
//! |  ack: all before this is there |                              |
//! +--------------------------------+------------------------------+
//! |  data: the packet                                             |
//! |  given up: nothing                                            |
//! |  ack: up to 4 words of 64 bits, of what is there beyond the   |
//! |    oldest that is missing; the last one is not 0               |
//! +---------------------------------------------------------------+
//! ```
//!
//! `epoch` is the connection epoch of the data sender, in frames of both directions.

use crate::emit::{array, be16};
use crate::error::{ParseError, require};
use bytes::Bytes;
use hopline_core::Seq16;

/// The first byte of each frame.
pub const MAGIC: u8 = 0xd7;
/// Length of the common header.
pub const HEADER_LEN: usize = 8;
/// Words of the bitmap in an acknowledgment.
pub const BITMAP_WORDS: usize = 4;

const VERSION: u8 = 1;
const DATA: u8 = 0;
const ABANDONED: u8 = 1;
const ACK: u8 = 2;

/// A frame as it is on the link.
///
/// # Example
///
/// ```
/// use bytes::Bytes;
/// use hopline_core::Seq16;
/// use hopline_wire::arq::{Body, Frame};
///
/// let packet = Some(Bytes::from_static(b"packet"));
/// let frame = Frame { epoch: 1, body: Body::Data { oldest: Seq16(4), number: Seq16(5), packet } };
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
    /// A packet, or none if it was given up.
    Data {
        /// The first number that its sender still remembers.
        oldest: Seq16,
        /// Sequence number.
        number: Seq16,
        /// The packet.
        packet: Option<Bytes>,
    },
    /// Acknowledgment of received frames.
    Ack {
        /// Next expected number: everything before it has arrived.
        next: Seq16,
        /// Bitmap of received frames beyond `next`, from the lowest bit on.
        bitmap: [u64; BITMAP_WORDS],
    },
}

impl Frame {
    /// Parses a frame.
    ///
    /// # Errors
    /// `Truncated`; `Unsupported` for another magic number, version or kind; `BadLength` of a payload in a frame without
    /// payload, and of the bitmap.
    pub fn parse(bytes: &Bytes) -> Result<Self, ParseError> {
        require(bytes, HEADER_LEN)?;
        if bytes[0] != MAGIC || bytes[1] >> 4 != VERSION {
            return Err(ParseError::Unsupported { what: "ARQ frame", value: be16(bytes, 0).into() });
        }
        let (first, second) = (Seq16(be16(bytes, 4)), be16(bytes, 6));
        let rest = bytes.slice(HEADER_LEN..);
        let body = match bytes[1] & 0xf {
            DATA => Body::Data { oldest: first, number: Seq16(second), packet: Some(rest) },
            ABANDONED if rest.is_empty() => Body::Data { oldest: first, number: Seq16(second), packet: None },
            ACK if second == 0 => Body::Ack { next: first, bitmap: parse_words(&rest)? },
            ABANDONED | ACK => return Err(ParseError::BadLength { what: "ARQ frame", value: bytes.len() }),
            other => return Err(ParseError::Unsupported { what: "ARQ kind", value: other.into() }),
        };
        Ok(Self { epoch: be16(bytes, 2), body })
    }

    /// Appends the frame.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let (kind, numbers) = match &self.body {
            Body::Data { oldest: first, number, packet: content } => {
                (if content.is_some() { DATA } else { ABANDONED }, [first.0, number.0])
            }
            Body::Ack { next, .. } => (ACK, [next.0, 0]),
        };
        out.extend_from_slice(&[MAGIC, VERSION << 4 | kind]);
        for field in [self.epoch, numbers[0], numbers[1]] {
            out.extend_from_slice(&field.to_be_bytes());
        }
        match &self.body {
            Body::Data { packet: content, .. } => {
                out.extend_from_slice(content.as_deref().unwrap_or_default())
            }
            Body::Ack { bitmap: beyond, .. } => {
                beyond[..used_words(beyond)]
                    .iter()
                    .for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
            }
        }
    }

    /// Length in bytes.
    #[must_use]
    pub fn wire_len(&self) -> usize {
        HEADER_LEN
            + match &self.body {
                Body::Data { packet: content, .. } => content.as_ref().map_or(0, Bytes::len),
                Body::Ack { bitmap: beyond, .. } => 8 * used_words(beyond),
            }
    }
}

/// Words up to the last that is not 0.
fn used_words(words: &[u64; BITMAP_WORDS]) -> usize {
    words.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1)
}

fn parse_words(bytes: &[u8]) -> Result<[u64; BITMAP_WORDS], ParseError> {
    let mut words = [0; BITMAP_WORDS];
    let bad = ParseError::BadLength { what: "ARQ acknowledgment", value: bytes.len() };
    if !bytes.len().is_multiple_of(8) || bytes.len() > 8 * BITMAP_WORDS {
        return Err(bad);
    }
    let count = bytes.len() / 8;
    for (at, word) in words[..count].iter_mut().enumerate() {
        *word = u64::from_be_bytes(array(bytes, 8 * at));
    }
    if used_words(&words) == count { Ok(words) } else { Err(bad) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> Vec<Frame> {
        let (first, number) = (Seq16(0xfffe), Seq16(3));
        let ack = |beyond| Body::Ack { next: number, bitmap: beyond };
        let content = |bytes: &'static [u8]| Some(Bytes::from_static(bytes));
        let bodies = [
            Body::Data { oldest: first, number, packet: content(b"a packet") },
            Body::Data { oldest: first, number, packet: content(b"") },
            Body::Data { oldest: first, number, packet: None },
            ack([0; BITMAP_WORDS]),
            ack([0, 5, 0, 0]),
            ack([1, 2, 3, 4]),
        ];
        bodies.into_iter().map(|body| Frame { epoch: 7, body }).collect()
    }

    fn written(frame: &Frame) -> Bytes {
        let mut out = Vec::new();
        frame.emit(&mut out);
        assert_eq!(out.len(), frame.wire_len());
        out.into()
    }

    #[test]
    fn emitted_frames_parse_back() {
        for frame in frames() {
            assert_eq!(Frame::parse(&written(&frame)), Ok(frame));
        }
    }

    #[test]
    fn invalid_frames_are_refused() {
        let with = |frame: usize, at: usize, value: u8| {
            let mut bytes = written(&frames()[frame]).to_vec();
            bytes.resize(bytes.len().max(at + 1), 0);
            bytes[at] = value;
            Frame::parse(&bytes.into()).is_err()
        };
        assert!(with(0, 0, 0xd6) && with(0, 1, 0x20) && with(0, 1, 0x13), "magic, version, kind");
        assert!(with(2, 8, 1) && with(3, 7, 1) && with(3, 8, 1), "bytes where there are none");
        assert!(with(4, 23, 0) && with(5, 40, 1), "words that say nothing, or too many");
        let whole = written(&frames()[0]);
        assert!((0..HEADER_LEN).all(|len| Frame::parse(&whole.slice(..len)).is_err()));
    }
}
