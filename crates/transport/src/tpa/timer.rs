//! Timers of a TPA endpoint.

use hopline_core::TimerKind;

/// Timers of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Timer {
    /// Retransmission of a SYN, or of the segment that completes the handshake.
    Open,
    /// Retransmission: a segment has been in flight for its RTO (§3.2).
    Retransmit,
    /// End of the time for a block to fill (§3.2).
    BlockFill,
    /// Delayed acknowledgment (§3.6).
    DelayedAck,
    /// Window probe: the peer's window is closed.
    Probe,
    /// Keep-alive probe: the peer has been silent.
    KeepAlive,
    /// End of the wait for a silent peer.
    Silence,
    /// Release of the next paced segment.
    Release,
    /// End of TIME-WAIT.
    TimeWait,
}

impl TimerKind for Timer {
    const ALL: &'static [Self] = &[
        Self::Open,
        Self::Retransmit,
        Self::BlockFill,
        Self::DelayedAck,
        Self::Probe,
        Self::KeepAlive,
        Self::Silence,
        Self::Release,
        Self::TimeWait,
    ];

    fn index(self) -> usize {
        self as usize
    }
}
