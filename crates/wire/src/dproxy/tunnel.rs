//! Frames of a link within UDP datagrams, between any two hosts. Each datagram proves that it comes from the other end and
//! is no replay. A frame belongs to [`frame`](super::frame) or [`arq`](crate::arq); its first byte tells them apart. Ends
//! that read TCP send [`Sealed`](super::Sealed) messages beside greetings, and no frames.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+-------+-------+-------------------------------+
//! |  magic = 0xd6 | ver=3 | kind=0|  number of the datagram:      |   a frame
//! +---------------+-------+-------+                               |
//! |  rises from one datagram of a session to the next, 48 bits    |
//! +---------------------------------------------------------------+
//! |  tag, 8 bytes: keyed BLAKE3 under the sender's key of the     |
//! |  session, over the first 8 bytes and the frame                |
//! +---------------------------------------------------------------+
//! |  the frame                                                    |
//! +---------------------------------------------------------------+
//!
//! +---------------+-------+-------+---------------+---------------+
//! |  magic = 0xd6 | ver=3 | kind=1|   1: answer   |    speaks     |   a greeting, 52 bytes
//! +---------------+-------+-------+---------------+---------------+
//! |  life: chosen at random when the sender began (64 bits)       |
//! |  challenge: to be met by the other end                        |
//! |  met: the challenge of the other end that was heard last, or 0|
//! |  knows: the life of the other end in the session, or 0        |
//! +---------------------------------------------------------------+
//! |  tag, 16 bytes: keyed BLAKE3 under the key of both ends, over |
//! |  all before it                                                |
//! +---------------------------------------------------------------+
//! ```

use crate::emit::array;
use crate::error::{ParseError, require};
use bytes::Bytes;

/// The first byte of each datagram: no version of IP, message or bare frame begins like this.
pub const MAGIC: u8 = 0xd6;
/// Bytes that a datagram adds to a frame.
pub const HEADER_LEN: usize = NUMBER_LEN + FRAME_TAG_LEN;
/// Length of every greeting.
pub const HANDSHAKE_LEN: usize = HANDSHAKE_BODY_LEN + HANDSHAKE_TAG_LEN;
/// Length of the part of a greeting that its tag covers.
pub const HANDSHAKE_BODY_LEN: usize = 36;
/// Length of the tag of a greeting.
pub const HANDSHAKE_TAG_LEN: usize = 16;
/// Length of the part of a frame's datagram before the tag.
pub const NUMBER_LEN: usize = 8;
/// Length of the tag of a frame.
pub const FRAME_TAG_LEN: usize = 8;
/// Upper bound of datagram numbers, exclusive.
pub const NUMBER_LIMIT: u64 = 1 << 48;

/// Protocol version of this implementation. It is the version of messages, on which the ends of a link agree by greetings.
pub const VERSION: u8 = super::VERSION;
const FRAME: u8 = 0;
const HANDSHAKE: u8 = 1;

/// Content of a datagram between the ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Datagram {
    /// A frame of the link.
    Frame(Sealed),
    /// Greeting that establishes a session, with its tag.
    Handshake(Handshake, [u8; HANDSHAKE_TAG_LEN]),
}

/// A frame with its authentication tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// Datagram number, which rises from one datagram of a sender to the next; below [`NUMBER_LIMIT`].
    pub number: u64,
    /// Authentication tag: proves that the sender is the other end in its current connection epoch.
    pub tag: [u8; FRAME_TAG_LEN],
    /// The frame.
    pub frame: Bytes,
}

/// State of an end, and its view of the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handshake {
    /// Connection epoch of the sender, chosen when it started.
    pub epoch: u64,
    /// Challenge for the other end to repeat, as proof that it is alive now.
    pub challenge: u64,
    /// Latest challenge received from the other end; 0: none.
    pub challenge_response: u64,
    /// Connection epoch of the other end in the sender's session; 0: no session.
    pub peer_epoch: u64,
    /// Request for an answer.
    pub response: ResponseRequest,
    /// Format of the sender's messages beside greetings.
    pub format: MessageFormat,
}

