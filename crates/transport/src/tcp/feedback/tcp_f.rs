//! TCP-F (Chandran, Raghunathan, Venkatesan, Prakash 1998, 2001). The relay that loses its next hop sends a route failure
//! notification (RFN), and the sender snoozes. A relay that finds a route sends a route re-establishment notification
//! (RRN), and the sender resumes.

use super::freeze::{FreezePlan, FrozenBehaviour, InFlightTimeout, ResumePolicy};
use super::{CwndAfterFreeze, FeedbackState, InFlightAfterFreeze, RouteReturn, RtoAfterFreeze};
use hopline_core::{Duration, settings};

settings! {
    /// Parameters of [`RouteFeedback::TcpF`](super::RouteFeedback::TcpF). Start from [`Self::PAPER`] and use the setters.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct TcpFConfig {
        /// Route failure timer: longest snooze without a notification of the return. Afterwards the retransmission timer runs
        /// again, and losses are congestion. Above zero, default 10 s (ours; the paper: the longest time that finding a route
        /// takes).
        failure_timer, with_failure_timer: Duration as into,
    }
}

impl TcpFConfig {
    /// Parameters of the paper.
    pub const PAPER: Self = Self { failure_timer: Duration::from_secs(10) };

    pub(super) const fn freeze_plan(self) -> FreezePlan {
        FreezePlan {
            state: FeedbackState::Snooze,
            wait: FrozenBehaviour::AtMost(self.failure_timer),
            route_return: RouteReturn::ByNotification,
            // "Flushes out all unacknowledged packets in its current window."
            resume: ResumePolicy {
                cwnd: CwndAfterFreeze::Restored,
                rto: RtoAfterFreeze::Restored,
                in_flight: InFlightAfterFreeze::Retransmitted,
                in_flight_timeout: InFlightTimeout::OneRto,
            },
        }
    }
}
