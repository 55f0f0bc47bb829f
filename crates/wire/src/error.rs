//! Errors of parsing a packet.

use thiserror::Error;

/// Reason for which a packet could not be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum ParseError {
    /// The bytes end before the packet does.
    #[error("truncated: {needed} bytes needed, {got} present")]
    Truncated {
        /// Bytes needed to continue; more may be needed after them.
        needed: usize,
        /// Bytes present.
        got: usize,
    },
    /// A checksum or frame check sequence does not match.
    #[error("bad checksum")]
    BadChecksum,
    /// A length field contradicts the format.
    #[error("bad length {value} of {what}")]
    BadLength {
        /// The field or option.
        what: &'static str,
        /// The length found.
        value: usize,
    },
    /// Well-formed as far as known, and not supported by hopline.
    #[error("unsupported {what}: {value}")]
    Unsupported {
        /// The field.
        what: &'static str,
        /// Value of the field.
        value: u32,
    },
}

/// Returns `Truncated` unless `bytes` holds at least `needed` bytes.
pub(crate) fn require(bytes: &[u8], needed: usize) -> Result<(), ParseError> {
    if bytes.len() < needed { Err(ParseError::Truncated { needed, got: bytes.len() }) } else { Ok(()) }
}
