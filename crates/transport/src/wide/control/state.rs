//! States of the rate controller, and the transitions between them.

use super::competing::DrainStart;
use super::competitive::CompetitiveWindow;
use super::samples::{LossEvidence, OldPacketsDrained, RateTrial};
use hopline_core::Instant;

/// State of the rate controller, with its data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum State {
    /// The initial window is in flight, and there is no estimate of the path.
    InitialWindow,
    /// Fast growth. `guess`: first estimate of the rate; `gain`: growth above it.
    Startup { guess: f64, gain: f64, trial: RateTrial },
    /// Following the rate of the link. `step`: next step of growth, units.
    Cruise { step: f64 },
    /// Draining a queue.
    Drain { until: Instant, was: DrainStart },
    /// Waiting for a round trip that shows the effect of a drain.
    EvaluateDrain { was: DrainStart },
    /// Measuring the base delay: a low rate for a round trip, so that packets have no queueing delay, and a round trip in
    /// which they arrive.
    ProbeRtt { settled: OldPacketsDrained },
    /// Testing the cause of losses with a reduced rate. `of`: losses before; `rate`: rate to return to.
    ProbeLoss { of: LossEvidence, rate: f64, settled: OldPacketsDrained },
    /// Competitive mode, beside flows that keep the queue full.
    Competitive(CompetitiveWindow),
}

/// Name of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::wide) enum StateName {
    InitialWindow,
    Startup,
    Cruise,
    Drain,
    EvaluateDrain,
    ProbeRtt,
    ProbeLoss,
    Competitive,
}

/// Transition from one state to another.
pub(in crate::wide) type Transition = (StateName, StateName);

/// All transitions.
pub(in crate::wide) const TRANSITIONS: [Transition; 19] = {
    use StateName::*;
    [
        // The first burst has arrived.
        (InitialWindow, Startup),
        // The rate of the link is found.
        (Startup, Cruise),
        // Queueing delay or ECN marks.
        (Startup, Drain),
        // Queueing delay, ECN marks, losses with a queue, or a probe for competing traffic.
        (Cruise, Drain),
        // The drain time is over.
        (Drain, EvaluateDrain),
        (EvaluateDrain, Cruise),
        // The queue does not drain, or stands for long.
        (EvaluateDrain, Competitive),
        // The queue is gone, or the stay was too long.
        (Competitive, Cruise),
        // No packet without queueing delay for long.
        (Cruise, ProbeRtt),
        (ProbeRtt, Cruise),
        // Losses above the baseline, or a scheduled test.
        (Cruise, ProbeLoss),
        (ProbeLoss, Cruise),
        // In every state but the first: a long outage, or another path; in Cruise and drains also a faster link.
        (Startup, Startup),
        (Cruise, Startup),
        (Drain, Startup),
        (EvaluateDrain, Startup),
        (ProbeRtt, Startup),
        (ProbeLoss, Startup),
        (Competitive, Startup),
    ]
};

impl State {
    /// Returns the name of the state.
    pub(super) const fn name(&self) -> StateName {
        match self {
            Self::InitialWindow => StateName::InitialWindow,
            Self::Startup { .. } => StateName::Startup,
            Self::Cruise { .. } => StateName::Cruise,
            Self::Drain { .. } => StateName::Drain,
            Self::EvaluateDrain { .. } => StateName::EvaluateDrain,
            Self::ProbeRtt { .. } => StateName::ProbeRtt,
            Self::ProbeLoss { .. } => StateName::ProbeLoss,
            Self::Competitive(_) => StateName::Competitive,
        }
    }
}

/// Current state. [`Self::enter`] is the only place that assigns it; the other methods update its data.
#[derive(Clone, Debug)]
pub(super) struct StateMachine {
    state: State,
    /// Transitions so far, for tests.
    #[cfg(test)]
    history: Vec<Transition>,
}

impl StateMachine {
    /// Starts in [`State::InitialWindow`].
    pub(super) const fn new() -> Self {
        Self {
            state: State::InitialWindow,
            #[cfg(test)]
            history: Vec::new(),
        }
    }

    /// Returns the current state.
    pub(super) const fn current(&self) -> &State {
        &self.state
    }

    /// Changes the state.
    pub(super) fn enter(&mut self, state: State) {
        let transition = (self.state.name(), state.name());
        debug_assert!(TRANSITIONS.contains(&transition), "undocumented transition {transition:?}");
        #[cfg(test)]
        self.history.push(transition);
        self.state = state;
    }

    /// Returns the first estimate, the gain and the measurement of [`State::Startup`].
    pub(super) const fn startup(&mut self) -> Option<(f64, f64, &mut RateTrial)> {
        match &mut self.state {
            State::Startup { guess, gain, trial } => Some((*guess, *gain, trial)),
            _ => None,
        }
    }

    /// Continues [`State::Startup`] with another gain and a new measurement.
    pub(super) const fn continue_startup(&mut self, next_gain: f64, next_trial: RateTrial) {
        if let State::Startup { gain, trial, .. } = &mut self.state {
            (*gain, *trial) = (next_gain, next_trial);
        }
    }

    /// Continues [`State::Cruise`] with another step.
    pub(super) const fn continue_cruise(&mut self, next_step: f64) {
        if let State::Cruise { step } = &mut self.state {
            *step = next_step;
        }
    }

    /// Continues [`State::Competitive`] with another window.
    pub(super) const fn continue_competitive(&mut self, window: CompetitiveWindow) {
        if let State::Competitive(cubic) = &mut self.state {
            *cubic = window;
        }
    }

    /// Records that arriving packets were sent after the state began.
    pub(super) const fn set_settled(&mut self) {
        if let State::ProbeRtt { settled } | State::ProbeLoss { settled, .. } = &mut self.state {
            *settled = OldPacketsDrained::Yes;
        }
    }

    /// Returns the transitions since the last call.
    #[cfg(test)]
    pub(super) fn take_history(&mut self) -> Vec<Transition> {
        core::mem::take(&mut self.history)
    }
}
