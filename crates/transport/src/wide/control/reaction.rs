//! Reactions to queueing delay and to losses above the baseline.

use super::super::controller::{AckSample, Controller, SendLimit};
use super::competing::{DrainReason, DrainStart, Queue};
use super::competitive::{CompetitiveWindow, QueueLoss};
use super::loss_estimator::{BaselineUpdates, Cause};
use super::marks::Series;
use super::rate_growth::MAX_FIRST_RATE;
use super::samples::{LossEvidence, OldPacketsDrained, RoundSample};
use super::state::State;
use super::{PROBE_RTT_INTERVAL, RateController};
use hopline_core::Duration;

/// Factor of the rate after ECN marks (RFC 8511 §3.1). With a smaller reduction, CUBIC with ECN gets a few hundredths of a link beside it.
const MARK_FACTOR: f64 = 0.85;

impl RateController {
    /// Reacts to ECN marks; packet `number` has arrived. Before the first estimate there is no rate to reduce, a drain is a reaction under
    /// way, and competitive mode reacts at the end of a round trip. While the base delay is measured, marks on packets sent before the last
    /// reaction do not count, and without a queueing delay those that come soon after it. Near a rate that saturates the link and
    /// is marked although the queue is short, growth is slow: the queue is too short for the overshoot of a fast one.
    pub(super) fn on_mark(&mut self, number: u64, queue: Duration, ack: &AckSample) {
        match self.state.current() {
            State::InitialWindow
            | State::Drain { .. }
            | State::EvaluateDrain { .. }
            | State::Competitive(_) => return,
            State::ProbeRtt { .. } if !self.marks.is_sent_since_reaction(number) => return,
            _ if queue < self.queue_low() && !self.marks.is_due_without_queue() => return,
            _ => {}
        }
        let marked_rate = self.rate_within_link();
        let is_first = self.marks.on_reaction(ack.next_number) == Series::First;
        let has_filled_link =
            matches!(self.state.current(), State::Cruise { .. }) && self.sampler.is_saturated();
        if is_first && has_filled_link && queue < self.queue_high() {
            self.policer_rate = marked_rate;
        }
        self.rate = marked_rate * MARK_FACTOR;
        match self.state.current() {
            // The queue of the mark may be gone when its packet arrives.
            State::Startup { .. } | State::Cruise { .. } => {
                self.on_congestion(ack, queue.max(ack.srtt / 8));
            }
            // The rate before the test was too high.
            State::ProbeLoss { .. } => {
                self.reductions += 1;
                self.resume_cruise();
            }
            _ => self.reductions += 1,
        }
    }

    /// Reacts to a queue that has emptied at `link_rate`, or a higher rate. If the link is faster by more than the headroom, the flow starts
    /// again at half of that, as after the first burst.
    pub(super) fn on_empty_queue(&mut self, link_rate: f64, ack: &AckSample) {
        let is_path_limited = ack.limit == SendLimit::Path
            && matches!(
                self.state.current(),
                State::Drain { .. } | State::EvaluateDrain { .. } | State::Cruise { .. }
            );
        if is_path_limited && link_rate > self.config.headroom * self.rate {
            self.reset_losses();
            self.competing.reset();
            let guess = link_rate.min(self.rate * MAX_FIRST_RATE);
            self.rate = guess / 2.0;
            self.enter_startup(guess, ack.next_number);
        }
    }

    /// Reacts to congestion: returns to the rate of the link, and below it until the queue has drained.
    pub(super) fn on_congestion(&mut self, ack: &AckSample, queue: Duration) {
        if self.competing.drains_without_relief() == 0 {
            self.rate_before_drains = self.rate_within_link();
        }
        let expected = queue + self.expected_queue_growth(ack);
        self.rate = self.rate_within_link() * self.config.decrease_factor;
        self.reductions += 1;
        self.start_drain(DrainStart { reason: DrainReason::Congestion, queue, expected }, ack);
    }

