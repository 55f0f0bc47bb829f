//! Packets of TPA-wide, the successor of TPA for wide paths (`docs/protocols/tpa-wide.md`).
//!
//! Each transmission has its own packet number, which is never used again: what is acknowledged is a transmission, and how long
//! it took is never in doubt. On a network a packet is sealed; in the clear are only
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
//! and what follows is encrypted, with a tag of 16 bytes at the end: one byte of flags (`A`CK, `D`ata, `F`IN, `O`pening, `R`eset, `P`ing, `L`ate),
//! then, each if its flag is set: the opening (8 bytes), the acknowledgment (31 bytes and its spans), and as the last the data: their
//! offset in the stream (6 bytes) and they themselves. Instead of a packet there may be a question or answer about a path
//! ([`Content::Path`]), or nothing. This module reads and writes what is encrypted.

use crate::emit::{Emit, array, be16, be32};
use crate::error::{ParseError, require};
use crate::ipv4::Ecn;
use crate::secure;
use bytes::Bytes;
use hopline_core::Payload;
use smallvec::SmallVec;

#[cfg(test)]
mod tests;

/// UDP port of servers, if nothing else is said. Not registered.
pub const PORT: u16 = 7174;
/// Bytes in the clear before what is encrypted, and of the tag behind it.
pub const SEALED_LEN: usize = 8 + 4 + 16;
/// Bytes before the data of a packet that carries nothing else, those in the clear and the tag included.
pub const DATA_OVERHEAD: usize = SEALED_LEN + FLAGS_LEN + OFFSET_LEN;
/// Spans of an acknowledgment at most.
pub const MOST_SPANS: usize = 64;

/// Version of the opening, and of the protocol as far as peers must agree on it.
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
const LATE: u8 = 128;
/// No packet, but a frame of the encryption layer, whose kind is in the other bits.
const PATH: u8 = 64;

/// Length of [`Parameters`] without what may follow them.
const PARAMETERS_LEN: usize = OPENING_LEN;

/// Consecutive packet numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Span {
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
}

/// What a receiver tells of what it has.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Ack {
    /// When the largest packet number arrived, by the receiver's clock: microseconds, wrapping around.
    pub arrival_us: u32,
    /// For how long it has waited for this acknowledgment, in 16 µs; at most about a second.
    pub delay: u16,
    /// Packets that arrived with a mark of congestion (CE) since the connection began, wrapping around.
    pub marks: u32,
    /// All data before this offset have arrived.
    pub cumulative: u64,
    /// The sender may send data up to this offset.
    pub limit: u64,
    /// Packets that ask for an answer and have arrived, however often, since the connection began; wrapping around.
    pub arrived: u16,
    /// The packet numbers that have arrived, from the largest downwards; the oldest are left out where there are many. At least one.
    pub spans: SmallVec<[Span; 2]>,
}

impl Ack {
    /// The largest packet number that has arrived.
    #[must_use]
    pub fn largest(&self) -> u64 {
        self.spans.first().map_or(0, |span| span.last)
    }
}

/// What each end tells the other when a connection opens. On the wire: version (1), flags (1, zero), longest data (2), limit (4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Opening {
    /// Most bytes of data that the sender of this takes in a packet.
    pub mss: u16,
    /// Bytes that it has room for.
    pub limit: u32,
}

impl Opening {
    fn bytes(self) -> [u8; OPENING_LEN] {
        let [mss, limit] = [&self.mss.to_be_bytes()[..], &self.limit.to_be_bytes()];
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
        Ok(Self { mss: be16(bytes, at + 2), limit: be32(bytes, at + 4) })
    }
}

/// What shows that whoever says it has lost a connection that it had: the peer of that connection was given it in the handshake.
pub type ResetToken = secure::Token;

/// What each end tells the other within the encryption's handshake, so that no packet of the transport has to be spent on it: the opening
/// and, if it has one, the token by which a later life of this end can end the connection (16 bytes). More may follow one day; it is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Parameters {
    /// What the transports tell each other.
    pub opening: Opening,
    /// What a [`Message::Gone`](crate::secure::Message::Gone) will bear.
    pub reset: Option<ResetToken>,
}

impl Parameters {
    /// As bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        let opening = self.opening.bytes();
        let reset = self.reset.as_ref().map_or(&[][..], |token| token);
        [&opening, reset].concat().into()
    }

    /// Parses them.
    ///
    /// # Errors
    /// `Truncated`; `Unsupported` of another version.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let opening = Opening::parse(bytes, 0)?;
        let reset = bytes.get(PARAMETERS_LEN..).and_then(<[u8]>::first_chunk);
        Ok(Self { opening, reset: reset.copied() })
    }
}

/// What ends or keeps alive a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Control {
    /// Nothing of that kind.
    #[default]
    None,
    /// Ends the connection at once.
    Reset,
    /// Asks for an acknowledgment.
    Ping,
}

/// Data, and where they belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Data<P> {
    /// Offset of their first byte in the stream, below 2⁴⁸.
    pub offset: u64,
    /// Whether the stream ends behind them.
    pub end: End,
    /// They; none where only the end of the stream is told.
    pub payload: P,
}

/// Whether the stream ends with some data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum End {
    /// It goes on.
    #[default]
    No,
    /// It ends (FIN).
    Yes,
}

/// How soon a packet is to be acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Answer {
    /// As soon as its receiver does by itself.
    #[default]
    Soon,
    /// There is time: on a radio that all share, an acknowledgment takes the air from data.
    Late,
}

