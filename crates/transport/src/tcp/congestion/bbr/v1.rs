//! BBR version 1, as in Linux: the bandwidth is the maximum delivery rate of the last ten rounds, and losses are not
//! congestion unless they look like those of a policer. Facts and numbers of `net/ipv4/tcp_bbr.c`; its functions are
//! named.

mod window;

use super::config::{BbrConfig, PolicerDetection};
use super::filter::MaxFilter;
use super::parts::{FullPipe, GoodWindow, PacedBy, Restart, Rounds, Search};
use super::policer::{Finding, Policer, Probing, Sign};
use super::{BbrModel, BbrState, Opening, Orders, Policed, Samples, Seen};
use crate::tcp::congestion::Phase;
use crate::tcp::delivery_rate::Limit;
use hopline_core::{Duration, Instant, Stream};

/// Pacing gains in STARTUP and DRAIN: 2/ln 2 and its inverse, in 256ths.
const HIGH_GAIN: f64 = 739.0 / 256.0;
const DRAIN_GAIN: f64 = 88.0 / 256.0;
/// Pacing gains of the eight phases of PROBE_BW: probe, drain the queue of the probe, cruise.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Number of phases among which the first phase of PROBE_BW is drawn: all but the draining one.
const DRAWN_TURNS: u32 = 7;
/// Length of the bandwidth filter, rounds.
const BANDWIDTH_ROUNDS: u64 = 10;
/// Least window, and the window of PROBE_RTT, segments.
const LEAST_WINDOW: u64 = 4;
/// Length of each half of the aggregation filter, rounds.
const AGGREGATION_ROUNDS: u8 = 5;
/// Acknowledged segments after which the measurement of aggregation restarts.
const AGGREGATION_ANEW: u64 = 1 << 20;

