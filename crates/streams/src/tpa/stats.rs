//! Statistics of hosts and streams.

use hopline_core::Duration;
use hopline_transport::connection::State;
use hopline_transport::tpa::{PathState, Stats};

/// Datagrams of all connections of a host since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostStats {
    /// Received datagrams of any kind.
    pub received: u64,
    /// Received datagrams that were not segments.
    pub malformed: u64,
    /// Received segments for unknown connections that opened none.
    pub unknown_segments: u64,
    /// SYNs answered, without keeping state.
    pub answered: u64,
    /// SYNs neither answered nor rejected, because of a flood.
    pub unanswered: u64,
    /// SYNs rejected, because there was no listener or the accept queue was full.
    pub refused: u64,
    /// Connections that peers opened.
    pub accepted: u64,
    /// Datagrams passed to the kernel.
    pub sent: u64,
    /// Datagrams that the kernel rejected: no route, or not permitted. They count as lost on the path.
    pub send_failures: u64,
    /// Current connections, including dropped ones that have not ended.
    pub connections: usize,
}

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// State of the endpoint.
    pub state: State,
    /// Sender's assessment of the path.
    pub path: PathState,
    /// Congestion window, in segments.
    pub cwnd: u8,
    /// Maximum data of a segment, in bytes.
    pub mss: u32,
    /// Last advertised window of the peer, in bytes.
    pub peer_window: u64,
    /// Mean round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// Mean deviation of the round-trip time; `None` before the first sample.
    pub rtt_deviation: Option<Duration>,
    /// Retransmission timeout, including back-off.
    pub rto: Duration,
    /// Bytes written that the peer has not acknowledged.
    pub unacknowledged: u64,
    /// The endpoint's counters.
    pub stats: Stats,
}
