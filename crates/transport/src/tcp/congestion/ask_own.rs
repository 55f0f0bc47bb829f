//! Calls of a user-defined congestion control algorithm, and use of its answers.

use super::own::{LawAck, LawLoss, LawState, LawTimeout, LossSign, OwnLaw, OwnLawId, TimeoutAnswer};
use super::undo::Cause;
use super::{Ack, Control, Outstanding, Phase, WindowLaw};
use crate::tcp::ConfigError;
use crate::tcp::config::{Config, GrowthCondition};
use crate::tcp::endpoint::{Endpoint, Ports};
use hopline_core::own::OwnFailure;
use hopline_core::{Duration, Instant, Payload, Seq32};

/// Time and round-trip time at a call of the algorithm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    now: Instant,
    /// Smoothed round-trip time; zero before the first sample.
    round_trip: Duration,
}

impl Moment {
    pub(super) const fn of(ack: &Ack) -> Self {
        Self { now: ack.now, round_trip: ack.round_trip }
    }
}

impl Outstanding {
    pub(super) const fn moment(&self) -> Moment {
        Moment { now: self.now, round_trip: self.round_trip }
    }
}

impl Control {
    /// Returns the reason for the failure of the user-defined algorithm, once.
    pub(crate) fn take_own_failure(&mut self) -> Option<OwnFailure> {
        self.own.as_mut()?.take_failure()
    }

    /// Sets the window that the user-defined algorithm returns for an acknowledgment of new data. The window does not
    /// grow where the built-in algorithms would not let it grow: on an ECN mark (RFC 3168 §6.1.2), or if it was not full
    /// and [`GrowthCondition::WindowFull`] is set.
    pub(super) fn grow_as_told(&mut self, config: &Config, ack: &Ack) {
        let question = LawAck {
            state: self.law_state(ack.nxt - ack.una, Moment::of(ack)),
            acked_bytes: ack.acked,
            rtt: ack.sample,
            slow_start_bytes: self.window.after_slow_start(config.growth, ack.acked, self.phase),
            window_was_full: ack.window_was_full,
            marked: ack.marked,
        };
        let Some(told) = self.own.as_mut().and_then(|own| own.ack(&question)) else { return };
        let is_used = config.growth_condition == GrowthCondition::Always || ack.window_was_full;
        let may_grow = is_used && (!ack.marked || self.phase == Phase::Loss);
        self.window.set_exact(if may_grow { told } else { told.min(self.window.exact()) });
    }

    /// Returns the window after a reduction by the user-defined algorithm, with `flight` bytes in flight; `None` without
    /// such an algorithm.
    pub(super) fn ask_own(
        &mut self,
        config: &Config,
        flight: u64,
        cause: Cause,
        moment: Moment,
    ) -> Option<f64> {
        self.own.as_ref()?;
        let state = self.law_state(flight, moment);
        let reduced_bytes = self.window.reduced(config.reduction, flight);
        let own = self.own.as_mut()?;
        own.reduced = Some((moment, flight));
        match cause {
            Cause::Timeout => {
                own.timeout(&LawTimeout { state, reduced_bytes, answer: TimeoutAnswer::Counts })
            }
            Cause::FastRetransmit => own.loss(&LawLoss { state, sign: LossSign::Loss, reduced_bytes }),
            Cause::Mark => own.loss(&LawLoss { state, sign: LossSign::Mark, reduced_bytes }),
        }
    }

    /// Notifies the algorithm of a time-out that leaves `ssthresh` unchanged.
    pub(super) fn tell_own_of_timeout(&mut self, config: &Config, outstanding: Outstanding) {
        let flight = outstanding.nxt - outstanding.una;
        let moment = outstanding.moment();
        let state = self.law_state(flight, moment);
        let reduced_bytes = self.window.reduced(config.reduction, flight);
        if let Some(own) = &mut self.own {
            own.reduced = Some((moment, flight));
            let _ = own.timeout(&LawTimeout { state, reduced_bytes, answer: TimeoutAnswer::DoesNot });
        }
    }

    /// Notifies the algorithm that its last reductions were undone.
    pub(crate) fn tell_own_of_undo(&mut self, flight: u64, now: Instant, round_trip: Duration) {
        let state = self.law_state(flight, Moment { now, round_trip });
        if let Some(own) = &mut self.own {
            own.undo(&state);
        }
    }

    /// Notifies the algorithm that a reduction had no effect, since the window was held.
    pub(super) fn tell_own_of_hold(&mut self) {
        let Some((moment, flight)) = self.own.as_mut().and_then(|own| own.reduced.take()) else { return };
        let state = self.law_state(flight, moment);
        if let Some(own) = &mut self.own {
            own.undo(&state);
        }
    }

    fn law_state(&self, flight_bytes: u64, moment: Moment) -> LawState {
        LawState {
            now: moment.now,
            cwnd_bytes: self.window.exact() + f64::from(self.window.inflation),
            ssthresh_bytes: self.window.ssthresh,
            mss_bytes: self.window.mss,
            max_cwnd_bytes: self.window.most(),
            flight_bytes,
            srtt: (!moment.round_trip.is_zero()).then_some(moment.round_trip),
        }
    }
}

impl<P: Payload> Endpoint<P> {
    /// Creates an endpoint as [`Self::new`] does, with a user-defined congestion control algorithm. It replaces
    /// [`Config::law`].
    ///
    /// # Errors
    /// A parameter out of its range.
    pub fn with_own_law(
        config: Config,
        ports: Ports,
        iss: Seq32,
        law: Box<dyn OwnLaw>,
    ) -> Result<Self, ConfigError> {
        let own = match config.law {
            WindowLaw::Own(id) => id,
            WindowLaw::Aimd | WindowLaw::Cubic(_) | WindowLaw::Bbr(_) => OwnLawId(0),
        };
        Self::governed(Config { law: WindowLaw::Own(own), ..config }, ports, iss, Some(law))
    }

    /// Returns the reason for the failure of the user-defined algorithm, once. The endpoint has used RFC 5681 since.
    /// `None`: there was no failure, or there is no such algorithm.
    pub fn take_own_failure(&mut self) -> Option<OwnFailure> {
        self.control.take_own_failure()
    }
}
