//! Datagrams of the encryption layer: handshakes, sealed datagrams, and the control frames within these.
//!
//! Every datagram begins with eight bytes. If the first four are `TPAW` it belongs to a handshake, else these eight
//! are the connection id that its receiver has chosen.
//!
//! ```text
//! sealed     | connection id, 8 | number, low 32 bits | ciphertext … | tag, 16 |
//!
//! message 1  | TPAW | 1 | suite | newest | oldest | initiator's id, 8 | cookie, 16 | length, 2 | Noise message … | zeros to 192 |
//! retry      | TPAW | 2 | initiator's id, 8 | cookie, 16 |
//! message 2  | TPAW | 3 | initiator's id, 8 | Noise message … |
//! message 3  | TPAW | 4 | responder's id, 8 | Noise message … |
//! refusal    | TPAW | 5 | initiator's id, 8 | reason | newest | oldest |
//! reset      | TPAW | 6 | unknown id of the datagram, 8 | token, 16 |
//!
//! challenge  | 1 | 8 bytes |
//! response   | 2 | 8 bytes |
//! ```
//!
//! Messages 1 to 3 are the handshake messages of Noise; a reset is a stateless reset (RFC 9000 §10.3). Numbers are in
//! network byte order. A cookie of zeros is none.

use crate::emit::{array, be16, be32};
use crate::error::{ParseError, require};
use bytes::Bytes;
use core::fmt;

/// First bytes of a handshake datagram.
pub const MAGIC: [u8; 4] = *b"TPAW";
/// Length of the header of a sealed datagram: connection id and the low half of the number.
pub const HEADER_LEN: usize = 12;
/// Length of the tag of a sealed datagram.
pub const TAG_LEN: usize = 16;
/// Length of a cookie.
pub const COOKIE_LEN: usize = 16;
/// Length of a [`StatelessResetToken`].
pub const RESET_TOKEN_LEN: usize = 16;
/// Length of a [`HandshakeMessage::StatelessReset`]: at most that of the shortest datagram that causes it.
pub const STATELESS_RESET_LEN: usize = MESSAGE_LEN + RESET_TOKEN_LEN;
/// Handshake message 1 is padded to this length, so that its response is at most three times as long.
pub const HANDSHAKE_1_LEN: usize = 192;
/// Length of a control frame.
pub const CONTROL_LEN: usize = 9;

/// Length of the common header of handshake messages: magic, kind, connection id.
const MESSAGE_LEN: usize = 13;
/// Length of handshake message 1 before its Noise payload.
const HANDSHAKE_1_HEADER_LEN: usize = 34;

const HANDSHAKE_1: u8 = 1;
const RETRY: u8 = 2;
const HANDSHAKE_2: u8 = 3;
const HANDSHAKE_3: u8 = 4;
const REFUSAL: u8 = 5;
const STATELESS_RESET: u8 = 6;

const CHALLENGE: u8 = 1;
const RESPONSE: u8 = 2;

/// Connection id: eight bytes, chosen by the receiver of a datagram, that do not begin with [`MAGIC`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId([u8; 8]);

impl ConnectionId {
    /// Returns the id of these bytes; `None` if they begin with [`MAGIC`].
    #[must_use]
    pub fn new(bytes: [u8; 8]) -> Option<Self> {
        (!bytes.starts_with(&MAGIC)).then_some(Self(bytes))
    }

    /// Returns the bytes of the id.
    #[must_use]
    pub const fn bytes(self) -> [u8; 8] {
        self.0
    }

    fn parse(bytes: &[u8], at: usize) -> Result<Self, ParseError> {
        let what = ParseError::Unsupported { what: "connection id", value: be32(bytes, at) };
        Self::new(array(bytes, at)).ok_or(what)
    }
}

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", u64::from_be_bytes(self.0))
    }
}

/// Authentication method of the peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// A pre-shared key.
    SharedKey,
    /// Static public keys.
    PublicKeys,
}

/// AEAD cipher of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cipher {
    /// ChaCha20-Poly1305: fast on every processor.
    ChaCha20Poly1305,
    /// AES-256 in Galois/Counter mode: faster on processors with instructions for it.
    Aes256Gcm,
}

/// Method and cipher of a connection, chosen by the initiator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Suite {
    /// Authentication method of the peers.
    pub method: Method,
    /// AEAD cipher of datagrams.
    pub cipher: Cipher,
}

