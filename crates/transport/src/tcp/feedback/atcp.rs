//! ATCP (Liu, Singh 2001): a thin layer below TCP that processes ICMP messages and congestion marks. "Destination
//! unreachable" puts TCP into persist mode. A loss without a mark is a bit error: it is repaired without a reaction of
//! TCP. A mark is congestion, and TCP reacts to it at once.

use super::freeze::{FreezePlan, FrozenBehaviour, InFlightTimeout, ResumePolicy};
use super::{
    CwndAfterFreeze, FeedbackState, InFlightAfterFreeze, ProbeSchedule, RouteFeedback, RouteReturn,
    RtoAfterFreeze,
};
use crate::tcp::congestion::window_hold::WindowHold;
use crate::tcp::endpoint::Endpoint;
use hopline_core::{Instant, Payload, settings};

settings! {
    /// Parameters of [`RouteFeedback::Atcp`](super::RouteFeedback::Atcp). Start from [`Self::PAPER`] and use the setters.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct AtcpConfig {
        /// Times of the probes while the destination is unreachable. Default as TCP in persist mode.
        probing, with_probing: ProbeSchedule,
        /// Detection of the return of the route. Default by probes alone.
        route_return, with_route_return: RouteReturn,
    }
}

impl AtcpConfig {
    /// Parameters of the paper.
    pub const PAPER: Self = Self { probing: ProbeSchedule::PersistTimer, route_return: RouteReturn::ByProbe };

    pub(super) const fn freeze_plan(self) -> FreezePlan {
        FreezePlan {
            state: FeedbackState::Persist,
            wait: FrozenBehaviour::Probing(self.probing),
            route_return: self.route_return,
            // The window of the new route is not known: it grows from one segment.
            resume: ResumePolicy {
                cwnd: CwndAfterFreeze::OneSegment,
                rto: RtoAfterFreeze::Restored,
                in_flight: InFlightAfterFreeze::Retransmitted,
                in_flight_timeout: InFlightTimeout::OneRto,
            },
        }
    }
}

impl<P: Payload> Endpoint<P> {
    /// Returns the hold of the window. A loss without a mark does not reduce it, as if TCP did not see the third
    /// duplicate and its timer did not expire. Lost data are resent as by TCP, and the timeout doubles as usual, since
    /// nothing else limits the rate.
    pub(super) fn atcp_hold(&self) -> WindowHold {
        if self.route.state == FeedbackState::Congested { WindowHold::None } else { WindowHold::Reductions }
    }

    /// Enters the congested state, before TCP reacts to the peer's echo of a congestion mark.
    pub(in crate::tcp) fn on_congestion_mark(&mut self, now: Instant) {
        if let (RouteFeedback::Atcp(_), FeedbackState::Active) = (self.config.feedback, self.route.state) {
            self.route.state = FeedbackState::Congested;
            self.route.in_flight_below = self.snd.max;
            self.update_hold(now);
        }
    }

    /// Leaves the congested state after an acknowledgment of new data, if all data of that time are acknowledged.
    pub(in crate::tcp) fn end_congested(&mut self) {
        if self.route.state == FeedbackState::Congested && !self.route.may_have_lost(self.snd.una) {
            self.route.state = FeedbackState::Active;
        }
    }
}
