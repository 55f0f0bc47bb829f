//! Explicit link failure notification with probing (Holland, Vaidya, MobiCom 1999): the route error of the network layer puts
//! the sender in stand-by, where it probes; the first acknowledgment ends that.

use super::freeze::{Plan, Resume, Timers, Wait};
use super::{FeedbackState, InFlight, Probing, Return, RtoAfter, WindowAfter};
use hopline_core::Duration;

/// Parameters of [`Feedback::Elfn`](super::Feedback::Elfn).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElfnConfig {
    /// Times of the probes. Default every 2 s (the authors found 2 s good).
    pub probing: Probing,
    /// Detection of the return of the route. Default by probes alone.
    pub returns: Return,
    /// Congestion window afterwards. Default restored.
    pub cwnd: WindowAfter,
    /// RTO and round-trip estimate afterwards. Default restored.
    pub rto: RtoAfter,
    /// Treatment of the data in flight at the failure. Default awaited: the sender "continues as normal".
    pub in_flight: InFlight,
}

impl ElfnConfig {
    /// Parameters that the authors found best.
    pub const PAPER: Self = Self {
        probing: Probing::Every(Duration::from_secs(2)),
        returns: Return::ByProbe,
        cwnd: WindowAfter::Restored,
        rto: RtoAfter::Restored,
        in_flight: InFlight::Awaited,
    };

    pub(super) const fn plan(self) -> Plan {
        Plan {
            state: FeedbackState::StandBy,
            wait: Wait::Probing(self.probing),
            returns: self.returns,
            resume: Resume {
                cwnd: self.cwnd,
                rto: self.rto,
                in_flight: self.in_flight,
                timers: Timers::Usual,
            },
        }
    }
}
