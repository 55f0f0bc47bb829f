//! ATCP (Liu, Singh 2001): a thin layer below TCP that processes ICMP messages and congestion marks. "Destination
//! unreachable" puts TCP into persist mode. A loss without a mark is a bit error: it is repaired without a reaction of
//! TCP. A mark is congestion, and TCP reacts to it at once.

use super::freeze::{Plan, Resume, Timers, Wait};
use super::{Feedback, FeedbackState, InFlight, Probing, Return, RtoAfter, WindowAfter};
use crate::tcp::congestion::hold::Hold;
use crate::tcp::endpoint::Endpoint;
use hopline_core::{Instant, Payload};

/// Parameters of [`Feedback::Atcp`](super::Feedback::Atcp).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtcpConfig {
    /// Times of the probes while the destination is unreachable. Default as TCP in persist mode.
    pub probing: Probing,
    /// Detection of the return of the route. Default by probes alone.
    pub returns: Return,
}

impl AtcpConfig {
    /// Parameters of the paper.
    pub const PAPER: Self = Self { probing: Probing::PersistTimer, returns: Return::ByProbe };

    pub(super) const fn plan(self) -> Plan {
        Plan {
            state: FeedbackState::Persist,
            wait: Wait::Probing(self.probing),
            returns: self.returns,
            // The window of the new route is not known: it grows from one segment.
            resume: Resume {
                cwnd: WindowAfter::OneSegment,
                rto: RtoAfter::Restored,
                in_flight: InFlight::Resent,
                timers: Timers::Usual,
            },
        }
    }
}

impl<P: Payload> Endpoint<P> {
    /// Returns the hold of the window. A loss without a mark does not reduce it, as if TCP did not see the third
    /// duplicate and its timer did not expire. Lost data are resent as by TCP, and the timeout doubles as usual, since
    /// nothing else limits the rate.
    pub(super) fn hold_of_atcp(&self) -> Hold {
        if self.route.state == FeedbackState::Congested { Hold::Free } else { Hold::Reductions }
    }

    /// Enters the congested state, before TCP reacts to the peer's echo of a congestion mark.
    pub(in crate::tcp) fn on_congestion_mark(&mut self, now: Instant) {
        if let (Feedback::Atcp(_), FeedbackState::Active) = (self.config.feedback, self.route.state) {
            self.route.state = FeedbackState::Congested;
            self.route.in_flight_below = self.snd.max;
            self.note_hold(now);
        }
    }

    /// Leaves the congested state after an acknowledgment of new data, if all data of that time are acknowledged.
    pub(in crate::tcp) fn end_congested(&mut self) {
        if self.route.state == FeedbackState::Congested && !self.route.may_have_lost(self.snd.una) {
            self.route.state = FeedbackState::Active;
        }
    }
}
