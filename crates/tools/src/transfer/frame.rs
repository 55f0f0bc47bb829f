//! Encoding of frames. `docs/transfer.md` has the layout.

use super::identity::SenderId;
use super::path::MAX_PATH;
use super::reason::{MAX_TEXT, Refusal, cut};
use crate::printable::printable;
use blake3::Hash;

/// Protocol version of this implementation.
pub const VERSION: u8 = 3;
/// Bytes of a frame's header.
pub const HEADER: usize = 12;
/// Maximum bytes of file data in one frame.
pub const MAX_DATA: usize = 1 << 16;
/// Maximum number of offers without a final answer, so that small files do not take a round trip each.
pub const WINDOW: usize = 64;

const MAGIC: &[u8; 7] = b"hopline";
const HASH_LEN: usize = 32;
const NUMBER_LEN: usize = size_of::<Number>();
/// Bytes of an offer before the path: kind, mode, modification time, size, hash.
const OFFER_FIXED: usize = 1 + 2 + 8 + 4 + 8 + HASH_LEN;

/// Number of an offer in its conversation, from 0.
pub type Number = u32;

/// Message of the file transfer protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// First frame of both sides.
    Hello {
        /// Protocol version.
        version: u8,
        /// Sender: its identifier, if it wants to be recognised later.
        sender: Option<SenderId>,
    },
    /// Sender: offers a file, directory or stream.
    Offer(Number, Offer),
    /// Receiver: accepts an offer, and reports the bytes that it already has.
    Accept {
        /// Number of the offer.
        number: Number,
        /// Bytes that the receiver already has.
        offset: u64,
        /// BLAKE3 hash of these bytes.
        prefix: Hash,
    },
    /// Receiver: the identical file exists already.
    Have(Number),
    /// Receiver: rejects an offer, possibly in the middle of its data; the rest is then discarded.
    Refuse(Number, Refusal),
    /// Sender: starts the data of an accepted offer, at the accepted offset, or at 0 if the prefix differs.
    Start {
        /// Number of the offer.
        number: Number,
        /// Offset of the first data byte.
        offset: u64,
    },
    /// Sender: data of the file started last; at least one byte.
    Data(Vec<u8>),
    /// Sender: end of the data.
    End {
        /// BLAKE3 hash of the whole file.
        hash: Hash,
    },
    /// Sender: an accepted file cannot be completed; the receiver discards its state. Also ends a file that was rejected
    /// in the middle.
    Abandon {
        /// Number of the offer.
        number: Number,
        /// Reason, as text.
        why: String,
    },
    /// Receiver: the file is in its place and on the disk.
    Done(Number),
    /// Either side: it cannot continue.
    Fail(Refusal),
    /// Sender: end of the conversation. Receiver: confirms it.
    Bye,
    /// Receiver: it is busy hashing a file or waiting for its disk, and will answer.
    Working,
}

/// Offer of a sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Destination path below the receiver's directory; not validated yet.
    pub path: Vec<u8>,
    /// Kind of the content.
    pub content: Content,
    /// Permission bits, at most 0o777.
    pub mode: u16,
    /// Time of the last modification.
    pub modified: Modified,
}

/// Kind of an offer's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// A file with known content.
    File {
        /// Size in bytes.
        size: u64,
        /// BLAKE3 hash of the content.
        hash: Hash,
    },
    /// A directory.
    Directory,
    /// A stream of unknown length, which cannot be resumed.
    Stream,
}

/// A modification time, since 1970-01-01 00:00 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modified {
    /// Whole seconds; negative before 1970.
    pub seconds: i64,
    /// Nanoseconds, below 10⁹.
    pub nanoseconds: u32,
}

/// Reason that bytes are not a valid frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The bytes do not start an allowed frame.
    #[error("the peer does not speak hopline's file transfer, or the stream is damaged")]
    Unknown,
    /// The checksum of the frame does not match.
    #[error("the stream is damaged: a frame does not match its check")]
    Damaged,
    /// The body is invalid for its kind.
    #[error("the peer sent a malformed frame")]
    Malformed,
}

const HELLO: u8 = 1;
const OFFER: u8 = 2;
const ACCEPT: u8 = 3;
const HAVE: u8 = 4;
const REFUSE: u8 = 5;
const START: u8 = 6;
const DATA: u8 = 7;
const END: u8 = 8;
const ABANDON: u8 = 9;
const DONE: u8 = 10;
const FAIL: u8 = 11;
const BYE: u8 = 12;
const WORKING: u8 = 13;

