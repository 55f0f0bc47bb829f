//! BBR version 3, as in draft-ietf-ccwg-bbr: losses bound the bandwidth and the bytes in flight, in the short term
//! outside of probes, in the long term if a probe was too high. Names in quotation marks are the draft's.

#[cfg(test)]
pub(crate) mod variables;
mod window;

use super::bounds::{ModelBounds, RoundSignals, SpuriousLossUndo};
use super::common::{FullBwDetector, IdleRestartState, PacingBasis, PriorCwnd, ProbeRttPhase, RoundCounter};
use super::config::BbrConfig;
use super::filter::MaxFilter;
use super::probe_bw::ProbeBwCycle;
use super::{
    BbrAck, BbrModel, BbrState, ConnectionStart, ControlOutput, CwndLimited, PolicerState, SampleKind,
};
use crate::tcp::congestion::RecoveryPhase;
use crate::tcp::delivery_rate::{RateSample, SendLimit};
use hopline_core::{Duration, Instant, RandomStream};

/// Pacing gains (§5.6.1).
const STARTUP_GAIN: f64 = 2.77;
const DRAIN_GAIN: f64 = 0.5;
const DOWN_GAIN: f64 = 0.9;
const UP_GAIN: f64 = 1.25;
/// Increase of the window gain in ProbeBW_UP, and window gain in ProbeRTT.
const UP_CWND_GAIN_INCREASE: f64 = 0.25;
const PROBE_RTT_CWND_GAIN: f64 = 0.5;
/// Number of rounds after which DRAIN ends in any case.
const DRAIN_ROUNDS: u64 = 3;
/// Least window, segments: BBR.MinPipeCwnd.
pub(super) const MIN_PIPE_CWND: u64 = 4;
/// Length of the aggregation filter, rounds: BBR.ExtraAckedFilterLen; one in STARTUP.
const AGGREGATION_ROUNDS: u64 = 10;

/// Parameters of the reaction to losses.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossParameters {
    /// BBR.LossThresh.
    pub(super) loss_threshold: f64,
    /// BBR.Beta.
    pub(super) beta: f64,
    /// BBR.Headroom.
    pub(super) headroom: f64,
}

/// State of one connection.
#[derive(Clone, Debug)]
pub(super) struct V3 {
    pub(super) config: BbrConfig,
    pub(super) loss_parameters: LossParameters,
    pub(super) random: RandomStream,
    pub(super) mss: u64,
    initial_window: u64,
    pub(super) state: State,
    bandwidth: MaxFilter,
    /// Index of the window of the bandwidth filter: "BBR.cycle_count".
    pub(super) cycle_count: u64,
    pub(super) rounds: RoundCounter,
    full_bw: FullBwDetector,
    /// State of the pipe now: "BBR.full_bw_now".
    pub(super) full_bw_now: FullBw,
    /// `Yes` once the pipe has been full: "BBR.full_bw_reached".
    pub(super) full_bw_reached: FullBw,
    pub(super) bounds: ModelBounds,
    pub(super) round_signals: RoundSignals,
    pub(super) undo: SpuriousLossUndo,
    pub(super) cycle: ProbeBwCycle,
    min_rtt: MinRtt,
    extra_acked: ExtraAcked,
    pub(super) prior_cwnd: PriorCwnd,
    phase: RecoveryPhase,
    /// Round in which the current recovery began.
    pub(super) recovery_round: Option<u64>,
    restart: IdleRestartState,
    /// `Yes` if the window was full in this round, and in the previous one: "C.is_cwnd_limited".
    cwnd_limited: [CwndLimited; 2],
    paced_by: PacingBasis,
}

/// State of the state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The rate grows until delivery does not grow with it, or until losses are too high.
    Startup,
    /// The queue that STARTUP built drains; the round in which DRAIN began.
    Drain(u64),
    /// ProbeBW_DOWN: sends below the bandwidth.
    Down,
    /// ProbeBW_CRUISE: sends at the bandwidth.
    Cruise,
    /// ProbeBW_REFILL: sends at the bandwidth, without the short-term bounds.
    Refill,
    /// ProbeBW_UP: sends above the bandwidth.
    Up,
    /// The window is small, to measure the minimum round-trip time.
    ProbeRtt(ProbeRttPhase),
}

