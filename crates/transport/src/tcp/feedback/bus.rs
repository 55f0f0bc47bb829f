//! TCP-BuS (Kim, Toh, Choi 2001) in its essential message flow. The node before the break (the pivoting node) sends an
//! explicit route disconnection notification (ERDN), and the sender freezes. After an explicit route successful
//! notification (ERSN) it continues: with doubled timers for data that may have waited on the path, and with selective
//! retransmission of lost data.
//!
//! The original notifications carry sequence numbers: of the packets at the pivoting node and at the receiver. Here they
//! do not, and no relay holds packets for the sender. The receiver reports the losses: the first unacknowledged segment
//! is resent, its acknowledgment shows the missing data (RFC 2018), and their repair is not treated as congestion.

use super::freeze::{Plan, Resume, Timers, Wait};
use super::{FeedbackState, InFlight, Probing, Return, RtoAfter, WindowAfter};
use hopline_core::Duration;

/// Parameters of [`Feedback::Bus`](super::Feedback::Bus).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusConfig {
    /// Times of the probes, in case the ERSN was lost. Default every 2 s (ours).
    pub probing: Probing,
}

impl BusConfig {
    /// Parameters of the paper.
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
