//! BBR version 3, as in draft-ietf-ccwg-bbr: losses bound the bandwidth and the bytes in flight, in the short term
//! outside of probes, in the long term if a probe was too high. Names in quotation marks are the draft's.

mod window;

use super::bounds::{Bounds, Recent, Undo};
use super::config::BbrConfig;
use super::filter::MaxFilter;
use super::parts::{FullPipe, GoodWindow, PacedBy, Restart, Rounds, Search};
use super::probing::Cycle;
use super::{BbrModel, BbrState, Filled, Opening, Orders, Policed, Samples, Seen};
use crate::tcp::congestion::Phase;
use crate::tcp::delivery_rate::{Limit, RateSample};
use hopline_core::{Duration, Instant, Stream};

/// Pacing gains (§5.6.1).
const STARTUP_GAIN: f64 = 2.77;
const DRAIN_GAIN: f64 = 0.5;
const DOWN_GAIN: f64 = 0.9;
const UP_GAIN: f64 = 1.25;
/// Increase of the window gain in ProbeBW_UP, and window gain in ProbeRTT.
const UP_CWND_GAIN_MORE: f64 = 0.25;
const PROBE_RTT_CWND_GAIN: f64 = 0.5;
/// Number of rounds after which DRAIN ends in any case.
const DRAIN_ROUNDS: u64 = 3;
/// Least window, segments: BBR.MinPipeCwnd.
pub(super) const LEAST_WINDOW: u64 = 4;
/// Length of the aggregation filter, rounds: BBR.ExtraAckedFilterLen; one in STARTUP.
const AGGREGATION_ROUNDS: u64 = 10;

/// Parameters of the reaction to losses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
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
    pub(super) limits: Limits,
    pub(super) random: Stream,
    pub(super) mss: u64,
    initial_window: u64,
    pub(super) state: State,
    bandwidth: MaxFilter,
    /// Index of the window of the bandwidth filter: "BBR.cycle_count".
    pub(super) cycles: u64,
    pub(super) rounds: Rounds,
    full: FullPipe,
    /// State of the pipe now: "BBR.full_bw_now".
    pub(super) full_now: Full,
    /// `Yes` once the pipe has been full: "BBR.full_bw_reached".
    pub(super) full_once: Full,
    pub(super) bounds: Bounds,
    pub(super) recent: Recent,
    pub(super) undo: Undo,
    pub(super) cycle: Cycle,
    least: Least,
    extra: Extra,
    pub(super) good: GoodWindow,
    phase: Phase,
    /// Round in which the current recovery began.
    pub(super) recovery_round: Option<u64>,
    restart: Restart,
    /// `Yes` if the window was full in this round, and in the previous one: "C.is_cwnd_limited".
    window_full: [Filled; 2],
    paced_by: PacedBy,
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
    ProbeRtt(Search),
}

/// State of the pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    No,
    Yes,
}

/// State that a spurious loss ended, to return to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UndoTo {
    Startup,
    Up,
}

/// Minimum round-trip time (§5.3.4.3).
#[derive(Clone, Copy, Debug)]
struct Least {
    /// "BBR.min_rtt".
    round_trip: Option<Duration>,
    at: Instant,
    /// "BBR.probe_rtt_min_delay".
    recent: Option<Duration>,
    recent_at: Instant,
}

/// ACK aggregation: bytes acknowledged in excess of the bandwidth (§5.5.9).
#[derive(Clone, Debug, Default)]
struct Extra {
    most: MaxFilter,
    since: Instant,
    acked: u64,
}

impl V3 {
    pub(super) fn new(config: BbrConfig, limits: Limits, random: Stream) -> Self {
        Self {
            config,
            limits,
            random,
            mss: 1,
            initial_window: 0,
            state: State::Startup,
            bandwidth: MaxFilter::default(),
            cycles: 0,
            rounds: Rounds::default(),
            full: FullPipe::default(),
            full_now: Full::No,
            full_once: Full::No,
            bounds: Bounds::default(),
            recent: Recent::default(),
            undo: Undo::default(),
            cycle: Cycle::default(),
            least: Least { round_trip: None, at: Instant::ZERO, recent: None, recent_at: Instant::ZERO },
            extra: Extra::default(),
            good: GoodWindow::default(),
            phase: Phase::Open,
            recovery_round: None,
            restart: Restart::No,
            window_full: [Filled::No; 2],
            paced_by: PacedBy::NominalRoundTrip,
        }
    }

    /// "OnInit".
    pub(super) fn open(&mut self, opening: &Opening, orders: &mut Orders) {
        (self.mss, self.initial_window) = (opening.mss, opening.window);
        self.least = Least {
            round_trip: opening.round_trip,
            at: opening.now,
            recent: opening.round_trip,
            recent_at: opening.now,
        };
        self.extra.since = opening.now;
        self.pace_by(opening.round_trip, orders);
    }

