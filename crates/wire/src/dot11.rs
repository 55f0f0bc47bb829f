//! 802.11 frames: data, RTS, CTS, ACK (IEEE 802.11-2020 §9.3), with frame check sequence.

use crate::checksum;
use crate::emit::{array, le16};
use crate::error::{ParseError, require};
use bytes::Bytes;
use core::fmt;
use hopline_core::{NodeId, Seq16};

/// Length of an RTS frame with its FCS, in bytes.
pub const RTS_LEN: usize = 20;
/// Length of a CTS frame with its FCS, in bytes.
pub const CTS_LEN: usize = 14;
/// Length of an ACK frame with its FCS, in bytes.
pub const ACK_LEN: usize = 14;
/// Length of a three-address data header and FCS, in bytes.
pub const DATA_OVERHEAD: usize = 28;
/// Length of the LLC/SNAP header in front of an IP packet, in bytes.
pub const LLC_SNAP_LEN: usize = 8;

/// A MAC address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// All stations.
    pub const BROADCAST: Self = Self([0xff; 6]);
    /// The one ad-hoc cell of a simulated network: address 3 of every data frame. Nobody's own address.
    pub const CELL: Self = Self([0x02, 0x68, 0x6f, 0x70, 0x00, 0x00]);

    /// The node's default address: locally administered, 02:00 followed by the node number.
    #[must_use]
    pub const fn of_node(node: NodeId) -> Self {
        let n = node.0.to_be_bytes();
        Self([0x02, 0x00, n[0], n[1], n[2], n[3]])
    }

    /// The node whose default address this is.
    #[must_use]
    pub const fn node(self) -> Option<NodeId> {
        match self.0 {
            [0x02, 0x00, a, b, c, d] => Some(NodeId(u32::from_be_bytes([a, b, c, d]))),
            _ => None,
        }
    }

    /// Whether this is a group address.
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

/// A frame. `M` is the MSDU that a data frame carries: a handle in the simulator, bytes elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<M> {
    /// Request to send.
    Rts {
        /// Duration field in µs: what the medium stays reserved after the frame.
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
}

impl<M> Frame<M> {
    /// Receiver address.
    #[must_use]
    pub const fn ra(&self) -> MacAddr {
        match self {
            Self::Rts { ra, .. } | Self::Cts { ra, .. } | Self::Ack { ra, .. } | Self::Data { ra, .. } => *ra,
        }
    }

    /// Duration field in µs.
    #[must_use]
    pub const fn duration_us(&self) -> u16 {
        match self {
            Self::Rts { duration_us, .. }
            | Self::Cts { duration_us, .. }
            | Self::Ack { duration_us, .. }
            | Self::Data { duration_us, .. } => *duration_us,
        }
    }
}

const FCS_LEN: usize = 4;
const DATA_HEADER_LEN: usize = DATA_OVERHEAD - FCS_LEN;

/// First byte of frame control: subtype, type and version 0.
const DATA: u8 = 0x08;
const RTS: u8 = 0xb4;
const CTS: u8 = 0xc4;
const ACK: u8 = 0xd4;

/// Flags of frame control, in its second byte.
const RETRY: u8 = 0x08;
/// To DS, From DS, More Fragments, Protected: each makes another format of what follows.
const OTHER_FORMAT: u8 = 0x01 | 0x02 | 0x04 | 0x40;
/// The part of the sequence control field that numbers fragments.
const FRAGMENT: u16 = 0x000f;

/// LLC header with SNAP, organisation 0 (RFC 1042) and EtherType IPv4.
const SNAP_IPV4: [u8; LLC_SNAP_LEN] = [0xaa, 0xaa, 0x03, 0, 0, 0, 0x08, 0x00];

impl Frame<Bytes> {
    /// Parses a frame that ends in its frame check sequence. The body of a data frame is the IPv4 packet behind the
    /// LLC/SNAP header.
    ///
    /// # Errors
    /// `Truncated`; `BadChecksum`; `BadLength` of a control frame; `Unsupported` for other types of frame, for flags
    /// that change the format (distribution system, fragments, protection) and for other network protocols.
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
            DATA => Self::parse_data(frame, duration_us, ra),
            other => Err(ParseError::Unsupported { what: "802.11 frame type", value: u32::from(other) }),
        }
    }

    fn parse_data(frame: &Bytes, duration_us: u16, ra: MacAddr) -> Result<Self, ParseError> {
        require(frame, DATA_OVERHEAD + LLC_SNAP_LEN)?;
        let flags = frame[1];
        if flags & OTHER_FORMAT != 0 {
            return Err(ParseError::Unsupported { what: "802.11 flags", value: u32::from(flags) });
        }
        let sequence_control = le16(frame, 22);
        if sequence_control & FRAGMENT != 0 {
            let value = u32::from(sequence_control & FRAGMENT);
            return Err(ParseError::Unsupported { what: "802.11 fragment", value });
        }
        let llc: [u8; LLC_SNAP_LEN] = array(frame, DATA_HEADER_LEN);
        if llc != SNAP_IPV4 {
            let value = u32::from(u16::from_be_bytes([llc[6], llc[7]]));
            return Err(ParseError::Unsupported { what: "llc header, ethertype", value });
        }
        Ok(Self::Data {
            duration_us,
            ra,
            ta: MacAddr(array(frame, 10)),
            sequence: Seq16(sequence_control >> 4),
            retry: flags & RETRY != 0,
            body: frame.slice(DATA_HEADER_LEN + LLC_SNAP_LEN..frame.len() - FCS_LEN),
        })
    }

    /// Appends the frame; see [`emit_with`](Self::emit_with).
    pub fn emit(&self, out: &mut Vec<u8>) {
        self.emit_with(out, |body, out| out.extend_from_slice(body));
    }
}

impl<M> Frame<M> {
    /// Appends the frame with its frame check sequence; `body` appends the IPv4 packet that a data frame carries, and
    /// the LLC/SNAP header comes in front of it. Of the sequence number the low 12 bits are sent.
    pub fn emit_with(&self, out: &mut Vec<u8>, body: impl FnOnce(&M, &mut Vec<u8>)) {
        let start = out.len();
        let (frame_type, flags) = match self {
            Self::Rts { .. } => (RTS, 0),
            Self::Cts { .. } => (CTS, 0),
            Self::Ack { .. } => (ACK, 0),
            Self::Data { retry, .. } => (DATA, if *retry { RETRY } else { 0 }),
        };
        out.extend([frame_type, flags]);
        out.extend(self.duration_us().to_le_bytes());
        out.extend(self.ra().0);
        match self {
            Self::Rts { ta, .. } => out.extend(ta.0),
            Self::Cts { .. } | Self::Ack { .. } => {}
            Self::Data { ta, sequence, body: msdu, .. } => {
                out.extend(ta.0);
                out.extend(MacAddr::CELL.0);
                out.extend((sequence.0 << 4).to_le_bytes());
                out.extend(SNAP_IPV4);
                body(msdu, out);
            }
        }
        let fcs = checksum::crc32(&out[start..]);
        out.extend(fcs.to_le_bytes());
    }
}

fn expect_len(what: &'static str, frame: &Bytes, len: usize) -> Result<(), ParseError> {
    require(frame, len)?;
    if frame.len() == len { Ok(()) } else { Err(ParseError::BadLength { what, value: frame.len() }) }
}

#[cfg(test)]
mod tests;
