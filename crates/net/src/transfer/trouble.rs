use super::error::{Error, reason_of};
use super::path::RelativePath;
use super::reason::{Reason, Refusal};
use rustix::io::Errno;

/// Why something is not stored.
#[derive(Debug)]
pub(super) enum Trouble {
    /// This file is not; others may be.
    Refuse(Refusal),
    /// Nothing more is.
    Fail(Error),
}

impl Trouble {
    pub(super) fn refuse(reason: Reason, text: impl Into<String>) -> Self {
        Self::Refuse(Refusal::new(reason, text))
    }

    /// More than the receiver may keep.
    pub(super) fn quota() -> Self {
        Self::refuse(Reason::TooMuch, "the receiver's quota is used up")
    }

    pub(super) fn of(doing: impl Into<String>, errno: Errno) -> Self {
        Self::of_io(doing, errno.into())
    }

    /// Refuses one file where others may fare better.
    pub(super) fn of_io(doing: impl Into<String>, error: std::io::Error) -> Self {
        let (doing, reason) = (doing.into(), reason_of(&error));
        match reason {
            Reason::Path | Reason::Exists | Reason::NoSpace => {
                Self::refuse(reason, format!("{doing}: {error}"))
            }
            Reason::Permission if error.kind() != std::io::ErrorKind::ReadOnlyFilesystem => {
                Self::refuse(reason, format!("{doing}: {error}"))
            }
            _ => Self::Fail(Error::files(doing, error)),
        }
    }
}

/// What is said of a file that is in the way.
pub(super) fn exists(path: &RelativePath) -> Trouble {
    Trouble::refuse(
        Reason::Exists,
        format!("{path}: there is another file of that name; the receiver replaces it with --force"),
    )
}