    /// Returns the rate, or that of the link if that is known and lower. In Startup the link may be faster than what it has
    /// delivered, unless it was saturated.
    fn rate_within_link(&self) -> f64 {
        let is_starting = matches!(self.state.current(), State::Startup { .. });
        let is_known = self.latest_link_rate > 0.0 && (!is_starting || self.sampler.is_saturated());
        if is_known { self.rate.min(self.latest_link_rate) } else { self.rate }
    }

    /// Reduces the rate as a probe for competing traffic, after a short queue has stood for long.
    pub(super) fn probe_for_competing(&mut self, queue: Duration, ack: &AckSample) {
        self.start_drain(DrainStart { reason: DrainReason::Probe, queue, expected: queue }, ack);
    }

    /// Returns the increase of the queueing delay until a lower rate takes effect.
    fn expected_queue_growth(&self, ack: &AckSample) -> Duration {
        let over = if self.latest_link_rate > 0.0 { self.rate / self.latest_link_rate - 1.0 } else { 0.0 };
        Duration::from_secs_f64(ack.srtt.as_secs_f64() * over.clamp(0.0, 1.0))
    }

    /// Drains the queue, for as long as it takes if only this flow fills it.
    fn start_drain(&mut self, was: DrainStart, ack: &AckSample) {
        if was.reason == DrainReason::Congestion {
            self.rounds_to_loss_test = self.loss_test_interval;
        }
        let below = 1.0 - self.config.drain_gain * self.config.decrease_factor;
        // After that time without an empty queue, the base delay is measured.
        let lasts = Duration::from_secs_f64(was.expected.as_secs_f64() / below).min(PROBE_RTT_INTERVAL);
        self.state.enter(State::Drain { until: ack.now + lasts, was });
        self.losses.reset_counts();
        self.start_round(ack.now, ack.next_number);
    }

    /// Ends a drain after which packets have hardly any queueing delay: `queue`.
    pub(super) fn end_drain_early(&mut self, was: DrainStart, queue: Duration, ack: &AckSample) {
        self.state.enter(State::EvaluateDrain { was });
        self.evaluate_drain(was, [queue; 2], ack);
    }

    /// Evaluates a drain after a round trip with these queueing delays, the shortest and the longest one. Returns whether the path
    /// is another one.
    pub(super) fn evaluate_drain(&mut self, was: DrainStart, after: [Duration; 2], ack: &AckSample) -> bool {
        let left = after[0];
        let queue = self.queue_after_drain(left);
        if was.reason == DrainReason::Congestion {
            let is_queue = queue == Queue::Drained || self.losses.is_above_baseline();
            if self.path_change.on_drain(was.queue, after, is_queue) {
                self.competing.reset();
                self.resume_cruise();
                return true;
            }
        }
        self.competing.on_drain(was, (queue, left));
        if self.competing.is_detected() || self.is_starved(ack) {
            self.reset_losses();
            let packets = self.rate_before_drains.max(self.rate) * ack.srtt.as_secs_f64() / self.packet_bytes;
            let cubic = self.competitive_window.unwrap_or(CompetitiveWindow::new(ack.now, packets));
            self.competitive_window = Some(cubic);
            self.state.enter(State::Competitive(cubic));
            return false;
        }
        if self.competing.drains_without_relief() == 0 {
            self.competitive_window = None;
        }
        self.resume_cruise();
        false
    }

    /// Returns whether other flows keep the queue full and leave this one few packets in flight. Its drains show nothing then: the queue
    /// shortens when the others reduce their rates. But it was not empty even at a fifth of the rate.
    fn is_starved(&self, ack: &AckSample) -> bool {
        self.has_small_flight(ack.srtt) && ack.base_age > PROBE_RTT_INTERVAL.saturating_mul(2)
    }

