//! Timers of a TPA-wide endpoint.

use hopline_core::TimerKind;

/// Timers of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Timer {
    /// Retransmission of the opening, or of the answer to one.
    Open,
    /// End of the reordering window of a packet.
    LossDetection,
    /// Probe of the path: no answer about packets in flight, or a frozen path.
    Probe,
    /// Delayed acknowledgment.
    Ack,
    /// Release of the next packet.
    PacingRelease,
    /// Keep-alive probe: the peer has been silent.
    KeepAlive,
    /// End of the wait for a silent peer.
    Silence,
    /// End of TIME-WAIT.
    TimeWait,
}

impl TimerKind for Timer {
    const ALL: &'static [Self] = &[
        Self::Open,
        Self::LossDetection,
        Self::Probe,
        Self::Ack,
        Self::PacingRelease,
        Self::KeepAlive,
        Self::Silence,
        Self::TimeWait,
    ];

    fn index(self) -> usize {
        self as usize
    }
}