impl Suite {
    /// Returns its byte in handshake message 1.
    #[must_use]
    pub const fn byte(self) -> u8 {
        let method = match self.method {
            Method::SharedKey => 0x10,
            Method::PublicKeys => 0x20,
        };
        method
            | match self.cipher {
                Cipher::ChaCha20Poly1305 => 1,
                Cipher::Aes256Gcm => 2,
            }
    }

    /// The suite with this byte.
    #[must_use]
    pub const fn of_byte(byte: u8) -> Option<Self> {
        let method = match byte >> 4 {
            1 => Method::SharedKey,
            2 => Method::PublicKeys,
            _ => return None,
        };
        let cipher = match byte & 0xf {
            1 => Cipher::ChaCha20Poly1305,
            2 => Cipher::Aes256Gcm,
            _ => return None,
        };
        Some(Self { method, cipher })
    }
}

/// Range of the TPA-wide versions that an endpoint supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Versions {
    /// Newest version, at least [`oldest`](Self::oldest).
    pub newest: u8,
    /// Oldest version, at least 1.
    pub oldest: u8,
}

impl Versions {
    /// Returns the newest version that both support.
    #[must_use]
    pub fn common(self, other: Self) -> Option<u8> {
        let newest = self.newest.min(other.newest);
        (newest >= self.oldest.max(other.oldest)).then_some(newest)
    }

    fn parse(bytes: &[u8], at: usize) -> Result<Self, ParseError> {
        let (newest, oldest) = (bytes[at], bytes[at + 1]);
        if oldest == 0 || oldest > newest {
            return Err(ParseError::Unsupported { what: "oldest version", value: oldest.into() });
        }
        Ok(Self { newest, oldest })
    }
}

/// Address validation token: proves that its bearer receives datagrams at its address.
pub type Cookie = [u8; COOKIE_LEN];

/// Stateless reset token: proves that the sender has lost the state of the connection.
pub type StatelessResetToken = [u8; RESET_TOKEN_LEN];

/// Reason for which a responder refuses a connection. The refusal is not authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusalReason {
    /// It supports none of the initiator's versions.
    Version,
    /// It authenticates its peers by another method.
    Method,
}

/// A message of a handshake.
///
/// # Example
///
/// ```
/// use bytes::Bytes;
/// use hopline_wire::secure::{ConnectionId, HandshakeMessage};
///
/// let initiator = ConnectionId::new([7; 8]).expect("not the magic number");
/// let retry = HandshakeMessage::Retry { initiator, cookie: [1; 16] };
/// assert_eq!(HandshakeMessage::parse(&retry.to_bytes()), Ok(retry));
/// assert!(HandshakeMessage::parse(&Bytes::from_static(b"TPAW")).is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandshakeMessage {
    /// Handshake message 1, of the initiator.
    Handshake1 {
        /// Method and cipher.
        suite: Suite,
        /// Versions that the initiator supports.
        versions: Versions,
        /// Connection id to which the initiator wants replies.
        initiator_id: ConnectionId,
        /// Cookie from the responder's retry.
        cookie: Option<Cookie>,
        /// Noise payload.
        noise: Bytes,
    },
    /// Retry: requires the initiator to repeat message 1 with a cookie.
    Retry {
        /// Initiator's id, from message 1.
        initiator: ConnectionId,
        /// Cookie to return.
        cookie: Cookie,
    },
    /// Handshake message 2, of the responder.
    Handshake2 {
        /// Initiator's id, from message 1.
        initiator_id: ConnectionId,
        /// Noise payload.
        noise: Bytes,
    },
    /// Handshake message 3, of the initiator, if peers authenticate by public keys.
    Handshake3 {
        /// Responder's id, from message 2.
        responder_id: ConnectionId,
        /// Noise payload.
        noise: Bytes,
    },
    /// Refusal of the connection.
    Refusal {
        /// Initiator's id, from message 1.
        initiator: ConnectionId,
        /// Reason.
        reason: RefusalReason,
        /// Versions that the responder supports.
        versions: Versions,
    },
    /// Stateless reset (RFC 9000 §10.3): the connection is no longer known here.
    StatelessReset {
        /// Unknown id in the datagram that caused this; it was chosen by the sender of the reset.
        id: ConnectionId,
        /// Token that only the endpoint that had the connection, and its peer, can know.
        token: StatelessResetToken,
    },
}

/// Addressee of a handshake message, derived from its kind alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipient {
    /// A responder: handshake message 1 or 3.
    Responder,
    /// The initiator with this id.
    Initiator(ConnectionId),
    /// The endpoint that sends to this id.
    Connection(ConnectionId),
}

