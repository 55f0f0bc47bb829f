//! What goes wrong with a test.

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
    #[error("the other side gave up: {}", Failing(*.0))]
    Failed(u32),
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
    Plan(&'static str),
    /// The peer asks for a test that is none.
    #[error("this is no test: {0}")]
    Parameters(String),
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
                | Self::Data { .. }
                | Self::System(_)
        )
    }

    /// iperf3's number for it, as far as it has one; people at the other side read its words.
    pub(super) const fn number(&self) -> u32 {
        match self {
            Self::Plan(_) | Self::Parameters(_) => BAD_PARAMETERS,
            Self::System(_) => NO_CONGESTION_CONTROL,
            Self::Data { .. } => NO_STREAM,
            Self::Late(_) => TOO_LATE,
            _ => NOT_UNDERSTOOD,
        }
    }
}

/// Numbers of iperf3's errors that are sent.
const NOT_UNDERSTOOD: u32 = 109;
const BAD_PARAMETERS: u32 = 113;
const NO_CONGESTION_CONTROL: u32 = 133;
const TOO_LATE: u32 = 204;
const NO_STREAM: u32 = 206;

/// What iperf3's number means.
struct Failing(u32);

impl std::fmt::Display for Failing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words = match self.0 {
            BAD_PARAMETERS => "it does not take the parameters of the test",
            NOT_UNDERSTOOD => "it did not understand a message",
            NO_STREAM | 205 => "a data stream broke",
            NO_CONGESTION_CONTROL => {
                "it cannot set what its sockets should have; perhaps it has not the congestion control"
            }
            TOO_LATE => "a data stream did not come",
            number => return write!(f, "iperf3's error {number}"),
        };
        f.write_str(words)
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
