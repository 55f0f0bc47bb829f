//! Packets of TPA-wide, the successor of TPA for wide paths (`docs/protocols/tpa-wide.md`).
//!
//! Each transmission has its own packet number, which is never reused. An acknowledgment therefore identifies a
//! transmission, and its round-trip time is unambiguous. On a network a packet is encrypted; only these fields are in the
//! clear:
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+---------------+---------------+
//! |                       connection id (8)                       |
//! |                                                               |
//! +---------------+---------------+---------------+---------------+
//! |             packet number, its lower 32 bits                  |
//! +---------------+---------------+---------------+---------------+
//! ```
//!
//! The rest is encrypted, with an authentication tag of 16 bytes at the end. It starts with one byte of flags (`A`CK,
//! `D`ata, `F`IN, `O`pening, `R`eset, `P`ing, `L`ate). These fields follow, each if its flag is set:
//!
//! - the opening (8 bytes);
//! - the acknowledgment (31 bytes and its spans);
//! - the data, last: their offset in the stream (6 bytes) and the bytes.
//!
//! In place of a packet there may be a path challenge or response ([`DatagramContent::Path`]), or nothing. This module reads and
//! writes the plaintext.

use crate::emit::{Emit, array, be16, be32};
use crate::error::{ParseError, require};
use crate::ipv4::Ecn;
use crate::secure;
use bytes::Bytes;
use hopline_core::Payload;
use smallvec::SmallVec;

#[cfg(test)]
mod tests;

/// Default UDP port of servers. Not registered.
pub const PORT: u16 = 7174;
/// Bytes in the clear before the ciphertext, and the tag behind it.
pub const SEALED_LEN: usize = 8 + 4 + 16;
/// Overhead of a packet with data only, cleartext header and tag included, in bytes.
pub const DATA_OVERHEAD: usize = SEALED_LEN + FLAGS_LEN + OFFSET_LEN;
/// Maximum number of spans in an acknowledgment.
pub const MAX_ACK_RANGES: usize = 64;

/// Version of the opening, and of the parts of the protocol on which peers must agree.
const VERSION: u8 = 1;
const FLAGS_LEN: usize = 1;
const OFFSET_LEN: usize = 6;
const OPENING_LEN: usize = 8;
/// Largest (6), arrival (4), delay (2), marks (4), cumulative offset (6), limit (6), answered (2), number of spans (1).
const ACK_LEN: usize = 31;

const ACK: u8 = 1;
const DATA: u8 = 2;
const FIN: u8 = 4;
const OPENING: u8 = 8;
const RESET: u8 = 16;
const PING: u8 = 32;
const DEFERRED_ACK: u8 = 128;
/// Flag of a frame of the encryption layer in place of a packet. The frame's kind is in the other bits.
const PATH: u8 = 64;

/// Length of [`HandshakeParameters`] without optional parts.
const PARAMETERS_LEN: usize = OPENING_LEN;

/// Consecutive packet numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct AckRange {
    /// First number.
    pub first: u64,
    /// Last number.
    pub last: u64,
}

/// Acknowledgment.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Ack {
    /// Arrival time of the largest packet number, by the receiver's clock: microseconds, wrapping around.
    pub arrival_us: u32,
    /// Acknowledgment delay of that packet, in 16 µs; at most about a second.
    pub delay: u16,
    /// Packets that arrived with Congestion Experienced (CE) since the connection began, wrapping around.
    pub marks: u32,
    /// Cumulative acknowledgment: all data before this offset have arrived.
    pub cumulative: u64,
    /// Flow control limit: the sender may send data up to this offset.
    pub max_data: u64,
    /// Ack-eliciting packets that have arrived since the connection began, duplicates included; wrapping around.
    pub ack_eliciting: u16,
    /// Packet numbers that have arrived, from the largest downwards. At least one span; the oldest are left out if there are
    /// many.
    pub ranges: SmallVec<[AckRange; 2]>,
}

impl Ack {
    /// Returns the largest packet number that has arrived.
    #[must_use]
    pub fn largest(&self) -> u64 {
        self.ranges.first().map_or(0, |span| span.last)
    }
}

/// Parameters that each end announces when a connection opens. On the wire: version (1), flags (1, zero), longest data (2),
/// limit (4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Opening {
    /// Largest data payload that the sender of this accepts in a packet, in bytes.
    pub mss: u16,
    /// Initial flow control limit: bytes for which the sender of this has room.
    pub max_data: u32,
}

