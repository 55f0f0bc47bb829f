//! Action frames of the Block Ack category: ADDBA Request, ADDBA Response, DELBA (802.11-2020 §9.6.4).

use super::fields::{FCS_LEN, expect_len, parse_sequence_control};
use crate::emit::le16;
use crate::error::{ParseError, require};
use hopline_core::Seq16;

/// Length of an ADDBA Request or Response frame with its FCS, in bytes.
pub const ADDBA_LEN: usize = 37;
/// Length of a DELBA frame with its FCS, in bytes.
pub const DELBA_LEN: usize = 34;

/// Status code of a response: the agreement stands (802.11-2020 Table 9-50).
pub const STATUS_SUCCESS: u16 = 0;
/// Status code of a response: the recipient does not agree.
pub const STATUS_REQUEST_DECLINED: u16 = 37;
/// Reason code of a DELBA: the agreement is unknown (802.11-2020 Table 9-49).
pub const REASON_UNKNOWN_BA: u16 = 38;
/// Reason code of a DELBA: no frame arrived for the Block Ack Timeout.
pub const REASON_TIMEOUT: u16 = 39;

/// Block Ack policy (802.11-2020 §9.4.1.13), numbered as its bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum BlockAckPolicy {
    /// Delayed Block Ack: an ACK at first, and a BlockAck later. Obsolete.
    Delayed = 0,
    /// Immediate Block Ack: a BlockAck after SIFS.
    Immediate = 1,
}

/// Side of an agreement that sends a DELBA, numbered as its bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum BlockAckSide {
    /// The receiver of data.
    Recipient = 0,
    /// The sender of data.
    Originator = 1,
}

/// Content of a Block Ack action frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockAckAction {
    /// ADDBA Request: the originator asks for an agreement (802.11-2020 §9.6.4.2).
    AddbaRequest {
        /// Distinguishes this request from other requests; hopline sends no zero.
        dialog_token: u8,
        /// Requested kind.
        policy: BlockAckPolicy,
        /// Traffic identifier, 0–15.
        tid: u8,
        /// Buffer size of the recipient in MSDUs, 0–1023; 0 leaves it to the recipient.
        buffer_size: u16,
        /// Block Ack Timeout: silence in TU of 1024 µs after which the agreement ends; 0: disabled.
        timeout_tu: u16,
        /// 12-bit sequence number of the first MSDU.
        start: Seq16,
    },
    /// ADDBA Response: acceptance or refusal by the recipient (802.11-2020 §9.6.4.3).
    AddbaResponse {
        /// Dialog token of the request.
        dialog_token: u8,
        /// Status code; 0: the agreement stands.
        status: u16,
        /// Agreed kind.
        policy: BlockAckPolicy,
        /// Traffic identifier, 0–15.
        tid: u8,
        /// Buffer size of the recipient in MSDUs, 0–1023.
        buffer_size: u16,
        /// Block Ack Timeout: silence in TU of 1024 µs after which the agreement ends; 0: disabled.
        timeout_tu: u16,
    },
    /// DELBA: end of the agreement (802.11-2020 §9.6.4.4).
    Delba {
        /// Side that ends the agreement.
        side: BlockAckSide,
        /// Traffic identifier, 0–15.
        tid: u8,
        /// Reason code.
        reason: u16,
    },
}

/// The Block Ack category, and its actions.
const BLOCK_ACK: u8 = 3;
const ADDBA_REQUEST: u8 = 0;
const ADDBA_RESPONSE: u8 = 1;
const DELBA: u8 = 2;

/// Header of a management frame.
pub(super) const HEADER_LEN: usize = 24;
/// Category and action.
const SELECTOR_LEN: usize = 2;

/// Block Ack Parameter Set (802.11-2020 §9.4.1.13). Bit 0 permits A-MSDUs, which hopline does not send.
const POLICY: u16 = 0x0002;
const TID_SHIFT: u32 = 2;
const BUFFER_SHIFT: u32 = 6;
/// DELBA Parameter Set (802.11-2020 §9.4.1.15).
const INITIATOR: u16 = 0x0800;
const DELBA_TID_SHIFT: u32 = 12;

