//! 802.11 frames: data, QoS data, RTS, CTS, ACK, BlockAckReq, BlockAck (IEEE 802.11-2020 §9.3), and the action frames
//! that set block acknowledgment up, with frame check sequence.

mod action;
mod fields;

pub use action::{
    ADDBA_LEN, BlockAckAction, BlockAckPolicy, BlockAckSide, DELBA_LEN, REASON_TIMEOUT, REASON_UNKNOWN_BA,
    STATUS_REQUEST_DECLINED, STATUS_SUCCESS,
};

use crate::checksum;
use crate::emit::{array, le16};
use crate::error::{ParseError, require};
use bytes::Bytes;
use core::fmt;
use fields::{FCS_LEN, expect_len, parse_sequence_control};
use hopline_core::{NodeId, Seq16};

/// Length of an RTS frame with its FCS, in bytes.
pub const RTS_LEN: usize = 20;
/// Length of a CTS frame with its FCS, in bytes.
pub const CTS_LEN: usize = 14;
/// Length of an ACK frame with its FCS, in bytes.
pub const ACK_LEN: usize = 14;
/// Length of a compressed BlockAckReq frame with its FCS, in bytes.
pub const BLOCK_ACK_REQ_LEN: usize = 24;
/// Length of a compressed BlockAck frame with its FCS, in bytes.
pub const BLOCK_ACK_LEN: usize = 32;
/// Length of a three-address data header and FCS, in bytes.
pub const DATA_OVERHEAD: usize = 28;
/// Length of a three-address QoS data header and FCS, in bytes.
pub const QOS_DATA_OVERHEAD: usize = DATA_OVERHEAD + 2;
/// Length of the LLC/SNAP header in front of an IP packet, in bytes.
pub const LLC_SNAP_LEN: usize = 8;

/// A MAC address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// All stations.
    pub const BROADCAST: Self = Self([0xff; 6]);
    /// The one ad-hoc cell of a simulated network: address 3 of every data frame. No station has this address.
    pub const BSSID: Self = Self([0x02, 0x68, 0x6f, 0x70, 0x00, 0x00]);

    /// The node's default address: locally administered, 02:00 followed by the node number.
    #[must_use]
    pub const fn of_node(node: NodeId) -> Self {
        let n = node.0.to_be_bytes();
        Self([0x02, 0x00, n[0], n[1], n[2], n[3]])
    }

    /// Returns the node that has this default address.
    #[must_use]
    pub const fn node(self) -> Option<NodeId> {
        match self.0 {
            [0x02, 0x00, a, b, c, d] => Some(NodeId(u32::from_be_bytes([a, b, c, d]))),
            _ => None,
        }
    }

    /// Returns whether this is a group address.
    #[must_use]
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 == 1
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Ack Policy of a QoS data frame (802.11-2020 Table 9-13), numbered as its two bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum QosAckPolicy {
    /// An ACK after SIFS.
    Normal = 0,
    /// No acknowledgement.
    NoAck = 1,
    /// A BlockAck, once a BlockAckReq asks for it.
    BlockAck = 3,
}

/// Bitmap of 64 MSDUs: bit `i` is set if the one `i` after the starting sequence number arrived (802.11-2020 §9.3.1.8.2).
/// Kept as it goes over the air, least significant byte first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Bitmap(pub [u8; 8]);

impl Bitmap {
    /// The bitmap with these bits.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits.to_le_bytes())
    }

    /// Returns the bits.
    #[must_use]
    pub const fn bits(self) -> u64 {
        u64::from_le_bytes(self.0)
    }
}