impl Opening {
    fn bytes(self) -> [u8; OPENING_LEN] {
        let [mss, limit] = [&self.mss.to_be_bytes()[..], &self.max_data.to_be_bytes()];
        let mut bytes = [0; OPENING_LEN];
        bytes[0] = VERSION;
        bytes[2..4].copy_from_slice(mss);
        bytes[4..].copy_from_slice(limit);
        bytes
    }

    fn parse(bytes: &[u8], at: usize) -> Result<Self, ParseError> {
        require(bytes, at + OPENING_LEN)?;
        if bytes[at] != VERSION {
            return Err(unsupported("tpa-wide version", bytes[at].into()));
        }
        Ok(Self { mss: be16(bytes, at + 2), max_data: be32(bytes, at + 4) })
    }
}

/// Stateless reset token. It proves that an endpoint has lost a connection, as its peer was given the token in the
/// handshake.
pub type ResetToken = secure::StatelessResetToken;

/// Parameters that each end announces within the encryption handshake, so that no packet of the transport is spent on them.
/// They are the opening and optionally the token by which a later incarnation of this endpoint can end the connection (16
/// bytes). Further bytes are ignored, for future extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct HandshakeParameters {
    /// Opening parameters of the transport.
    pub opening: Opening,
    /// Token of a later [`HandshakeMessage::StatelessReset`](crate::secure::HandshakeMessage::StatelessReset).
    pub reset: Option<ResetToken>,
}

impl HandshakeParameters {
    /// Returns the parameters as bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        let opening = self.opening.bytes();
        let reset = self.reset.as_ref().map_or(&[][..], |token| token);
        [&opening, reset].concat().into()
    }

    /// Parses the parameters.
    ///
    /// # Errors
    /// `Truncated`; `Unsupported` of another version.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let opening = Opening::parse(bytes, 0)?;
        let reset = bytes.get(PARAMETERS_LEN..).and_then(<[u8]>::first_chunk);
        Ok(Self { opening, reset: reset.copied() })
    }
}

/// Control function of a packet: ends or keeps alive the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Control {
    /// None.
    #[default]
    None,
    /// Ends the connection at once.
    Reset,
    /// Asks for an acknowledgment.
    Ping,
}

/// Data with their position in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Data<P> {
    /// Offset of the first byte in the stream, below 2⁴⁸.
    pub offset: u64,
    /// End of the stream.
    pub end: StreamEnd,
    /// The bytes; none if only the end of the stream is announced.
    pub payload: P,
}

/// End of the stream behind some data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum StreamEnd {
    /// The stream continues.
    #[default]
    No,
    /// The stream ends (FIN).
    Yes,
}

/// Urgency of a packet's acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum AckUrgency {
    /// The receiver acknowledges as soon as it does by default.
    #[default]
    Urgent,
    /// The acknowledgment may be delayed: on a shared radio channel it takes airtime from data.
    Deferred,
}

/// A packet.
///
/// # Example
///
/// ```
/// use bytes::Bytes;
/// use hopline_wire::wide::{Data, StreamEnd, Packet};
///
/// let data = Data { offset: 1437, end: StreamEnd::Yes, payload: Bytes::from_static(b"data") };
/// let packet = Packet { number: 12, data: Some(data), ..Packet::default() };
/// let mut plaintext = Vec::new();
/// packet.emit_inner(&mut plaintext);
/// // The packet number is in the header of the sealed datagram.
/// assert_eq!(Packet::parse_inner(12, &Bytes::from(plaintext)), Ok(packet));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Packet<P> {
    /// Packet number.
    pub number: u64,
    /// The ECN field of the IP header around it.
    pub ecn: Ecn,
    /// Parameters of the sender, while the connection opens.
    pub opening: Option<Opening>,
    /// An acknowledgment.
    pub ack: Option<Box<Ack>>,
    /// Control function: ends or keeps alive the connection.
    pub control: Control,
    /// Urgency of the acknowledgment.
    pub ack_urgency: AckUrgency,
    /// Data.
    pub data: Option<Data<P>>,
}

impl<P: Payload> Packet<P> {
    /// Length as the payload of a UDP datagram, sealed.
    #[must_use]
    pub fn sealed_len(&self) -> usize {
        let opening = if self.opening.is_some() { OPENING_LEN } else { 0 };
        let ack = self.ack.as_deref().map_or(0, ack_len);
        let data = self.data.as_ref().map_or(0, |data| OFFSET_LEN + data.payload.len() as usize);
        SEALED_LEN + FLAGS_LEN + opening + ack + data
    }

