//! Segments of TPA, the Transport Protocol for Ad hoc networks (Anastasi, Ancillotti, Conti, Passarella 2009, §3.1 and
//! appendix A).
//!
//! The paper lists the fields and gives the width of some. The other widths and the order of all fields are hopline's. Ten
//! bytes are common to both forms:
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+---------------+---------------+
//! | BlockSeqNumber| AckBlockSeqNr |  TxSeqNumber  | AckTxSeqNumber|
//! +---------------+-------+-------+---------------+-+-+-+-+-+-+-+-+
//! |      BitmapData       |       BitmapAck       |A|R|S|F|C|E|O|T|
//! +-----------------------+-------+---------------+-+-+-+-+-+-+-+-+
//! |            WinSize            |
//! +-------------------------------+
//! ```
//!
//! `A`CK, `R`ST, `S`YN, `F`IN as the paper has them; `C` is txStat (1: congested). The three bits that the paper leaves
//! unused have these meanings:
//!
//! - `E`: this is the last segment of its block;
//! - `O`: opening parameters follow the header;
//! - `T`: a connection tag follows the header.
//!
//! Bit 0 of a bitmap, the least significant, is the first segment of the block. BitmapData has the one bit of the segment's
//! position set, or none if the segment carries no data. Two of `R`, `S` and `F` together encode path control: `S` and `F` a
//! challenge, `R` and `F` its echo, `R` and `S` a reset for an unknown connection.
//!
//! * The **native form** (protocol 253, RFC 3692: for experiments) is 16 bytes: source and destination port, the ten
//!   bytes, and the Internet checksum over pseudo header, header and data.
//! * The **UDP form** is 12 bytes, without ports and checksum, which UDP has. The paper says 12, its fields come to 10.
//!   Bytes 10 and 11 have the upper eight bits of BlockSeqNumber and AckBlockSeqNumber, since 256 blocks wrap around soon on
//!   a fast path.
//!
//! Behind the header: the tag and the receipt, 12 bytes, if `T`; then the token of a challenge or its echo, 8 bytes; then
//! the opening parameters, 16 bytes, if `O`; then data.

use crate::checksum::ChecksumSum;
use crate::emit::{Emit, array, be16};
use crate::error::{ParseError, require};
use crate::ipv4;
use bytes::Bytes;
use core::num::NonZeroU64;
use hopline_core::Payload;

mod bitmap;

pub use bitmap::{Bitmap, POSITIONS};

/// Length of the native header, in bytes.
pub const NATIVE_HEADER_LEN: usize = 16;
/// Length of the UDP form's header, in bytes; with UDP's 8 it equals TCP's.
pub const UDP_HEADER_LEN: usize = 12;
/// Length of a connection tag, in bytes.
pub const TAG_LEN: usize = 8;
/// Length of the receipt that follows a tag, in bytes.
pub const RECEIPT_LEN: usize = 4;
/// Length of the token of a challenge, in bytes.
pub const TOKEN_LEN: usize = 8;
/// Length of the opening parameters, in bytes.
pub const OPENING_LEN: usize = 16;
/// IP protocol of the native form, reserved for experiments (RFC 3692 §2.1).
pub const PROTOCOL: ipv4::Protocol = ipv4::Protocol::Other(253);
/// Default UDP port of servers. Not registered.
pub const PORT: u16 = 7172;

/// Version of the opening parameters, and of the parts of the protocol on which peers must agree.
const VERSION: u8 = 2;
/// Position of the flags in the ten common bytes.
const FLAGS: usize = 7;

/// Control bits other than ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Control {
    /// No control bit.
    #[default]
    None,
    /// SYN: opens a connection.
    Syn,
    /// FIN: the last data of its sender; occupies a position in a block.
    Fin,
    /// RST: ends the connection at once.
    Rst,
    /// Path challenge: asks the host at this address to [echo](Self::Echo) the token. The payload is padding; an echo shows
    /// that the path carries segments of this length. Needs a tag.
    Challenge(ChallengeToken),
    /// Path response to a [challenge](Self::Challenge), sent to its source address. Needs a tag.
    Echo(ChallengeToken),
    /// Reset for an unknown connection. Its tag is that of the segment to which it responds, known only to that segment's
    /// sender, its receiver and on-path attackers.
    StatelessReset,
}

/// Token of a path challenge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChallengeToken(pub u64);

