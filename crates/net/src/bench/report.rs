//! What is measured, and told.

use super::datagram::Arrivals;
use super::plan::CongestionControl;
use super::probe::Latency;
use super::stream::Telemetry;
use std::net::SocketAddr;
use std::time::Duration;

/// A data stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connected {
    /// Our end of it.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Data of a full segment, in bytes; `None` for UDP.
    pub mss: Option<u32>,
    /// Who sends over it.
    pub role: Role,
}

/// What this side does with the data of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It sends.
    Sends,
    /// It receives.
    Receives,
}

/// What is settled before anything moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The 36 characters that make streams part of the test.
    pub cookie: String,
    /// Bytes handed over at once.
    pub length: u32,
    /// What the first stream's socket has to send and to receive with, in bytes; of TPA nothing.
    pub buffers: Option<(u32, u32)>,
    /// The control connection's peer.
    pub peer: SocketAddr,
    /// The data streams, in their order; of both directions, those on which the client sends come first.
    pub streams: Vec<Connected>,
}

/// A part of the test as this side saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    /// When it began: since the beginning of the test or, once what is omitted is over, since that.
    pub start: Duration,
    /// When it ended, likewise.
    pub end: Duration,
    /// Whether it counts.
    pub phase: Phase,
    /// Each stream's share.
    pub streams: Vec<StreamInterval>,
}

/// Whether a part of the test counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It is left out of the sums.
    Omitted,
    /// It counts.
    Measured,
}

/// A stream within an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamInterval {
    /// What this side does.
    pub role: Role,
    /// Handed over to the transport, or received from it.
    pub bytes: u64,
    /// Of UDP.
    pub datagrams: Option<Arrivals>,
    /// At the side that sends: how the connection stood at the end of the interval; `retransmits` is that of the interval.
    pub sending: Option<Telemetry>,
}

/// What became of a test.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// What this side counted.
    pub local: SideReport,
    /// What the other side counted. `None` only if the test was stopped and it did not answer.
    pub remote: Option<SideReport>,
    /// How it ended.
    pub ending: Ending,
    /// Round trips of small datagrams beside the test; `None` if nobody answered such, as an iperf3 server does not.
    pub latency: Option<Latency>,
}

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// As planned.
    Complete,
    /// The client's user stopped it.
    Stopped,
}

/// What one side counted, without what was omitted.
#[derive(Clone, Debug, PartialEq)]
pub struct SideReport {
    /// How long, by this side's own clock.
    pub elapsed: Duration,
    /// What its process used of a processor.
    pub cpu: Cpu,
    /// What controls congestion on this side's sockets, if it is known; of TPA `tpa`.
    pub congestion_control: Option<CongestionControl>,
    /// Each stream's.
    pub streams: Vec<StreamReport>,
    /// What the server prints, at the client that asked for it.
    pub output: Option<ServerOutput>,
}

/// What a server printed.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerOutput {
    /// Lines.
    Text(String),
    /// An object, of an iperf3 server with `-J`.
    Json(serde_json::Value),
}

/// Time on processors, in parts of the time that passed; above 1 with several processors.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cpu {
    /// In the program.
    pub user: f64,
    /// In the kernel, on its behalf.
    pub system: f64,
}

/// What one side counted of a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamReport {
    /// What that side does.
    pub role: Role,
    /// Handed over to the transport, or received from it.
    pub bytes: u64,
    /// At the side that sends, if it told.
    pub sending: Option<SendingReport>,
    /// Of UDP.
    pub datagrams: Option<Arrivals>,
}

/// What the sender saw of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendingReport {
    /// Segments sent again.
    pub retransmits: u64,
    /// Largest congestion window seen at the end of an interval, in bytes.
    pub max_cwnd: u64,
    /// Largest room that the receiver had at the end of an interval, in bytes.
    pub max_peer_window: u64,
    /// Of the smoothed round-trip time at the end of intervals; `None` if there was none, or the other side measured it.
    pub rtt: Option<RttSummary>,
}

/// Smallest, mean and largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttSummary {
    /// Smallest.
    pub min: Duration,
    /// Mean.
    pub mean: Duration,
    /// Largest.
    pub max: Duration,
}

impl Interval {
    /// Over all streams of `role`.
    #[must_use]
    pub fn bytes(&self, role: Role) -> u64 {
        self.of(role).map(|s| s.bytes).sum()
    }

    /// Over all streams; `None` at the side that only receives, and of UDP.
    #[must_use]
    pub fn retransmits(&self) -> Option<u64> {
        let each = self.of(Role::Sends).map(|s| s.sending.map(|t| t.retransmits));
        each.reduce(|a, b| Some(a? + b?))?
    }

    /// Of UDP, over all streams of `role`.
    #[must_use]
    pub fn datagrams(&self, role: Role) -> Option<Arrivals> {
        Arrivals::sum(self.of(role).map(|s| s.datagrams))
    }

    fn of(&self, role: Role) -> impl Iterator<Item = &StreamInterval> {
        self.streams.iter().filter(move |s| s.role == role)
    }
}

impl SideReport {
    /// Over all streams of `role`.
    #[must_use]
    pub fn bytes(&self, role: Role) -> u64 {
        self.of(role).fold(0, |sum, s| sum.saturating_add(s.bytes))
    }

    /// Over all streams; `None` at the side that only receives, and of UDP.
    #[must_use]
    pub fn retransmits(&self) -> Option<u64> {
        let each = self.of(Role::Sends).map(|s| s.sending.map(|t| t.retransmits));
        each.reduce(|a, b| Some(a?.saturating_add(b?)))?
    }

    /// Of UDP, over all streams of `role`.
    #[must_use]
    pub fn datagrams(&self, role: Role) -> Option<Arrivals> {
        Arrivals::sum(self.of(role).map(|s| s.datagrams))
    }

    fn of(&self, role: Role) -> impl Iterator<Item = &StreamReport> {
        self.streams.iter().filter(move |s| s.role == role)
    }
}

impl Role {
    /// What the other side does.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Sends => Self::Receives,
            Self::Receives => Self::Sends,
        }
    }
}
