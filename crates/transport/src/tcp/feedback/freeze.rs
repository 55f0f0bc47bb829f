//! Freezing of the sender while there is no route, and its resumption afterwards.
//!
//! A frozen sender sends only probes, its retransmission timer is off, and its windows and its RTO are constant. Arriving
//! acknowledgments are processed as usual, except for duplicates. A timer always runs: a sender that only waited for a
//! notification might wait for ever, because a routing agent looks for a route only for packets to send.

use super::{
    CwndAfterFreeze, FeedbackState, InFlightAfterFreeze, ProbeSchedule, RouteReturn, RtoAfterFreeze,
};
use crate::connection::CloseReason;
use crate::tcp::endpoint::Endpoint;
use crate::tcp::rto::RtoEstimator;
use crate::tcp::timer::Timer;
use hopline_core::{Duration, Instant, Payload};

/// Parameters of freezing in one scheme.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct FreezePlan {
    /// State of the frozen sender, by the name of the scheme.
    pub(super) state: FeedbackState,
    /// Behaviour of the frozen sender.
    pub(super) wait: FrozenBehaviour,
    /// Detection of the return of the route.
    pub(super) route_return: RouteReturn,
    /// State of the sender after the freeze.
    pub(super) resume: ResumePolicy,
}

/// Behaviour of a frozen sender.
#[derive(Clone, Copy, Debug)]
pub(super) enum FrozenBehaviour {
    /// Waits at most for this time, then continues as if there had been no failure.
    AtMost(Duration),
    /// Sends the first unacknowledged segment again and again.
    Probing(ProbeSchedule),
}

/// State of the sender after a freeze.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResumePolicy {
    pub(super) cwnd: CwndAfterFreeze,
    pub(super) rto: RtoAfterFreeze,
    pub(super) in_flight: InFlightAfterFreeze,
    pub(super) in_flight_timeout: InFlightTimeout,
}

/// Timeout for the data that were in flight at the failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InFlightTimeout {
    /// One RTO.
    OneRto,
    /// Two RTOs, since the data may have waited on the path.
    TwoRtos,
}

impl ResumePolicy {
    /// State as if there had been no failure.
    pub(super) const UNCHANGED: Self = Self {
        cwnd: CwndAfterFreeze::Restored,
        rto: RtoAfterFreeze::Restored,
        in_flight: InFlightAfterFreeze::Awaited,
        in_flight_timeout: InFlightTimeout::OneRto,
    };
}

/// State of the route, as known from notifications.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct RouteState {
    pub(in crate::tcp) state: FeedbackState,
    /// Start of this state, unless it is the active one.
    pub(super) since: Instant,
    /// Number of probes sent since the sender was frozen.
    probes: u32,
    /// `true` if a probe has to be sent.
    probe_pending: bool,
    /// Position below which data were in flight at the start of the state, or at the last freeze.
    pub(super) in_flight_below: u64,
    /// Timeout for these data.
    in_flight_timeout: InFlightTimeout,
}

impl RouteState {
    pub(in crate::tcp) const NEW: Self = Self {
        state: FeedbackState::Active,
        since: Instant::ZERO,
        probes: 0,
        probe_pending: false,
        in_flight_below: 0,
        in_flight_timeout: InFlightTimeout::OneRto,
    };

    /// Returns whether data after `una` may have been lost with the route.
    pub(super) const fn may_have_lost(&self, una: u64) -> bool {
        una < self.in_flight_below
    }

    /// Returns whether the sender is frozen.
    pub(in crate::tcp) const fn is_frozen(&self) -> bool {
        self.state.is_frozen()
    }
}

impl<P: Payload> Endpoint<P> {
    /// Returns the total time for which the sender was frozen.
    #[must_use]
    pub fn time_frozen(&self, now: Instant) -> Duration {
        let this_time = if self.route.is_frozen() { now.since(self.route.since) } else { Duration::ZERO };
        self.stats.feedback.frozen + this_time
    }

    /// Freezes the sender after a route failure notification, if data are in flight.
    pub(in crate::tcp) fn on_route_lost(&mut self, now: Instant) {
        let Some(plan) = self.config.feedback.freeze_plan() else { return };
        if !self.route.is_frozen() && self.state().may_transmit() && self.flight_size() > 0 {
            self.freeze(now, plan);
        }
    }

    /// Resumes sending after a notification that there is a route again.
    pub(in crate::tcp) fn on_route_found(&mut self, now: Instant) {
        if let Some(plan) = self.active_freeze_plan()
            && plan.route_return == RouteReturn::ByNotification
        {
            self.resume(now, plan.resume);
        }
    }

