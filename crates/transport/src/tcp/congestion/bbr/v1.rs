//! BBR version 1, as in Linux: the bandwidth is the maximum delivery rate of the last ten rounds, and losses are not
//! congestion unless they look like those of a policer. Facts and numbers of `net/ipv4/tcp_bbr.c`; its functions are
//! named.

mod window;

use super::common::{FullBwDetector, IdleRestartState, PacingBasis, PriorCwnd, ProbeRttPhase, RoundCounter};
use super::config::{BbrConfig, PolicerDetection};
use super::filter::MaxFilter;
use super::policer::{BwProbing, DetectorInput, DetectorResult, PolicerDetector};
use super::{BbrAck, BbrModel, BbrState, ConnectionStart, ControlOutput, PolicerState, SampleKind};
use crate::tcp::congestion::RecoveryPhase;
use crate::tcp::delivery_rate::SendLimit;
use hopline_core::{Duration, Instant, RandomStream};

/// Pacing gains in STARTUP and DRAIN: 2/ln 2 and its inverse, in 256ths.
const HIGH_GAIN: f64 = 739.0 / 256.0;
const DRAIN_GAIN: f64 = 88.0 / 256.0;
/// Pacing gains of the eight phases of PROBE_BW: probe, drain the queue of the probe, cruise.
const PACING_GAIN_CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Number of phases among which the first phase of PROBE_BW is drawn: all but the draining one.
const RANDOM_PHASES: u32 = 7;
/// Length of the bandwidth filter, rounds.
const BANDWIDTH_ROUNDS: u64 = 10;
/// Least window, and the window of PROBE_RTT, segments.
const MIN_CWND: u64 = 4;
/// Length of each half of the aggregation filter, rounds.
const AGGREGATION_ROUNDS: u8 = 5;
/// Acknowledged segments after which the measurement of aggregation restarts.
const AGGREGATION_RESET: u64 = 1 << 20;

/// State of one connection.
#[derive(Clone, Debug)]
pub(super) struct V1 {
    config: BbrConfig,
    policer_detection: PolicerDetection,
    random: RandomStream,
    mss: u64,
    mode: Mode,
    bandwidth: MaxFilter,
    rounds: RoundCounter,
    full_bw: FullBwDetector,
    /// State of the pipe: it has been full or not.
    pipe: PipeState,
    min_rtt: MinRtt,
    /// Recovery phase at the last acknowledgment.
    phase: RecoveryPhase,
    /// Packet conservation: in the first round of recovery the sender sends as much as is delivered.
    packet_conservation: PacketConservation,
    prior_cwnd: PriorCwnd,
    restart: IdleRestartState,
    aggregation: AckAggregation,
    policer: PolicerDetector,
    /// Origin of the pacing rate, an assumed or a measured round-trip time.
    paced_by: PacingBasis,
}

