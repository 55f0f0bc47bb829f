//! Fields that all frames have.

use crate::error::{ParseError, require};
use hopline_core::Seq16;

pub(super) const FCS_LEN: usize = 4;

/// The part of the sequence control field that numbers fragments.
const FRAGMENT: u16 = 0x000f;

/// The sequence number, of an MSDU in one fragment.
pub(super) fn parse_sequence_control(field: u16) -> Result<Seq16, ParseError> {
    match field & FRAGMENT {
        0 => Ok(Seq16(field >> 4)),
        fragment => Err(ParseError::Unsupported { what: "802.11 fragment", value: u32::from(fragment) }),
    }
}

pub(super) fn expect_len(what: &'static str, frame: &[u8], len: usize) -> Result<(), ParseError> {
    require(frame, len)?;
    if frame.len() == len { Ok(()) } else { Err(ParseError::BadLength { what, value: frame.len() }) }
}