    /// Processes an expiry of the timer of a frozen sender.
    pub(in crate::tcp) fn on_route_timer(&mut self, now: Instant) {
        match self.active_freeze_plan().map(|plan| plan.wait) {
            None => {}
            Some(FrozenBehaviour::AtMost(_)) => self.resume(now, ResumePolicy::UNCHANGED),
            Some(FrozenBehaviour::Probing(_)) if self.has_given_up_on_peer(now) => {
                self.end_freeze(now);
                self.terminate(CloseReason::TimedOut);
            }
            Some(FrozenBehaviour::Probing(probing)) => {
                self.route.probe_pending = true;
                let wait = self.probe_interval(probing, self.route.probes + 1);
                self.timers.set(Timer::Route, now + wait);
            }
        }
    }

    /// Resumes sending on an acknowledgment of new data: it answers a probe, if one was sent, or leaves nothing in
    /// flight.
    pub(in crate::tcp) fn on_ack_while_frozen(&mut self, now: Instant) {
        if let Some(plan) = self.active_freeze_plan()
            && (self.route.probes > 0 || self.flight_size() == 0)
        {
            self.resume(now, plan.resume);
        }
    }

    /// Returns whether a probe has to be sent now, and counts it.
    pub(in crate::tcp) fn take_route_probe(&mut self) -> bool {
        let due = core::mem::take(&mut self.route.probe_pending);
        if due {
            self.route.probes += 1;
            self.stats.feedback.probes += 1;
        }
        due
    }

    /// Ends the freeze, at the end of the connection or before sending resumes.
    pub(in crate::tcp) fn end_freeze(&mut self, now: Instant) {
        self.stats.feedback.frozen = self.time_frozen(now);
        self.route.state = FeedbackState::Active;
        self.timers.stop(Timer::Route);
    }

    /// Starts the retransmission timer, unless the sender is frozen.
    pub(in crate::tcp) fn arm_retransmit(&mut self, now: Instant) {
        if self.route.is_frozen() {
            return;
        }
        let factor = match self.route.in_flight_timeout {
            InFlightTimeout::TwoRtos if self.route.may_have_lost(self.snd.una) => 2,
            InFlightTimeout::TwoRtos | InFlightTimeout::OneRto => 1,
        };
        self.timers.set(Timer::Retransmit, now + self.rto.timeout().saturating_mul(factor));
    }

    /// Returns whether the peer has been silent since `self.route.since` for as long as plain TCP waits before it gives
    /// up. Counting time-outs would not do: in these states there are none, or they come in quick succession.
    pub(in crate::tcp) fn has_given_up_on_peer(&self, now: Instant) -> bool {
        let patience = self.config.data_retries.map(|n| self.rto.total_time_of_timeouts(n));
        patience.is_some_and(|patience| now.since(self.route.since) >= patience)
    }

    fn active_freeze_plan(&self) -> Option<FreezePlan> {
        self.config.feedback.freeze_plan().filter(|_| self.route.is_frozen())
    }

    fn freeze(&mut self, now: Instant, plan: FreezePlan) {
        self.route =
            RouteState { state: plan.state, since: now, in_flight_below: self.snd.max, ..RouteState::NEW };
        self.stats.feedback.freezes += 1;
        for timer in [Timer::Retransmit, Timer::Persist, Timer::PacingRelease, Timer::EcnPause] {
            self.timers.stop(timer);
        }
        self.snd.rtt_probe = None; // the time without a route is no round trip
        let wait = match plan.wait {
            FrozenBehaviour::AtMost(limit) => limit,
            FrozenBehaviour::Probing(probing) => self.probe_interval(probing, 0),
        };
        self.timers.set(Timer::Route, now + wait);
    }

    fn resume(&mut self, now: Instant, resume: ResumePolicy) {
        self.end_freeze(now);
        self.route.probe_pending = false;
        self.snd.retries = 0;
        self.snd.last_sent = Some(now); // RFC 5681 §4.1 means who has nothing to send
        self.control.restart_on_new_route(&self.config, resume.cwnd);
        if resume.rto == RtoAfterFreeze::Initial {
            self.rto = RtoEstimator::new(self.config.rto);
        }
        if resume.in_flight != InFlightAfterFreeze::Awaited {
            self.frto.stop(); // F-RTO would send new data in place of what is resent
        }
        match resume.in_flight {
            InFlightAfterFreeze::Retransmitted => {
                self.snd.nxt = self.snd.una;
                self.snd.retransmit_first = false;
                self.control.retransmit_all(self.snd.max);
            }
            InFlightAfterFreeze::Queried => self.snd.retransmit_first = self.snd.outstanding(),
            InFlightAfterFreeze::Awaited => {}
        }
        self.route.in_flight_timeout = resume.in_flight_timeout;
        if self.snd.outstanding() {
            self.arm_retransmit(now);
        }
    }

    fn probe_interval(&self, probing: ProbeSchedule, sent: u32) -> Duration {
        match probing {
            ProbeSchedule::Every(interval) => interval,
            ProbeSchedule::PersistTimer => {
                self.rto.timeout().saturating_mul(1 << sent.min(16)).min(self.config.rto.max)
            }
        }
    }
}
