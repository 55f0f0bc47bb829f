//! Reason for another attempt.

use hopline_net::transfer::{Error, Reason, Refusal};
use std::fmt;
use std::io::{self, ErrorKind};
use std::time::Duration;

/// Pause before the next attempt.
const PAUSE: Duration = Duration::from_secs(1);
/// The same where the receiver has to get rid of something first: another sender of the same, or what fills its disk.
const PAUSE_IF_DEFERRED: Duration = Duration::from_secs(2);

/// Reasons for another attempt.
#[derive(Debug)]
pub(super) enum Setback {
    /// The receiver may take some of the files later.
    Deferred(Refusal),
    /// The name has no address.
    Name(io::Error),
    /// There is no connection, or it broke.
    Error(Error),
}

impl Setback {
    pub(super) fn is_worth_another_try(&self) -> bool {
        match self {
            Self::Deferred(_) | Self::Name(_) => true,
            Self::Error(error) => !self.is_wrong_key() && error.is_worth_another_try(),
        }
    }

    /// Another key answers than the receiver's.
    pub(super) fn is_wrong_key(&self) -> bool {
        matches!(self, Self::Error(Error::Connection(error)) if error.kind() == ErrorKind::PermissionDenied)
    }

    /// Nothing answers.
    pub(super) fn is_silence(&self) -> bool {
        matches!(self, Self::Error(Error::Connection(error)) if error.kind() == ErrorKind::TimedOut && error.get_ref().is_none())
    }

    /// Its identifier for programs.
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Deferred(refusal) => refusal.reason.code(),
            Self::Name(_) => "name",
            Self::Error(error) => error.code(),
        }
    }

    pub(super) const fn pause(&self) -> Duration {
        match self {
            Self::Deferred(_) => PAUSE_IF_DEFERRED,
            Self::Name(_) | Self::Error(_) => PAUSE,
        }
    }
}

impl fmt::Display for Setback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deferred(refusal) if refusal.reason == Reason::Busy => {
                f.write_str("the receiver receives some of the files from another sender")
            }
            Self::Deferred(refusal) => write!(f, "the receiver has not taken all: {refusal}"),
            Self::Name(error) => write!(f, "the name has no address: {error}"),
            Self::Error(error) => error.fmt(f),
        }
    }
}
