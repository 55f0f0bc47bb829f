//! Statistics of hosts and streams.

use hopline_core::Duration;
use hopline_sealed::{Peer, Rejections, State, TransportStats};

/// Datagrams of all connections of a host since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostStats {
    /// Received datagrams of any kind.
    pub received: u64,
    /// Connections that peers opened.
    pub accepted: u64,
    /// Connection attempts with untrusted keys, as far as they were reported.
    pub untrusted_keys: u64,
    /// Datagrams passed to the kernel.
    pub sent: u64,
    /// Datagrams that the kernel rejected: no route, or not permitted. They count as lost on the path.
    pub send_failures: u64,
    /// Current connections, including dropped ones that have not ended.
    pub connections: usize,
    /// Counters of the state machine: handshakes, migrations, and dropped datagrams by reason.
    pub sealed: hopline_sealed::HostStats,
}

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Info {
    /// State of the transport; `SynSent` while the handshake lasts.
    pub state: State,
    /// Identity and address of the peer.
    pub peer: Peer,
    /// Pacing rate, in bits per second including headers; `None` before anything is known of the path.
    pub rate: Option<f64>,
    /// Congestion window, in bytes.
    pub window: u64,
    /// Bytes in flight, including headers.
    pub in_flight: u64,
    /// Maximum data of a packet, in bytes.
    pub mss: u32,
    /// Mean round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// Mean deviation of the round-trip time; `None` before the first sample.
    pub rtt_deviation: Option<Duration>,
    /// Last advertised window of the peer, in bytes.
    pub peer_window: u64,
    /// Bytes written that the peer has not acknowledged.
    pub unacknowledged: u64,
    /// The transport's counters.
    pub stats: TransportStats,
    /// Datagrams of the connection that were rejected, by reason.
    pub rejections: Rejections,
}
