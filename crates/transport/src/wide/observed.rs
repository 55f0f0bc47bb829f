//! TPA-wide endpoint: getters for logs.

use super::control::{RateController, StateName};
use super::endpoint::{Endpoint, PathState};
use hopline_core::{Duration, Instant, Payload};

impl<P: Payload, C> Endpoint<P, C> {
    /// Returns the minimum round-trip time of the filter window, if there is a sample.
    #[must_use]
    pub fn min_rtt(&self) -> Option<Duration> {
        self.delays.srtt().map(|_| self.delays.min_rtt())
    }

    /// Returns the number of probes without an answer, if the path is silent.
    #[must_use]
    pub fn unanswered_probes(&self) -> u32 {
        match self.path {
            PathState::Alive => 0,
            PathState::Silent { probes, .. } => probes,
        }
    }

    /// Returns the numbers of the packets that were declared lost at `now`.
    pub fn packets_lost_at(&self, now: Instant) -> impl Iterator<Item = u64> {
        self.snd.outstanding.lost_at(now)
    }
}

impl<P: Payload> Endpoint<P, RateController> {
    /// Returns the name of the state of the rate controller.
    #[must_use]
    pub fn control_state(&self) -> &'static str {
        match self.control.state_name() {
            StateName::InitialWindow => "initial_window",
            StateName::Startup => "startup",
            StateName::Cruise => "cruise",
            StateName::Drain => "drain",
            StateName::EvaluateDrain => "evaluate_drain",
            StateName::ProbeRtt => "probe_rtt",
            StateName::ProbeLoss => "probe_loss",
            StateName::Competitive => "competitive",
        }
    }
}
