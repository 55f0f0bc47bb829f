//! Growth of the rate: at the start, and while there is no queue.

use super::super::controller::{AckSample, Arrival, SendLimit};
use super::RateController;
use super::link_rate::SATURATION;
use super::loss_estimator::{BaselineUpdates, MAX_PATH_LOSS, Verdict};
use super::samples::{ExcessLosses, RateTrial, RoundSample, TrialResult};
use super::state::State;
use hopline_core::Duration;

/// Largest first rate, as a multiple of the initial window per round trip. A higher estimate is not used, since a radio may
/// hold packets up and deliver them together. Own choice, not swept.
pub(super) const MAX_FIRST_RATE: f64 = 16.0;
/// Factor of the rate that a loss test found too high, with each increase of the rate: after 70 increases it has doubled,
/// so that a path that has become faster is used. Own choice, not swept.
const POLICER_RATE_GROWTH: f64 = 1.01;

impl RateController {
    /// Makes the first estimate of the rate from the spacing of the arrivals of the first burst.
    pub(super) fn first_estimate(&mut self, ack: &AckSample) {
        let first = self.config.initial_window;
        if self.round.packets + 2 < u64::from(first)
            && ack.limit == SendLimit::Path
            && !self.sampler.is_beyond_burst()
        {
            return;
        }
        let by_window = f64::from(first) * self.packet_bytes / ack.srtt.as_secs_f64().max(1e-6);
        let guess = self.sampler.burst_rate(3.0 * self.packet_bytes).unwrap_or(by_window);
        self.rate = (guess / 2.0).clamp(by_window / 2.0, by_window * MAX_FIRST_RATE);
        self.enter_startup(guess, ack.next_number);
        self.start_round(ack.now, ack.next_number);
    }

    /// Starts fast growth from the current rate. `guess`: estimate of the rate of the link. Above it, the rate grows at first as in Cruise,
    /// by an ever larger factor: the estimate may be exact, and a doubled rate would then fill the queue.
    pub(super) fn enter_startup(&mut self, guess: f64, next_number: u64) {
        let trial = RateTrial::starting_at(next_number);
        self.state.enter(State::Startup { guess, gain: 1.0 + self.config.growth_max, trial });
    }

    /// Continues the measurement at the current rate, and raises the rate once there is a result.
    pub(super) fn measure_startup(&mut self, newest: (u64, Arrival), ack: &AckSample) {
        let Some((guess, gain, trial)) = self.state.startup() else { return };
        let least = (ack.srtt / 4, 6.0 * self.packet_bytes);
        if let Some(found) = trial.sample(newest, self.delivered_bytes, least, self.jitter.curvature()) {
            self.startup_step(guess, gain, found, ack);
        }
    }

    /// Doubles the rate, up to the first estimate. Above it, the gain is small at first and grows.
    fn startup_step(&mut self, guess: f64, gain: f64, found: TrialResult, ack: &AckSample) {
        let learning = if self.half_round.queue < self.queue_high() {
            BaselineUpdates::On
        } else {
            BaselineUpdates::Off
        };
        let found = match self.losses.on_growth(learning) {
            Verdict::Excess(share) => Some(self.sufficient_rate(share, self.rate)),
            _ if self.is_loss_excessive(found) => Some(self.rate * found.delivered_share),
            Verdict::Undecided | Verdict::Baseline(_)
                if found.is_saturated && found.link_rate < self.rate * SATURATION =>
            {
                Some(found.link_rate)
            }
            Verdict::Undecided | Verdict::Baseline(_) => None,
        };
        if let Some(found) = found {
            self.rate = self.rate.min(found);
            return self.resume_cruise();
        }
        let up_to_guess = self.rate * 2.0 <= guess * 1.01;
        self.rate *= if up_to_guess { 2.0 } else { gain };
        let gain = if up_to_guess { gain } else { (gain * gain).min(2.0) };
        self.state.continue_startup(gain, RateTrial::starting_at(ack.next_number));
    }

    /// Returns whether the loss rate is higher than a path alone can cause.
    fn is_loss_excessive(&self, found: TrialResult) -> bool {
        // Of few packets as much may be lost by chance.
        let chance = 1.0
            - (self.config.loss_threshold * MAX_PATH_LOSS / (found.bytes / self.packet_bytes).sqrt())
                .min(1.0);
        found.delivered_share < (1.0 - MAX_PATH_LOSS) * SATURATION * chance
    }

    /// Increases the rate by `step` units if there is no queue. Doubles the next step if the link carried the last one.
    pub(super) fn grow(&mut self, step: f64, sample: RoundSample, ack: &AckSample) {
        let unit = self.growth_unit(ack.srtt);
        let mut next = step;
        if sample.is_saturated() || sample.queue >= self.queue_low() {
            next = 1.0;
        }
        let is_carried = sample.link_rate >= self.rate * SATURATION;
        if sample.is_saturated() {
            self.rate = self.rate.min(sample.link_rate) + unit;
        } else if is_carried && sample.queue < self.queue_low() {
            next = if unit * step < self.rate { step * 2.0 } else { step };
            self.rate += (unit * step).min(self.rate);
            self.policer_rate *= POLICER_RATE_GROWTH;
            if self.rate >= self.policer_rate * SATURATION {
                next = 1.0;
            }
        } else if is_carried && sample.queue < self.queue_high() && self.has_small_flight(ack.srtt) {
            self.rate += unit;
        }
        self.state.continue_cruise(next);
        if self.competing.is_probe_due() {
            self.probe_for_competing(sample.queue, ack);
        }
    }

    /// Returns the first step of growth: a packet per growth interval, per interval, independent of the rate, so that flows converge.
    fn growth_unit(&self, srtt: Duration) -> f64 {
        let unit = self.packet_bytes * srtt.as_secs_f64() / self.config.growth_interval.as_secs_f64().powi(2);
        unit.min(self.config.growth_max * self.rate)
    }

    /// Returns whether fewer packets than the initial window are in flight. Such a flow also grows while there is a short queue: it is that of
    /// other flows, which would otherwise starve it. Without this a flow beside CUBIC reached 0.07 of what the best rival does there, in
    /// place of 0.26.
    pub(super) fn has_small_flight(&self, srtt: Duration) -> bool {
        self.rate * srtt.as_secs_f64() < f64::from(self.config.initial_window) * self.packet_bytes
    }

    /// Continues at this rate, with the smallest step.
    pub(super) fn resume_cruise(&mut self) {
        self.reset_losses();
        self.state.enter(State::Cruise { step: 1.0 });
    }

    /// Discards the losses that were counted at another rate.
    pub(super) fn reset_losses(&mut self) {
        self.excess_losses = ExcessLosses::No;
        self.losses.reset_counts();
    }
}