impl Frame {
    /// Encodes the frame.
    ///
    /// # Panics
    ///
    /// If data or path are longer than [`MAX_DATA`] or [`MAX_PATH`].
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; HEADER];
        let kind = self.put_body(&mut bytes);
        let len = bytes.len() - HEADER;
        let most = max_body_len(kind).expect("a kind that is put has a bound");
        assert!(len <= most, "a body of {len} bytes, at most {most}");
        bytes[0] = kind;
        bytes[1..4].copy_from_slice(&(len as u32).to_be_bytes()[1..]);
        let check = checksum(&bytes[..4], &bytes[HEADER..]);
        bytes[4..HEADER].copy_from_slice(&check);
        bytes
    }

    /// Decodes the first frame of `bytes` and returns it with its length; `None` if it is incomplete.
    ///
    /// # Errors
    ///
    /// If the bytes cannot start a frame; more bytes do not help.
    pub fn decode(bytes: &[u8]) -> Result<Option<(Self, usize)>, FrameError> {
        let Some(kind) = bytes.first() else { return Ok(None) };
        let most = max_body_len(*kind).ok_or(FrameError::Unknown)?;
        let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() else { return Ok(None) };
        let len = u32::from_be_bytes([0, header[1], header[2], header[3]]) as usize;
        if len > most {
            return Err(FrameError::Unknown);
        }
        let Some(body) = rest.get(..len) else { return Ok(None) };
        if header[4..] != checksum(&header[..4], body) {
            return Err(FrameError::Damaged);
        }
        let frame = Self::of_body(*kind, body).ok_or(FrameError::Malformed)?;
        Ok(Some((frame, HEADER + len)))
    }

    fn put_body(&self, out: &mut Vec<u8>) -> u8 {
        match self {
            Self::Hello { version, sender } => {
                out.extend_from_slice(MAGIC);
                out.push(*version);
                out.extend(sender.iter().flat_map(|SenderId(id)| id));
                HELLO
            }
            Self::Offer(number, offer) => {
                put(out, *number);
                offer.put(out);
                OFFER
            }
            Self::Accept { number, offset, prefix } => {
                put(out, *number);
                out.extend_from_slice(&offset.to_be_bytes());
                out.extend_from_slice(prefix.as_bytes());
                ACCEPT
            }
            Self::Have(number) => {
                put(out, *number);
                HAVE
            }
            Self::Refuse(number, refusal) => {
                put(out, *number);
                refusal.put(out);
                REFUSE
            }
            Self::Start { number, offset } => {
                put(out, *number);
                out.extend_from_slice(&offset.to_be_bytes());
                START
            }
            Self::Data(data) => {
                out.extend_from_slice(data);
                DATA
            }
            Self::End { hash } => {
                out.extend_from_slice(hash.as_bytes());
                END
            }
            Self::Abandon { number, why } => {
                put(out, *number);
                out.extend_from_slice(cut(why).as_bytes());
                ABANDON
            }
            Self::Done(number) => {
                put(out, *number);
                DONE
            }
            Self::Fail(refusal) => {
                refusal.put(out);
                FAIL
            }
            Self::Bye => BYE,
            Self::Working => WORKING,
        }
    }

    fn of_body(kind: u8, mut body: &[u8]) -> Option<Self> {
        let frame = match kind {
            HELLO => {
                (take::<7>(&mut body)? == *MAGIC).then_some(())?;
                let [version] = take(&mut body)?;
                let sender = take(&mut body).map(SenderId);
                // A later version may append fields.
                body = &[];
                Self::Hello { version, sender }
            }
            OFFER => Self::Offer(number(&mut body)?, Offer::of(std::mem::take(&mut body))?),
            ACCEPT => Self::Accept {
                number: number(&mut body)?,
                offset: u64::from_be_bytes(take(&mut body)?),
                prefix: Hash::from_bytes(take(&mut body)?),
            },
            HAVE => Self::Have(number(&mut body)?),
            REFUSE => Self::Refuse(number(&mut body)?, Refusal::of(std::mem::take(&mut body))?),
            START => Self::Start { number: number(&mut body)?, offset: u64::from_be_bytes(take(&mut body)?) },
            DATA => Self::Data((!body.is_empty()).then(|| std::mem::take(&mut body).to_vec())?),
            END => Self::End { hash: Hash::from_bytes(take(&mut body)?) },
            ABANDON => {
                Self::Abandon { number: number(&mut body)?, why: printable(std::mem::take(&mut body)) }
            }
            DONE => Self::Done(number(&mut body)?),
            FAIL => Self::Fail(Refusal::of(std::mem::take(&mut body))?),
            BYE => Self::Bye,
            WORKING => Self::Working,
            _ => return None,
        };
        body.is_empty().then_some(frame)
    }
}

