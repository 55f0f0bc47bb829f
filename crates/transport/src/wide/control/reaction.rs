//! Reactions to queueing delay and to losses above the baseline.

use super::compete::Cubic;
use super::losses::{Cause, Learns, Proof};
use super::phase::{Evidence, News, Seen, Settled};
use super::standing::{Drained, Queue, Why};
use super::state::State;
use super::{Control, TEST_AFTER};
use hopline_core::Duration;

/// Factor of the rate during a test of the losses.
const TEST: f64 = 0.8;
/// Baseline above which losses are tested periodically, and longest interval between tests in round trips. The interval
/// doubles each time.
const TESTED_ABOVE: f64 = 0.03;
const TEST_AT_LEAST: u32 = 512;

impl Control {
    /// Reacts to congestion: returns to the rate of the link, and below it until the queue has drained.
    pub(super) fn congested(&mut self, news: &News, queue: Duration) {
        if self.standing.in_vain() == 0 {
            self.before = self.rate.min(self.now_carried.max(self.packet));
        }
        let coming = queue + self.under_way_too_much(news);
        self.reduce(self.now_carried);
        self.drain(Drained { why: Why::Congestion, queue, coming }, news);
    }

    /// Reduces the rate as a probe for competing traffic, after a short queue has stood for long.
    pub(super) fn look(&mut self, queue: Duration, news: &News) {
        self.drain(Drained { why: Why::Look, queue, coming: queue }, news);
    }

    /// Returns the increase of the queueing delay until a lower rate takes effect.
    fn under_way_too_much(&self, news: &News) -> Duration {
        let over = if self.now_carried > 0.0 { self.rate / self.now_carried - 1.0 } else { 0.0 };
        Duration::from_secs_f64(news.srtt.as_secs_f64() * over.clamp(0.0, 1.0))
    }

    /// Drains the queue, for as long as it takes if only this flow fills it.
    fn drain(&mut self, was: Drained, news: &News) {
        if was.why == Why::Congestion {
            self.test_in = self.test_after;
        }
        let below = 1.0 - self.config.drain * self.config.keep;
        let most = news.srtt.as_secs_f64() * f64::from(self.config.drain_rounds);
        let lasts = Duration::from_secs_f64((was.coming.as_secs_f64() / below).min(most));
        self.state.enter(State::Drain { until: news.now + lasts, was });
        self.losses.begin_anew();
        self.begin_round(news.now, news.next_number);
    }

    pub(super) fn reduce(&mut self, carried: f64) {
        if carried > 0.0 {
            self.rate = self.rate.min(carried);
        }
        self.rate *= self.config.keep;
        self.reductions += 1;
    }

    /// Evaluates a drain after a round trip.
    pub(super) fn evaluate_drain(&mut self, was: Drained, seen: Seen, news: &News) {
        let queue = self.still_waited(seen);
        // A queue of half its length does not overflow.
        if queue == Queue::Gone || seen.queue < was.coming / 2 {
            let proof = if self.was_a_queue(was.queue) { Proof::Yes } else { Proof::No };
            self.losses.drained(self.config.drain * self.config.keep, proof);
        }
        self.standing.drained(was, (queue, seen.queue));
        if self.standing.is_anothers() {
            self.forget_losses();
            let packets = self.before.max(self.rate) * news.srtt.as_secs_f64() / self.packet;
            let cubic = self.rival.unwrap_or(Cubic::new(news.now, packets));
            self.rival = Some(cubic);
            return self.state.enter(State::Competitive(cubic));
        }
        if self.standing.in_vain() == 0 {
            self.rival = None;
        }
        self.follow();
    }

    /// Returns the state of the queue in a round trip.
    pub(super) fn waited(&self, seen: Seen) -> Queue {
        if seen.queue < self.queue_low() { Queue::Gone } else { Queue::There }
    }

    /// Returns the state of the queue at a reduced rate. One packet of the own flow may remain in the queue.
    fn still_waited(&self, seen: Seen) -> Queue {
        let packet = self.time_of(1).unwrap_or_default();
        if seen.queue < self.queue_low().max(packet) { Queue::Gone } else { Queue::There }
    }

    /// Follows the window of competitive mode until the queue is gone. A stay is limited, since several flows of this
    /// algorithm may take each other for competing loss-based flows.
    pub(super) fn compete(&mut self, mut cubic: Cubic, news: &News) {
        let srtt = news.srtt.as_secs_f64();
        let reduced = cubic.round(news.now, srtt, self.losses.queue_lost());
        self.reductions += u64::from(reduced);
        self.rate = cubic.window() * self.packet / srtt;
        self.rival = Some(cubic.again());
        self.state.continue_competitive(cubic);
        if self.standing.is_gone() {
            self.standing.suspect();
            self.follow();
        } else if cubic.rounds() >= self.config.rivals.turn {
            self.standing.forget();
            self.follow();
        }
    }

    /// Returns whether a test of the losses is due.
    pub(super) fn is_test_due(&mut self) -> bool {
        self.test_in = self.test_in.saturating_sub(1);
        self.test_in == 0 && self.losses.usual() > TESTED_ABOVE && self.rate_before > 0.0
    }

    /// Starts a test of the losses: sends less for a while to see if the loss rate falls. A flow at the least rate cannot
    /// be tested, and does not cause the losses.
    pub(super) fn test(&mut self, of: Evidence, srtt: Duration) {
        if self.rate.min(of.sent) * TEST < self.least(srtt) {
            self.losses.believe(of.share);
            self.test_in = self.test_after;
            self.forget_losses();
            return self.state.continue_cruise(1.0);
        }
        self.state.enter(State::ProbeLoss { of, rate: self.rate, settled: Settled::NotYet });
        self.rate = self.rate.min(of.sent) * TEST;
    }

    /// Returns the sending rate that would have sufficed for the delivered data.
    pub(super) fn through(&self, share: f64, sent: f64) -> f64 {
        sent * (1.0 - share) / (1.0 - self.losses.usual().min(0.9))
    }

    /// Ends a test of the losses. `queue`: queue at the reduced rate.
    pub(super) fn judge(&mut self, rate: f64, of: Evidence, queue: Duration) {
        let Some((cause, share)) = self.losses.test(of.share, self.rate / of.sent) else { return };
        match cause {
            Cause::Path => {
                // The queue was ours, and the losses stay without it.
                if self.was_a_queue(of.queue) && queue < of.queue / 2 {
                    self.losses.prove();
                }
                self.rate = rate.min(self.through(share, rate).max(self.rate));
                self.test_after = (self.test_after * 2).min(TEST_AT_LEAST);
            }
            Cause::Rate => {
                self.rate = self.rate.min(self.through(share, self.rate));
                self.ceiling = self.rate;
                self.test_after = TEST_AFTER;
                self.reductions += 1;
            }
        }
        self.test_in = self.test_after;
        self.follow();
    }

    pub(super) fn learns(&self, step: f64, seen: Seen) -> Learns {
        let steady = step <= 1.0 && seen.queue < self.queue_high() / 2;
        if steady { Learns::Yes } else { Learns::No }
    }
}
