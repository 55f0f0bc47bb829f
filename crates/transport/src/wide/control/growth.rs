//! How the rate grows: from the first packets on, and where nothing waits.

use super::losses::Verdict;
use super::phase::{Doubt, Evidence, FULL, Limit, News, Phase, Seen, Trial};
use super::{Control, GAIN};

/// The rate grows by a packet in this time, seconds, in this time.
const ADD: f64 = 0.05;
/// A ceiling rises by this whenever the rate does.
const CEILING_RISES: f64 = 1.005;

impl Control {
    /// The first packets left together: how far apart they arrived is a first guess.
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
        self.rate = (guess / 2.0).max(by_window / 2.0);
        self.phase = Phase::Startup { guess, gain: GAIN, trial: Trial::of(news.next_number) };
        self.begin_round(news.now, news.next_number);
    }

    /// Twice as fast as before, up to what the first packets let hope for; beyond, with care at first.
    pub(super) fn grow_fast(&mut self, guess: f64, gain: f64, carried: f64, news: &News) {
        let found = match self.losses.growing() {
            Verdict::Excess(share) => Some(self.through(Evidence { share, sent: self.rate })),
            Verdict::Open | Verdict::Usual(_) if carried < self.rate * FULL => Some(carried),
            Verdict::Open | Verdict::Usual(_) => None,
        };
        if let Some(found) = found {
            self.rate = self.rate.min(found);
            return self.follow();
        }
        let up_to_guess = self.rate * 2.0 <= guess * 1.01;
        self.rate *= if up_to_guess { 2.0 } else { gain };
        let gain = if up_to_guess { gain } else { (gain * gain).min(2.0) };
        self.phase = Phase::Startup { guess, gain, trial: Trial::of(news.next_number) };
    }

    pub(super) fn grow(&mut self, step: f64, seen: Seen, news: &News) {
        let add = self.packet * news.srtt.as_secs_f64() / (ADD * ADD);
        let mut next = step;
        if seen.is_saturated() || seen.queue >= self.queue_low() {
            next = self.config.step;
        }
        if seen.is_saturated() {
            self.rate = self.rate.min(seen.carried) + add;
        } else if seen.queue < self.queue_low() && seen.carried >= self.rate * FULL {
            self.rate += self.rate * step + add;
            let most = self.delivered.get() / (1.0 - self.losses.usual().min(0.9)) * 2.0;
            self.rate = self.rate.min(most.max(self.packet / news.srtt.as_secs_f64()));
            self.ceiling *= CEILING_RISES;
            next = if self.rate < self.ceiling * FULL {
                (step * 2.0).min(self.config.step_max)
            } else {
                self.config.step
            };
        }
        self.phase = Phase::Cruise { step: next };
    }

    pub(super) fn follow(&mut self) {
        self.doubt = Doubt::None;
        self.losses.begin_anew();
        self.phase = Phase::Cruise { step: self.config.step };
    }
}
