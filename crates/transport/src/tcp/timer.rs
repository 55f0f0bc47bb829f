//! Timers of a TCP endpoint.

use hopline_core::TimerKind;

/// Timers of an endpoint. Of those due at the same instant, the first in this order fires first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Timer {
    /// Tail loss probe (RFC 8985 §7.2).
    TailProbe,
    /// End of the reordering window: overdue segments are lost (RFC 8985 §6.2, step 5).
    Reordering,
    /// Retransmission (RFC 6298).
    Retransmit,
    /// Delayed acknowledgment (RFC 1122 §4.2.3.2).
    DelayedAck,
    /// Zero-window probe or silly-window override (RFC 9293 §3.8.6).
    Persist,
    /// End of TIME-WAIT.
    TimeWait,
    /// Release of the next paced segment.
    PacingRelease,
    /// End of the pause after an ECN mark with a window of one segment (RFC 3168 §6.1.2).
    EcnPause,
    /// Next probe, or end of the wait, of a sender that is frozen without a route.
    Route,
    /// The peer of an idle connection is to be probed (RFC 9293 §3.8.4).
    KeepAlive,
    /// Data have waited for the peer too long (RFC 9293 §3.9.1.1, "user timeout").
    User,
}

impl TimerKind for Timer {
    const ALL: &'static [Self] = &[
        Self::TailProbe,
        Self::Reordering,
        Self::Retransmit,
        Self::DelayedAck,
        Self::Persist,
        Self::TimeWait,
        Self::PacingRelease,
        Self::EcnPause,
        Self::Route,
        Self::KeepAlive,
        Self::User,
    ];

    fn index(self) -> usize {
        self as usize
    }
}