impl Control {
    /// The bits RST, SYN and FIN, from the most significant.
    const fn bits(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Fin => 1,
            Self::Syn => 2,
            Self::Challenge(_) => 3,
            Self::Rst => 4,
            Self::Echo(_) => 5,
            Self::StatelessReset => 6,
        }
    }

    const fn token(self) -> Option<ChallengeToken> {
        match self {
            Self::Challenge(token) | Self::Echo(token) => Some(token),
            _ => None,
        }
    }
}

/// txStat: congestion state of the sender (§3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum TxStat {
    /// Not congested.
    #[default]
    Normal,
    /// Congested: acknowledge every segment.
    Congested,
}

/// Position of a data segment in its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SegmentPosition {
    /// Position, 0 to 11.
    pub position: u8,
    /// `true` if it is the last segment of the block.
    pub is_last: bool,
}

/// An acknowledgment (§3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Ack {
    /// AckBlockSeqNumber: the acknowledged block.
    pub block: u16,
    /// BitmapAck: the segments of that block received so far.
    pub bitmap: Bitmap,
    /// AckTxSeqNumber: TxSeqNumber of the segment that triggered the acknowledgment.
    pub tx: u8,
}

/// Connection tag: identifies a connection to the peer that chose it, and proves that the sender was given it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub NonZeroU64);

/// Proof that data were received; present with every [tag](Segment::tag).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Receipt {
    /// Nonce of the data in this segment; unpredictable, and 0 without data.
    pub nonce: u16,
    /// Proof of the acknowledgment in this segment: the exclusive or of the nonces of all segments in its bitmap.
    pub proof: u16,
}

/// Parameters that each end announces when a connection opens.
///
/// On the wire: tag (8 bytes, 0: none), largest segment (2), version (1), block size (1), cwndmax (1), 3 bytes of zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Opening {
    /// Tag for all segments to the sender of this.
    pub tag: Option<Tag>,
    /// Largest payload that the sender of this accepts, in bytes.
    pub mss: u16,
    /// Largest block that the sender of this can receive, 1 to 12 segments.
    pub block_segments: u8,
    /// Largest window of the sender of this, segments; 1 to 255.
    pub cwnd_max: u8,
}

/// A segment: header values and payload.
///
/// # Example
///
/// ```
/// use bytes::Bytes;
/// use hopline_wire::tpa::{SegmentPosition, Segment};
///
/// let segment = Segment {
///     block: 3,
///     position: Some(SegmentPosition { position: 0, is_last: false }),
///     tx: 9,
///     window: 20_000,
///     payload: Bytes::from_static(b"data"),
///     ..Segment::default()
/// };
/// let mut datagram = Vec::new();
/// segment.emit_udp(&mut datagram);
/// assert_eq!(Segment::parse_udp(&Bytes::from(datagram)), Ok(segment));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Segment<P> {
    /// BlockSeqNumber; only the lower eight bits in the native form.
    pub block: u16,
    /// BitmapData; `None` without data.
    pub position: Option<SegmentPosition>,
    /// TxSeqNumber.
    pub tx: u8,
    /// The acknowledgment; `None` without the ACK flag.
    pub ack: Option<Ack>,
    /// SYN, FIN or RST.
    pub control: Control,
    /// txStat.
    pub tx_stat: TxStat,
    /// WinSize: receive window of the sender of this, in bytes.
    pub window: u16,
    /// Connection tag chosen by the receiver of this.
    pub tag: Option<Tag>,
    /// Receipt; only sent with a tag.
    pub receipt: Receipt,
    /// Opening parameters.
    pub opening: Option<Opening>,
    /// Data.
    pub payload: P,
}

/// Ports of the native form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ports {
    /// Source port.
    pub src: u16,
    /// Destination port.
    pub dst: u16,
}

impl<P> Segment<P> {
    /// Returns the length of the UDP form's header with the fields before the data, in bytes.
    #[must_use]
    pub const fn udp_header_len(&self) -> usize {
        UDP_HEADER_LEN + self.extensions_len()
    }

    const fn extensions_len(&self) -> usize {
        let tag = if self.tag.is_some() { TAG_LEN + RECEIPT_LEN } else { 0 };
        let token = if self.control.token().is_some() { TOKEN_LEN } else { 0 };
        let opening = if self.opening.is_some() { OPENING_LEN } else { 0 };
        tag + token + opening
    }

