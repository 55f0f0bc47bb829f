//! What a host counts, and what a stream tells of itself.

use hopline_core::Duration;
use hopline_sealed::{Peer, Rejections, State, TransportStats};

/// Datagrams of a host since it was made, of all its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostStats {
    /// Received, whatever they were.
    pub received: u64,
    /// Connections that came into being because a peer opened them.
    pub accepted: u64,
    /// Who called with a key that is none of those that are trusted, as far as such calls were told of.
    pub strangers: u64,
    /// Handed to the kernel.
    pub sent: u64,
    /// Not taken by the kernel: no route, not permitted. They count as lost on the way.
    pub send_failures: u64,
    /// Connections now, those included that were dropped and are not over.
    pub connections: usize,
    /// What the machine counts: handshakes, moves, and all that it dropped, with reasons.
    pub sealed: hopline_sealed::HostStats,
}

/// How a connection stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Info {
    /// State of the transport; `SynSent` while the handshake lasts.
    pub state: State,
    /// Who is at the other end, and where.
    pub peer: Peer,
    /// The rate at which packets leave, bits per second with headers; `None` before anything is known of the path.
    pub rate: Option<f64>,
    /// Bytes that may be in flight.
    pub window: u64,
    /// Bytes in flight, headers included.
    pub in_flight: u64,
    /// Data of a full packet, bytes.
    pub mss: u32,
    /// Mean round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// Mean deviation of the round-trip time; `None` before the first sample.
    pub rtt_deviation: Option<Duration>,
    /// Bytes that the peer takes beyond what it has acknowledged, as far as it has told.
    pub peer_window: u64,
    /// Bytes written that the peer has not acknowledged.
    pub unacknowledged: u64,
    /// The transport's counters.
    pub stats: TransportStats,
    /// Datagrams for it that were not opened, with reasons.
    pub rejections: Rejections,
}
