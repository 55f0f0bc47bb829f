//! What goes wrong with a test.

use super::message::VERSION;
use std::io;
use std::net::SocketAddr;

/// Why there is no result, or not the whole of it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody answers there, or nobody who would.
    #[error("cannot connect to {peer}: {}", unanswered(.source))]
    Connecting {
        /// Who was called last.
        peer: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The peer wants no test, or gave up.
    #[error("{0}")]
    Refused(Refusal),
    /// The peer says something else than one would.
    #[error("what answers there is not `hopline bench`: {0}")]
    Protocol(String),
    /// The peer is of another version.
    #[error("the other side speaks version {0} of `hopline bench`, and this is version {VERSION}")]
    Version(u8),
    /// The peer has hung up.
    #[error("the other side ended the control connection before the test was over")]
    Closed,
    /// The peer may be gone.
    #[error("nothing was heard from the other side for {0} s")]
    Silent(u64),
    /// The peer did not do in time what was its turn.
    #[error("the other side did not {0} in time")]
    Late(&'static str),
    /// The control connection broke.
    #[error("the control connection broke: {0}")]
    Control(io::Error),
    /// A data stream broke.
    #[error("data stream {stream} broke: {source}")]
    Data {
        /// Which, counted from 1.
        stream: u8,
        /// What the system said.
        source: io::Error,
    },
    /// Part of a plan is out of its range.
    #[error("a test has {0}")]
    Plan(&'static str),
    /// [`Watch::interrupted`](super::Watch::interrupted).
    #[error("interrupted")]
    Interrupted,
    /// The system did not do what was asked.
    #[error("{0}")]
    System(#[from] crate::Error),
}

/// A no, with its reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the other side says: {text}")]
pub struct Refusal {
    /// For programs.
    pub reason: Reason,
    /// For people.
    pub text: String,
}

/// Why a side wants no test, or gave up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// It speaks another version.
    Version = 1,
    /// A test is going on, and two would measure each other.
    Busy = 2,
    /// The plan is not one that it carries out.
    Plan = 3,
    /// Its system failed.
    System = 4,
    /// The rules of the conversation were broken.
    Protocol = 5,
    /// Its user stopped it.
    Interrupted = 6,
    /// Something that a later version knows.
    Unknown = 255,
}

impl Reason {
    pub(super) const fn of(code: u8) -> Self {
        match code {
            1 => Self::Version,
            2 => Self::Busy,
            3 => Self::Plan,
            4 => Self::System,
            5 => Self::Protocol,
            6 => Self::Interrupted,
            _ => Self::Unknown,
        }
    }
}

impl Refusal {
    pub(super) fn new(reason: Reason, text: impl Into<String>) -> Self {
        Self { reason, text: text.into() }
    }
}

impl Error {
    /// What the other side is told of it, unless it knows, or is not there.
    pub(super) fn told(&self) -> Option<Refusal> {
        let reason = match self {
            Self::Protocol(_) | Self::Late(_) => Reason::Protocol,
            Self::Version(_) => Reason::Version,
            Self::Plan(_) => Reason::Plan,
            Self::Data { .. } | Self::System(_) => Reason::System,
            Self::Interrupted => Reason::Interrupted,
            Self::Connecting { .. }
            | Self::Refused(_)
            | Self::Closed
            | Self::Silent(_)
            | Self::Control(_) => return None,
        };
        let text = match self {
            Self::Protocol(what) => what.clone(),
            Self::Late(what) => format!("you did not {what} in time"),
            Self::Version(theirs) => format!("this is version {VERSION}, not {theirs}"),
            Self::Interrupted => "stopped by its user".into(),
            _ => self.to_string(),
        };
        Some(Refusal { reason, text })
    }
}

/// Systems say of a host that does not answer as little as it does.
fn unanswered(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut => "no answer".into(),
        io::ErrorKind::ConnectionRefused => "nobody listens there".into(),
        _ => error.to_string(),
    }
}
