//! Calls of a user-defined congestion control algorithm, and use of its answers.

use super::custom::{
    CongestionSignal, CustomCcAck, CustomCcLoss, CustomCcState, CustomCcTimeout, CustomCongestionControl,
    CustomCongestionControlId, TimeoutResultUse,
};
use super::undo::Cause;
use super::{AckInput, CongestionControl, CongestionState, Outstanding, RecoveryPhase};
use crate::tcp::ConfigError;
use crate::tcp::config::{Config, GrowthCondition};
use crate::tcp::endpoint::{Endpoint, Ports};
use hopline_core::custom_algorithm::CustomAlgorithmError;
use hopline_core::{Duration, Instant, Payload, Seq32};

/// Time and round-trip time at a call of the algorithm.
#[derive(Clone, Copy, Debug)]
pub(super) struct RttContext {
    now: Instant,
    /// Smoothed round-trip time; zero before the first sample.
    srtt: Duration,
}

impl RttContext {
    pub(super) const fn from_ack(ack: &AckInput) -> Self {
        Self { now: ack.now, srtt: ack.round_trip }
    }
}

impl Outstanding {
    pub(super) const fn rtt_context(&self) -> RttContext {
        RttContext { now: self.now, srtt: self.round_trip }
    }
}

impl CongestionState {
    /// Returns the reason for the failure of the user-defined algorithm, once.
    pub(crate) fn take_custom_failure(&mut self) -> Option<CustomAlgorithmError> {
        self.custom.as_mut()?.take_failure()
    }

    /// Sets the window that the user-defined algorithm returns for an acknowledgment of new data. The window does not
    /// grow where the built-in algorithms would not let it grow: on an ECN mark (RFC 3168 §6.1.2), or if it was not full
    /// and [`GrowthCondition::WindowFull`] is set.
    pub(super) fn grow_by_custom(&mut self, config: &Config, ack: &AckInput) {
        let question = CustomCcAck {
            state: self.custom_state(ack.nxt - ack.una, RttContext::from_ack(ack)),
            acked_bytes: ack.acked,
            rtt: ack.sample,
            slow_start_bytes: self.window.after_slow_start(config, ack.acked, self.phase),
            window_was_full: ack.window_was_full,
            marked: ack.marked,
        };
        let Some(told) = self.custom.as_mut().and_then(|own| own.ack(&question)) else { return };
        let is_used = config.growth_condition == GrowthCondition::Always || ack.window_was_full;
        let may_grow = is_used && (!ack.marked || self.phase == RecoveryPhase::Loss);
        self.window.set_cwnd_with_fraction(if may_grow {
            told
        } else {
            told.min(self.window.cwnd_with_fraction())
        });
    }

    /// Returns the window after a reduction by the user-defined algorithm, with `flight` bytes in flight; `None` without
    /// such an algorithm.
    pub(super) fn reduce_by_custom(
        &mut self,
        config: &Config,
        flight: u64,
        cause: Cause,
        moment: RttContext,
    ) -> Option<f64> {
        self.custom.as_ref()?;
        let state = self.custom_state(flight, moment);
        let reduced_bytes = self.window.reduction_base(config.reduction, flight);
        let own = self.custom.as_mut()?;
        own.last_reduction = Some((moment, flight));
        match cause {
            Cause::Timeout => own.timeout(&CustomCcTimeout {
                state,
                reduction_base_bytes: reduced_bytes,
                result_use: TimeoutResultUse::BecomesSsthresh,
            }),
            Cause::FastRetransmit => own.loss(&CustomCcLoss {
                state,
                signal: CongestionSignal::Loss,
                reduction_base_bytes: reduced_bytes,
            }),
            Cause::Mark => own.loss(&CustomCcLoss {
                state,
                signal: CongestionSignal::EcnMark,
                reduction_base_bytes: reduced_bytes,
            }),
        }
    }

    /// Notifies the algorithm of a time-out that leaves `ssthresh` unchanged.
    pub(super) fn notify_custom_of_timeout(&mut self, config: &Config, outstanding: Outstanding) {
        let flight = outstanding.nxt - outstanding.una;
        let moment = outstanding.rtt_context();
        let state = self.custom_state(flight, moment);
        let reduced_bytes = self.window.reduction_base(config.reduction, flight);
        if let Some(own) = &mut self.custom {
            own.last_reduction = Some((moment, flight));
            let _ = own.timeout(&CustomCcTimeout {
                state,
                reduction_base_bytes: reduced_bytes,
                result_use: TimeoutResultUse::Ignored,
            });
        }
    }

    /// Notifies the algorithm that its last reductions were undone.
    pub(crate) fn notify_custom_of_undo(&mut self, flight: u64, now: Instant, round_trip: Duration) {
        let state = self.custom_state(flight, RttContext { now, srtt: round_trip });
        if let Some(own) = &mut self.custom {
            own.undo(&state);
        }
    }

    /// Notifies the algorithm that a reduction had no effect, since the window was held.
    pub(super) fn notify_custom_of_hold(&mut self) {
        let Some((moment, flight)) = self.custom.as_mut().and_then(|own| own.last_reduction.take()) else {
            return;
        };
        let state = self.custom_state(flight, moment);
        if let Some(own) = &mut self.custom {
            own.undo(&state);
        }
    }

    fn custom_state(&self, flight_bytes: u64, moment: RttContext) -> CustomCcState {
        CustomCcState {
            now: moment.now,
            cwnd_bytes: self.window.cwnd_with_fraction() + f64::from(self.window.inflation),
            ssthresh_bytes: self.window.ssthresh,
            mss_bytes: self.window.mss,
            max_cwnd_bytes: self.window.max_cwnd(),
            flight_bytes,
            srtt: (!moment.srtt.is_zero()).then_some(moment.srtt),
        }
    }
}

impl<P: Payload> Endpoint<P> {
    /// Creates an endpoint as [`Self::new`] does, with a user-defined congestion control algorithm. It replaces
    /// [`Config::congestion_control`].
    ///
    /// # Errors
    /// A parameter out of its range.
    pub fn with_custom_congestion_control(
        config: Config,
        ports: Ports,
        iss: Seq32,
        law: Box<dyn CustomCongestionControl>,
    ) -> Result<Self, ConfigError> {
        let own = match config.congestion_control {
            CongestionControl::Custom(id) => id,
            CongestionControl::Reno
            | CongestionControl::Cubic(_)
            | CongestionControl::Bbr(_)
            | CongestionControl::Prague(_) => CustomCongestionControlId(0),
        };
        Self::new_with_algorithm(
            Config { congestion_control: CongestionControl::Custom(own), ..config },
            ports,
            iss,
            Some(law),
        )
    }

    /// Returns the reason for the failure of the user-defined algorithm, once. The endpoint has used RFC 5681 since.
    /// `None`: there was no failure, or there is no such algorithm.
    pub fn take_custom_failure(&mut self) -> Option<CustomAlgorithmError> {
        self.control.take_custom_failure()
    }
}
