//! Growth of the rate: at the start, and while there is no queue.

use super::losses::{Learns, MOST, Verdict};
use super::phase::{Doubt, FULL, Found, Limit, News, Seen, Trial};
use super::rate::Arrival;
use super::state::State;
use super::{Control, GAIN};

/// Largest first rate, as a multiple of the initial window per round trip. A higher estimate is not trusted, since a
/// radio may hold packets up and deliver them together.
const AT_ONCE: f64 = 16.0;
/// Increase of the ceiling with each increase of the rate.
const CEILING_RISES: f64 = 1.01;

impl Control {
    /// Makes the first estimate of the rate from the spacing of the arrivals of the first burst.
    pub(super) fn open(&mut self, news: &News) {
        let first = self.config.initial_window;
        if self.round.packets + 2 < u64::from(first)
            && news.limit == Limit::Path
            && !self.sampler.is_beyond_burst()
        {
            return;
        }
        let by_window = f64::from(first) * self.packet / news.srtt.as_secs_f64().max(1e-6);
        let guess = self.sampler.burst(3.0 * self.packet).unwrap_or(by_window);
        self.rate = (guess / 2.0).clamp(by_window / 2.0, by_window * AT_ONCE);
        self.state.enter(State::Startup { guess, gain: GAIN, trial: Trial::of(news.next_number) });
        self.begin_round(news.now, news.next_number);
    }

    /// Continues the measurement at the current rate, and raises the rate once there is a result.
    pub(super) fn measure_startup(&mut self, newest: (u64, Arrival), news: &News) {
        let Some((guess, gain, trial)) = self.state.startup() else { return };
        let least = (news.srtt / 4, 6.0 * self.packet);
        if let Some(found) = trial.take(newest, self.arrived, least, self.jitter.bend()) {
            self.grow_fast(guess, gain, found, news);
        }
    }

    /// Doubles the rate, up to the first estimate. Above it, the gain is small at first and grows.
    fn grow_fast(&mut self, guess: f64, gain: f64, found: Found, news: &News) {
        let learns = if self.beat.queue < self.queue_high() { Learns::Yes } else { Learns::No };
        let found = match self.losses.growing(learns) {
            Verdict::Excess(share) => Some(self.through(share, self.rate)),
            _ if self.loses_too_much(found) => Some(found.delivered),
            Verdict::Open | Verdict::Usual(_) if found.carried < self.rate * FULL => Some(found.carried),
            Verdict::Open | Verdict::Usual(_) => None,
        };
        if let Some(found) = found {
            self.rate = self.rate.min(found);
            return self.follow();
        }
        let up_to_guess = self.rate * 2.0 <= guess * 1.01;
        self.rate *= if up_to_guess { 2.0 } else { gain };
        let gain = if up_to_guess { gain } else { (gain * gain).min(2.0) };
        self.state.continue_startup(gain, Trial::of(news.next_number));
    }

    /// Returns whether the loss rate is higher than a path alone can cause.
    fn loses_too_much(&self, found: Found) -> bool {
        // Of few packets as much may be lost by chance.
        let chance = 1.0 - (self.config.excess * MOST / (found.bytes / self.packet).sqrt()).min(1.0);
        found.delivered < self.rate * (1.0 - MOST) * FULL * chance
    }

    /// Increases the rate by `step` units if there is no queue, by less with a short queue. Doubles the next step if the
    /// link carried the last one.
    pub(super) fn grow(&mut self, step: f64, seen: Seen, news: &News) {
        let unit = self.packet * news.srtt.as_secs_f64() / self.config.growth.as_secs_f64().powi(2);
        let most = self.config.growth_max * self.rate;
        let mut next = step;
        if seen.is_saturated() || seen.queue >= self.queue_low() {
            next = 1.0;
        }
        if seen.is_saturated() {
            self.rate = self.rate.min(seen.carried) + unit.min(most / 2.0);
        } else if seen.queue < self.queue_low() && seen.carried >= self.rate * FULL {
            self.rate += (unit * step).min(if step > 1.0 { most } else { most / 2.0 });
            self.ceiling *= CEILING_RISES;
            next = match () {
                () if self.rate >= self.ceiling * FULL => 1.0,
                () if unit * step < most => step * 2.0,
                () => step,
            };
        }
        self.state.continue_cruise(next);
        if self.standing.is_look_due() {
            self.look(seen.queue, news);
        }
    }

    /// Continues at this rate, with the smallest step.
    pub(super) fn follow(&mut self) {
        self.forget_losses();
        self.state.enter(State::Cruise { step: 1.0 });
    }

    /// Discards the losses that were counted at another rate.
    pub(super) fn forget_losses(&mut self) {
        self.doubt = Doubt::None;
        self.losses.begin_anew();
    }
}
