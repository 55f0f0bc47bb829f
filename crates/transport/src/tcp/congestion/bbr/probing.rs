//! ProbeBW cycle: the search for more bandwidth (v3; draft-ietf-ccwg-bbr §5.3.3).

use super::v3::{Full, LEAST_WINDOW, State, V3};
use super::{Orders, Seen};
use crate::tcp::delivery_rate::{Limit, RateSample};
use hopline_core::{Duration, Instant};

/// Time and rounds between two probes: two to three seconds, and at most the rounds that Reno needs for the same growth.
const LEAST_WAIT: Duration = Duration::from_secs(2);
const DRAWN_WAIT: Duration = Duration::from_secs(1);
const MOST_ROUNDS: u64 = 63;
/// Largest exponent of the growth in a probe.
const MOST_DOUBLINGS: u32 = 30;

/// State of the cycle.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cycle {
    feedback: Feedback,
    /// `Awaited` until losses have shown that this probe was too high: "BBR.is_bw_probe_sample".
    verdict: Verdict,
    last: LastProbe,
    began: Instant,
    wait: Duration,
    pub(super) rounds_since_up: u64,
    /// In ProbeBW_UP: rounds, counted acknowledged bytes, and acknowledged bytes that raise the bound by one segment.
    up_rounds: u32,
    up_acked: u64,
    acked_for_more: u64,
    /// "BBR.probe_rtt_expired".
    pub(super) round_trip_is_stale: bool,
}

/// Origin of the data that acknowledgments cover: "BBR.ack_phase".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Feedback {
    /// No probe.
    #[default]
    NoProbe,
    /// Refill of the pipe before a probe.
    Refilling,
    /// Start of a probe: acknowledgments cover data from before it.
    Starting,
    /// Data of the probe.
    OfProbe,
    /// End of a probe: acknowledgments still cover its data.
    Stopping,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Verdict {
    #[default]
    Given,
    Awaited,
}

/// Result of the last probe: "BBR.prev_probe_too_high", "BBR.prev_probe_precautionary".
#[derive(Clone, Copy, Debug, Default)]
struct LastProbe {
    too_high: bool,
    precautionary: bool,
}

impl V3 {
    /// "UpdateProbeBWCyclePhase".
    pub(super) fn advance_cycle(&mut self, seen: &Seen, sample: &RateSample, orders: &Orders) {
        if self.full_once == Full::No || self.adapt_long_bound(seen, sample, orders) {
            return;
        }
        match self.state {
            State::Down | State::Cruise if self.is_time_to_probe(seen.now, orders.cwnd) => {
                self.start_refill(seen.delivered);
            }
            State::Down if self.is_time_to_cruise(seen.in_flight, orders) => self.state = State::Cruise,
            State::Refill if self.rounds.starts => {
                self.cycle.verdict = Verdict::Awaited;
                self.start_up(seen, sample, orders.cwnd);
            }
            State::Up => self.go_down_in_time(seen, sample, orders.cwnd),
            _ => {}
        }
    }

    fn go_down_in_time(&mut self, seen: &Seen, sample: &RateSample, cwnd: u64) {
        if self.is_time_to_go_down(seen, sample, cwnd) {
            self.cycle.last.too_high = false;
            self.start_down(seen.delivered, seen.now);
        }
    }

    /// "StartProbeBW_DOWN".
    pub(super) fn start_down(&mut self, delivered: u64, now: Instant) {
        self.recent.reset();
        self.cycle.acked_for_more = u64::MAX;
        // "PickProbeWait"
        self.cycle.rounds_since_up = u64::from(self.random.below(2));
        self.cycle.wait = LEAST_WAIT + self.random.duration_below(DRAWN_WAIT);
        self.cycle.began = now;
        self.stop_feedback(delivered);
        self.state = State::Down;
    }

    /// Enters the phase in which acknowledgments for data of the last probe still arrive.
    pub(super) fn stop_feedback(&mut self, delivered: u64) {
        self.cycle.feedback = Feedback::Stopping;
        self.rounds.restart(delivered);
    }

    /// "StartProbeBW_REFILL".
    pub(super) fn start_refill(&mut self, delivered: u64) {
        self.bounds.reset_short();
        (self.cycle.up_rounds, self.cycle.up_acked) = (0, 0);
        self.cycle.last.precautionary = false;
        self.cycle.feedback = Feedback::Refilling;
        self.rounds.restart(delivered);
        self.state = State::Refill;
    }

