//! Reason of a refusal or failure.

use crate::printable::printable;

/// Maximum bytes of text in one frame; longer text is cut.
pub const MAX_TEXT: usize = 512;

/// A refusal with its reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Refusal {
    /// Reason, for programs.
    pub reason: Reason,
    /// Text, for users.
    pub text: String,
}

/// Reasons of refusals and failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// The path is not acceptable.
    Path = 1,
    /// Another file of that name exists.
    Exists = 2,
    /// The same file is being received from another sender.
    Busy = 3,
    /// The content does not match the offered hash.
    Checksum = 4,
    /// The disk is full.
    NoSpace = 5,
    /// The receiver's limit of bytes or files is exceeded.
    TooMuch = 6,
    /// Permission to read or write is missing.
    Permission = 7,
    /// A system call failed.
    System = 8,
    /// The peer violated the protocol.
    Protocol = 9,
    /// The user stopped it.
    Interrupted = 10,
    /// The receiver has reached its maximum number of conversations.
    TooMany = 11,
    /// The sender has restarted the same transfer.
    TakenOver = 12,
    /// A name with a leading dot, from a sender with an unknown key.
    Hidden = 13,
    /// A reason that this version does not know.
    Unknown = 255,
}

impl Refusal {
    pub(super) fn new(reason: Reason, text: impl Into<String>) -> Self {
        Self { reason, text: text.into() }
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.push(self.reason as u8);
        out.extend_from_slice(cut(&self.text).as_bytes());
    }

    pub(super) fn of(body: &[u8]) -> Option<Self> {
        let (reason, text) = body.split_first()?;
        Some(Self { reason: Reason::of(*reason), text: printable(text) })
    }
}

impl Reason {
    const KNOWN: [Self; 13] = [
        Self::Path,
        Self::Exists,
        Self::Busy,
        Self::Checksum,
        Self::NoSpace,
        Self::TooMuch,
        Self::Permission,
        Self::System,
        Self::Protocol,
        Self::Interrupted,
        Self::TooMany,
        Self::TakenOver,
        Self::Hidden,
    ];

    /// Returns the identifier for programs. It is stable.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Exists => "exists",
            Self::Busy => "busy",
            Self::Checksum => "checksum",
            Self::NoSpace => "no-space",
            Self::TooMuch => "too-much",
            Self::Permission => "permission",
            Self::System => "system",
            Self::Protocol => "protocol",
            Self::Interrupted => "interrupted",
            Self::TooMany => "too-many",
            Self::TakenOver => "taken-over",
            Self::Hidden => "hidden",
            Self::Unknown => "unknown",
        }
    }

    /// Returns whether the same file may be accepted later, without any change by the sender.
    #[must_use]
    pub const fn is_temporary(self) -> bool {
        matches!(self, Self::Busy | Self::NoSpace)
    }

    fn of(byte: u8) -> Self {
        Self::KNOWN.into_iter().find(|reason| *reason as u8 == byte).unwrap_or(Self::Unknown)
    }
}

/// Returns at most [`MAX_TEXT`] bytes of `text`, cut between characters.
pub(super) fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_have_distinct_numbers_and_codes() {
        let mut codes: Vec<_> = Reason::KNOWN.map(Reason::code).to_vec();
        for reason in Reason::KNOWN {
            assert_eq!(Reason::of(reason as u8), reason);
        }
        assert_eq!(Reason::of(200), Reason::Unknown);
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), Reason::KNOWN.len());
    }
}