/// A packet.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Packet<P> {
    /// Its number.
    pub number: u64,
    /// The ECN field of the IP header around it.
    pub ecn: Ecn,
    /// Parameters of the sender, while the connection opens.
    pub opening: Option<Opening>,
    /// An acknowledgment.
    pub ack: Option<Box<Ack>>,
    /// What ends or keeps alive the connection.
    pub control: Control,
    /// How soon it is to be acknowledged.
    pub answer: Answer,
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

    /// Whether its receiver has to acknowledge it.
    #[must_use]
    pub fn asks_for_answer(&self) -> bool {
        self.data.is_some() || self.opening.is_some() || self.control == Control::Ping
    }

    fn flags(&self) -> u8 {
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        let fin = self.data.as_ref().is_some_and(|data| data.end == End::Yes);
        bit(self.ack.is_some(), ACK)
            | bit(self.data.is_some(), DATA)
            | bit(fin, FIN)
            | bit(self.opening.is_some(), OPENING)
            | bit(self.control == Control::Reset, RESET)
            | bit(self.control == Control::Ping, PING)
            | bit(self.answer == Answer::Late, LATE)
    }
}

impl<P: Emit> Packet<P> {
    /// Appends what is to be encrypted.
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
    /// Parses what was encrypted in the packet `number`.
    ///
    /// # Errors
    /// `Truncated`; `Unsupported` flags, versions and acknowledgments that make no sense.
    pub fn parse_inner(number: u64, bytes: &Bytes) -> Result<Self, ParseError> {
        require(bytes, FLAGS_LEN)?;
        let flags = bytes[0];
        let answer = if flags & LATE == 0 { Answer::Soon } else { Answer::Late };
        let mut packet = Self { number, control: control_of(flags)?, answer, ..Self::default() };
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
            let end = if flags & FIN != 0 { End::Yes } else { End::No };
            let payload = bytes.slice(at + OFFSET_LEN..);
            packet.data = Some(Data { offset: read48(bytes, at), end, payload });
        } else if at != bytes.len() {
            return Err(ParseError::BadLength { what: "tpa-wide packet without data", value: bytes.len() });
        }
        Ok(packet)
    }
}

/// What a sealed datagram may hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content<P> {
    /// No bytes: it only shows that its sender has the keys.
    Nothing,
    /// A question or answer about a path: one byte, 64 and the frame's kind, and the 8 bytes of the frame. It asks for no acknowledgment.
    Path(secure::Control),
    /// A packet of the transport.
    Packet(Packet<P>),
}

impl Content<Bytes> {
    /// Parses what was encrypted in the datagram `number`.
    ///
    /// # Errors
    /// As [`Packet::parse_inner`]; `Unsupported` frames; `BadLength` of what follows one.
    pub fn parse(number: u64, bytes: &Bytes) -> Result<Self, ParseError> {
        match bytes.first() {
            None => Ok(Self::Nothing),
            Some(first) if first & PATH != 0 => parse_path(bytes).map(Self::Path),
            Some(_) => Packet::parse_inner(number, bytes).map(Self::Packet),
        }
    }
}

impl<P: Emit> Content<P> {
    /// Appends what is to be encrypted.
    pub fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Self::Nothing => {}
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

fn control_of(flags: u8) -> Result<Control, ParseError> {
    let control = match flags & (RESET | PING) {
        0 => Some(Control::None),
        RESET => Some(Control::Reset),
        PING => Some(Control::Ping),
        _ => None,
    };
    let known = flags & !(ACK | DATA | FIN | OPENING | RESET | PING | LATE) == 0;
    let fin_has_data = flags & FIN == 0 || flags & DATA != 0;
    control.filter(|_| known && fin_has_data).ok_or(unsupported("tpa-wide flags", flags.into()))
}

fn ack_len(ack: &Ack) -> usize {
    let mut len = ACK_LEN;
    each_step(ack, |step| len += varint_len(step));
    len
}

/// Of each span how many numbers it has more than one, and between two of them how many are missing more than one.
fn each_step(ack: &Ack, mut take: impl FnMut(u64)) {
    let mut below = None;
    for span in &ack.spans {
        if let Some(below) = below {
            take(below - span.last - 2);
        }
        take(span.last - span.first);
        below = Some(span.first);
    }
}

fn emit_ack(ack: &Ack, out: &mut Vec<u8>) {
    debug_assert!((1..=MOST_SPANS).contains(&ack.spans.len()));
    out.extend(be48(ack.largest()));
    out.extend(ack.arrival_us.to_be_bytes());
    out.extend(ack.delay.to_be_bytes());
    out.extend(ack.marks.to_be_bytes());
    out.extend(be48(ack.cumulative));
    out.extend(be48(ack.limit));
    out.extend(ack.arrived.to_be_bytes());
    out.push(ack.spans.len() as u8);
    each_step(ack, |step| emit_varint(step, out));
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
        limit: read48(bytes, start + 22),
        arrived: be16(bytes, start + 28),
        spans: SmallVec::new(),
    };
    if !(1..=MOST_SPANS).contains(&usize::from(count)) {
        return Err(unsupported("tpa-wide spans", count.into()));
    }
    *at += ACK_LEN;
    let impossible = unsupported("tpa-wide span below zero", count.into());
    let mut last = read48(bytes, start);
    for i in 0..count {
        if i > 0 {
            let below = ack.spans.last().map_or(0, |span| span.first);
            let gap = parse_varint(bytes, at)?.saturating_add(2);
            last = below.checked_sub(gap).ok_or(impossible)?;
        }
        let first = last.checked_sub(parse_varint(bytes, at)?).ok_or(impossible)?;
        ack.spans.push(Span { first, last });
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

/// Seven bits a byte, the lowest first; all but the last have the eighth bit set.
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
