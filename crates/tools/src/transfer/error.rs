//! Errors of a file transfer.

use super::frame::FrameError;
use super::reason::{Reason, Refusal};
use std::io;
use std::time::Duration;

/// Reason that a transfer did not complete.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Connection(#[source] io::Error),
    /// The peer closed the connection before the end.
    #[error("the peer closed the connection before the end")]
    Closed,
    /// The received bytes are not a valid frame.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The peer gave up and gave a reason.
    #[error("the peer gave up: {0}")]
    Peer(#[source] Refusal),
    /// The peer violated the protocol.
    #[error("the peer broke the protocol: {0}")]
    Protocol(String),
    /// Local files cannot be read or written.
    #[error("{doing}: {source}")]
    Files {
        /// Operation that failed.
        doing: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The sender exceeded the receiver's limits.
    #[error("{0}")]
    TooMuch(String),
    /// The file named on the command line cannot be sent.
    #[error("{0}")]
    Unsendable(String),
    /// The same sender has restarted the same transfer.
    #[error("the same sender has begun this transfer anew")]
    TakenOver,
    /// There was no progress for too long, and another peer needs the seat.
    #[error("nothing happened for half a minute, and somebody else waits")]
    Idle,
    /// The connection works, but the receiver neither answers nor takes data.
    #[error(
        "the receiver has neither said anything nor taken a byte for {0:?}, though its connection is there"
    )]
    Unresponsive(Duration),
    /// The user interrupted the transfer ([`Observer::interrupted`](super::Observer::interrupted)).
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    pub(super) fn files(doing: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::Files { doing: doing.into(), source: source.into() }
    }

    /// Returns whether the transfer may be resumed over a new connection.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Connection(_) | Self::Closed | Self::Unresponsive(_) | Self::Frame(FrameError::Damaged) => {
                true
            }
            Self::Peer(refusal) => {
                // A stopped peer may be restarted, and a busy one may have a seat later.
                matches!(refusal.reason, Reason::Checksum | Reason::Interrupted | Reason::TooMany)
            }
            _ => false,
        }
    }

    /// Returns its identifier for programs. It never changes.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Connection(error) => match error.kind() {
                io::ErrorKind::TimedOut => "no-answer",
                io::ErrorKind::ConnectionRefused => "connection-refused",
                io::ErrorKind::PermissionDenied => "wrong-key",
                _ => "connection",
            },
            Self::Closed => "closed",
            Self::Unresponsive(_) => "no-answer",
            Self::Peer(refusal) => refusal.reason.code(),
            other => other.refusal().map_or("unknown", |refusal| refusal.reason.code()),
        }
    }

    /// Returns the refusal to send to the peer; `None` if the peer cannot be reached.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        let reason = match self {
            Self::Connection(_) | Self::Closed | Self::Unresponsive(_) | Self::Peer(_) => return None,
            Self::Frame(FrameError::Damaged) => Reason::Checksum,
            Self::Frame(_) | Self::Protocol(_) => Reason::Protocol,
            Self::Files { source, .. } => reason_of(source),
            Self::TooMuch(_) => Reason::TooMuch,
            Self::Unsendable(_) => Reason::System,
            Self::Interrupted => Reason::Interrupted,
            Self::TakenOver => Reason::TakenOver,
            Self::Idle => Reason::TooMany,
        };
        Some(Refusal::new(reason, self.to_string()))
    }
}

/// Returns the reason on the wire for a system error.
pub(super) fn reason_of(error: &io::Error) -> Reason {
    match error.kind() {
        // A symbolic link that must not be followed.
        _ if error.raw_os_error() == Some(libc::ELOOP) => Reason::Path,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            Reason::NoSpace
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Reason::Permission,
        io::ErrorKind::AlreadyExists => Reason::Exists,
        // Other conversations release descriptors.
        _ if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => Reason::TooMany,
        io::ErrorKind::InvalidFilename | io::ErrorKind::NotADirectory => Reason::Path,
        _ => Reason::System,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Error numbers of Linux. `tests/small_disk.rs` tests those of a full or read-only disk.
    #[test]
    fn the_error_of_the_disk_is_reported() {
        for (errno, reason) in [
            (libc::ENOSPC, Reason::NoSpace),
            (libc::EDQUOT, Reason::NoSpace),
            (libc::EROFS, Reason::Permission),
            (libc::EACCES, Reason::Permission),
            (libc::EIO, Reason::System),
            (libc::EMFILE, Reason::TooMany),
            (libc::ENFILE, Reason::TooMany),
        ] {
            assert_eq!(reason_of(&io::Error::from_raw_os_error(errno)), reason, "{errno}");
        }
    }
}