impl Recipient {
    /// Returns the addressee of a datagram that [belongs to a handshake](DatagramKind::Handshake), if the kind is known.
    #[must_use]
    pub fn of(datagram: &[u8]) -> Option<Self> {
        let id = || ConnectionId::new(*datagram.get(5..)?.first_chunk()?);
        match datagram.get(4)? {
            &HANDSHAKE_1 | &HANDSHAKE_3 => Some(Self::Responder),
            &RETRY | &HANDSHAKE_2 | &REFUSAL => id().map(Self::Initiator),
            &STATELESS_RESET => id().map(Self::Connection),
            _ => None,
        }
    }
}

/// Kind of a datagram, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramKind {
    /// A handshake message: see [`HandshakeMessage::parse`].
    Handshake,
    /// A sealed datagram of this connection.
    Sealed(ConnectionId),
}

impl DatagramKind {
    /// Returns the kind of `datagram`; `None` if it is too short.
    #[must_use]
    pub fn of(datagram: &[u8]) -> Option<Self> {
        let id = datagram.first_chunk()?;
        Some(ConnectionId::new(*id).map_or(Self::Handshake, Self::Sealed))
    }
}

impl HandshakeMessage {
    /// Parses a message. Bytes behind the Noise payload of message 1 are padding, whatever their values.
    ///
    /// # Errors
    /// `Truncated`; `Unsupported` for another magic number, kind, suite or reason, and for invalid versions and connection
    /// ids; `BadLength` of bytes behind the end.
    pub fn parse(bytes: &Bytes) -> Result<Self, ParseError> {
        require(bytes, MESSAGE_LEN)?;
        if !bytes.starts_with(&MAGIC) {
            return Err(ParseError::Unsupported { what: "magic number", value: be32(bytes, 0) });
        }
        match bytes[4] {
            HANDSHAKE_1 => Self::parse_handshake_1(bytes),
            RETRY => {
                exactly(bytes, MESSAGE_LEN + COOKIE_LEN)?;
                let cookie = array(bytes, MESSAGE_LEN);
                Ok(Self::Retry { initiator: ConnectionId::parse(bytes, 5)?, cookie })
            }
            HANDSHAKE_2 => {
                let noise = bytes.slice(MESSAGE_LEN..);
                Ok(Self::Handshake2 { initiator_id: ConnectionId::parse(bytes, 5)?, noise })
            }
            HANDSHAKE_3 => {
                let noise = bytes.slice(MESSAGE_LEN..);
                Ok(Self::Handshake3 { responder_id: ConnectionId::parse(bytes, 5)?, noise })
            }
            REFUSAL => {
                exactly(bytes, MESSAGE_LEN + 3)?;
                let reason = match bytes[MESSAGE_LEN] {
                    1 => RefusalReason::Version,
                    2 => RefusalReason::Method,
                    other => return Err(ParseError::Unsupported { what: "reason", value: other.into() }),
                };
                let versions = Versions::parse(bytes, MESSAGE_LEN + 1)?;
                Ok(Self::Refusal { initiator: ConnectionId::parse(bytes, 5)?, reason, versions })
            }
            STATELESS_RESET => {
                exactly(bytes, STATELESS_RESET_LEN)?;
                Ok(Self::StatelessReset {
                    id: ConnectionId::parse(bytes, 5)?,
                    token: array(bytes, MESSAGE_LEN),
                })
            }
            other => Err(ParseError::Unsupported { what: "kind of message", value: other.into() }),
        }
    }

    fn parse_handshake_1(bytes: &Bytes) -> Result<Self, ParseError> {
        require(bytes, HANDSHAKE_1_LEN)?;
        let unknown = ParseError::Unsupported { what: "suite", value: bytes[5].into() };
        let suite = Suite::of_byte(bytes[5]).ok_or(unknown)?;
        let versions = Versions::parse(bytes, 6)?;
        let initiator = ConnectionId::parse(bytes, 8)?;
        let cookie = Some(array(bytes, 16)).filter(|cookie| *cookie != [0; COOKIE_LEN]);
        let end = HANDSHAKE_1_HEADER_LEN + usize::from(be16(bytes, 32));
        require(bytes, end)?;
        let noise = bytes.slice(HANDSHAKE_1_HEADER_LEN..end);
        Ok(Self::Handshake1 { suite, versions, initiator_id: initiator, cookie, noise })
    }

