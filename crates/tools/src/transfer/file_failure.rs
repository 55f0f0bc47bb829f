//! Reasons for which a file is not stored.

use super::error::{Error, reason_of};
use super::path::RelativePath;
use super::reason::{Reason, Refusal};
use rustix::io::Errno;

/// Reason that a file is not stored.
#[derive(Debug)]
pub(super) enum FileFailure {
    /// This file is rejected; the conversation continues.
    Refuse(Refusal),
    /// The conversation ends.
    Fail(Error),
}

impl FileFailure {
    pub(super) fn refused(reason: Reason, text: impl Into<String>) -> Self {
        Self::Refuse(Refusal::new(reason, text))
    }

    /// Returns the error for an exceeded quota.
    pub(super) fn quota() -> Self {
        Self::refused(Reason::TooMuch, "the receiver's quota is used up")
    }

    pub(super) fn of(doing: impl Into<String>, errno: Errno) -> Self {
        Self::of_io(doing, errno.into())
    }

    /// Returns the refusal of one file if further ones may succeed; otherwise the end of the conversation.
    pub(super) fn of_io(doing: impl Into<String>, error: std::io::Error) -> Self {
        let (doing, reason) = (doing.into(), reason_of(&error));
        match reason {
            Reason::Path | Reason::Exists | Reason::NoSpace => {
                Self::refused(reason, format!("{doing}: {error}"))
            }
            Reason::Permission if error.kind() != std::io::ErrorKind::ReadOnlyFilesystem => {
                Self::refused(reason, format!("{doing}: {error}"))
            }
            _ => Self::Fail(Error::files(doing, error)),
        }
    }
}

/// Returns the error for an existing file of the same name.
pub(super) fn exists(path: &RelativePath) -> FileFailure {
    FileFailure::refused(
        Reason::Exists,
        format!("{path}: there is another file of that name; the receiver replaces it with --force"),
    )
}
