//! What goes wrong with a test.

use super::refusal::{Bound, Code, PeerError, Refusal};
use std::io;
use std::net::SocketAddr;

/// Why there is no result, or not the whole of it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name of the server has no address, or none that is wanted.
    #[error("{host}: {source}")]
    Name {
        /// The name.
        host: String,
        /// Error of the system.
        source: io::Error,
    },
    /// Nobody answers there, or nobody who would.
    #[error("cannot connect to {peer}: {}", unanswered(.source))]
    Connecting {
        /// Who was called last.
        peer: SocketAddr,
        /// Error of the system.
        source: io::Error,
    },
    /// The server has a test already, and two would measure each other.
    #[error("the server is busy: it carries out another test; try again later")]
    Busy,
    /// The server answers TCP, and does not know a transport of ours.
    #[error(
        "{peer} takes part in tests over TCP but not over {protocol}, as an iperf3 server does: use --transport tcp, or -u for UDP"
    )]
    NotServed {
        /// Who was called.
        peer: SocketAddr,
        /// What the transport is called.
        protocol: &'static str,
    },
    /// The peer gave up.
    #[error("the other side gave up: {0}")]
    Failed(PeerError),
    /// The peer gave up and said why.
    #[error("the other side says: {0}")]
    Refused(String),
    /// The peer's user stopped it.
    #[error("the other side was stopped by its user")]
    Stopped,
    /// The peer says something else than one would.
    #[error("the other side does not speak as iperf3 does: {0}")]
    Protocol(String),
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
    Plan(Bound),
    /// The peer asks for a test that this side does not run.
    #[error("this is no test: {0}")]
    Parameters(Refusal),
    /// The peer's results are not those of the test.
    #[error("the other side does not speak as iperf3 does: {0}")]
    Results(String),
    /// A socket did not take an option that the test asks for.
    #[error("{0}")]
    Option(SocketOption),
    /// [`Watch::interrupted`](super::Watch::interrupted).
    #[error("interrupted")]
    Interrupted,
    /// The system did not do what was asked.
    #[error("{0}")]
    System(#[from] crate::Error),
}

impl Error {
    /// Whether the other side is to be told: it knows of some, and is not there for others.
    pub(super) const fn is_told(&self) -> bool {
        matches!(
            self,
            Self::Interrupted
                | Self::Protocol(_)
                | Self::Late(_)
                | Self::Plan(_)
                | Self::Parameters(_)
                | Self::Results(_)
                | Self::Option(_)
                | Self::Data { .. }
                | Self::System(_)
        )
    }

    /// iperf3's number of the error: what an iperf3 client shows.
    pub(super) const fn code(&self) -> Code {
        match self {
            Self::Plan(bound) => bound.code(),
            Self::Parameters(refusal) => refusal.code,
            Self::Results(_) => Code::Results,
            Self::Option(option) => option.code,
            Self::Silent(_) => Code::Silence,
            Self::System(
                crate::Error::NoSuchCongestionControl { .. }
                | crate::Error::ForbiddenCongestionControl { .. },
            ) => Code::CongestionControl,
            Self::System(_) => Code::CreateStream,
            Self::Data { .. } => Code::ReadStream,
            Self::Late(_) => Code::AcceptStream,
            _ => Code::Message,
        }
    }

    /// `errno` that belongs to it; zero for none.
    pub(super) fn errno(&self) -> u32 {
        let source = match self {
            Self::System(crate::Error::NoSuchCongestionControl { .. }) => return libc::ENOENT as u32,
            Self::System(crate::Error::ForbiddenCongestionControl { .. }) => return libc::EPERM as u32,
            Self::System(crate::Error::System { source, .. } | crate::Error::Unavailable { source, .. })
            | Self::Data { source, .. }
            | Self::Option(SocketOption { source, .. }) => source,
            _ => return 0,
        };
        source.raw_os_error().and_then(|errno| u32::try_from(errno).ok()).unwrap_or(0)
    }
}

/// Option that a socket did not take.
#[derive(Debug, thiserror::Error)]
#[error("setting {name} of a data stream: {source}")]
pub struct SocketOption {
    /// Name of the option.
    pub name: &'static str,
    /// Error number for an iperf3 client.
    pub code: Code,
    /// What the system said.
    pub source: io::Error,
}

impl SocketOption {
    /// The same as an error of the connection that is to be made.
    pub(super) fn into_io(self) -> io::Error {
        io::Error::new(self.source.kind(), self)
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