/// Format of an end's messages beside greetings. Both ends of a link must use the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageFormat {
    /// Messages about TCP flows ([`Message`](super::Message)).
    DProxy,
    /// Frames of links with negative acknowledgments ([`frame`](super::frame)).
    NackFrames,
    /// Frames of links with positive acknowledgments ([`arq`](crate::arq)).
    ArqFrames,
}

impl MessageFormat {
    const fn code(self) -> u8 {
        match self {
            Self::DProxy => 1,
            Self::NackFrames => 2,
            Self::ArqFrames => 3,
        }
    }

    const fn of(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::DProxy),
            2 => Some(Self::NackFrames),
            3 => Some(Self::ArqFrames),
            _ => None,
        }
    }
}

/// Returns the version of what may be a greeting, a frame or a message of the other end, if this implementation does not
/// support it.
#[must_use]
pub fn other_version(bytes: &[u8]) -> Option<u8> {
    match *bytes {
        [MAGIC, second, ..] => Some(second >> 4).filter(|version| *version != VERSION),
        [first, ..] if super::SEALED_LENS.contains(&bytes.len()) => {
            Some(first).filter(|first| *first != super::VERSION)
        }
        _ => None,
    }
}

/// Request for an answer in a greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResponseRequest {
    /// No answer.
    None,
    /// An answer.
    Requested,
}

impl Handshake {
    /// Returns the bytes before the tag, over which the tag is computed.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; HANDSHAKE_BODY_LEN] {
        let mut out = [0; HANDSHAKE_BODY_LEN];
        (out[0], out[1]) = (MAGIC, VERSION << 4 | HANDSHAKE);
        (out[2], out[3]) = (u8::from(self.response == ResponseRequest::Requested), self.format.code());
        for (at, value) in
            (4..).step_by(8).zip([self.epoch, self.challenge, self.challenge_response, self.peer_epoch])
        {
            out[at..at + 8].copy_from_slice(&value.to_be_bytes());
        }
        out
    }

    fn parse(bytes: &[u8]) -> Result<Datagram, ParseError> {
        require(bytes, HANDSHAKE_LEN)?;
        if bytes.len() > HANDSHAKE_LEN {
            return Err(ParseError::BadLength { what: "D-Proxy greeting", value: bytes.len() });
        }
        let (wants, speaks) = match (bytes[2], MessageFormat::of(bytes[3])) {
            (0, Some(speaks)) => (ResponseRequest::None, speaks),
            (1, Some(speaks)) => (ResponseRequest::Requested, speaks),
            _ => {
                let value = u32::from(bytes[2]) << 8 | u32::from(bytes[3]);
                return Err(ParseError::Unsupported { what: "D-Proxy greeting", value });
            }
        };
        let [life, challenge, met, knows] = [4, 12, 20, 28].map(|at| u64::from_be_bytes(array(bytes, at)));
        let greeting = Self {
            epoch: life,
            challenge,
            challenge_response: met,
            peer_epoch: knows,
            response: wants,
            format: speaks,
        };
        Ok(Datagram::Handshake(greeting, array(bytes, HANDSHAKE_BODY_LEN)))
    }
}

impl Sealed {
    /// Returns the bytes before the tag.
    #[must_use]
    pub fn header(number: u64) -> [u8; NUMBER_LEN] {
        let mut out = (number % NUMBER_LIMIT).to_be_bytes();
        (out[0], out[1]) = (MAGIC, VERSION << 4 | FRAME);
        out
    }
}

impl Datagram {
    /// Parses the payload of a datagram.
    ///
    /// # Errors
    /// `Truncated`; `Unsupported` for another magic number, version, kind, or flag; `BadLength` of bytes after a greeting.
    pub fn parse(bytes: &Bytes) -> Result<Self, ParseError> {
        require(bytes, 2)?;
        match (bytes[0], bytes[1] >> 4, bytes[1] & 0xf) {
            (MAGIC, VERSION, FRAME) => {
                require(bytes, HEADER_LEN)?;
                let number = u64::from_be_bytes(array(bytes, 0)) % NUMBER_LIMIT;
                let frame = bytes.slice(HEADER_LEN..);
                Ok(Self::Frame(Sealed { number, tag: array(bytes, NUMBER_LEN), frame }))
            }
            (MAGIC, VERSION, HANDSHAKE) => Handshake::parse(bytes),
            _ => {
                let value = u32::from(bytes[0]) << 8 | u32::from(bytes[1]);
                Err(ParseError::Unsupported { what: "D-Proxy datagram", value })
            }
        }
    }

