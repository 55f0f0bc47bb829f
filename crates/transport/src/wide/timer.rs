//! Timers of a TPA-wide endpoint.

use hopline_core::TimerKind;

/// Why an endpoint wants to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Timer {
    /// The opening, or the answer to one, is to be sent again.
    Open,
    /// A packet may have been overtaken for long enough to be lost.
    Detect,
    /// Nothing has been heard of what is under way, or the path is frozen: probe it.
    Probe,
    /// Delayed acknowledgment.
    Ack,
    /// The next packet may leave.
    Release,
    /// The peer has been silent: ask for a sign of life.
    KeepAlive,
    /// The peer has been silent for too long.
    Silence,
    /// End of TIME-WAIT.
    TimeWait,
}

impl TimerKind for Timer {
    const ALL: &'static [Self] = &[
        Self::Open,
        Self::Detect,
        Self::Probe,
        Self::Ack,
        Self::Release,
        Self::KeepAlive,
        Self::Silence,
        Self::TimeWait,
    ];

    fn index(self) -> usize {
        self as usize
    }
}
