//! Timers of a TCP endpoint.

use hopline_core::TimerKind;

/// Why an endpoint wants to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Timer {
    /// Retransmission (RFC 6298).
    Retransmit,
    /// Delayed acknowledgment (RFC 1122 §4.2.3.2).
    DelayedAck,
    /// Zero-window probe or silly-window override (RFC 9293 §3.8.6).
    Persist,
    /// End of TIME-WAIT.
    TimeWait,
    /// The next paced segment may leave.
    Release,
}

impl TimerKind for Timer {
    const ALL: &'static [Self] =
        &[Self::Retransmit, Self::DelayedAck, Self::Persist, Self::TimeWait, Self::Release];

    fn index(self) -> usize {
        self as usize
    }
}
