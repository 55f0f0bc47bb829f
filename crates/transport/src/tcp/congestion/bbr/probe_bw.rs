//! ProbeBW cycle: the search for more bandwidth (v3; draft-ietf-ccwg-bbr §5.3.3).

use super::v3::{FullBw, MIN_PIPE_CWND, State, V3};
use super::{BbrAck, ControlOutput};
use crate::tcp::delivery_rate::{RateSample, SendLimit};
use hopline_core::{Duration, Instant};

/// Time and rounds between two probes: two to three seconds, and at most the rounds that Reno needs for the same growth.
const MIN_PROBE_WAIT: Duration = Duration::from_secs(2);
const PROBE_WAIT_JITTER: Duration = Duration::from_secs(1);
const MAX_PROBE_ROUNDS: u64 = 63;
/// Largest exponent of the growth in a probe.
const MAX_DOUBLINGS: u32 = 30;

/// State of the cycle.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeBwCycle {
    ack_phase: AckPhase,
    /// `Pending` until losses have shown that this probe was too high: "BBR.is_bw_probe_sample".
    probe_sample: ProbeSample,
    pub(super) last_probe: LastProbe,
    pub(super) cycle_start: Instant,
    pub(super) probe_wait: Duration,
    pub(super) rounds_since_probe: u64,
    /// In ProbeBW_UP: rounds, counted acknowledged bytes, and acknowledged bytes that raise the bound by one segment.
    probe_up_rounds: u32,
    probe_up_acks: u64,
    pub(super) probe_up_count: u64,
    /// "BBR.probe_rtt_expired".
    pub(super) probe_rtt_expired: bool,
}

/// Origin of the data that acknowledgments cover: "BBR.ack_phase".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum AckPhase {
    /// No probe.
    #[default]
    NoProbe,
    /// Refill of the pipe before a probe.
    Refilling,
    /// Start of a probe: acknowledgments cover data from before it.
    Starting,
    /// Data of the probe.
    Probe,
    /// End of a probe: acknowledgments still cover its data.
    Stopping,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ProbeSample {
    #[default]
    Evaluated,
    Pending,
}

/// Result of the last probe: "BBR.prev_probe_too_high", "BBR.prev_probe_precautionary".
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastProbe {
    pub(super) too_high: bool,
    precautionary: bool,
}

impl V3 {
    /// "UpdateProbeBWCyclePhase".
    pub(super) fn update_probe_bw_cycle(
        &mut self,
        seen: &BbrAck,
        sample: &RateSample,
        orders: &ControlOutput,
    ) {
        if self.full_bw_reached == FullBw::No || self.adapt_longterm_model(seen, sample, orders) {
            return;
        }
        match self.state {
            State::Down | State::Cruise if self.is_time_to_probe(seen.now, orders.cwnd) => {
                self.start_probe_bw_refill(seen.delivered);
            }
            State::Down if self.is_time_to_cruise(seen.in_flight, orders) => self.state = State::Cruise,
            State::Refill if self.rounds.round_start => {
                self.cycle.probe_sample = ProbeSample::Pending;
                self.start_probe_bw_up(seen, sample, orders.cwnd);
            }
            State::Up => self.check_go_down(seen, sample, orders.cwnd),
            _ => {}
        }
    }

    fn check_go_down(&mut self, seen: &BbrAck, sample: &RateSample, cwnd: u64) {
        if self.is_time_to_go_down(seen, sample, cwnd) {
            self.cycle.last_probe.too_high = false;
            self.start_probe_bw_down(seen.delivered, seen.now);
        }
    }

    /// "StartProbeBW_DOWN".
    pub(super) fn start_probe_bw_down(&mut self, delivered: u64, now: Instant) {
        self.round_signals.reset();
        self.cycle.probe_up_count = u64::MAX;
        // "PickProbeWait"
        self.cycle.rounds_since_probe = u64::from(self.random.below(2));
        self.cycle.probe_wait = MIN_PROBE_WAIT + self.random.duration_below(PROBE_WAIT_JITTER);
        self.cycle.cycle_start = now;
        self.enter_probe_stopping(delivered);
        self.state = State::Down;
    }

    /// Enters the phase in which acknowledgments for data of the last probe still arrive.
    pub(super) fn enter_probe_stopping(&mut self, delivered: u64) {
        self.cycle.ack_phase = AckPhase::Stopping;
        self.rounds.restart(delivered);
    }

    /// "StartProbeBW_REFILL".
    pub(super) fn start_probe_bw_refill(&mut self, delivered: u64) {
        self.bounds.reset_shortterm();
        (self.cycle.probe_up_rounds, self.cycle.probe_up_acks) = (0, 0);
        self.cycle.last_probe.precautionary = false;
        self.cycle.ack_phase = AckPhase::Refilling;
        self.rounds.restart(delivered);
        self.state = State::Refill;
    }