/// State of the pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FullBw {
    No,
    Yes,
}

/// State that a spurious loss ended, to return to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UndoState {
    Startup,
    Up,
}

/// Minimum round-trip time (§5.3.4.3).
#[derive(Clone, Copy, Debug)]
struct MinRtt {
    /// "BBR.min_rtt".
    min_rtt: Option<Duration>,
    measured: Instant,
    /// "BBR.probe_rtt_min_delay".
    probe_rtt_min_delay: Option<Duration>,
    probe_rtt_min_measured: Instant,
}

/// ACK aggregation: bytes acknowledged in excess of the bandwidth (§5.5.9).
#[derive(Clone, Debug, Default)]
struct ExtraAcked {
    max: MaxFilter,
    since: Instant,
    acked: u64,
}

impl V3 {
    pub(super) fn new(config: BbrConfig, limits: LossParameters, random: RandomStream) -> Self {
        Self {
            config,
            loss_parameters: limits,
            random,
            mss: 1,
            initial_window: 0,
            state: State::Startup,
            bandwidth: MaxFilter::default(),
            cycle_count: 0,
            rounds: RoundCounter::default(),
            full_bw: FullBwDetector::default(),
            full_bw_now: FullBw::No,
            full_bw_reached: FullBw::No,
            bounds: ModelBounds::default(),
            round_signals: RoundSignals::default(),
            undo: SpuriousLossUndo::default(),
            cycle: ProbeBwCycle::default(),
            min_rtt: MinRtt {
                min_rtt: None,
                measured: Instant::ZERO,
                probe_rtt_min_delay: None,
                probe_rtt_min_measured: Instant::ZERO,
            },
            extra_acked: ExtraAcked::default(),
            prior_cwnd: PriorCwnd::default(),
            phase: RecoveryPhase::Open,
            recovery_round: None,
            restart: IdleRestartState::No,
            cwnd_limited: [CwndLimited::No; 2],
            paced_by: PacingBasis::NominalRtt,
        }
    }

    /// "OnInit".
    pub(super) fn start(&mut self, opening: &ConnectionStart, orders: &mut ControlOutput) {
        (self.mss, self.initial_window) = (opening.mss, opening.initial_window);
        self.min_rtt = MinRtt {
            min_rtt: opening.handshake_rtt,
            measured: opening.now,
            probe_rtt_min_delay: opening.handshake_rtt,
            probe_rtt_min_measured: opening.now,
        };
        self.extra_acked.since = opening.now;
        self.init_pacing_rate(opening.handshake_rtt, orders);
    }

    pub(super) fn mss(&self) -> u64 {
        self.mss
    }

    /// "UpdateOnACK".
    pub(super) fn on_ack(&mut self, seen: &BbrAck, orders: &mut ControlOutput) -> SampleKind {
        self.on_phase_change(seen.phase, orders);
        let mut samples = SampleKind::Normal;
        if let Some(sample) = &seen.sample {
            self.round_signals.update(sample, seen.delivered);
            self.update_max_bw(sample, seen);
            self.adapt_lower_bounds(orders.cwnd);
            self.update_ack_aggregation(seen, orders.cwnd);
            self.check_full_bw_reached(sample);
            self.check_startup_done(seen, sample);
            self.check_drain_done(seen, orders);
            self.update_probe_bw_cycle(seen, sample, orders);
            self.update_min_rtt(sample, seen.now);
            samples = self.check_probe_rtt(seen, sample, orders);
            self.round_signals.advance(sample);
        }
        if self.paced_by == PacingBasis::NominalRtt && seen.srtt.is_some() {
            self.init_pacing_rate(seen.srtt, orders);
        }
        self.set_pacing_rate_with_gain(self.pacing_gain(), orders);
        self.set_cwnd(seen, orders);
        samples
    }

