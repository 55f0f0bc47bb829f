//! Explicit link failure notification with probing (Holland, Vaidya, MobiCom 1999): the route error of the network layer puts
//! the sender in stand-by, where it probes; the first acknowledgment ends that.

use super::freeze::{FreezePlan, FrozenBehaviour, InFlightTimeout, ResumePolicy};
use super::{
    CwndAfterFreeze, FeedbackState, InFlightAfterFreeze, ProbeSchedule, RouteReturn, RtoAfterFreeze,
};
use hopline_core::{Duration, settings};

settings! {
    /// Parameters of [`RouteFeedback::Elfn`](super::RouteFeedback::Elfn). Start from [`Self::PAPER`] and use the setters.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ElfnConfig {
        /// Times of the probes. Default every 2 s (the authors found 2 s good).
        probing, with_probing: ProbeSchedule,
        /// Detection of the return of the route. Default by probes alone.
        route_return, with_route_return: RouteReturn,
        /// Congestion window afterwards. Default restored.
        cwnd, with_cwnd: CwndAfterFreeze,
        /// RTO and round-trip estimate afterwards. Default restored.
        rto, with_rto: RtoAfterFreeze,
        /// Treatment of the data in flight at the failure. Default awaited: the sender "continues as normal".
        in_flight, with_in_flight: InFlightAfterFreeze,
    }
}

impl ElfnConfig {
    /// Parameters that the authors found best.
    pub const PAPER: Self = Self {
        probing: ProbeSchedule::Every(Duration::from_secs(2)),
        route_return: RouteReturn::ByProbe,
        cwnd: CwndAfterFreeze::Restored,
        rto: RtoAfterFreeze::Restored,
        in_flight: InFlightAfterFreeze::Awaited,
    };

    pub(super) const fn freeze_plan(self) -> FreezePlan {
        FreezePlan {
            state: FeedbackState::StandBy,
            wait: FrozenBehaviour::Probing(self.probing),
            route_return: self.route_return,
            resume: ResumePolicy {
                cwnd: self.cwnd,
                rto: self.rto,
                in_flight: self.in_flight,
                in_flight_timeout: InFlightTimeout::OneRto,
            },
        }
    }
}
