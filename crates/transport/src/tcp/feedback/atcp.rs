//! ATCP (Liu, Singh 2001): a thin layer below TCP that listens to ICMP and to congestion marks. "Destination unreachable" puts TCP
//! into persist mode. A loss without a mark is a bit error: it is repaired, and TCP is told nothing. A mark is congestion, and TCP
//! reacts to it at once.

use super::freeze::{Plan, Resume, Timers, Wait};
use super::{Feedback, FeedbackState, InFlight, Probing, Return, RtoAfter, WindowAfter};
use crate::tcp::congestion::hold::Hold;
use crate::tcp::endpoint::Endpoint;
use hopline_core::{Instant, Payload};

/// Parameters of [`Feedback::Atcp`](super::Feedback::Atcp).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtcpConfig {
    /// When it probes while the destination is unreachable. Default as TCP in persist mode does.
    pub probing: Probing,
    /// How it learns of the return. Default by probes alone.
    pub returns: Return,
}

impl AtcpConfig {
    /// As described.
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
    /// A loss without a mark leaves the window alone: in effect, TCP does not see the third duplicate, and its timer does not
    /// expire. What is lost is resent as by TCP itself, and the timeout doubles as always, for want of any other brake.
    pub(super) fn hold_of_atcp(&self) -> Hold {
        if self.route.state == FeedbackState::Congested { Hold::Free } else { Hold::Reductions }
    }

    /// The peer echoes a congestion mark, to which TCP is about to react.
    pub(in crate::tcp) fn on_congestion_mark(&mut self, now: Instant) {
        if let (Feedback::Atcp(_), FeedbackState::Active) = (self.config.feedback, self.route.state) {
            self.route.state = FeedbackState::Congested;
            self.route.in_flight_below = self.snd.max;
            self.note_hold(now);
        }
    }

    /// New data was acknowledged.
    pub(in crate::tcp) fn end_congested(&mut self) {
        if self.route.state == FeedbackState::Congested && !self.route.may_have_lost(self.snd.una) {
            self.route.state = FeedbackState::Active;
        }
    }
}