impl Offer {
    fn put(&self, out: &mut Vec<u8>) {
        let (kind, size, hash) = match self.content {
            Content::File { size, hash } => (0, size, *hash.as_bytes()),
            Content::Directory => (1, 0, [0; HASH_LEN]),
            Content::Stream => (2, 0, [0; HASH_LEN]),
        };
        out.push(kind);
        out.extend_from_slice(&self.mode.to_be_bytes());
        out.extend_from_slice(&self.modified.seconds.to_be_bytes());
        out.extend_from_slice(&self.modified.nanoseconds.to_be_bytes());
        out.extend_from_slice(&size.to_be_bytes());
        out.extend_from_slice(&hash);
        out.extend_from_slice(&self.path);
    }

    fn of(mut body: &[u8]) -> Option<Self> {
        let [kind] = take(&mut body)?;
        let mode = u16::from_be_bytes(take(&mut body)?);
        let modified = Modified {
            seconds: i64::from_be_bytes(take(&mut body)?),
            nanoseconds: u32::from_be_bytes(take(&mut body)?),
        };
        let size = u64::from_be_bytes(take(&mut body)?);
        let hash = take(&mut body)?;
        let content = match kind {
            0 => Content::File { size, hash: Hash::from_bytes(hash) },
            _ if size != 0 || hash != [0; HASH_LEN] => return None,
            1 => Content::Directory,
            2 => Content::Stream,
            _ => return None,
        };
        let sound = mode <= 0o777 && modified.nanoseconds < 1_000_000_000;
        sound.then(|| Self { path: body.to_vec(), content, mode, modified })
    }
}

/// Returns the maximum bytes of a body; `None` for an unknown kind.
const fn max_body_len(kind: u8) -> Option<usize> {
    Some(match kind {
        HELLO => 64,
        OFFER => NUMBER_LEN + OFFER_FIXED + MAX_PATH,
        ACCEPT => NUMBER_LEN + 8 + HASH_LEN,
        HAVE | DONE => NUMBER_LEN,
        REFUSE => NUMBER_LEN + 1 + MAX_TEXT,
        FAIL => 1 + MAX_TEXT,
        START => NUMBER_LEN + 8,
        DATA => MAX_DATA,
        END => HASH_LEN,
        ABANDON => NUMBER_LEN + MAX_TEXT,
        BYE | WORKING => 0,
        _ => return None,
    })
}

/// Returns the checksum: the first eight bytes of the BLAKE3 hash of kind, length and body.
fn checksum(start: &[u8], body: &[u8]) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(start).update(body);
    *hasher.finalize().as_bytes().first_chunk().expect("a hash has 32 bytes")
}

fn put(out: &mut Vec<u8>, number: Number) {
    out.extend_from_slice(&number.to_be_bytes());
}

fn number(body: &mut &[u8]) -> Option<Number> {
    take(body).map(Number::from_be_bytes)
}

fn take<const N: usize>(body: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = body.split_first_chunk()?;
    *body = rest;
    Some(*taken)
}

#[cfg(test)]
mod tests {
    use super::super::reason::Reason;
    use super::*;

    fn all() -> Vec<Frame> {
        let hash = blake3::hash(b"x");
        let refusal = Refusal::new(Reason::Exists, "there is one");
        let offer = |content| Offer {
            path: b"a/b".to_vec(),
            content,
            mode: 0o644,
            modified: Modified { seconds: -1, nanoseconds: 999_999_999 },
        };
        vec![
            Frame::Hello { version: VERSION, sender: None },
            Frame::Hello { version: VERSION, sender: Some(SenderId([7; 16])) },
            Frame::Offer(9, offer(Content::File { size: u64::MAX, hash })),
            Frame::Offer(9, offer(Content::Directory)),
            Frame::Offer(9, offer(Content::Stream)),
            Frame::Accept { number: 9, offset: 7, prefix: hash },
            Frame::Have(9),
            Frame::Refuse(9, refusal.clone()),
            Frame::Start { number: Number::MAX, offset: 1 << 40 },
            Frame::Data(vec![0]),
            Frame::Data(vec![7; MAX_DATA]),
            Frame::End { hash },
            Frame::Abandon { number: 9, why: "changed".into() },
            Frame::Done(9),
            Frame::Fail(refusal),
            Frame::Bye,
            Frame::Working,
        ]
    }