    /// Bytes of data.
    #[must_use]
    pub fn data_len(&self) -> u64 {
        self.data.as_ref().map_or(0, |data| data.payload.len())
    }

    /// Returns whether its receiver has to acknowledge it.
    #[must_use]
    pub fn is_ack_eliciting(&self) -> bool {
        self.data.is_some() || self.opening.is_some() || self.control == Control::Ping
    }

    fn flags(&self) -> u8 {
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        let fin = self.data.as_ref().is_some_and(|data| data.end == StreamEnd::Yes);
        bit(self.ack.is_some(), ACK)
            | bit(self.data.is_some(), DATA)
            | bit(fin, FIN)
            | bit(self.opening.is_some(), OPENING)
            | bit(self.control == Control::Reset, RESET)
            | bit(self.control == Control::Ping, PING)
            | bit(self.ack_urgency == AckUrgency::Deferred, DEFERRED_ACK)
    }
}

impl<P: Emit> Packet<P> {
    /// Appends the plaintext.
    pub fn emit_inner(&self, out: &mut Vec<u8>) {
        out.push(self.flags());
        if let Some(opening) = self.opening {
            out.extend(opening.bytes());
        }
        if let Some(ack) = &self.ack {
            emit_ack(ack, out);
        }
        if let Some(data) = &self.data {
            out.extend(be48(data.offset));
            data.payload.emit(out);
        }
    }
}

impl Packet<Bytes> {
    /// Parses the plaintext of the packet `number`.
    ///
    /// # Errors
    /// `Truncated`; `Unsupported` for invalid flags, versions and acknowledgments.
    pub fn parse_inner(number: u64, bytes: &Bytes) -> Result<Self, ParseError> {
        require(bytes, FLAGS_LEN)?;
        let flags = bytes[0];
        let answer = if flags & DEFERRED_ACK == 0 { AckUrgency::Urgent } else { AckUrgency::Deferred };
        let mut packet =
            Self { number, control: parse_control(flags)?, ack_urgency: answer, ..Self::default() };
        let mut at = FLAGS_LEN;
        if flags & OPENING != 0 {
            packet.opening = Some(Opening::parse(bytes, at)?);
            at += OPENING_LEN;
        }
        if flags & ACK != 0 {
            packet.ack = Some(Box::new(parse_ack(bytes, &mut at)?));
        }
        if flags & DATA != 0 {
            require(bytes, at + OFFSET_LEN)?;
            let end = if flags & FIN != 0 { StreamEnd::Yes } else { StreamEnd::No };
            let payload = bytes.slice(at + OFFSET_LEN..);
            packet.data = Some(Data { offset: read48(bytes, at), end, payload });
        } else if at != bytes.len() {
            return Err(ParseError::BadLength { what: "tpa-wide packet without data", value: bytes.len() });
        }
        Ok(packet)
    }
}

/// Content of a sealed datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatagramContent<P> {
    /// No bytes: it only shows that the sender has the keys.
    Empty,
    /// Path challenge or response: one byte, 64 and the frame's kind, and the 8 bytes of the frame. It asks for no
    /// acknowledgment.
    Path(secure::Control),
    /// A packet of the transport.
    Packet(Packet<P>),
}

impl DatagramContent<Bytes> {
    /// Parses the plaintext of the datagram `number`.
    ///
    /// # Errors
    /// As [`Packet::parse_inner`]; `Unsupported` frames; `BadLength` of bytes behind a frame.
    pub fn parse(number: u64, bytes: &Bytes) -> Result<Self, ParseError> {
        match bytes.first() {
            None => Ok(Self::Empty),
            Some(first) if first & PATH != 0 => parse_path(bytes).map(Self::Path),
            Some(_) => Packet::parse_inner(number, bytes).map(Self::Packet),
        }
    }
}

impl<P: Emit> DatagramContent<P> {
    /// Appends the plaintext.
    pub fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Self::Empty => {}
            Self::Path(frame) => {
                let mut bytes = frame.bytes();
                bytes[0] |= PATH;
                out.extend(bytes);
            }
            Self::Packet(packet) => packet.emit_inner(out),
        }
    }
}