    pub(super) fn mss(&self) -> u64 {
        self.mss
    }

    /// "UpdateOnACK".
    pub(super) fn on_ack(&mut self, seen: &Seen, orders: &mut Orders) -> Samples {
        self.note_phase(seen.phase, orders);
        let mut samples = Samples::AsTheyAre;
        if let Some(sample) = &seen.sample {
            self.recent.update(sample, seen.delivered);
            self.note_bandwidth(sample, seen);
            self.adapt_short_bounds(orders.cwnd);
            self.note_aggregation(seen, orders.cwnd);
            self.check_pipe(sample);
            self.check_startup(seen, sample);
            self.check_drain(seen, orders);
            self.advance_cycle(seen, sample, orders);
            self.note_round_trip(sample, seen.now);
            samples = self.seek_least_round_trip(seen, sample, orders);
            self.recent.advance(sample);
        }
        if self.paced_by == PacedBy::NominalRoundTrip && seen.smoothed.is_some() {
            self.pace_by(seen.smoothed, orders);
        }
        self.set_rate(self.pacing_gain(), orders);
        self.set_window(seen, orders);
        samples
    }

    /// "OnEnterRTO".
    pub(super) fn on_timeout(&mut self, cwnd: u64) {
        self.remember_for_undo(cwnd);
        self.phase = Phase::Loss;
        self.recovery_round = None;
    }

    /// "HandleRestartFromIdle".
    pub(super) fn on_resume(&mut self, now: Instant, delivered: u64, orders: &mut Orders) {
        self.restart = Restart::FromIdle;
        self.extra.since = now;
        match self.state {
            State::Down | State::Cruise | State::Refill | State::Up => self.set_rate(1.0, orders),
            State::ProbeRtt(Search::Until(until) | Search::RoundOver(until)) => {
                self.end_search(now, until, delivered, orders);
            }
            State::ProbeRtt(Search::Draining) | State::Startup | State::Drain(_) => {}
        }
    }

    /// "SaveCwnd".
    pub(super) fn save_window(&mut self, cwnd: u64) {
        if self.phase == Phase::Open && !matches!(self.state, State::ProbeRtt(_)) {
            self.good.save(cwnd);
        } else {
            self.good.save_reduced(cwnd);
        }
    }

    /// Restores the window after recovery ("RestoreCwnd").
    fn note_phase(&mut self, phase: Phase, orders: &mut Orders) {
        let before = core::mem::replace(&mut self.phase, phase);
        match (before, phase) {
            (Phase::Open | Phase::Loss, Phase::Recovery) => self.recovery_round = Some(self.rounds.count),
            (Phase::Recovery | Phase::Loss, Phase::Open) => {
                orders.cwnd = self.good.restore(orders.cwnd);
                self.recovery_round = None;
            }
            _ => {}
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
            bandwidth: self.bandwidth(),
            min_rtt: self.least.round_trip,
            pacing_rate,
            policer: Policed::No,
            inflight_longterm: self.bounds.long_volume,
        }
    }

    // ---- the model ----

    /// Returns "BBR.max_bw", bytes per second.
    pub(super) fn most_bandwidth(&self) -> f64 {
        self.bandwidth.max()
    }

    /// Returns "BBR.bw", bytes per second.
    fn bandwidth(&self) -> f64 {
        let most = self.most_bandwidth();
        self.bounds.short_rate.map_or(most, |bound| bound.min(most))
    }

    /// "UpdateMaxBw", "UpdateRound".
    fn note_bandwidth(&mut self, sample: &RateSample, seen: &Seen) {
        self.rounds.update(sample.prior_delivered, seen.delivered);
        if self.rounds.starts {
            self.cycle.rounds_since_up = self.cycle.rounds_since_up.saturating_add(1);
            self.window_full = [Filled::No, self.window_full[0]];
        }
        if seen.filled == Filled::Yes {
            self.window_full[0] = Filled::Yes;
        }
        if let Some(rate) = sample.rate
            && (rate >= self.bandwidth.max() || sample.limit == Limit::Path)
        {
            self.bandwidth.update(self.cycles, rate, 1);
        }
    }

    /// "UpdateACKAggregation".
    fn note_aggregation(&mut self, seen: &Seen, cwnd: u64) {
        let bandwidth = self.bandwidth();
        let window = if self.full_once == Full::Yes { AGGREGATION_ROUNDS } else { 1 };
        let extra = &mut self.extra;
        let mut expected = (bandwidth * seen.now.since(extra.since).as_secs_f64()) as u64;
        if extra.acked <= expected {
            (extra.acked, extra.since) = (0, seen.now);
            expected = 0;
        }
        extra.acked += seen.acked;
        extra.most.update(self.rounds.count, (extra.acked - expected).min(cwnd) as f64, window);
    }