    #[test]
    fn frames_round_trip() {
        for frame in all() {
            let bytes = frame.encode();
            assert_eq!(Frame::decode(&bytes), Ok(Some((frame, bytes.len()))));
        }
    }

    #[test]
    fn the_layout_is_the_documented_one() {
        let bytes = Frame::Hello { version: 1, sender: None }.encode();
        assert_eq!(bytes[..4], [1, 0, 0, 8]);
        assert_eq!(bytes[4..12], blake3::hash(b"\x01\0\0\x08hopline\x01").as_bytes()[..8]);
        assert_eq!(&bytes[12..], b"hopline\x01");
        let start = Frame::Start { number: 3, offset: 258 }.encode();
        assert_eq!(start[HEADER..], [0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 1, 2]);
    }

    #[test]
    fn an_incomplete_frame_is_incomplete_and_not_an_error() {
        for frame in all() {
            let bytes = frame.encode();
            for len in 0..bytes.len().min(100) {
                assert_eq!(Frame::decode(&bytes[..len]), Ok(None), "{len} bytes of {frame:?}");
            }
        }
    }

    #[test]
    fn any_flipped_bit_is_detected() {
        let whole = Frame::Data(b"some bytes".to_vec()).encode();
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let decoded = Frame::decode(&bytes);
            // A greater length makes the decoder wait, or exceeds the maximum.
            assert!(
                decoded.is_err() || decoded == Ok(None) && (8..32).contains(&bit),
                "bit {bit}: {decoded:?}"
            );
        }
    }

    #[test]
    fn no_length_field_exceeds_the_bound() {
        for kind in 0..=255 {
            let decoded = Frame::decode(&[kind, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]);
            assert_eq!(decoded, Err(FrameError::Unknown), "kind {kind}");
        }
        assert_eq!(Frame::decode(b"GET / HTTP/1.1\r\n"), Err(FrameError::Unknown));
    }

    #[test]
    fn bodies_of_the_wrong_length_are_malformed() {
        let framed = |kind: u8, body: &[u8]| {
            let start = [kind, 0, 0, body.len() as u8];
            Frame::decode(&[&start, checksum(&start, body).as_slice(), body].concat())
        };
        let empty = vec![0; NUMBER_LEN + OFFER_FIXED];
        let (mut offer, mut mode, mut sized_directory) = (empty.clone(), empty.clone(), empty);
        offer[NUMBER_LEN] = 3;
        mode[NUMBER_LEN + 1] = 2;
        (sized_directory[NUMBER_LEN], sized_directory[NUMBER_LEN + 20]) = (1, 1);
        for (kind, body) in [
            (HELLO, b"hopline".as_slice()),
            (HELLO, b"HOPLINE\x01"),
            (OFFER, &[0; NUMBER_LEN + OFFER_FIXED - 1]),
            (OFFER, &offer),
            (OFFER, &mode),
            (OFFER, &sized_directory),
            (ACCEPT, &[0; NUMBER_LEN + 39]),
            (HAVE, &[0; NUMBER_LEN - 1]),
            (REFUSE, &[0; NUMBER_LEN]),
            (START, &[0; NUMBER_LEN + 7]),
            (ABANDON, &[0; NUMBER_LEN - 1]),
            (DATA, b""),
            (END, &[0; 31]),
            (FAIL, b""),
        ] {
            assert_eq!(framed(kind, body), Err(FrameError::Malformed), "{kind}: {body:?}");
        }
        assert_eq!(
            framed(HELLO, b"hopline\x02and more"),
            Ok(Some((Frame::Hello { version: 2, sender: None }, 28)))
        );
    }

    #[test]
    fn texts_are_cut_and_contain_no_control_characters() {
        let long = Frame::Abandon { number: 0, why: "ü".repeat(400) }.encode();
        let Ok(Some((Frame::Abandon { why, .. }, _))) = Frame::decode(&long) else { panic!("{long:?}") };
        assert_eq!(why, "ü".repeat(256));
        let escape = Frame::Fail(Refusal::new(Reason::System, "\x1b[2J")).encode();
        let Ok(Some((Frame::Fail(refusal), _))) = Frame::decode(&escape) else { panic!("{escape:?}") };
        assert_eq!(refusal.text, "\\u{1b}[2J");
    }
}