    /// Appends the datagram.
    pub fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Self::Frame(sealed) => {
                out.extend_from_slice(&Sealed::header(sealed.number));
                out.extend_from_slice(&sealed.tag);
                out.extend_from_slice(&sealed.frame);
            }
            Self::Handshake(greeting, tag) => {
                out.extend_from_slice(&greeting.to_bytes());
                out.extend_from_slice(tag);
            }
        }
    }

    /// Length in bytes.
    #[must_use]
    pub fn wire_len(&self) -> usize {
        match self {
            Self::Frame(sealed) => HEADER_LEN + sealed.frame.len(),
            Self::Handshake(..) => HANDSHAKE_LEN,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(datagram: &Datagram) -> Bytes {
        let mut out = Vec::new();
        datagram.emit(&mut out);
        assert_eq!(out.len(), datagram.wire_len());
        out.into()
    }

    fn greeting(wants: ResponseRequest) -> Datagram {
        let speaks = if wants == ResponseRequest::Requested {
            MessageFormat::DProxy
        } else {
            MessageFormat::ArqFrames
        };
        let greeting = Handshake {
            epoch: 1,
            challenge: u64::MAX,
            challenge_response: 3,
            peer_epoch: 4,
            response: wants,
            format: speaks,
        };
        Datagram::Handshake(greeting, [9; HANDSHAKE_TAG_LEN])
    }

    fn frame(number: u64, frame: &'static [u8]) -> Datagram {
        Datagram::Frame(Sealed { number, tag: *b"12345678", frame: Bytes::from_static(frame) })
    }

    #[test]
    fn emitted_datagrams_parse_back() {
        let all = [
            greeting(ResponseRequest::Requested),
            greeting(ResponseRequest::None),
            frame(0, b""),
            frame(NUMBER_LIMIT - 1, b"a frame"),
        ];
        for datagram in all {
            assert_eq!(Datagram::parse(&written(&datagram)), Ok(datagram));
        }
        assert_eq!(
            &written(&frame(0x0102_0304_0506, b"x"))[..],
            b"\xd6\x30\x01\x02\x03\x04\x05\x0612345678x"
        );
    }

    #[test]
    fn truncated_overlong_or_unknown_datagrams_are_refused() {
        let whole = written(&greeting(ResponseRequest::Requested));
        for len in 0..whole.len() {
            assert!(matches!(Datagram::parse(&whole.slice(..len)), Err(ParseError::Truncated { .. })));
        }
        let longer = Bytes::from([&whole[..], &[0]].concat());
        let bad = ParseError::BadLength { what: "D-Proxy greeting", value: HANDSHAKE_LEN + 1 };
        assert_eq!(Datagram::parse(&longer), Err(bad));
        for (at, value) in [(0, 0xd5), (1, 0x11), (1, 0x22), (2, 2), (3, 0), (3, 4)] {
            let mut other = whole.to_vec();
            other[at] = value;
            assert!(matches!(Datagram::parse(&other.into()), Err(ParseError::Unsupported { .. })));
        }
    }

    #[test]
    fn another_version_is_distinguished_from_this_one_and_from_noise() {
        let mut greeting = written(&greeting(ResponseRequest::Requested)).to_vec();
        assert_eq!(other_version(&greeting), None);
        greeting[1] = 0x11;
        assert_eq!(other_version(&greeting), Some(1));
        for len in super::super::SEALED_LENS {
            let message = vec![1; len];
            assert_eq!((other_version(&message), other_version(&message[1..])), (Some(1), None));
        }
        assert_eq!(other_version(&[]), None);
    }
}
