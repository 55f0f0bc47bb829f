use super::frame::FrameError;
use super::reason::{Reason, Refusal};
use std::io;
use std::time::Duration;

/// Why a transfer did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Connection(#[source] io::Error),
    /// The peer went away in the middle.
    #[error("the peer closed the connection before the end")]
    Closed,
    /// What came is no frame.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The peer gave up, and said why.
    #[error("the peer gave up: {0}")]
    Peer(#[source] Refusal),
    /// The peer broke the rules.
    #[error("the peer broke the protocol: {0}")]
    Protocol(String),
    /// Files here cannot be read or written.
    #[error("{doing}: {source}")]
    Files {
        /// What was tried.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
    /// More was sent than is permitted here.
    #[error("{0}")]
    TooMuch(String),
    /// What the command line names cannot be sent.
    #[error("{0}")]
    Unsendable(String),
    /// The same sender has begun the same transfer anew.
    #[error("the same sender has begun this transfer anew")]
    TakenOver,
    /// Nothing happened for too long, and somebody else needs the seat.
    #[error("nothing happened for half a minute, and somebody else waits")]
    Idle,
    /// The connection is there, and the receiver neither says anything nor takes a byte.
    #[error(
        "the receiver has neither said anything nor taken a byte for {0:?}, though its connection is there"
    )]
    Unresponsive(Duration),
    /// Stopped by [`Watch::interrupted`](super::Watch::interrupted).
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    pub(super) fn files(doing: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::Files { doing: doing.into(), source: source.into() }
    }

    /// Whether the same transfer over a new connection may go on where this one stopped.
    #[must_use]
    pub const fn is_worth_another_try(&self) -> bool {
        match self {
            Self::Connection(_) | Self::Closed | Self::Unresponsive(_) | Self::Frame(FrameError::Damaged) => {
                true
            }
            Self::Peer(refusal) => {
                // Who was stopped may be started again; who has no room may have some.
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
            other => other.told().map_or("unknown", |refusal| refusal.reason.code()),
        }
    }

    /// What the peer is told; `None` where nobody listens.
    pub(super) fn told(&self) -> Option<Refusal> {
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

/// The reason that travels for what the system said.
pub(super) fn reason_of(error: &io::Error) -> Reason {
    match error.kind() {
        // A symbolic link where none is followed.
        _ if error.raw_os_error() == Some(libc::ELOOP) => Reason::Path,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            Reason::NoSpace
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Reason::Permission,
        io::ErrorKind::AlreadyExists => Reason::Exists,
        // Other conversations give descriptors back.
        _ if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => Reason::TooMany,
        io::ErrorKind::InvalidFilename | io::ErrorKind::NotADirectory => Reason::Path,
        _ => Reason::System,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux's numbers; what a disk says that is full or read-only is tried in `tests/small_disk.rs`.
    #[test]
    fn what_the_disk_said_is_told() {
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