    /// "StartProbeBW_UP".
    fn start_up(&mut self, seen: &Seen, sample: &RateSample, cwnd: u64) {
        self.cycle.feedback = Feedback::Starting;
        self.rounds.restart(seen.delivered);
        self.look_for_growth_from(sample.rate.unwrap_or(0.0));
        self.state = State::Up;
        self.steepen(cwnd);
    }

    /// Returns whether losses can still show that a probe was too high.
    pub(super) fn awaits_verdict(&self) -> bool {
        self.cycle.verdict == Verdict::Awaited
    }

    /// Records that losses have shown the probe to be too high.
    pub(super) fn note_too_high(&mut self) {
        self.cycle.last.too_high = true;
        self.cycle.verdict = Verdict::Given;
    }

    /// "InflightWithHeadroom"; `None`: there is no bound.
    pub(super) fn with_headroom(&self) -> Option<u64> {
        let bound = self.bounds.long_volume?;
        let headroom = self.mss.max((self.limits.headroom * bound as f64) as u64);
        Some(bound.saturating_sub(headroom).max(LEAST_WINDOW * self.mss))
    }

    /// "IsTimeToProbeBW".
    fn is_time_to_probe(&self, now: Instant, cwnd: u64) -> bool {
        let reno_rounds = (self.own_volume(cwnd) / self.mss).min(MOST_ROUNDS);
        now > self.cycle.began + self.cycle.wait || self.cycle.rounds_since_up >= reno_rounds
    }

    /// "IsTimeToCruise".
    fn is_time_to_cruise(&self, in_flight: u64, orders: &Orders) -> bool {
        self.with_headroom().is_none_or(|most| in_flight <= most) && in_flight <= self.full_volume(orders)
    }

    /// "IsTimeToGoDown".
    fn is_time_to_go_down(&mut self, seen: &Seen, sample: &RateSample, cwnd: u64) -> bool {
        if self.cycle.last.too_high && self.bounds.long_volume.is_some_and(|most| seen.in_flight >= most) {
            self.cycle.last.precautionary = true;
            return true;
        }
        if self.is_bounded(cwnd) {
            self.look_for_growth_from(sample.rate.unwrap_or(0.0)); // the bound hides what the path has
            return false;
        }
        self.full_now == Full::Yes
    }

    /// Returns whether the long-term bound limits the bytes in flight.
    fn is_bounded(&self, cwnd: u64) -> bool {
        self.window_was_full() && self.bounds.long_volume.is_some_and(|most| cwnd >= most)
    }

    /// Adapts the long-term bound: "AdaptLongTermModel". Returns whether it has changed the state.
    fn adapt_long_bound(&mut self, seen: &Seen, sample: &RateSample, orders: &Orders) -> bool {
        if self.cycle.feedback == Feedback::Starting && self.rounds.starts {
            self.cycle.feedback = Feedback::OfProbe;
        }
        if self.cycle.feedback == Feedback::Stopping && self.rounds.starts {
            self.cycle.verdict = Verdict::Given;
            self.cycle.feedback = Feedback::NoProbe;
            if self.is_in_cycle() && sample.limit == Limit::Path {
                self.cycles += 1; // "AdvanceMaxBwFilter"
            }
            if self.is_in_cycle() && self.cycle.last.precautionary && !self.cycle.last.too_high {
                self.start_refill(seen.delivered);
                return true;
            }
        }
        if self.losses_are_tolerable(sample)
            && let Some(bound) = self.bounds.long_volume
        {
            self.bounds.long_volume = Some(bound.max(sample.in_flight));
            if self.state == State::Up {
                self.raise_long_bound(seen, orders.cwnd);
            }
        }
        false
    }

    /// "ProbeInflightLongtermUpward".
    fn raise_long_bound(&mut self, seen: &Seen, cwnd: u64) {
        if !self.is_bounded(cwnd) {
            return;
        }
        self.cycle.up_acked += seen.acked;
        let segments = self.cycle.up_acked / self.cycle.acked_for_more.max(1);
        self.cycle.up_acked -= segments * self.cycle.acked_for_more;
        self.bounds.long_volume = self.bounds.long_volume.map(|bound| bound + segments * self.mss);
        if self.rounds.starts {
            self.steepen(cwnd);
        }
    }

    /// "RaiseInflightLongtermSlope".
    fn steepen(&mut self, cwnd: u64) {
        let growth = 1 << self.cycle.up_rounds;
        self.cycle.up_rounds = (self.cycle.up_rounds + 1).min(MOST_DOUBLINGS);
        self.cycle.acked_for_more = (cwnd / growth).max(self.mss);
    }
}