/// State of one connection.
#[derive(Clone, Debug)]
pub(super) struct V1 {
    config: BbrConfig,
    policer_detection: PolicerDetection,
    random: Stream,
    mss: u64,
    mode: Mode,
    bandwidth: MaxFilter,
    rounds: Rounds,
    full: FullPipe,
    /// State of the pipe: it has been full or not.
    filled: Pipe,
    least: Least,
    /// Recovery phase at the last acknowledgment.
    phase: Phase,
    /// Packet conservation: in the first round of recovery the sender sends as much as is delivered.
    conservation: Conservation,
    good: GoodWindow,
    restart: Restart,
    aggregation: Aggregation,
    policer: Policer,
    /// Origin of the pacing rate, an assumed or a measured round-trip time.
    paced_by: PacedBy,
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
    ProbeRtt(Search),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pipe {
    NotYetFull,
    BeenFull,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Conservation {
    Off,
    On,
}

/// Minimum round-trip time, and the time of its measurement.
#[derive(Clone, Copy, Debug)]
struct Least {
    round_trip: Option<Duration>,
    at: Instant,
}

/// ACK aggregation: bytes acknowledged in excess of the bandwidth (`bbr_update_ack_aggregation`).
#[derive(Clone, Copy, Debug, Default)]
struct Aggregation {
    /// Maxima of the current and of the previous half of the filter.
    most: [u64; 2],
    rounds: u8,
    since: Instant,
    acked: u64,
}

impl V1 {
    pub(super) fn new(config: BbrConfig, policer_detection: PolicerDetection, random: Stream) -> Self {
        Self {
            config,
            policer_detection,
            random,
            mss: 1,
            mode: Mode::Startup,
            bandwidth: MaxFilter::default(),
            rounds: Rounds::default(),
            full: FullPipe::default(),
            filled: Pipe::NotYetFull,
            least: Least { round_trip: None, at: Instant::ZERO },
            phase: Phase::Open,
            conservation: Conservation::Off,
            good: GoodWindow::default(),
            restart: Restart::No,
            aggregation: Aggregation::default(),
            policer: Policer::default(),
            paced_by: PacedBy::NominalRoundTrip,
        }
    }

    /// `bbr_init`.
    pub(super) fn open(&mut self, opening: &Opening, orders: &mut Orders) {
        self.mss = opening.mss;
        self.least = Least { round_trip: opening.round_trip, at: opening.now };
        self.aggregation.since = opening.now;
        self.pace_by(opening.round_trip, orders);
    }

    pub(super) fn mss(&self) -> u64 {
        self.mss
    }

    /// `bbr_main`.
    pub(super) fn on_ack(&mut self, seen: &Seen, orders: &mut Orders) -> Samples {
        self.note_bandwidth(seen);
        self.note_aggregation(seen, orders.cwnd);
        if self.turn_is_over(seen, orders) {
            self.next_turn(seen.delivered_at);
        }
        self.check_pipe(seen);
        self.check_drain(seen, orders);
        let samples = self.seek_least_round_trip(seen, orders);
        self.set_rate(seen.smoothed, self.pacing_gain(), orders);
        self.set_window(seen, orders);
        samples
    }

    /// Saves the window at the start of recovery or after a time-out (`bbr_save_cwnd`).
    pub(super) fn save_window(&mut self, cwnd: u64) {
        if self.phase == Phase::Open && !matches!(self.mode, Mode::ProbeRtt(_)) {
            self.good.save(cwnd);
        } else {
            self.good.save_reduced(cwnd);
        }
    }

    /// Processes a time-out, which counts as the end of a round with a loss (`bbr_set_state`).
    pub(super) fn on_timeout(&mut self, now: Instant, delivered: u64, lost_so_far: u64, cwnd: u64) {
        self.save_window(cwnd);
        self.phase = Phase::Loss;
        self.full = FullPipe::default();
        self.rounds.starts = true;
        let sign = Sign { delivered_at: now, delivered, lost_so_far, lost: 1, limit: Limit::Path };
        self.look_for_policer(sign);
    }

    /// Processes an undo; the window follows with the next acknowledgment (`bbr_undo_cwnd`).
    pub(super) fn on_undo(&mut self, now: Instant, delivered: u64, lost_so_far: u64) {
        self.full = FullPipe::default();
        self.policer.reset(Sign { delivered_at: now, delivered, lost_so_far, lost: 0, limit: Limit::Path });
    }

    /// Processes a restart after an idle time of the application (`bbr_cwnd_event`).
    pub(super) fn on_resume(&mut self, now: Instant, orders: &mut Orders) {
        self.restart = Restart::FromIdle;
        (self.aggregation.since, self.aggregation.acked) = (now, 0);
        match self.mode {
            Mode::ProbeBw { .. } => self.set_rate(None, 1.0, orders),
            Mode::ProbeRtt(Search::Until(until) | Search::RoundOver(until)) => {
                self.end_search(now, until, orders)
            }
            Mode::ProbeRtt(Search::Draining) | Mode::Startup | Mode::Drain => {}
        }
    }

    pub(super) fn model(&self, pacing_rate: f64) -> BbrModel {
        let state = match self.mode {
            Mode::Startup => BbrState::Startup,
            Mode::Drain => BbrState::Drain,
            Mode::ProbeBw { turn, .. } => BbrState::ProbeBw { turn: turn as u8 },
            Mode::ProbeRtt(_) => BbrState::ProbeRtt,
        };
        BbrModel {
            state,
            bandwidth: self.bandwidth(),
            min_rtt: self.least.round_trip,
            pacing_rate,
            policer: if self.policer.rate().is_some() { Policed::Yes } else { Policed::No },
            inflight_longterm: None,
        }
    }

    // ---- the model ----

    /// Returns the bandwidth, bytes per second (`bbr_bw`).
    fn bandwidth(&self) -> f64 {
        self.policer.rate().unwrap_or_else(|| self.bandwidth.max())
    }

    /// Updates the bandwidth (`bbr_update_bw`). Application-limited samples count only if they are larger.
    fn note_bandwidth(&mut self, seen: &Seen) {
        self.rounds.starts = false;
        let Some((sample, rate)) = seen.sample.and_then(|sample| Some((sample, sample.rate?))) else {
            return;
        };
        self.rounds.update(sample.prior_delivered, seen.delivered);
        if self.rounds.starts {
            self.conservation = Conservation::Off;
        }
        self.look_for_policer(Sign {
            delivered_at: seen.delivered_at,
            delivered: seen.delivered,
            lost_so_far: seen.lost_so_far,
            lost: seen.lost,
            limit: sample.limit,
        });
        if sample.limit == Limit::Path || rate >= self.bandwidth.max() {
            self.bandwidth.update(self.rounds.count, rate, BANDWIDTH_ROUNDS);
        }
    }

    /// `bbr_lt_bw_sampling`.
    fn look_for_policer(&mut self, sign: Sign) {
        let probing = match self.mode {
            Mode::ProbeBw { .. } => Probing::InTurns,
            Mode::Startup | Mode::Drain | Mode::ProbeRtt(_) => Probing::NotNow,
        };
        if self.policer_detection == PolicerDetection::On
            && self.policer.look(sign, self.rounds, probing) == Finding::Over
        {
            self.begin_turns(sign.delivered_at);
        }
    }

    /// `bbr_update_ack_aggregation`.
    fn note_aggregation(&mut self, seen: &Seen, cwnd: u64) {
        if seen.acked == 0 || seen.sample.is_none_or(|sample| sample.rate.is_none()) {
            return;
        }
        let bandwidth = self.bandwidth();
        let noted = &mut self.aggregation;
        if self.rounds.starts {
            noted.rounds += 1;
            if noted.rounds >= AGGREGATION_ROUNDS {
                noted.rounds = 0;
                noted.most = [0, noted.most[0]];
            }
        }
        let mut expected = (bandwidth * seen.delivered_at.since(noted.since).as_secs_f64()) as u64;
        if noted.acked <= expected || noted.acked + seen.acked >= AGGREGATION_ANEW * self.mss {
            (noted.acked, noted.since) = (0, seen.delivered_at);
            expected = 0;
        }
        noted.acked += seen.acked;
        noted.most[0] = noted.most[0].max((noted.acked - expected).min(cwnd));
    }

    /// `bbr_check_full_bw_reached`.
    fn check_pipe(&mut self, seen: &Seen) {
        let of_path = seen.sample.is_some_and(|sample| sample.limit == Limit::Path);
        if self.filled == Pipe::NotYetFull
            && self.rounds.starts
            && of_path
            && self.full.reached(self.bandwidth.max())
        {
            self.filled = Pipe::BeenFull;
        }
    }

    // ---- what is done ----

    fn pacing_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => DRAIN_GAIN,
            Mode::ProbeBw { .. } if self.policer.rate().is_some() => 1.0,
            Mode::ProbeBw { turn, .. } => CYCLE[turn],
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
    fn turn_is_over(&self, seen: &Seen, orders: &Orders) -> bool {
        let Mode::ProbeBw { since, .. } = self.mode else { return false };
        let lasted = self.least.round_trip.is_some_and(|least| seen.delivered_at.since(since) > least);
        let gain = self.pacing_gain();
        let in_network = self.in_network(seen, seen.in_flight_before, orders);
        if gain > 1.0 {
            lasted && (seen.lost > 0 || in_network >= self.target(self.bandwidth.max(), gain, orders))
        } else if gain < 1.0 {
            lasted || in_network <= self.target(self.bandwidth.max(), 1.0, orders)
        } else {
            lasted
        }
    }

    fn next_turn(&mut self, now: Instant) {
        if let Mode::ProbeBw { turn, since } = &mut self.mode {
            (*turn, *since) = ((*turn + 1) % CYCLE.len(), now);
        }
    }

    /// `bbr_reset_probe_bw_mode`.
    fn begin_turns(&mut self, now: Instant) {
        let last = CYCLE.len() - 1 - self.random.below(DRAWN_TURNS) as usize;
        self.mode = Mode::ProbeBw { turn: last, since: now };
        self.next_turn(now);
    }

    /// `bbr_check_drain`.
    fn check_drain(&mut self, seen: &Seen, orders: &Orders) {
        if self.mode == Mode::Startup && self.filled == Pipe::BeenFull {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain
            && self.in_network(seen, seen.in_flight, orders) <= self.target(self.bandwidth.max(), 1.0, orders)
        {
            self.begin_turns(seen.delivered_at);
        }
    }

    /// `bbr_update_min_rtt`.
    fn seek_least_round_trip(&mut self, seen: &Seen, orders: &mut Orders) -> Samples {
        let expired = seen.now > self.least.at + self.config.probe_rtt_interval;
        if let Some(round_trip) = seen.sample.and_then(|sample| sample.round_trip)
            && (expired || self.least.round_trip.is_none_or(|least| round_trip < least))
        {
            self.least = Least { round_trip: Some(round_trip), at: seen.now };
        }
        let seeking = matches!(self.mode, Mode::ProbeRtt(_));
        if expired && !self.config.probe_rtt_duration.is_zero() && self.restart == Restart::No && !seeking {
            self.save_window(orders.cwnd);
            self.mode = Mode::ProbeRtt(Search::Draining);
        }
        let samples = match self.mode {
            Mode::ProbeRtt(search) => {
                self.search(search, seen, orders);
                Samples::Limited
            }
            Mode::Startup | Mode::Drain | Mode::ProbeBw { .. } => Samples::AsTheyAre,
        };
        if seen.sample.is_some_and(|sample| sample.delivered > 0) {
            self.restart = Restart::No;
        }
        samples
    }

    fn search(&mut self, search: Search, seen: &Seen, orders: &mut Orders) {
        match search {
            Search::Draining => {
                if seen.in_flight <= LEAST_WINDOW * self.mss {
                    self.mode = Mode::ProbeRtt(Search::Until(seen.now + self.config.probe_rtt_duration));
                    self.rounds.restart(seen.delivered);
                }
            }
            Search::Until(until) if self.rounds.starts => {
                self.mode = Mode::ProbeRtt(Search::RoundOver(until));
                self.end_search(seen.now, until, orders);
            }
            Search::Until(_) => {}
            Search::RoundOver(until) => self.end_search(seen.now, until, orders),
        }
    }

    /// `bbr_check_probe_rtt_done`.
    fn end_search(&mut self, now: Instant, until: Instant, orders: &mut Orders) {
        if now <= until {
            return;
        }
        self.least.at = now;
        orders.cwnd = self.good.restore(orders.cwnd);
        match self.filled {
            Pipe::NotYetFull => self.mode = Mode::Startup,
            Pipe::BeenFull => self.begin_turns(now),
        }
    }
}