/// A frame. `M` is the MSDU that a data frame carries: a handle in the simulator, bytes elsewhere.
///
/// # Example
///
/// ```
/// use bytes::Bytes;
/// use hopline_core::NodeId;
/// use hopline_wire::dot11::{Frame, MacAddr};
///
/// let [a, b] = [0, 1].map(|node| MacAddr::of_node(NodeId(node)));
/// let frame = Frame::<Bytes>::Rts { duration_us: 1000, ra: b, ta: a };
/// let mut bytes = Vec::new();
/// frame.emit(&mut bytes);
/// assert_eq!(Frame::parse(&Bytes::from(bytes)), Ok(frame));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<M> {
    /// Request to send.
    Rts {
        /// Duration field in µs: time for which the medium is reserved after the frame.
        duration_us: u16,
        /// Receiver.
        ra: MacAddr,
        /// Transmitter.
        ta: MacAddr,
    },
    /// Clear to send.
    Cts {
        /// Duration field in µs.
        duration_us: u16,
        /// Receiver.
        ra: MacAddr,
    },
    /// Acknowledgment.
    Ack {
        /// Duration field in µs; 0 without fragmentation.
        duration_us: u16,
        /// Receiver.
        ra: MacAddr,
    },
    /// Data, ad-hoc addressing (address 3 is the cell's BSSID).
    Data {
        /// Duration field in µs; 0 to a group.
        duration_us: u16,
        /// Receiver.
        ra: MacAddr,
        /// Transmitter.
        ta: MacAddr,
        /// 12-bit sequence number of the MSDU.
        sequence: Seq16,
        /// Set on every transmission but the first.
        retry: bool,
        /// The MSDU.
        body: M,
    },
    /// QoS data, ad-hoc addressing (802.11-2020 §9.3.2.1).
    QosData {
        /// Duration field in µs.
        duration_us: u16,
        /// Receiver.
        ra: MacAddr,
        /// Transmitter.
        ta: MacAddr,
        /// 12-bit sequence number of the MSDU, counted for each receiver and TID.
        sequence: Seq16,
        /// Set on every transmission but the first.
        retry: bool,
        /// Traffic identifier, 0–15.
        tid: u8,
        /// Response due from the receiver.
        ack: QosAckPolicy,
        /// The MSDU.
        body: M,
    },
    /// Block acknowledgment request, compressed variant (802.11-2020 §9.3.1.7.2).
    BlockAckReq {
        /// Duration field in µs: SIFS and the BlockAck.
        duration_us: u16,
        /// Receiver.
        ra: MacAddr,
        /// Transmitter.
        ta: MacAddr,
        /// Traffic identifier, 0–15.
        tid: u8,
        /// 12-bit sequence number of the oldest MSDU in the request.
        start: Seq16,
    },
    /// Block acknowledgment, compressed variant (802.11-2020 §9.3.1.8.2).
    BlockAck {
        /// Duration field in µs.
        duration_us: u16,
        /// Receiver.
        ra: MacAddr,
        /// Transmitter.
        ta: MacAddr,
        /// Traffic identifier, 0–15.
        tid: u8,
        /// 12-bit sequence number of the bitmap's first MSDU.
        start: Seq16,
        /// Bitmap of received MSDUs.
        bitmap: Bitmap,
    },
    /// Action frame of the Block Ack category (802.11-2020 §9.6.4): a management frame, acknowledged by an ACK.
    Action {
        /// Duration field in µs: SIFS and the ACK.
        duration_us: u16,
        /// Receiver.
        ra: MacAddr,
        /// Transmitter.
        ta: MacAddr,
        /// 12-bit sequence number, counted with that of data.
        sequence: Seq16,
        /// Set on every transmission but the first.
        retry: bool,
        /// Content of the action frame.
        action: BlockAckAction,
    },
}

impl<M> Frame<M> {
    /// Receiver address.
    #[must_use]
    pub const fn ra(&self) -> MacAddr {
        match self {
            Self::Rts { ra, .. }
            | Self::Cts { ra, .. }
            | Self::Ack { ra, .. }
            | Self::Data { ra, .. }
            | Self::QosData { ra, .. }
            | Self::BlockAckReq { ra, .. }
            | Self::BlockAck { ra, .. }
            | Self::Action { ra, .. } => *ra,
        }
    }

    /// Duration field in µs.
    #[must_use]
    pub const fn duration_us(&self) -> u16 {
        match self {
            Self::Rts { duration_us, .. }
            | Self::Cts { duration_us, .. }
            | Self::Ack { duration_us, .. }
            | Self::Data { duration_us, .. }
            | Self::QosData { duration_us, .. }
            | Self::BlockAckReq { duration_us, .. }
            | Self::BlockAck { duration_us, .. }
            | Self::Action { duration_us, .. } => *duration_us,
        }
    }

