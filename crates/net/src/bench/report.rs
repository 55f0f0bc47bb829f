//! What is measured, and told.

use super::plan::CongestionControl;
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
    /// Data of a full segment, in bytes.
    pub mss: u32,
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
    /// Handed over to the transport, or received from it.
    pub bytes: u64,
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamReport {
    /// Handed over to the transport, or received from it.
    pub bytes: u64,
    /// At the side that sends.
    pub sending: Option<SendingReport>,
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
    /// Of the smoothed round-trip time at the end of intervals; `None` if there was none.
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
    /// Over all streams.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.streams.iter().map(|s| s.bytes).sum()
    }

    /// Over all streams; `None` at the side that receives.
    #[must_use]
    pub fn retransmits(&self) -> Option<u64> {
        self.streams.iter().map(|s| s.sending.map(|t| t.retransmits)).sum()
    }
}

impl SideReport {
    /// Over all streams.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.streams.iter().fold(0, |sum, s| sum.saturating_add(s.bytes))
    }

    /// Over all streams; `None` at the side that receives.
    #[must_use]
    pub fn retransmits(&self) -> Option<u64> {
        self.streams
            .iter()
            .try_fold(0u64, |sum, s| s.sending.map(|sending| sum.saturating_add(sending.retransmits)))
    }
}
