//! TCP-BuS (Kim, Toh, Choi 2001) in its essential message flow. The node before the break (the pivoting node) sends an
//! explicit route disconnection notification (ERDN), and the sender freezes. After an explicit route successful
//! notification (ERSN) it continues: with doubled timers for data that may have waited on the path, and with selective
//! retransmission of lost data.
//!
//! The original notifications carry sequence numbers: of the packets at the pivoting node and at the receiver. Here they
//! do not, and no relay holds packets for the sender. The receiver reports the losses: the first unacknowledged segment
//! is resent, its acknowledgment shows the missing data (RFC 2018), and their repair is not treated as congestion.

use super::freeze::{FreezePlan, FrozenBehaviour, InFlightTimeout, ResumePolicy};
use super::{
    CwndAfterFreeze, FeedbackState, InFlightAfterFreeze, ProbeSchedule, RouteReturn, RtoAfterFreeze,
};
use hopline_core::{Duration, settings};

settings! {
    /// Parameters of [`RouteFeedback::Bus`](super::RouteFeedback::Bus). Start from [`Self::PAPER`] and use the setters.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct BusConfig {
        /// Times of the probes, in case the ERSN was lost. Default every 2 s (ours).
        probing, with_probing: ProbeSchedule,
    }
}

impl BusConfig {
    /// Parameters of the paper.
    pub const PAPER: Self = Self { probing: ProbeSchedule::Every(Duration::from_secs(2)) };

    pub(super) const fn freeze_plan(self) -> FreezePlan {
        FreezePlan {
            state: FeedbackState::Frozen,
            wait: FrozenBehaviour::Probing(self.probing),
            route_return: RouteReturn::ByNotification,
            resume: ResumePolicy {
                cwnd: CwndAfterFreeze::Restored,
                rto: RtoAfterFreeze::Restored,
                in_flight: InFlightAfterFreeze::Queried,
                in_flight_timeout: InFlightTimeout::TwoRtos,
            },
        }
    }
}