    /// "CheckFullBWReached".
    fn check_pipe(&mut self, sample: &RateSample) {
        let looks = self.full_now == Full::No && self.rounds.starts && sample.limit == Limit::Path;
        if looks && self.full.reached(sample.rate.unwrap_or(0.0)) {
            self.full_now = Full::Yes;
            self.full_once = Full::Yes;
        }
    }

    /// Starts to look for growth beyond `rate` bytes per second: "ResetFullBW".
    pub(super) fn look_for_growth_from(&mut self, rate: f64) {
        self.full = FullPipe::from(rate);
        self.full_now = Full::No;
    }

    /// "UpdateMinRTT".
    fn note_round_trip(&mut self, sample: &RateSample, now: Instant) {
        let least = &mut self.least;
        let interval = self.config.probe_rtt_interval;
        let stale = now > least.recent_at + interval;
        if let Some(round_trip) = sample.round_trip
            && (stale || least.recent.is_none_or(|recent| round_trip < recent))
        {
            (least.recent, least.recent_at) = (Some(round_trip), now);
        }
        self.cycle.round_trip_is_stale = stale;
        let expired = now > least.at + interval * 2;
        if let Some(recent) = least.recent
            && (expired || least.round_trip.is_none_or(|round_trip| recent < round_trip))
        {
            (least.round_trip, least.at) = (least.recent, least.recent_at);
        }
    }

    pub(super) fn window_was_full(&self) -> bool {
        self.window_full.contains(&Filled::Yes)
    }

    // ---- what is done ----

    /// "IsProbingBW".
    pub(super) fn is_probing(&self) -> bool {
        matches!(self.state, State::Startup | State::Refill | State::Up)
    }

    /// "IsInAProbeBWState".
    pub(super) fn is_in_cycle(&self) -> bool {
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
            State::Up => self.config.cwnd_gain + UP_CWND_GAIN_MORE,
            State::ProbeRtt(_) => PROBE_RTT_CWND_GAIN,
            State::Startup | State::Drain(_) | State::Down | State::Cruise | State::Refill => {
                self.config.cwnd_gain
            }
        }
    }

    /// "CheckStartupDone".
    fn check_startup(&mut self, seen: &Seen, sample: &RateSample) {
        if self.startup_lost_too_much(seen, sample) {
            self.full_once = Full::Yes;
        }
        if self.state == State::Startup && self.full_once == Full::Yes {
            self.state = State::Drain(self.rounds.count);
        }
    }

    /// Undoes the end of STARTUP, which a spurious loss caused.
    pub(super) fn return_to_startup(&mut self, state: State) {
        self.full_once = Full::No;
        if !matches!(state, State::ProbeRtt(_)) {
            self.state = State::Startup;
        }
    }

    /// "CheckDrainDone".
    fn check_drain(&mut self, seen: &Seen, orders: &Orders) {
        let State::Drain(began) = self.state else { return };
        let drained = seen.in_flight <= self.with_room(self.product(1.0), orders);
        if drained || self.rounds.count > began + DRAIN_ROUNDS {
            self.start_down(seen.delivered, seen.now);
        }
    }

    /// "CheckProbeRTT".
    fn seek_least_round_trip(&mut self, seen: &Seen, sample: &RateSample, orders: &mut Orders) -> Samples {
        let seeking = matches!(self.state, State::ProbeRtt(_));
        if !seeking && self.cycle.round_trip_is_stale && self.restart == Restart::No {
            self.save_window(orders.cwnd);
            self.state = State::ProbeRtt(Search::Draining);
            self.stop_feedback(seen.delivered);
        }
        let samples = match self.state {
            State::ProbeRtt(search) => {
                self.search(search, seen, orders);
                Samples::Limited
            }
            _ => Samples::AsTheyAre,
        };
        if sample.delivered > 0 {
            self.restart = Restart::No;
        }
        samples
    }

    /// "HandleProbeRTT".
    fn search(&mut self, search: Search, seen: &Seen, orders: &mut Orders) {
        match search {
            Search::Draining => {
                if seen.in_flight <= self.small_window() {
                    self.state = State::ProbeRtt(Search::Until(seen.now + self.config.probe_rtt_duration));
                    self.rounds.restart(seen.delivered);
                }
            }
            Search::Until(until) if self.rounds.starts => {
                self.state = State::ProbeRtt(Search::RoundOver(until));
                self.end_search(seen.now, until, seen.delivered, orders);
            }
            Search::Until(_) => {}
            Search::RoundOver(until) => self.end_search(seen.now, until, seen.delivered, orders),
        }
    }

    /// "CheckProbeRTTDone", "ExitProbeRTT".
    fn end_search(&mut self, now: Instant, until: Instant, delivered: u64, orders: &mut Orders) {
        if now <= until {
            return;
        }
        self.least.recent_at = now;
        orders.cwnd = self.good.restore(orders.cwnd);
        self.bounds.reset_short();
        if self.full_once == Full::Yes {
            self.start_down(delivered, now);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }
}
