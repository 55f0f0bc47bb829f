//! Timers of a TPA endpoint.

use hopline_core::TimerKind;

/// Why an endpoint wants to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Timer {
    /// A SYN, or what completes the handshake, is to be sent again.
    Open,
    /// A segment has been in flight for its RTO (§3.2).
    Retransmit,
    /// A block has waited long enough to fill (§3.2).
    BlockFill,
    /// Delayed acknowledgment (§3.6).
    DelayedAck,
    /// The peer's window is closed: ask for it.
    Probe,
    /// The peer has been silent: ask for a sign of life.
    KeepAlive,
    /// The peer has been silent for too long.
    Silence,
    /// The next segment may leave, if they are paced.
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