    /// The MSDU, if it is a data frame.
    #[must_use]
    pub const fn body(&self) -> Option<&M> {
        match self {
            Self::Data { body, .. } | Self::QosData { body, .. } => Some(body),
            Self::Rts { .. }
            | Self::Cts { .. }
            | Self::Ack { .. }
            | Self::BlockAckReq { .. }
            | Self::BlockAck { .. }
            | Self::Action { .. } => None,
        }
    }

    /// Returns the same frame with the MSDU converted by `convert`.
    pub fn map<N>(self, convert: impl FnOnce(M) -> N) -> Frame<N> {
        match self {
            Self::Rts { duration_us, ra, ta } => Frame::Rts { duration_us, ra, ta },
            Self::Cts { duration_us, ra } => Frame::Cts { duration_us, ra },
            Self::Ack { duration_us, ra } => Frame::Ack { duration_us, ra },
            Self::Data { duration_us, ra, ta, sequence, retry, body } => {
                Frame::Data { duration_us, ra, ta, sequence, retry, body: convert(body) }
            }
            Self::QosData { duration_us, ra, ta, sequence, retry, tid, ack, body } => {
                Frame::QosData { duration_us, ra, ta, sequence, retry, tid, ack, body: convert(body) }
            }
            Self::BlockAckReq { duration_us, ra, ta, tid, start } => {
                Frame::BlockAckReq { duration_us, ra, ta, tid, start }
            }
            Self::BlockAck { duration_us, ra, ta, tid, start, bitmap } => {
                Frame::BlockAck { duration_us, ra, ta, tid, start, bitmap }
            }
            Self::Action { duration_us, ra, ta, sequence, retry, action } => {
                Frame::Action { duration_us, ra, ta, sequence, retry, action }
            }
        }
    }
}

const DATA_HEADER_LEN: usize = DATA_OVERHEAD - FCS_LEN;
const QOS_DATA_HEADER_LEN: usize = QOS_DATA_OVERHEAD - FCS_LEN;

/// First byte of frame control: subtype, type and version 0.
const DATA: u8 = 0x08;
const QOS_DATA: u8 = 0x88;
const BLOCK_ACK_REQ: u8 = 0x84;
const BLOCK_ACK: u8 = 0x94;
const RTS: u8 = 0xb4;
const CTS: u8 = 0xc4;
const ACK: u8 = 0xd4;
const ACTION: u8 = 0xd0;

/// Flags of frame control, in its second byte.
const RETRY: u8 = 0x08;
/// To DS, From DS, More Fragments, Protected: each changes the format of the rest of the frame.
const UNSUPPORTED_FLAGS: u8 = 0x01 | 0x02 | 0x04 | 0x40;
/// QoS control field (802.11-2020 §9.2.4.5): TID, ack policy, and A-MSDU, which changes the format of the payload.
const QOS_TID: u16 = 0x000f;
const QOS_ACK_SHIFT: u32 = 5;
const QOS_AMSDU: u16 = 0x0080;
/// BAR control and BA control fields (802.11-2020 §9.3.1.7, §9.3.1.8): the ack policy bit, the type in bits 1 to 4, of
/// which 2 is compressed, reserved bits, and the TID in the highest four.
const COMPRESSED_VARIANT: u16 = 2 << 1;
const VARIANT_MASK: u16 = 0x001e;
const BLOCK_TID_SHIFT: u32 = 12;

/// LLC header with SNAP, organisation 0 (RFC 1042) and EtherType IPv4.
const SNAP_IPV4: [u8; LLC_SNAP_LEN] = [0xaa, 0xaa, 0x03, 0, 0, 0, 0x08, 0x00];