    /// Returns the ten bytes common to both forms.
    fn common(&self) -> [u8; 10] {
        let ack = self.ack.unwrap_or_default();
        let data = self.position.map_or(0, |place| Bitmap::single(place.position).bits());
        let ack_bits = ack.bitmap.bits();
        let bitmaps = u32::from(data) << 12 | u32::from(ack_bits);
        let [_, b4, b5, b6] = bitmaps.to_be_bytes();
        let [w0, w1] = self.window.to_be_bytes();
        [self.block as u8, ack.block as u8, self.tx, ack.tx, b4, b5, b6, self.flags(), w0, w1]
    }

    fn flags(&self) -> u8 {
        let bit = |set: bool, bit: u32| u8::from(set) << bit;
        bit(self.ack.is_some(), 7)
            | self.control.bits() << 4
            | bit(self.tx_stat == TxStat::Congested, 3)
            | bit(self.position.is_some_and(|place| place.is_last), 2)
            | bit(self.opening.is_some(), 1)
            | bit(self.tag.is_some(), 0)
    }

    fn emit_extensions(&self, out: &mut Vec<u8>) {
        if let Some(tag) = self.tag {
            out.extend(tag.0.get().to_be_bytes());
            out.extend(self.receipt.nonce.to_be_bytes());
            out.extend(self.receipt.proof.to_be_bytes());
        }
        if let Some(ChallengeToken(token)) = self.control.token() {
            out.extend(token.to_be_bytes());
        }
        if let Some(opening) = self.opening {
            out.extend(opening.tag.map_or(0, |tag| tag.0.get()).to_be_bytes());
            out.extend(opening.mss.to_be_bytes());
            out.extend([VERSION, opening.block_segments, opening.cwnd_max, 0, 0, 0]);
        }
    }
}

impl<P: Emit> Segment<P> {
    /// Appends the UDP form: the payload of a UDP datagram.
    pub fn emit_udp(&self, out: &mut Vec<u8>) {
        out.extend(self.common());
        out.extend([(self.block >> 8) as u8, (self.ack.unwrap_or_default().block >> 8) as u8]);
        self.emit_extensions(out);
        self.payload.emit(out);
    }

    /// Appends the native form, to follow the IP header `ip`, which the checksum covers.
    pub fn emit_native(&self, ip: &ipv4::Header, ports: Ports, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend(ports.src.to_be_bytes());
        out.extend(ports.dst.to_be_bytes());
        out.extend(self.common());
        out.extend([0, 0]);
        self.emit_extensions(out);
        self.payload.emit(out);
        let mut sum = ChecksumSum::pseudo_header(ip, out.len() - start);
        sum.add(&out[start..]);
        out[start + 14..start + 16].copy_from_slice(&sum.finish().to_be_bytes());
    }
}

impl Segment<Bytes> {
    /// Parses the payload of a UDP datagram.
    ///
    /// # Errors
    /// `Truncated`; `Unsupported` for invalid flags, positions, versions or tags.
    pub fn parse_udp(bytes: &Bytes) -> Result<Self, ParseError> {
        require(bytes, UDP_HEADER_LEN)?;
        let mut segment = Self::parse_common(&array(bytes, 0))?;
        segment.block |= u16::from(bytes[10]) << 8;
        if let Some(ack) = &mut segment.ack {
            ack.block |= u16::from(bytes[11]) << 8;
        }
        segment.parse_rest(bytes[FLAGS], bytes, UDP_HEADER_LEN)?;
        Ok(segment)
    }

    /// Parses the payload of the IP packet with header `ip`.
    ///
    /// # Errors
    /// As [`parse_udp`](Self::parse_udp); and `BadChecksum`.
    pub fn parse_native(ip: &ipv4::Header, bytes: &Bytes) -> Result<(Ports, Self), ParseError> {
        require(bytes, NATIVE_HEADER_LEN)?;
        let mut sum = ChecksumSum::pseudo_header(ip, bytes.len());
        sum.add(bytes);
        if sum.finish() != 0 {
            return Err(ParseError::BadChecksum);
        }
        let mut segment = Self::parse_common(&array(bytes, 4))?;
        segment.parse_rest(bytes[4 + FLAGS], bytes, NATIVE_HEADER_LEN)?;
        Ok((Ports { src: be16(bytes, 0), dst: be16(bytes, 2) }, segment))
    }