    /// Returns the state of the queue in a round trip.
    pub(super) fn queue_state(&self, sample: RoundSample) -> Queue {
        if sample.queue < self.queue_low() { Queue::Drained } else { Queue::Standing }
    }

    /// Returns the state of the queue at a reduced rate. One packet of the own flow may remain in the queue.
    fn queue_after_drain(&self, left: Duration) -> Queue {
        let packet = self.sending_time(1).unwrap_or_default();
        if left < self.queue_low().max(packet) { Queue::Drained } else { Queue::Standing }
    }

    /// Follows the window of competitive mode until the queue is gone, or the stay was too long.
    pub(super) fn on_competitive_round(
        &mut self,
        mut cubic: CompetitiveWindow,
        is_marked: bool,
        ack: &AckSample,
    ) {
        let srtt = ack.srtt.as_secs_f64();
        let lost = self.losses.queue_loss();
        let lost = if is_marked { QueueLoss::Overflow } else { lost };
        let reduced = cubic.on_round(ack.now, srtt, lost);
        self.reductions += u64::from(reduced);
        self.rate = cubic.window() * self.packet_bytes / srtt;
        self.competitive_window = Some(cubic.restarted());
        self.state.continue_competitive(cubic);
        if self.competing.has_left() {
            self.competing.assume_return();
            self.resume_cruise();
        } else if cubic.is_stay_over() {
            self.competing.reset();
            self.resume_cruise();
        }
    }

    /// Returns whether a test of the losses is due: the baseline is above what is attributed to the path without an observation. The
    /// interval doubles with each test that finds the path to be the cause.
    pub(super) fn is_loss_test_due(&mut self) -> bool {
        self.rounds_to_loss_test = self.rounds_to_loss_test.saturating_sub(1);
        self.rounds_to_loss_test == 0
            && self.losses.baseline() >= self.config.max_unobserved_loss
            && self.rate_before > 0.0
    }

    /// Starts a test of the losses: sends less for a while to see if the loss rate falls. A flow at the least rate cannot
    /// be tested, and does not cause the losses.
    pub(super) fn start_loss_test(&mut self, of: LossEvidence, srtt: Duration) {
        let reduced = self.rate.min(of.sent) * self.config.drain_gain;
        if reduced < self.min_rate(srtt) {
            self.losses.attribute_to_path(of.loss_rate);
            self.rounds_to_loss_test = self.loss_test_interval;
            self.reset_losses();
            return self.state.continue_cruise(1.0);
        }
        self.state.enter(State::ProbeLoss { of, rate: self.rate, settled: OldPacketsDrained::NotYet });
        self.rate = reduced;
    }

    /// Returns the sending rate that would have sufficed for the delivered data.
    pub(super) fn sufficient_rate(&self, share: f64, sent: f64) -> f64 {
        sent * (1.0 - share) / (1.0 - self.losses.baseline().min(0.9))
    }

    /// Ends a test of the losses.
    pub(super) fn finish_loss_test(&mut self, rate: f64, of: LossEvidence) {
        let Some((cause, share)) = self.losses.test_result(of.loss_rate, self.rate / of.sent) else { return };
        match cause {
            Cause::Path => {
                self.rate = rate.min(self.sufficient_rate(share, rate).max(self.rate));
                self.loss_test_interval = self.loss_test_interval.saturating_mul(2);
            }
            Cause::Rate => {
                self.rate = self.rate.min(self.sufficient_rate(share, self.rate));
                self.policer_rate = self.rate;
                self.loss_test_interval = self.config.competing.probe_rounds;
                self.reductions += 1;
            }
        }
        self.rounds_to_loss_test = self.loss_test_interval;
        self.resume_cruise();
    }

    pub(super) fn baseline_updates(&self, step: f64, sample: RoundSample) -> BaselineUpdates {
        let steady = step <= 1.0 && sample.queue < self.queue_high() / 2;
        if steady { BaselineUpdates::On } else { BaselineUpdates::Off }
    }
}
