//! Reasons for another attempt.

use hopline_tools::transfer::{Error, Refusal};
use std::fmt;
use std::io::{self, ErrorKind};
use std::time::Duration;

/// Pause before the next attempt.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Pause before the next attempt if the receiver has to free something first: another sender of the same file, or disk
/// space. It grows to an eighth of the time without progress.
const DEFERRED_RETRY_DELAY: Duration = Duration::from_secs(2);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);

/// Reason for another attempt.
#[derive(Debug)]
pub(super) enum RetryReason {
    /// The receiver may accept some of the files later.
    Deferred(Refusal),
    /// The name has no address.
    Name(io::Error),
    /// There is no connection, or it broke.
    Error(Error),
}

impl RetryReason {
    pub(super) fn is_retryable(&self) -> bool {
        match self {
            Self::Deferred(_) | Self::Name(_) => true,
            Self::Error(error) => !self.is_wrong_key() && error.is_retryable(),
        }
    }

    /// Returns whether another key answered than the receiver's.
    pub(super) fn is_wrong_key(&self) -> bool {
        matches!(self, Self::Error(Error::Connection(error)) if error.kind() == ErrorKind::PermissionDenied)
    }

    /// Returns whether there was no answer.
    pub(super) fn is_timeout(&self) -> bool {
        matches!(self, Self::Error(Error::Connection(error)) if error.kind() == ErrorKind::TimedOut && error.get_ref().is_none())
    }

    /// Returns the identifier for programs.
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Deferred(refusal) => refusal.reason.code(),
            Self::Name(_) => "name",
            Self::Error(error) => error.code(),
        }
    }

    /// Returns the pause before the next attempt, after `idle` without progress.
    pub(super) fn retry_delay(&self, idle: Duration) -> Duration {
        match self {
            Self::Deferred(_) => (idle / 8).clamp(DEFERRED_RETRY_DELAY, MAX_RETRY_DELAY),
            Self::Name(_) | Self::Error(_) => RETRY_DELAY,
        }
    }
}

impl fmt::Display for RetryReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deferred(refusal) => write!(f, "the receiver has not taken all: {refusal}"),
            Self::Name(error) => write!(f, "the name has no address: {error}"),
            Self::Error(error) => error.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_retry_delay_for_a_deferred_file_grows_without_progress() {
        let refusal = Refusal { reason: hopline_tools::transfer::Reason::NoSpace, text: "full".into() };
        let setback = RetryReason::Deferred(refusal);
        let pauses = [0, 16, 80, 3600].map(|idle| setback.retry_delay(Duration::from_secs(idle)).as_secs());
        assert_eq!(pauses, [2, 2, 10, 30]);
    }
}