impl Frame<Bytes> {
    /// Parses a frame that ends in its frame check sequence. The body of a data frame is the IPv4 packet behind the
    /// LLC/SNAP header.
    ///
    /// # Errors
    /// `Truncated`; `BadChecksum`; `BadLength` of a control or action frame; `Unsupported` for other types of frame, for
    /// flags that change the format (distribution system, fragments, protection), for other categories of action and for
    /// other network protocols.
    pub fn parse(frame: &Bytes) -> Result<Self, ParseError> {
        require(frame, CTS_LEN)?;
        let end = frame.len() - FCS_LEN;
        if checksum::crc32(&frame[..end]).to_le_bytes() != array(frame, end) {
            return Err(ParseError::BadChecksum);
        }
        let duration_us = le16(frame, 2);
        let ra = MacAddr(array(frame, 4));
        match frame[0] {
            RTS => {
                expect_len("rts", frame, RTS_LEN)?;
                Ok(Self::Rts { duration_us, ra, ta: MacAddr(array(frame, 10)) })
            }
            CTS => {
                expect_len("cts", frame, CTS_LEN)?;
                Ok(Self::Cts { duration_us, ra })
            }
            ACK => {
                expect_len("ack", frame, ACK_LEN)?;
                Ok(Self::Ack { duration_us, ra })
            }
            BLOCK_ACK_REQ => {
                expect_len("block ack request", frame, BLOCK_ACK_REQ_LEN)?;
                let (ta, tid, start) = parse_block_ack_header(frame)?;
                Ok(Self::BlockAckReq { duration_us, ra, ta, tid, start })
            }
            BLOCK_ACK => {
                expect_len("block ack", frame, BLOCK_ACK_LEN)?;
                let (ta, tid, start) = parse_block_ack_header(frame)?;
                Ok(Self::BlockAck { duration_us, ra, ta, tid, start, bitmap: Bitmap(array(frame, 20)) })
            }
            DATA => {
                let (head, body) = DataHeader::parse(frame, DATA_HEADER_LEN)?;
                let DataHeader { ta, sequence, retry } = head;
                Ok(Self::Data { duration_us, ra, ta, sequence, retry, body })
            }
            QOS_DATA => {
                let (head, body) = DataHeader::parse(frame, QOS_DATA_HEADER_LEN)?;
                let DataHeader { ta, sequence, retry } = head;
                let (tid, ack) = parse_qos_control(le16(frame, DATA_HEADER_LEN))?;
                Ok(Self::QosData { duration_us, ra, ta, sequence, retry, tid, ack, body })
            }
            ACTION => {
                let action = BlockAckAction::parse(frame)?;
                let (ta, sequence, retry) = parse_addressed_header(frame)?;
                Ok(Self::Action { duration_us, ra, ta, sequence, retry, action })
            }
            other => Err(ParseError::Unsupported { what: "802.11 frame type", value: u32::from(other) }),
        }
    }

    /// Appends the frame; see [`emit_with`](Self::emit_with).
    pub fn emit(&self, out: &mut Vec<u8>) {
        self.emit_with(out, |body, out| out.extend_from_slice(body));
    }
}

impl<M> Frame<M> {
    /// Appends the frame with its frame check sequence. `body` appends the IPv4 packet of a data frame behind the LLC/SNAP
    /// header. The low 12 bits of the sequence number are sent.
    pub fn emit_with(&self, out: &mut Vec<u8>, body: impl FnOnce(&M, &mut Vec<u8>)) {
        let start = out.len();
        let (frame_type, flags) = match self {
            Self::Rts { .. } => (RTS, 0),
            Self::Cts { .. } => (CTS, 0),
            Self::Ack { .. } => (ACK, 0),
            Self::BlockAckReq { .. } => (BLOCK_ACK_REQ, 0),
            Self::BlockAck { .. } => (BLOCK_ACK, 0),
            Self::Data { retry, .. } => (DATA, if *retry { RETRY } else { 0 }),
            Self::QosData { retry, .. } => (QOS_DATA, if *retry { RETRY } else { 0 }),
            Self::Action { retry, .. } => (ACTION, if *retry { RETRY } else { 0 }),
        };
        out.extend([frame_type, flags]);
        out.extend(self.duration_us().to_le_bytes());
        out.extend(self.ra().0);
        match self {
            Self::Rts { ta, .. } => out.extend(ta.0),
            Self::Cts { .. } | Self::Ack { .. } => {}
            Self::Data { ta, sequence, body: msdu, .. } => {
                out.extend(ta.0);
                out.extend(MacAddr::BSSID.0);
                out.extend((sequence.0 << 4).to_le_bytes());
                out.extend(SNAP_IPV4);
                body(msdu, out);
            }
            Self::QosData { ta, sequence, tid, ack, body: msdu, .. } => {
                out.extend(ta.0);
                out.extend(MacAddr::BSSID.0);
                out.extend((sequence.0 << 4).to_le_bytes());
                out.extend((u16::from(*tid) & QOS_TID | (*ack as u16) << QOS_ACK_SHIFT).to_le_bytes());
                out.extend(SNAP_IPV4);
                body(msdu, out);
            }
            Self::BlockAckReq { ta, tid, start, .. } => emit_block_ack_header(out, *ta, *tid, *start),
            Self::BlockAck { ta, tid, start, bitmap, .. } => {
                emit_block_ack_header(out, *ta, *tid, *start);
                out.extend(bitmap.0);
            }
            Self::Action { ta, sequence, action, .. } => {
                out.extend(ta.0);
                out.extend(MacAddr::BSSID.0);
                out.extend((sequence.0 << 4).to_le_bytes());
                action.emit(out);
            }
        }
        let fcs = checksum::crc32(&out[start..]);
        out.extend(fcs.to_le_bytes());
    }
}