impl BlockAckAction {
    /// Length of its frame with FCS, in bytes.
    #[must_use]
    pub const fn frame_len(&self) -> usize {
        match self {
            Self::AddbaRequest { .. } | Self::AddbaResponse { .. } => ADDBA_LEN,
            Self::Delba { .. } => DELBA_LEN,
        }
    }

    /// Parses a frame with verified type and check sequence. Elements behind the fixed fields are unknown.
    pub(super) fn parse(frame: &[u8]) -> Result<Self, ParseError> {
        require(frame, HEADER_LEN + SELECTOR_LEN + FCS_LEN)?;
        match (frame[HEADER_LEN], frame[HEADER_LEN + 1]) {
            (BLOCK_ACK, ADDBA_REQUEST) => {
                expect_len("addba request", frame, ADDBA_LEN)?;
                let (kind, tid, buffer_size) = parse_parameter_set(le16(frame, 27));
                let start = parse_sequence_control(le16(frame, 31))?;
                let (dialog_token, timeout_tu) = (frame[26], le16(frame, 29));
                Ok(Self::AddbaRequest { dialog_token, policy: kind, tid, buffer_size, timeout_tu, start })
            }
            (BLOCK_ACK, ADDBA_RESPONSE) => {
                expect_len("addba response", frame, ADDBA_LEN)?;
                let (kind, tid, buffer_size) = parse_parameter_set(le16(frame, 29));
                let (dialog_token, status, timeout_tu) = (frame[26], le16(frame, 27), le16(frame, 31));
                Ok(Self::AddbaResponse { dialog_token, status, policy: kind, tid, buffer_size, timeout_tu })
            }
            (BLOCK_ACK, DELBA) => {
                expect_len("delba", frame, DELBA_LEN)?;
                let field = le16(frame, 26);
                let side =
                    if field & INITIATOR == 0 { BlockAckSide::Recipient } else { BlockAckSide::Originator };
                Ok(Self::Delba { side, tid: (field >> DELBA_TID_SHIFT) as u8, reason: le16(frame, 28) })
            }
            (category, action) => {
                let value = u32::from(u16::from_be_bytes([category, action]));
                Err(ParseError::Unsupported { what: "802.11 category and action", value })
            }
        }
    }

    /// Appends the part between the MAC header and the FCS.
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        match *self {
            Self::AddbaRequest { dialog_token, policy: kind, tid, buffer_size, timeout_tu, start } => {
                out.extend([BLOCK_ACK, ADDBA_REQUEST, dialog_token]);
                out.extend(emit_parameter_set(kind, tid, buffer_size));
                out.extend(timeout_tu.to_le_bytes());
                out.extend((start.0 << 4).to_le_bytes());
            }
            Self::AddbaResponse { dialog_token, status, policy: kind, tid, buffer_size, timeout_tu } => {
                out.extend([BLOCK_ACK, ADDBA_RESPONSE, dialog_token]);
                out.extend(status.to_le_bytes());
                out.extend(emit_parameter_set(kind, tid, buffer_size));
                out.extend(timeout_tu.to_le_bytes());
            }
            Self::Delba { side, tid, reason } => {
                let initiator = if side == BlockAckSide::Originator { INITIATOR } else { 0 };
                out.extend([BLOCK_ACK, DELBA]);
                out.extend((initiator | u16::from(tid) << DELBA_TID_SHIFT).to_le_bytes());
                out.extend(reason.to_le_bytes());
            }
        }
    }
}

fn parse_parameter_set(field: u16) -> (BlockAckPolicy, u8, u16) {
    let kind = if field & POLICY == 0 { BlockAckPolicy::Delayed } else { BlockAckPolicy::Immediate };
    (kind, (field >> TID_SHIFT & 0xf) as u8, field >> BUFFER_SHIFT)
}

fn emit_parameter_set(kind: BlockAckPolicy, tid: u8, buffer_size: u16) -> [u8; 2] {
    let kind = if kind == BlockAckPolicy::Immediate { POLICY } else { 0 };
    (kind | u16::from(tid & 0xf) << TID_SHIFT | buffer_size << BUFFER_SHIFT).to_le_bytes()
}