/// State of the state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The rate grows until delivery does not grow with it.
    Startup,
    /// The queue that STARTUP built drains.
    Drain,
    /// The bandwidth is probed in a cycle of phases: the current phase and its beginning.
    ProbeBw { turn: usize, since: Instant },
    /// The window is small, to measure the minimum round-trip time.
    ProbeRtt(ProbeRttPhase),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PipeState {
    NotFull,
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PacketConservation {
    Off,
    On,
}

/// Minimum round-trip time, and the time of its measurement.
#[derive(Clone, Copy, Debug)]
struct MinRtt {
    min_rtt: Option<Duration>,
    measured: Instant,
}

/// ACK aggregation: bytes acknowledged in excess of the bandwidth (`bbr_update_ack_aggregation`).
#[derive(Clone, Copy, Debug, Default)]
struct AckAggregation {
    /// Maxima of the current and of the previous half of the filter.
    extra_acked: [u64; 2],
    rounds: u8,
    since: Instant,
    acked: u64,
}

impl V1 {
    pub(super) fn new(config: BbrConfig, policer_detection: PolicerDetection, random: RandomStream) -> Self {
        Self {
            config,
            policer_detection,
            random,
            mss: 1,
            mode: Mode::Startup,
            bandwidth: MaxFilter::default(),
            rounds: RoundCounter::default(),
            full_bw: FullBwDetector::default(),
            pipe: PipeState::NotFull,
            min_rtt: MinRtt { min_rtt: None, measured: Instant::ZERO },
            phase: RecoveryPhase::Open,
            packet_conservation: PacketConservation::Off,
            prior_cwnd: PriorCwnd::default(),
            restart: IdleRestartState::No,
            aggregation: AckAggregation::default(),
            policer: PolicerDetector::default(),
            paced_by: PacingBasis::NominalRtt,
        }
    }

    /// `bbr_init`.
    pub(super) fn start(&mut self, opening: &ConnectionStart, orders: &mut ControlOutput) {
        self.mss = opening.mss;
        self.min_rtt = MinRtt { min_rtt: opening.handshake_rtt, measured: opening.now };
        self.aggregation.since = opening.now;
        self.init_pacing_rate(opening.handshake_rtt, orders);
    }

    pub(super) fn mss(&self) -> u64 {
        self.mss
    }

    /// `bbr_main`.
    pub(super) fn on_ack(&mut self, seen: &BbrAck, orders: &mut ControlOutput) -> SampleKind {
        self.update_bandwidth(seen);
        self.update_aggregation(seen, orders.cwnd);
        if self.is_next_cycle_phase(seen, orders) {
            self.advance_cycle_phase(seen.delivered_at);
        }
        self.check_full_bw_reached(seen);
        self.check_drain(seen, orders);
        let samples = self.update_min_rtt(seen, orders);
        self.set_pacing_rate(seen.srtt, self.pacing_gain(), orders);
        self.set_cwnd(seen, orders);
        samples
    }

    /// Saves the window at the start of recovery or after a time-out (`bbr_save_cwnd`).
    pub(super) fn save_cwnd(&mut self, cwnd: u64) {
        if self.phase == RecoveryPhase::Open && !matches!(self.mode, Mode::ProbeRtt(_)) {
            self.prior_cwnd.save(cwnd);
        } else {
            self.prior_cwnd.save_reduced(cwnd);
        }
    }

    /// Processes a time-out, which counts as the end of a round with a loss (`bbr_set_state`).
    pub(super) fn on_timeout(&mut self, now: Instant, delivered: u64, lost_so_far: u64, cwnd: u64) {
        self.save_cwnd(cwnd);
        self.phase = RecoveryPhase::Loss;
        self.full_bw = FullBwDetector::default();
        self.rounds.round_start = true;
        let sign = DetectorInput {
            delivered_at: now,
            delivered,
            lost: lost_so_far,
            newly_lost: 1,
            limit: SendLimit::Path,
        };
        self.update_policer(sign);
    }

    /// Processes an undo; the window follows with the next acknowledgment (`bbr_undo_cwnd`).
    pub(super) fn on_undo(&mut self, now: Instant, delivered: u64, lost_so_far: u64) {
        self.full_bw = FullBwDetector::default();
        self.policer.reset(DetectorInput {
            delivered_at: now,
            delivered,
            lost: lost_so_far,
            newly_lost: 0,
            limit: SendLimit::Path,
        });
    }

    /// Processes a restart after an idle time of the application (`bbr_cwnd_event`).
    pub(super) fn on_resume(&mut self, now: Instant, orders: &mut ControlOutput) {
        self.restart = IdleRestartState::FromIdle;
        (self.aggregation.since, self.aggregation.acked) = (now, 0);
        match self.mode {
            Mode::ProbeBw { .. } => self.set_pacing_rate(None, 1.0, orders),
            Mode::ProbeRtt(ProbeRttPhase::HoldUntil(until) | ProbeRttPhase::RoundDone(until)) => {
                self.check_probe_rtt_done(now, until, orders)
            }
            Mode::ProbeRtt(ProbeRttPhase::Draining) | Mode::Startup | Mode::Drain => {}
        }
    }

    pub(super) fn model(&self, pacing_rate: f64) -> BbrModel {
        let state = match self.mode {
            Mode::Startup => BbrState::Startup,
            Mode::Drain => BbrState::Drain,
            Mode::ProbeBw { turn, .. } => BbrState::ProbeBw { phase: turn as u8 },
            Mode::ProbeRtt(_) => BbrState::ProbeRtt,
        };
        BbrModel {
            state,
            bandwidth: self.bandwidth(),
            min_rtt: self.min_rtt.min_rtt,
            pacing_rate,
            policer_state: if self.policer.rate().is_some() {
                PolicerState::Detected
            } else {
                PolicerState::NotDetected
            },
            inflight_longterm: None,
        }
    }

    // ---- the model ----

    /// Returns the bandwidth, bytes per second (`bbr_bw`).
    fn bandwidth(&self) -> f64 {
        self.policer.rate().unwrap_or_else(|| self.bandwidth.max())
    }

    /// Updates the bandwidth (`bbr_update_bw`). Application-limited samples count only if they are larger.
    fn update_bandwidth(&mut self, seen: &BbrAck) {
        self.rounds.round_start = false;
        let Some((sample, rate)) = seen.sample.and_then(|sample| Some((sample, sample.rate?))) else {
            return;
        };
        self.rounds.update(sample.prior_delivered, seen.delivered);
        if self.rounds.round_start {
            self.packet_conservation = PacketConservation::Off;
        }
        self.update_policer(DetectorInput {
            delivered_at: seen.delivered_at,
            delivered: seen.delivered,
            lost: seen.lost,
            newly_lost: seen.newly_lost,
            limit: sample.limit,
        });
        if sample.limit == SendLimit::Path || rate >= self.bandwidth.max() {
            self.bandwidth.update(self.rounds.count, rate, BANDWIDTH_ROUNDS);
        }
    }

    /// `bbr_lt_bw_sampling`.
    fn update_policer(&mut self, sign: DetectorInput) {
        let probing = match self.mode {
            Mode::ProbeBw { .. } => BwProbing::GainCycling,
            Mode::Startup | Mode::Drain | Mode::ProbeRtt(_) => BwProbing::Inactive,
        };
        if self.policer_detection == PolicerDetection::On
            && self.policer.update(sign, self.rounds, probing) == DetectorResult::Expired
        {
            self.enter_probe_bw(sign.delivered_at);
        }
    }

    /// `bbr_update_ack_aggregation`.
    fn update_aggregation(&mut self, seen: &BbrAck, cwnd: u64) {
        if seen.acked == 0 || seen.sample.is_none_or(|sample| sample.rate.is_none()) {
            return;
        }
        let bandwidth = self.bandwidth();
        let noted = &mut self.aggregation;
        if self.rounds.round_start {
            noted.rounds += 1;
            if noted.rounds >= AGGREGATION_ROUNDS {
                noted.rounds = 0;
                noted.extra_acked = [0, noted.extra_acked[0]];
            }
        }
        let mut expected = (bandwidth * seen.delivered_at.since(noted.since).as_secs_f64()) as u64;
        if noted.acked <= expected || noted.acked + seen.acked >= AGGREGATION_RESET * self.mss {
            (noted.acked, noted.since) = (0, seen.delivered_at);
            expected = 0;
        }
        noted.acked += seen.acked;
        noted.extra_acked[0] = noted.extra_acked[0].max((noted.acked - expected).min(cwnd));
    }

    /// `bbr_check_full_bw_reached`.
    fn check_full_bw_reached(&mut self, seen: &BbrAck) {
        let of_path = seen.sample.is_some_and(|sample| sample.limit == SendLimit::Path);
        if self.pipe == PipeState::NotFull
            && self.rounds.round_start
            && of_path
            && self.full_bw.reached(self.bandwidth.max())
        {
            self.pipe = PipeState::Full;
        }
    }

    // ---- what is done ----

    fn pacing_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => DRAIN_GAIN,
            Mode::ProbeBw { .. } if self.policer.rate().is_some() => 1.0,
            Mode::ProbeBw { turn, .. } => PACING_GAIN_CYCLE[turn],
            Mode::ProbeRtt(_) => 1.0,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup | Mode::Drain => HIGH_GAIN,
            Mode::ProbeBw { .. } => self.config.cwnd_gain,
            Mode::ProbeRtt(_) => 1.0,
        }
    }

    /// `bbr_is_next_cycle_phase`.
    fn is_next_cycle_phase(&self, seen: &BbrAck, orders: &ControlOutput) -> bool {
        let Mode::ProbeBw { since, .. } = self.mode else { return false };
        let lasted = self.min_rtt.min_rtt.is_some_and(|least| seen.delivered_at.since(since) > least);
        let gain = self.pacing_gain();
        let in_network = self.packets_in_network(seen, seen.in_flight_before, orders);
        if gain > 1.0 {
            lasted && (seen.newly_lost > 0 || in_network >= self.inflight(self.bandwidth.max(), gain, orders))
        } else if gain < 1.0 {
            lasted || in_network <= self.inflight(self.bandwidth.max(), 1.0, orders)
        } else {
            lasted
        }
    }

    fn advance_cycle_phase(&mut self, now: Instant) {
        if let Mode::ProbeBw { turn, since } = &mut self.mode {
            (*turn, *since) = ((*turn + 1) % PACING_GAIN_CYCLE.len(), now);
        }
    }

    /// `bbr_reset_probe_bw_mode`.
    fn enter_probe_bw(&mut self, now: Instant) {
        let last = PACING_GAIN_CYCLE.len() - 1 - self.random.below(RANDOM_PHASES) as usize;
        self.mode = Mode::ProbeBw { turn: last, since: now };
        self.advance_cycle_phase(now);
    }

    /// `bbr_check_drain`.
    fn check_drain(&mut self, seen: &BbrAck, orders: &ControlOutput) {
        if self.mode == Mode::Startup && self.pipe == PipeState::Full {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain
            && self.packets_in_network(seen, seen.in_flight, orders)
                <= self.inflight(self.bandwidth.max(), 1.0, orders)
        {
            self.enter_probe_bw(seen.delivered_at);
        }
    }

    /// `bbr_update_min_rtt`.
    fn update_min_rtt(&mut self, seen: &BbrAck, orders: &mut ControlOutput) -> SampleKind {
        let expired = seen.now > self.min_rtt.measured + self.config.probe_rtt_interval;
        if let Some(round_trip) = seen.sample.and_then(|sample| sample.min_rtt)
            && (expired || self.min_rtt.min_rtt.is_none_or(|least| round_trip < least))
        {
            self.min_rtt = MinRtt { min_rtt: Some(round_trip), measured: seen.now };
        }
        let seeking = matches!(self.mode, Mode::ProbeRtt(_));
        if expired
            && !self.config.probe_rtt_duration.is_zero()
            && self.restart == IdleRestartState::No
            && !seeking
        {
            self.save_cwnd(orders.cwnd);
            self.mode = Mode::ProbeRtt(ProbeRttPhase::Draining);
        }
        let samples = match self.mode {
            Mode::ProbeRtt(search) => {
                self.run_probe_rtt(search, seen, orders);
                SampleKind::AppLimited
            }
            Mode::Startup | Mode::Drain | Mode::ProbeBw { .. } => SampleKind::Normal,
        };
        if seen.sample.is_some_and(|sample| sample.delivered > 0) {
            self.restart = IdleRestartState::No;
        }
        samples
    }

    fn run_probe_rtt(&mut self, search: ProbeRttPhase, seen: &BbrAck, orders: &mut ControlOutput) {
        match search {
            ProbeRttPhase::Draining => {
                if seen.in_flight <= MIN_CWND * self.mss {
                    self.mode =
                        Mode::ProbeRtt(ProbeRttPhase::HoldUntil(seen.now + self.config.probe_rtt_duration));
                    self.rounds.restart(seen.delivered);
                }
            }
            ProbeRttPhase::HoldUntil(until) if self.rounds.round_start => {
                self.mode = Mode::ProbeRtt(ProbeRttPhase::RoundDone(until));
                self.check_probe_rtt_done(seen.now, until, orders);
            }
            ProbeRttPhase::HoldUntil(_) => {}
            ProbeRttPhase::RoundDone(until) => self.check_probe_rtt_done(seen.now, until, orders),
        }
    }

    /// `bbr_check_probe_rtt_done`.
    fn check_probe_rtt_done(&mut self, now: Instant, until: Instant, orders: &mut ControlOutput) {
        if now <= until {
            return;
        }
        self.min_rtt.measured = now;
        orders.cwnd = self.prior_cwnd.restore(orders.cwnd);
        match self.pipe {
            PipeState::NotFull => self.mode = Mode::Startup,
            PipeState::Full => self.enter_probe_bw(now),
        }
    }
}
