//! What a host counts, and what a stream tells of itself.

use hopline_core::Duration;
use hopline_transport::connection::State;
use hopline_transport::tpa::{Path, Stats};

/// Datagrams of a host since it was made, of all its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostStats {
    /// Received, whatever they were.
    pub received: u64,
    /// Received that were no segments.
    pub garbage: u64,
    /// Received segments that belonged to no connection and opened none.
    pub strays: u64,
    /// SYNs answered, without keeping anything of them.
    pub answered: u64,
    /// SYNs neither answered nor refused, because more came than can be.
    pub unanswered: u64,
    /// SYNs refused, because nobody listened or the accept queue was full.
    pub refused: u64,
    /// Connections that came into being because a peer opened them.
    pub accepted: u64,
    /// Handed to the kernel.
    pub sent: u64,
    /// Not taken by the kernel: no route, not permitted. They count as lost on the way.
    pub send_failures: u64,
    /// Connections now, those included that were dropped and are not over.
    pub connections: usize,
}

/// How a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// State of the endpoint.
    pub state: State,
    /// What the sender believes of the path.
    pub path: Path,
    /// Congestion window, segments.
    pub cwnd: u8,
    /// Data of a full segment, bytes.
    pub mss: u32,
    /// Room for data at the peer, as it announced last, bytes.
    pub peer_window: u64,
    /// Mean round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// Mean deviation of the round-trip time; `None` before the first sample.
    pub rtt_deviation: Option<Duration>,
    /// Retransmission timeout, back-off included.
    pub rto: Duration,
    /// Bytes written that the peer has not acknowledged.
    pub unacknowledged: u64,
    /// The endpoint's counters.
    pub stats: Stats,
}
