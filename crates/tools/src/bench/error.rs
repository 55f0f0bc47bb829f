//! Errors of tests.

use super::refusal::{Bound, Code, PeerError, Refusal};
use std::io;
use std::net::SocketAddr;

/// Reason for a missing or incomplete result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name of the server has no address of the requested family.
    #[error("{host}: {source}")]
    Name {
        /// Host name.
        host: String,
        /// Error of the resolver.
        source: io::Error,
    },
    /// No server answers, or the connection is refused.
    #[error("cannot connect to {peer}: {}", connect_error_text(.source))]
    Connecting {
        /// Address of the last attempt.
        peer: SocketAddr,
        /// Error of the system.
        source: io::Error,
    },
    /// The server is running another test. Two tests at once would distort each other.
    #[error("the server is busy: it carries out another test; try again later")]
    Busy,
    /// The server answers over TCP but does not support a transport of hopline.
    #[error(
        "{peer} takes part in tests over TCP but not over {protocol}, as an iperf3 server does: use --transport tcp, or -u for UDP"
    )]
    NotServed {
        /// Address of the server.
        peer: SocketAddr,
        /// Name of the transport.
        protocol: &'static str,
    },
    /// The peer gave up without a reason.
    #[error("the other side gave up: {0}")]
    Failed(PeerError),
    /// The peer gave up and gave a reason.
    #[error("the other side says: {0}")]
    Refused(String),
    /// The peer's user stopped the test.
    #[error("the other side was stopped by its user")]
    Stopped,
    /// The peer violated the protocol.
    #[error("the other side does not speak as iperf3 does: {0}")]
    Protocol(String),
    /// The peer closed the control connection.
    #[error("the other side ended the control connection before the test was over")]
    Closed,
    /// The peer has been silent for too long.
    #[error("nothing was heard from the other side for {0} s")]
    Silent(u64),
    /// The peer did not take its step in time.
    #[error("the other side did not {0} in time")]
    Late(&'static str),
    /// The control connection broke.
    #[error("the control connection broke: {0}")]
    Control(io::Error),
    /// A data stream broke.
    #[error("data stream {stream} broke: {source}")]
    Data {
        /// Number of the stream, from 1.
        stream: u8,
        /// Error of the system.
        source: io::Error,
    },
    /// A parameter of the plan is out of range.
    #[error("a test has {0}")]
    Plan(Bound),
    /// The peer asks for a test that this side does not run.
    #[error("this is no test: {0}")]
    Parameters(Refusal),
    /// The peer's results do not belong to the test.
    #[error("the other side does not speak as iperf3 does: {0}")]
    Results(String),
    /// A socket rejected an option that the test asks for.
    #[error("{0}")]
    Option(SocketOption),
    /// The user interrupted the test ([`Observer::interrupted`](super::Observer::interrupted)).
    #[error("interrupted")]
    Interrupted,
    /// A system call failed.
    #[error("{0}")]
    System(#[from] hopline_linux::Error),
}

impl Error {
    /// Returns whether to report the error to the peer. The peer knows of some errors already; after others it cannot be
    /// reached.
    pub(super) const fn is_reported_to_peer(&self) -> bool {
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

    /// Returns iperf3's number of the error, which an iperf3 client displays.
    pub(super) const fn code(&self) -> Code {
        match self {
            Self::Plan(bound) => bound.code(),
            Self::Parameters(refusal) => refusal.code,
            Self::Results(_) => Code::Results,
            Self::Option(option) => option.code,
            Self::Silent(_) => Code::Silence,
            Self::System(
                hopline_linux::Error::NoSuchCongestionControl { .. }
                | hopline_linux::Error::ForbiddenCongestionControl { .. },
            ) => Code::CongestionControl,
            Self::System(_) => Code::CreateStream,
            Self::Data { .. } => Code::ReadStream,
            Self::Late(_) => Code::AcceptStream,
            _ => Code::Message,
        }
    }

    /// Returns the `errno` of the error; zero for none.
    pub(super) fn errno(&self) -> u32 {
        let source = match self {
            Self::System(hopline_linux::Error::NoSuchCongestionControl { .. }) => return libc::ENOENT as u32,
            Self::System(hopline_linux::Error::ForbiddenCongestionControl { .. }) => {
                return libc::EPERM as u32;
            }
            Self::System(
                hopline_linux::Error::System { source, .. }
                | hopline_linux::Error::Unavailable { source, .. },
            )
            | Self::Data { source, .. }
            | Self::Option(SocketOption { source, .. }) => source,
            _ => return 0,
        };
        source.raw_os_error().and_then(|errno| u32::try_from(errno).ok()).unwrap_or(0)
    }
}

/// A socket option that was rejected.
#[derive(Debug, thiserror::Error)]
#[error("setting {name} of a data stream: {source}")]
pub struct SocketOption {
    /// Name of the option.
    pub name: &'static str,
    /// Error number for an iperf3 client.
    pub code: Code,
    /// Error of the system.
    pub source: io::Error,
}

impl SocketOption {
    /// Returns the error as one of connecting.
    pub(super) fn into_io(self) -> io::Error {
        io::Error::new(self.source.kind(), self)
    }
}

/// Returns a message for a failed connection attempt. The system's own text for a silent host says little.
fn connect_error_text(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut => "no answer".into(),
        io::ErrorKind::ConnectionRefused => "nobody listens there".into(),
        _ => error.to_string(),
    }
}