    /// Appends the message. The Noise payload of message 1 must be shorter than 64 KiB.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&MAGIC);
        match self {
            Self::Handshake1 { suite, versions, initiator_id: initiator, cookie, noise } => {
                let start = out.len() - MAGIC.len();
                out.extend_from_slice(&[HANDSHAKE_1, suite.byte(), versions.newest, versions.oldest]);
                out.extend_from_slice(&initiator.0);
                out.extend_from_slice(&cookie.unwrap_or_default());
                let len = u16::try_from(noise.len()).expect("a Noise message is shorter than 64 KiB");
                out.extend_from_slice(&len.to_be_bytes());
                out.extend_from_slice(noise);
                out.resize(out.len().max(start + HANDSHAKE_1_LEN), 0);
            }
            Self::Retry { initiator, cookie } => {
                out.push(RETRY);
                out.extend_from_slice(&initiator.0);
                out.extend_from_slice(cookie);
            }
            Self::Handshake2 { initiator_id: id, noise } | Self::Handshake3 { responder_id: id, noise } => {
                out.push(if matches!(self, Self::Handshake2 { .. }) { HANDSHAKE_2 } else { HANDSHAKE_3 });
                out.extend_from_slice(&id.0);
                out.extend_from_slice(noise);
            }
            Self::Refusal { initiator, reason, versions } => {
                out.push(REFUSAL);
                out.extend_from_slice(&initiator.0);
                let reason = match reason {
                    RefusalReason::Version => 1,
                    RefusalReason::Method => 2,
                };
                out.extend_from_slice(&[reason, versions.newest, versions.oldest]);
            }
            Self::StatelessReset { id, token } => {
                out.push(STATELESS_RESET);
                out.extend_from_slice(&id.0);
                out.extend_from_slice(token);
            }
        }
    }

    /// The message as a datagram.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        let mut out = Vec::with_capacity(HANDSHAKE_1_LEN);
        self.emit(&mut out);
        out.into()
    }
}

/// The header of a sealed datagram.
///
/// # Example
///
/// ```
/// use hopline_wire::secure::{ConnectionId, HEADER_LEN, SealedHeader, TAG_LEN};
///
/// let header = SealedHeader { id: ConnectionId::new([7; 8]).expect("not the magic number"), number: 12 };
/// let mut datagram = header.bytes().to_vec();
/// assert_eq!(datagram.len(), HEADER_LEN);
/// datagram.extend([0; TAG_LEN]);
/// assert_eq!(SealedHeader::parse(&datagram), Ok(header));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealedHeader {
    /// Connection id that the receiver has chosen.
    pub id: ConnectionId,
    /// The low half of the datagram's number.
    pub number: u32,
}

impl SealedHeader {
    /// Parses the header of a sealed datagram that has room for a tag.
    ///
    /// # Errors
    /// `Truncated`; `Unsupported` if it belongs to a handshake.
    pub fn parse(datagram: &[u8]) -> Result<Self, ParseError> {
        require(datagram, HEADER_LEN + TAG_LEN)?;
        Ok(Self { id: ConnectionId::parse(datagram, 0)?, number: be32(datagram, 8) })
    }

    /// Returns the bytes of the header.
    #[must_use]
    pub fn bytes(self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[..8].copy_from_slice(&self.id.0);
        bytes[8..].copy_from_slice(&self.number.to_be_bytes());
        bytes
    }
}

/// Control frame of the encryption layer within a sealed datagram. Its position is up to the user of the layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Control {
    /// Path challenge: asks the peer to prove that it receives at this address.
    Challenge([u8; 8]),
    /// Path response: the bytes of the challenge.
    Response([u8; 8]),
}

impl Control {
    /// Parses the frame at the start of `bytes`.
    ///
    /// # Errors
    /// `Truncated`; `Unsupported` for another kind.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        require(bytes, CONTROL_LEN)?;
        match bytes[0] {
            CHALLENGE => Ok(Self::Challenge(array(bytes, 1))),
            RESPONSE => Ok(Self::Response(array(bytes, 1))),
            other => Err(ParseError::Unsupported { what: "control frame", value: other.into() }),
        }
    }

    /// Returns the bytes of the frame.
    #[must_use]
    pub fn bytes(self) -> [u8; CONTROL_LEN] {
        let (kind, content) = match self {
            Self::Challenge(content) => (CHALLENGE, content),
            Self::Response(content) => (RESPONSE, content),
        };
        let mut bytes = [kind; CONTROL_LEN];
        bytes[1..].copy_from_slice(&content);
        bytes
    }
}

fn exactly(bytes: &[u8], len: usize) -> Result<(), ParseError> {
    require(bytes, len)?;
    if bytes.len() > len {
        return Err(ParseError::BadLength { what: "message of a handshake", value: bytes.len() });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