    /// "StartProbeBW_UP".
    fn start_probe_bw_up(&mut self, seen: &BbrAck, sample: &RateSample, cwnd: u64) {
        self.cycle.ack_phase = AckPhase::Starting;
        self.rounds.restart(seen.delivered);
        self.reset_full_bw(sample.rate.unwrap_or(0.0));
        self.state = State::Up;
        self.raise_inflight_longterm_slope(cwnd);
    }

    /// Returns whether losses can still show that a probe was too high.
    pub(super) fn is_bw_probe_sample(&self) -> bool {
        self.cycle.probe_sample == ProbeSample::Pending
    }

    /// Records that losses have shown the probe to be too high.
    pub(super) fn record_probe_too_high(&mut self) {
        self.cycle.last_probe.too_high = true;
        self.cycle.probe_sample = ProbeSample::Evaluated;
    }

    /// "InflightWithHeadroom"; `None`: there is no bound.
    pub(super) fn inflight_with_headroom(&self) -> Option<u64> {
        let bound = self.bounds.inflight_longterm?;
        let headroom = self.mss.max((self.loss_parameters.headroom * bound as f64) as u64);
        Some(bound.saturating_sub(headroom).max(MIN_PIPE_CWND * self.mss))
    }

    /// "IsTimeToProbeBW".
    fn is_time_to_probe(&self, now: Instant, cwnd: u64) -> bool {
        let reno_rounds = (self.target_inflight(cwnd) / self.mss).min(MAX_PROBE_ROUNDS);
        now > self.cycle.cycle_start + self.cycle.probe_wait || self.cycle.rounds_since_probe >= reno_rounds
    }

    /// "IsTimeToCruise".
    fn is_time_to_cruise(&self, in_flight: u64, orders: &ControlOutput) -> bool {
        self.inflight_with_headroom().is_none_or(|most| in_flight <= most)
            && in_flight <= self.max_inflight(orders)
    }

    /// "IsTimeToGoDown".
    fn is_time_to_go_down(&mut self, seen: &BbrAck, sample: &RateSample, cwnd: u64) -> bool {
        if self.cycle.last_probe.too_high
            && self.bounds.inflight_longterm.is_some_and(|most| seen.in_flight >= most)
        {
            self.cycle.last_probe.precautionary = true;
            return true;
        }
        if self.is_limited_by_longterm(cwnd) {
            self.reset_full_bw(sample.rate.unwrap_or(0.0)); // the bound hides what the path has
            return false;
        }
        self.full_bw_now == FullBw::Yes
    }

    /// Returns whether the long-term bound limits the bytes in flight.
    fn is_limited_by_longterm(&self, cwnd: u64) -> bool {
        self.was_cwnd_limited() && self.bounds.inflight_longterm.is_some_and(|most| cwnd >= most)
    }

    /// Adapts the long-term bound: "AdaptLongTermModel". Returns whether it has changed the state.
    fn adapt_longterm_model(&mut self, seen: &BbrAck, sample: &RateSample, orders: &ControlOutput) -> bool {
        if self.cycle.ack_phase == AckPhase::Starting && self.rounds.round_start {
            self.cycle.ack_phase = AckPhase::Probe;
        }
        if self.cycle.ack_phase == AckPhase::Stopping && self.rounds.round_start {
            self.cycle.probe_sample = ProbeSample::Evaluated;
            self.cycle.ack_phase = AckPhase::NoProbe;
            if self.is_in_probe_bw_state() && sample.limit == SendLimit::Path {
                self.cycle_count += 1; // "AdvanceMaxBwFilter"
            }
            if self.is_in_probe_bw_state()
                && self.cycle.last_probe.precautionary
                && !self.cycle.last_probe.too_high
            {
                self.start_probe_bw_refill(seen.delivered);
                return true;
            }
        }
        if self.is_loss_tolerable(sample)
            && let Some(bound) = self.bounds.inflight_longterm
        {
            self.bounds.inflight_longterm = Some(bound.max(sample.in_flight));
            if self.state == State::Up {
                self.probe_inflight_longterm_upward(seen, orders.cwnd);
            }
        }
        false
    }

    /// "ProbeInflightLongtermUpward".
    fn probe_inflight_longterm_upward(&mut self, seen: &BbrAck, cwnd: u64) {
        if !self.is_limited_by_longterm(cwnd) {
            return;
        }
        self.cycle.probe_up_acks += seen.acked;
        let segments = self.cycle.probe_up_acks / self.cycle.probe_up_count.max(1);
        self.cycle.probe_up_acks -= segments * self.cycle.probe_up_count;
        self.bounds.inflight_longterm =
            self.bounds.inflight_longterm.map(|bound| bound + segments * self.mss);
        if self.rounds.round_start {
            self.raise_inflight_longterm_slope(cwnd);
        }
    }

    /// "RaiseInflightLongtermSlope".
    fn raise_inflight_longterm_slope(&mut self, cwnd: u64) {
        let growth = 1 << self.cycle.probe_up_rounds;
        self.cycle.probe_up_rounds = (self.cycle.probe_up_rounds + 1).min(MAX_DOUBLINGS);
        self.cycle.probe_up_count = (cwnd / growth).max(self.mss);
    }
}