/// Common fields of data and QoS data behind the receiver address.
struct DataHeader {
    ta: MacAddr,
    sequence: Seq16,
    retry: bool,
}

impl DataHeader {
    /// The common part, and the IPv4 packet behind a MAC header of `header_len` bytes and the LLC/SNAP header.
    fn parse(frame: &Bytes, header_len: usize) -> Result<(Self, Bytes), ParseError> {
        require(frame, header_len + LLC_SNAP_LEN + FCS_LEN)?;
        let (ta, sequence, retry) = parse_addressed_header(frame)?;
        let llc: [u8; LLC_SNAP_LEN] = array(frame, header_len);
        if llc != SNAP_IPV4 {
            let value = u32::from(u16::from_be_bytes([llc[6], llc[7]]));
            return Err(ParseError::Unsupported { what: "llc header, ethertype", value });
        }
        let head = Self { ta, sequence, retry };
        Ok((head, frame.slice(header_len + LLC_SNAP_LEN..frame.len() - FCS_LEN)))
    }
}

/// Returns transmitter, sequence number and retry bit of a complete header with three addresses.
fn parse_addressed_header(frame: &[u8]) -> Result<(MacAddr, Seq16, bool), ParseError> {
    let flags = frame[1];
    if flags & UNSUPPORTED_FLAGS != 0 {
        return Err(ParseError::Unsupported { what: "802.11 flags", value: u32::from(flags) });
    }
    Ok((MacAddr(array(frame, 10)), parse_sequence_control(le16(frame, 22))?, flags & RETRY != 0))
}

fn parse_qos_control(field: u16) -> Result<(u8, QosAckPolicy), ParseError> {
    let unsupported = Err(ParseError::Unsupported { what: "802.11 qos control", value: u32::from(field) });
    if field & QOS_AMSDU != 0 {
        return unsupported;
    }
    let ack = match field >> QOS_ACK_SHIFT & 3 {
        0 => QosAckPolicy::Normal,
        1 => QosAckPolicy::NoAck,
        3 => QosAckPolicy::BlockAck,
        _power_save_multi_poll => return unsupported,
    };
    Ok(((field & QOS_TID) as u8, ack))
}

/// Transmitter, TID and starting sequence number of BlockAckReq and BlockAck.
fn parse_block_ack_header(frame: &Bytes) -> Result<(MacAddr, u8, Seq16), ParseError> {
    let control = le16(frame, 16);
    if control & VARIANT_MASK != COMPRESSED_VARIANT {
        return Err(ParseError::Unsupported { what: "802.11 block ack type", value: u32::from(control) });
    }
    let start = parse_sequence_control(le16(frame, 18))?;
    Ok((MacAddr(array(frame, 10)), (control >> BLOCK_TID_SHIFT) as u8, start))
}

fn emit_block_ack_header(out: &mut Vec<u8>, ta: MacAddr, tid: u8, start: Seq16) {
    out.extend(ta.0);
    out.extend((COMPRESSED_VARIANT | u16::from(tid) << BLOCK_TID_SHIFT).to_le_bytes());
    out.extend((start.0 << 4).to_le_bytes());
}

#[cfg(test)]
mod tests;