    fn parse_common(common: &[u8; 10]) -> Result<Self, ParseError> {
        let flags = common[FLAGS];
        let bitmaps = u32::from_be_bytes([0, common[4], common[5], common[6]]);
        let data = Bitmap::from_bits((bitmaps >> 12) as u16);
        let last = flags & 4 != 0;
        let place = match (data.count(), last) {
            (0, false) => None,
            (1, last) => data.positions().next().map(|position| SegmentPosition { position, is_last: last }),
            _ => return Err(unsupported("tpa position", bitmaps >> 12)),
        };
        let control = match flags >> 4 & 7 {
            0 => Control::None,
            1 => Control::Fin,
            2 => Control::Syn,
            // The token follows the tag.
            3 => Control::Challenge(ChallengeToken(0)),
            4 => Control::Rst,
            5 => Control::Echo(ChallengeToken(0)),
            6 => Control::StatelessReset,
            several => return Err(unsupported("tpa flags", several.into())),
        };
        let ack = Ack {
            block: common[1].into(),
            bitmap: Bitmap::from_bits((bitmaps & 0xfff) as u16),
            tx: common[3],
        };
        Ok(Self {
            block: common[0].into(),
            position: place,
            tx: common[2],
            ack: (flags & 0x80 != 0).then_some(ack),
            control,
            tx_stat: if flags & 8 != 0 { TxStat::Congested } else { TxStat::Normal },
            window: be16(common, 8),
            tag: None,
            receipt: Receipt::default(),
            opening: None,
            payload: Bytes::new(),
        })
    }

    fn parse_rest(&mut self, flags: u8, bytes: &Bytes, mut at: usize) -> Result<(), ParseError> {
        if flags & 1 != 0 {
            require(bytes, at + TAG_LEN + RECEIPT_LEN)?;
            self.tag = Some(parse_tag(bytes, at).ok_or(unsupported("tpa tag", 0))?);
            let (nonce, proof) = (be16(bytes, at + TAG_LEN), be16(bytes, at + TAG_LEN + 2));
            self.receipt = Receipt { nonce, proof };
            at += TAG_LEN + RECEIPT_LEN;
        }
        if let Control::Challenge(token) | Control::Echo(token) = &mut self.control {
            require(bytes, at + TOKEN_LEN)?;
            *token = ChallengeToken(u64::from_be_bytes(array(bytes, at)));
            at += TOKEN_LEN;
        }
        if flags & 2 != 0 {
            require(bytes, at + OPENING_LEN)?;
            self.opening = Some(parse_opening(bytes, at)?);
            at += OPENING_LEN;
        }
        self.payload = bytes.slice(at..);
        // Data belong to a position; only a FIN may have a position and no data. A path challenge or echo belongs to a
        // connection, and the segment has no other content.
        match (self.position, self.control, self.payload.is_empty()) {
            (_, Control::Challenge(_) | Control::Echo(_) | Control::StatelessReset, _)
                if !self.is_valid_path_message() =>
            {
                Err(unsupported("tpa question of the path with more than its tag", 0))
            }
            (None, Control::Challenge(_), _) => Ok(()),
            (None, Control::Fin, _) => Err(unsupported("tpa FIN without position", 0)),
            (None, _, false) => Err(unsupported("tpa data without position", 0)),
            (Some(_), Control::Syn | Control::Rst, _) => Err(unsupported("tpa position of SYN or RST", 0)),
            _ => Ok(()),
        }
    }

    fn is_valid_path_message(&self) -> bool {
        self.tag.is_some() && self.position.is_none() && self.opening.is_none() && self.ack.is_none()
    }
}

fn parse_tag(bytes: &[u8], at: usize) -> Option<Tag> {
    NonZeroU64::new(u64::from_be_bytes(array(bytes, at))).map(Tag)
}

fn parse_opening(bytes: &[u8], at: usize) -> Result<Opening, ParseError> {
    let [version, block_segments, cwnd_max] = array(bytes, at + 10);
    if version != VERSION {
        return Err(unsupported("tpa version", version.into()));
    }
    if !(1..=POSITIONS).contains(&block_segments) {
        return Err(unsupported("tpa block size", block_segments.into()));
    }
    if cwnd_max == 0 {
        return Err(unsupported("tpa cwndmax", 0));
    }
    Ok(Opening { tag: parse_tag(bytes, at), mss: be16(bytes, at + 8), block_segments, cwnd_max })
}

const fn unsupported(what: &'static str, value: u32) -> ParseError {
    ParseError::Unsupported { what, value }
}

impl<P: Payload> Segment<P> {
    /// Length of the UDP form, in bytes, UDP's own header not counted.
    #[must_use]
    pub fn udp_len(&self) -> usize {
        self.udp_header_len() + self.payload.len() as usize
    }
}

#[cfg(test)]
mod tests;
