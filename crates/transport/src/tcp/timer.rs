//! Timers of a TCP endpoint.

use hopline_core::TimerKind;

/// Why an endpoint wants to be woken. Of those due at the same instant, the first fires first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Timer {
    /// Tail loss probe (RFC 8985 §7.2).
    TailProbe,
    /// What should have arrived but for reordering is lost (RFC 8985 §6.2, step 5).
    Reordering,
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
    /// End of the pause that a mark brings about where the window is one segment (RFC 3168 §6.1.2).
    MarkPause,
    /// There is no route: a probe is due, or the wait for its return is over.
    Route,
    /// The peer of an idle connection is to be probed (RFC 9293 §3.8.4).
    KeepAlive,
}

impl TimerKind for Timer {
    const ALL: &'static [Self] = &[
        Self::TailProbe,
        Self::Reordering,
        Self::Retransmit,
        Self::DelayedAck,
        Self::Persist,
        Self::TimeWait,
        Self::Release,
        Self::MarkPause,
        Self::Route,
        Self::KeepAlive,
    ];

    fn index(self) -> usize {
        self as usize
    }
}
