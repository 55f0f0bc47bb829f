//! Results of a test.

use super::datagram::DatagramStats;
use super::plan::CongestionControl;
use super::probe::Latency;
use super::stream::Telemetry;
use std::net::SocketAddr;
use std::time::Duration;

/// A data stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connected {
    /// Local address.
    pub local: SocketAddr,
    /// Address of the peer.
    pub remote: SocketAddr,
    /// Maximum segment size, in bytes. `None` for UDP.
    pub mss: Option<u32>,
    /// Role of this side on the stream.
    pub role: Role,
}

/// Role of this side on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// This side sends.
    Sends,
    /// This side receives.
    Receives,
}

/// Settings of a test, before any data move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestSettings {
    /// The 36 characters that make streams part of the test.
    pub cookie: String,
    /// Bytes of one write.
    pub length: u32,
    /// Send and receive buffer of the first stream's socket, in bytes. `None` for TPA and TPA-wide.
    pub buffers: Option<(u32, u32)>,
    /// Address of the peer of the control connection.
    pub peer: SocketAddr,
    /// Data streams in their order. With both directions, those on which the client sends come first.
    pub streams: Vec<Connected>,
}

/// One interval of the test, as measured by this side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Start, relative to the start of the test or, after an omission, to its end.
    pub start: Duration,
    /// End, relative to the same moment as `start`.
    pub end: Duration,
    /// Phase to which the interval belongs.
    pub phase: Phase,
    /// Statistics of each stream.
    pub streams: Vec<StreamInterval>,
}

/// Phase of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Omission: not included in the totals.
    Omitted,
    /// Measured time.
    Measured,
}

/// Statistics of a stream within an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamInterval {
    /// Role of this side.
    pub role: Role,
    /// Bytes passed to the transport, or received from it.
    pub bytes: u64,
    /// Datagram statistics, for UDP.
    pub datagrams: Option<DatagramStats>,
    /// Transport statistics at the end of the interval, at the sender. `retransmits` counts within the interval.
    pub sending: Option<Telemetry>,
}

/// Results of a test.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Statistics of this side.
    pub local: SideReport,
    /// Statistics of the peer. `None` only if the test was stopped and the peer did not answer.
    pub remote: Option<SideReport>,
    /// Kind of the end.
    pub ending: Ending,
    /// Round-trip times of probes beside the test. `None` if none was echoed; iperf3 servers do not echo.
    pub latency: Option<Latency>,
}

/// Kind of the end of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The test ran as planned.
    Complete,
    /// The client's user stopped the test.
    Stopped,
}

/// Statistics of one side, without the omission.
#[derive(Clone, Debug, PartialEq)]
pub struct SideReport {
    /// Duration by this side's own clock.
    pub elapsed: Duration,
    /// Processor time of its process.
    pub cpu: Cpu,
    /// Congestion control algorithm of this side's sockets, if it is known; `tpa` for TPA.
    pub congestion_control: Option<CongestionControl>,
    /// Statistics of each stream.
    pub streams: Vec<StreamReport>,
    /// Output of the server, at a client that asked for it.
    pub output: Option<ServerOutput>,
}

/// Output of a server.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerOutput {
    /// Text, as lines.
    Text(String),
    /// JSON object, from an iperf3 server with `-J`.
    Json(serde_json::Value),
}

/// Processor time, as a fraction of the elapsed time; above 1 if several processors were used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cpu {
    /// Time in user mode.
    pub user: f64,
    /// Time in the kernel on behalf of the process.
    pub system: f64,
}

/// Statistics of one side about a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamReport {
    /// Role of that side.
    pub role: Role,
    /// Bytes passed to the transport, or received from it.
    pub bytes: u64,
    /// Statistics of the sender, if that side sends and reports them.
    pub sending: Option<SendingReport>,
    /// Datagram statistics, for UDP.
    pub datagrams: Option<DatagramStats>,
}

/// Statistics of the sender of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendingReport {
    /// Retransmitted segments.
    pub retransmits: u64,
    /// Maximum of the congestion window at the ends of intervals, in bytes.
    pub max_cwnd: u64,
    /// Maximum of the receiver's advertised window at the ends of intervals, in bytes.
    pub max_peer_window: u64,
    /// Smoothed round-trip time at the ends of intervals. `None` if there was no sample, or if the peer measured it.
    pub rtt: Option<RttSummary>,
}

/// Minimum, mean and maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttSummary {
    /// Minimum.
    pub min: Duration,
    /// Mean.
    pub mean: Duration,
    /// Maximum.
    pub max: Duration,
}

impl Interval {
    /// Returns the bytes over all streams of `role`.
    #[must_use]
    pub fn bytes(&self, role: Role) -> u64 {
        self.of(role).map(|s| s.bytes).sum()
    }

    /// Returns the retransmissions over all streams. `None` at a side that only receives, and for UDP.
    #[must_use]
    pub fn retransmits(&self) -> Option<u64> {
        let each = self.of(Role::Sends).map(|s| s.sending.map(|t| t.retransmits));
        each.reduce(|a, b| Some(a? + b?))?
    }

    /// Returns the datagram statistics over all streams of `role`. `None` for other transports.
    #[must_use]
    pub fn datagrams(&self, role: Role) -> Option<DatagramStats> {
        DatagramStats::sum(self.of(role).map(|s| s.datagrams))
    }

    fn of(&self, role: Role) -> impl Iterator<Item = &StreamInterval> {
        self.streams.iter().filter(move |s| s.role == role)
    }
}

impl SideReport {
    /// Returns the bytes over all streams of `role`.
    #[must_use]
    pub fn bytes(&self, role: Role) -> u64 {
        self.of(role).fold(0, |sum, s| sum.saturating_add(s.bytes))
    }

    /// Returns the retransmissions over all streams. `None` at a side that only receives, and for UDP.
    #[must_use]
    pub fn retransmits(&self) -> Option<u64> {
        let each = self.of(Role::Sends).map(|s| s.sending.map(|t| t.retransmits));
        each.reduce(|a, b| Some(a?.saturating_add(b?)))?
    }

    /// Returns the datagram statistics over all streams of `role`. `None` for other transports.
    #[must_use]
    pub fn datagrams(&self, role: Role) -> Option<DatagramStats> {
        DatagramStats::sum(self.of(role).map(|s| s.datagrams))
    }

    fn of(&self, role: Role) -> impl Iterator<Item = &StreamReport> {
        self.streams.iter().filter(move |s| s.role == role)
    }
}

impl Role {
    /// Returns the role of the peer.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Sends => Self::Receives,
            Self::Receives => Self::Sends,
        }
    }
}
