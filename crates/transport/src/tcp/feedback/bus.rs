//! TCP-BuS (Kim, Toh, Choi 2001) in its essential message flow: the node before the break (the pivoting node) sends an explicit
//! route disconnection notification (ERDN), and the sender freezes; an explicit route successful notification (ERSN) lets it go
//! on, with doubled timers for what may have waited on the path, and resending only what was lost.
//!
//! The original notifications name sequence numbers: what the pivoting node holds, and what the receiver has. Ours do not, and
//! no relay holds packets for the sender. What was lost is learnt from the receiver: the first unacknowledged segment is resent,
//! its acknowledgment tells (RFC 2018) what is missing, and no repair of that is taken for congestion.

use super::freeze::{Plan, Resume, Timers, Wait};
use super::{FeedbackState, InFlight, Probing, Return, RtoAfter, WindowAfter};
use hopline_core::Duration;

/// Parameters of [`Feedback::Bus`](super::Feedback::Bus).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusConfig {
    /// When it probes, in case the ERSN was lost. Default every 2 s (ours).
    pub probing: Probing,
}

impl BusConfig {
    /// As described.
    pub const PAPER: Self = Self { probing: Probing::Every(Duration::from_secs(2)) };

    pub(super) const fn plan(self) -> Plan {
        Plan {
            state: FeedbackState::Frozen,
            wait: Wait::Probing(self.probing),
            returns: Return::Told,
            resume: Resume {
                cwnd: WindowAfter::Restored,
                rto: RtoAfter::Restored,
                in_flight: InFlight::Inquired,
                timers: Timers::Doubled,
            },
        }
    }
}