    /// Saves the state at an expiry of the retransmission timer, before its losses change it ("OnEnterRTO").
    pub(super) fn save_before_timeout(&mut self, cwnd: u64) {
        self.save_cwnd(cwnd);
        // A repeated expiry is part of the same recovery.
        if self.phase != RecoveryPhase::Loss {
            self.undo.save(self.bounds);
        }
    }

    /// Processes an expiry of the retransmission timer, after its losses ("OnEnterRTO").
    pub(super) fn on_timeout(&mut self) {
        self.phase = RecoveryPhase::Loss;
        self.recovery_round = None;
    }

    /// "OnEnterFastRecovery". The first loss has saved the state already, unless another recovery ends now.
    pub(super) fn on_recovery(&mut self, cwnd: u64) {
        self.save_cwnd(cwnd);
        if self.phase != RecoveryPhase::Open {
            self.undo.save(self.bounds);
        }
    }

    /// "HandleRestartFromIdle".
    pub(super) fn on_resume(&mut self, now: Instant, delivered: u64, orders: &mut ControlOutput) {
        self.restart = IdleRestartState::FromIdle;
        self.extra_acked.since = now;
        match self.state {
            State::Down | State::Cruise | State::Refill | State::Up => {
                self.set_pacing_rate_with_gain(1.0, orders)
            }
            State::ProbeRtt(ProbeRttPhase::HoldUntil(until) | ProbeRttPhase::RoundDone(until)) => {
                self.exit_probe_rtt(now, until, delivered, orders);
            }
            State::ProbeRtt(ProbeRttPhase::Draining) | State::Startup | State::Drain(_) => {}
        }
    }

    /// "SaveCwnd".
    pub(super) fn save_cwnd(&mut self, cwnd: u64) {
        if self.phase == RecoveryPhase::Open && !matches!(self.state, State::ProbeRtt(_)) {
            self.prior_cwnd.save(cwnd);
        } else {
            self.prior_cwnd.save_reduced(cwnd);
        }
    }

    /// Restores the window after recovery ("RestoreCwnd").
    fn on_phase_change(&mut self, phase: RecoveryPhase, orders: &mut ControlOutput) {
        let before = core::mem::replace(&mut self.phase, phase);
        match (before, phase) {
            (RecoveryPhase::Open | RecoveryPhase::Loss, RecoveryPhase::Recovery) => {
                self.recovery_round = Some(self.rounds.count)
            }
            (RecoveryPhase::Recovery | RecoveryPhase::Loss, RecoveryPhase::Open) => {
                orders.cwnd = self.prior_cwnd.restore(orders.cwnd);
                self.recovery_round = None;
            }
            _ => {}
        }
        if phase == RecoveryPhase::Open {
            self.undo.end_recovery();
        }
    }

    pub(super) fn model(&self, pacing_rate: f64) -> BbrModel {
        let state = match self.state {
            State::Startup => BbrState::Startup,
            State::Drain(_) => BbrState::Drain,
            State::Down => BbrState::ProbeBwDown,
            State::Cruise => BbrState::ProbeBwCruise,
            State::Refill => BbrState::ProbeBwRefill,
            State::Up => BbrState::ProbeBwUp,
            State::ProbeRtt(_) => BbrState::ProbeRtt,
        };
        BbrModel {
            state,
            bandwidth: self.bw(),
            min_rtt: self.min_rtt.min_rtt,
            pacing_rate,
            policer_state: PolicerState::NotDetected,
            inflight_longterm: self.bounds.inflight_longterm,
        }
    }

    // ---- the model ----

    /// Returns "BBR.max_bw", bytes per second.
    pub(super) fn max_bw(&self) -> f64 {
        self.bandwidth.max()
    }

    /// Returns "BBR.bw", bytes per second.
    fn bw(&self) -> f64 {
        let most = self.max_bw();
        self.bounds.bw_shortterm.map_or(most, |bound| bound.min(most))
    }