fn parse_path(bytes: &[u8]) -> Result<secure::Control, ParseError> {
    require(bytes, secure::CONTROL_LEN)?;
    if bytes.len() > secure::CONTROL_LEN {
        return Err(ParseError::BadLength { what: "path frame", value: bytes.len() });
    }
    let mut frame: [u8; secure::CONTROL_LEN] = array(bytes, 0);
    frame[0] &= !PATH;
    secure::Control::parse(&frame)
}

fn parse_control(flags: u8) -> Result<Control, ParseError> {
    let control = match flags & (RESET | PING) {
        0 => Some(Control::None),
        RESET => Some(Control::Reset),
        PING => Some(Control::Ping),
        _ => None,
    };
    let known = flags & !(ACK | DATA | FIN | OPENING | RESET | PING | DEFERRED_ACK) == 0;
    let fin_has_data = flags & FIN == 0 || flags & DATA != 0;
    control.filter(|_| known && fin_has_data).ok_or(unsupported("tpa-wide flags", flags.into()))
}

fn ack_len(ack: &Ack) -> usize {
    let mut len = ACK_LEN;
    for_each_ack_step(ack, |step| len += varint_len(step));
    len
}

/// Calls `take` with the length of each span minus one, and with the length of each gap between two spans minus one.
fn for_each_ack_step(ack: &Ack, mut take: impl FnMut(u64)) {
    let mut below = None;
    for span in &ack.ranges {
        if let Some(below) = below {
            take(below - span.last - 2);
        }
        take(span.last - span.first);
        below = Some(span.first);
    }
}

fn emit_ack(ack: &Ack, out: &mut Vec<u8>) {
    debug_assert!((1..=MAX_ACK_RANGES).contains(&ack.ranges.len()));
    out.extend(be48(ack.largest()));
    out.extend(ack.arrival_us.to_be_bytes());
    out.extend(ack.delay.to_be_bytes());
    out.extend(ack.marks.to_be_bytes());
    out.extend(be48(ack.cumulative));
    out.extend(be48(ack.max_data));
    out.extend(ack.ack_eliciting.to_be_bytes());
    out.push(ack.ranges.len() as u8);
    for_each_ack_step(ack, |step| emit_varint(step, out));
}

fn parse_ack(bytes: &[u8], at: &mut usize) -> Result<Ack, ParseError> {
    require(bytes, *at + ACK_LEN)?;
    let start = *at;
    let count = bytes[start + 30];
    let mut ack = Ack {
        arrival_us: be32(bytes, start + 6),
        delay: be16(bytes, start + 10),
        marks: be32(bytes, start + 12),
        cumulative: read48(bytes, start + 16),
        max_data: read48(bytes, start + 22),
        ack_eliciting: be16(bytes, start + 28),
        ranges: SmallVec::new(),
    };
    if !(1..=MAX_ACK_RANGES).contains(&usize::from(count)) {
        return Err(unsupported("tpa-wide spans", count.into()));
    }
    *at += ACK_LEN;
    let impossible = unsupported("tpa-wide span below zero", count.into());
    let mut last = read48(bytes, start);
    for i in 0..count {
        if i > 0 {
            let below = ack.ranges.last().map_or(0, |span| span.first);
            let gap = parse_varint(bytes, at)?.saturating_add(2);
            last = below.checked_sub(gap).ok_or(impossible)?;
        }
        let first = last.checked_sub(parse_varint(bytes, at)?).ok_or(impossible)?;
        ack.ranges.push(AckRange { first, last });
    }
    Ok(ack)
}

fn be48(value: u64) -> [u8; 6] {
    let [_, _, bytes @ ..] = value.to_be_bytes();
    bytes
}

fn read48(bytes: &[u8], at: usize) -> u64 {
    u64::from(be16(bytes, at)) << 32 | u64::from(be32(bytes, at + 2))
}

/// Seven bits per byte, the lowest first; the eighth bit is set in all bytes except the last.
fn emit_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

const fn varint_len(value: u64) -> usize {
    (64 - (value | 1).leading_zeros()).div_ceil(7) as usize
}

fn parse_varint(bytes: &[u8], at: &mut usize) -> Result<u64, ParseError> {
    let mut value = 0;
    for shift in (0..49).step_by(7) {
        require(bytes, *at + 1)?;
        let [byte] = array(bytes, *at);
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(unsupported("tpa-wide number of more than 49 bits", 0))
}

const fn unsupported(what: &'static str, value: u32) -> ParseError {
    ParseError::Unsupported { what, value }
}