    /// "UpdateMaxBw", "UpdateRound".
    fn update_max_bw(&mut self, sample: &RateSample, seen: &BbrAck) {
        self.rounds.update(sample.prior_delivered, seen.delivered);
        if self.rounds.round_start {
            self.cycle.rounds_since_probe = self.cycle.rounds_since_probe.saturating_add(1);
            self.cwnd_limited = [CwndLimited::No, self.cwnd_limited[0]];
        }
        if seen.cwnd_limited == CwndLimited::Yes {
            self.cwnd_limited[0] = CwndLimited::Yes;
        }
        if let Some(rate) = sample.rate
            && (rate >= self.bandwidth.max() || sample.limit == SendLimit::Path)
        {
            self.bandwidth.update(self.cycle_count, rate, 1);
        }
    }

    /// "UpdateACKAggregation".
    fn update_ack_aggregation(&mut self, seen: &BbrAck, cwnd: u64) {
        let bandwidth = self.bw();
        let window = if self.full_bw_reached == FullBw::Yes { AGGREGATION_ROUNDS } else { 1 };
        let extra = &mut self.extra_acked;
        let mut expected = (bandwidth * seen.now.since(extra.since).as_secs_f64()) as u64;
        if extra.acked <= expected {
            (extra.acked, extra.since) = (0, seen.now);
            expected = 0;
        }
        extra.acked += seen.acked;
        extra.max.update(self.rounds.count, (extra.acked - expected).min(cwnd) as f64, window);
    }

    /// "CheckFullBWReached".
    fn check_full_bw_reached(&mut self, sample: &RateSample) {
        let looks =
            self.full_bw_now == FullBw::No && self.rounds.round_start && sample.limit == SendLimit::Path;
        if looks && self.full_bw.reached(sample.rate.unwrap_or(0.0)) {
            self.full_bw_now = FullBw::Yes;
            self.full_bw_reached = FullBw::Yes;
        }
    }

    /// Starts to look for growth beyond `rate` bytes per second: "ResetFullBW".
    pub(super) fn reset_full_bw(&mut self, rate: f64) {
        self.full_bw = FullBwDetector::with_baseline(rate);
        self.full_bw_now = FullBw::No;
    }

    /// "UpdateMinRTT".
    fn update_min_rtt(&mut self, sample: &RateSample, now: Instant) {
        let least = &mut self.min_rtt;
        let interval = self.config.probe_rtt_interval;
        let stale = now > least.probe_rtt_min_measured + interval;
        if let Some(round_trip) = sample.min_rtt
            && (stale || least.probe_rtt_min_delay.is_none_or(|recent| round_trip < recent))
        {
            (least.probe_rtt_min_delay, least.probe_rtt_min_measured) = (Some(round_trip), now);
        }
        self.cycle.probe_rtt_expired = stale;
        let expired = now > least.measured + interval * 2;
        if let Some(recent) = least.probe_rtt_min_delay
            && (expired || least.min_rtt.is_none_or(|round_trip| recent < round_trip))
        {
            (least.min_rtt, least.measured) = (least.probe_rtt_min_delay, least.probe_rtt_min_measured);
        }
    }

    pub(super) fn was_cwnd_limited(&self) -> bool {
        self.cwnd_limited.contains(&CwndLimited::Yes)
    }

    // ---- what is done ----

    /// "IsProbingBW".
    pub(super) fn is_probing_bw(&self) -> bool {
        matches!(self.state, State::Startup | State::Refill | State::Up)
    }

    /// "IsInAProbeBWState".
    pub(super) fn is_in_probe_bw_state(&self) -> bool {
        matches!(self.state, State::Down | State::Cruise | State::Refill | State::Up)
    }

    fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => STARTUP_GAIN,
            State::Drain(_) => DRAIN_GAIN,
            State::Down => DOWN_GAIN,
            State::Cruise | State::Refill | State::ProbeRtt(_) => 1.0,
            State::Up => UP_GAIN,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.state {
            State::Up => self.config.cwnd_gain + UP_CWND_GAIN_INCREASE,
            State::ProbeRtt(_) => PROBE_RTT_CWND_GAIN,
            State::Startup | State::Drain(_) | State::Down | State::Cruise | State::Refill => {
                self.config.cwnd_gain
            }
        }
    }

    /// "CheckStartupDone".
    fn check_startup_done(&mut self, seen: &BbrAck, sample: &RateSample) {
        if self.check_startup_high_loss(seen, sample) {
            self.full_bw_now = FullBw::Yes;
            self.full_bw_reached = FullBw::Yes;
        }
        if self.state == State::Startup && self.full_bw_reached == FullBw::Yes {
            self.state = State::Drain(self.rounds.count);
        }
    }

    /// Undoes the end of STARTUP, which a spurious loss caused.
    pub(super) fn return_to_startup(&mut self, state: State) {
        self.full_bw_reached = FullBw::No;
        if !matches!(state, State::ProbeRtt(_)) {
            self.state = State::Startup;
        }
    }

    /// "CheckDrainDone".
    fn check_drain_done(&mut self, seen: &BbrAck, orders: &ControlOutput) {
        let State::Drain(began) = self.state else { return };
        let drained = seen.in_flight <= self.quantization_budget(self.bdp_multiple(1.0), orders);
        if drained || self.rounds.count > began + DRAIN_ROUNDS {
            self.start_probe_bw_down(seen.delivered, seen.now);
        }
    }

    /// "CheckProbeRTT".
    fn check_probe_rtt(
        &mut self,
        seen: &BbrAck,
        sample: &RateSample,
        orders: &mut ControlOutput,
    ) -> SampleKind {
        let seeking = matches!(self.state, State::ProbeRtt(_));
        if !seeking && self.cycle.probe_rtt_expired && self.restart == IdleRestartState::No {
            self.save_cwnd(orders.cwnd);
            self.state = State::ProbeRtt(ProbeRttPhase::Draining);
            self.enter_probe_stopping(seen.delivered);
        }
        let samples = match self.state {
            State::ProbeRtt(search) => {
                self.handle_probe_rtt(search, seen, orders);
                SampleKind::AppLimited
            }
            _ => SampleKind::Normal,
        };
        if sample.delivered > 0 {
            self.restart = IdleRestartState::No;
        }
        samples
    }

    /// "HandleProbeRTT".
    fn handle_probe_rtt(&mut self, search: ProbeRttPhase, seen: &BbrAck, orders: &mut ControlOutput) {
        match search {
            ProbeRttPhase::Draining => {
                if seen.in_flight <= self.probe_rtt_cwnd() {
                    self.state =
                        State::ProbeRtt(ProbeRttPhase::HoldUntil(seen.now + self.config.probe_rtt_duration));
                    self.rounds.restart(seen.delivered);
                }
            }
            ProbeRttPhase::HoldUntil(until) if self.rounds.round_start => {
                self.state = State::ProbeRtt(ProbeRttPhase::RoundDone(until));
                self.exit_probe_rtt(seen.now, until, seen.delivered, orders);
            }
            ProbeRttPhase::HoldUntil(_) => {}
            ProbeRttPhase::RoundDone(until) => self.exit_probe_rtt(seen.now, until, seen.delivered, orders),
        }
    }

    /// "CheckProbeRTTDone", "ExitProbeRTT".
    fn exit_probe_rtt(&mut self, now: Instant, until: Instant, delivered: u64, orders: &mut ControlOutput) {
        if now <= until {
            return;
        }
        self.min_rtt.probe_rtt_min_measured = now;
        orders.cwnd = self.prior_cwnd.restore(orders.cwnd);
        self.bounds.reset_shortterm();
        if self.full_bw_reached == FullBw::Yes {
            self.start_probe_bw_down(delivered, now);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }
}
