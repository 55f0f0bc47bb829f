//! BBR version 1, as Linux has it: the bandwidth is the most that was delivered in the last ten rounds, and losses are not congestion
//! unless they look like a policer's. Facts and numbers of `net/ipv4/tcp_bbr.c`, whose functions are named.

use super::config::{BbrConfig, PolicerDetection};
use super::filter::MaxFilter;
use super::parts::{FullPipe, GoodWindow, Rounds};
use super::policer::{Finding, Policer, Probing, Sign};
use super::{BbrModel, BbrState, Opening, Orders, Policed, Samples, Seen};
use crate::tcp::congestion::Phase;
use crate::tcp::delivery_rate::Limit;
use hopline_core::{Duration, Instant, Stream};

/// Rates in STARTUP and DRAIN, for each byte per second of bandwidth: 2/ln 2 and its inverse, in 256ths.
const HIGH_GAIN: f64 = 739.0 / 256.0;
const DRAIN_GAIN: f64 = 88.0 / 256.0;
/// Rates in the eight turns of PROBE_BW: probe, drain what that queued, cruise.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// PROBE_BW begins with one of these turns, drawn: any but the one that drains.
const DRAWN_TURNS: u32 = 7;
/// Rounds for which a bandwidth counts.
const BANDWIDTH_ROUNDS: u64 = 10;
/// Segments in flight at least, and while the least round trip is looked for.
const LEAST_WINDOW: u64 = 4;
/// Segments of the initial window: with fewer delivered, nothing is known.
const INITIAL_WINDOW: u64 = 10;
/// Rate from which on trains have two segments at least: 1.2 Mb/s.
const TRAIN_RATE: f64 = 150_000.0;
/// Part of a second that a train takes, and bytes that it has at most: the kernel's largest packet.
const TRAINS_PER_SEC: f64 = 1024.0;
const LONGEST_TRAIN: f64 = 65_536.0 - 1.0 - 320.0;
/// Rounds of each half of the window for aggregation, and time of bandwidth that it adds at most.
const AGGREGATION_ROUNDS: u8 = 5;
const MOST_AGGREGATION: f64 = 0.1;
/// Segments after which aggregation is measured anew.
const AGGREGATION_ANEW: u64 = 1 << 20;
/// Round trip that is assumed before one is known.
const NOMINAL_ROUND_TRIP: Duration = Duration::from_millis(1);

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
    /// The pipe has been full.
    filled: Pipe,
    least: Least,
    /// The phase of recovery at the last acknowledgment.
    phase: Phase,
    /// In the first round of recovery what leaves is what arrives.
    conservation: Conservation,
    good: GoodWindow,
    restart: Restart,
    aggregation: Aggregation,
    policer: Policer,
    /// The rate was made of a round trip that was measured.
    paced_by: PacedBy,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The rate grows until that brings no more.
    Startup,
    /// What that queued drains.
    Drain,
    /// The bandwidth is probed in turns; the turn, and since when.
    ProbeBw { turn: usize, since: Instant },
    /// The window is small, so that the least round trip shows.
    ProbeRtt(Search),
}

/// How far the search for the least round trip is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Search {
    /// More is in flight than the small window.
    Draining,
    /// It lasts until then and for a round.
    Until(Instant),
    /// The round is over.
    RoundOver(Instant),
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

/// Whether data leave after silence, and nothing of them has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Restart {
    No,
    FromIdle,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PacedBy {
    NominalRoundTrip,
    RoundTrip,
}

/// The least round trip, and when it was measured.
#[derive(Clone, Copy, Debug)]
struct Least {
    round_trip: Option<Duration>,
    at: Instant,
}

/// How much more than the bandwidth acknowledgments report at once (`bbr_update_ack_aggregation`), bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Aggregation {
    /// Of these rounds, and of those before.
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

    /// Recovery, or the aftermath of a time-out, begins (`bbr_save_cwnd`).
    pub(super) fn save_window(&mut self, cwnd: u64) {
        if self.phase == Phase::Open && !matches!(self.mode, Mode::ProbeRtt(_)) {
            self.good.save(cwnd);
        } else {
            self.good.save_reduced(cwnd);
        }
    }

    /// `bbr_set_state`: a time-out counts as the end of a round with a loss.
    pub(super) fn on_timeout(&mut self, now: Instant, delivered: u64, lost_so_far: u64, cwnd: u64) {
        self.save_window(cwnd);
        self.phase = Phase::Loss;
        self.full = FullPipe::default();
        self.rounds.starts = true;
        let sign = Sign { delivered_at: now, delivered, lost_so_far, lost: 1, limit: Limit::Path };
        self.look_for_policer(sign);
    }

    /// `bbr_undo_cwnd`: the window follows with the next acknowledgment.
    pub(super) fn on_undo(&mut self, now: Instant, delivered: u64, lost_so_far: u64) {
        self.full = FullPipe::default();
        self.policer.reset(Sign { delivered_at: now, delivered, lost_so_far, lost: 0, limit: Limit::Path });
    }

    /// `bbr_cwnd_event`: the application has something to send again.
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

    /// Bytes per second (`bbr_bw`).
    fn bandwidth(&self) -> f64 {
        self.policer.rate().unwrap_or_else(|| self.bandwidth.max())
    }

    /// `bbr_update_bw`. Samples of the application's making count only if they are larger.
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

    // ---- rate and window ----

    /// `bbr_init_pacing_rate_from_rtt`.
    fn pace_by(&mut self, round_trip: Option<Duration>, orders: &mut Orders) {
        if round_trip.is_some() {
            self.paced_by = PacedBy::RoundTrip;
        }
        let round_trip = round_trip.unwrap_or(NOMINAL_ROUND_TRIP).max(Duration::from_micros(1));
        let bandwidth = orders.cwnd as f64 / round_trip.as_secs_f64();
        self.order_rate(bandwidth * HIGH_GAIN, orders);
    }

    /// `bbr_set_pacing_rate`: until the pipe has been full, the rate only grows.
    fn set_rate(&mut self, smoothed: Option<Duration>, gain: f64, orders: &mut Orders) {
        if self.paced_by == PacedBy::NominalRoundTrip && smoothed.is_some() {
            self.pace_by(smoothed, orders);
        }
        let rate = self.bandwidth() * gain;
        if self.filled == Pipe::BeenFull || rate * (1.0 - self.config.pacing_margin) > orders.rate {
            self.order_rate(rate, orders);
        }
    }

    /// Trains as `bbr_tso_segs_goal` has them.
    fn order_rate(&self, rate: f64, orders: &mut Orders) {
        orders.rate = (rate * (1.0 - self.config.pacing_margin)).max(1.0);
        let least = if orders.rate < TRAIN_RATE { 1 } else { 2 };
        let bytes = (orders.rate / TRAINS_PER_SEC).min(LONGEST_TRAIN) as u64;
        orders.train = (bytes / self.mss).clamp(least, 127) * self.mss;
    }

    /// `bbr_bdp`, bytes of whole segments.
    fn product(&self, bandwidth: f64, gain: f64) -> u64 {
        let Some(least) = self.least.round_trip else { return INITIAL_WINDOW * self.mss };
        let bytes = (bandwidth * least.as_secs_f64() * gain).min(f64::from(1 << 30));
        (bytes as u64).div_ceil(self.mss) * self.mss
    }

    /// `bbr_quantization_budget`: room for trains at both ends, an even number of segments, and in the turn that probes two more.
    fn with_room(&self, bytes: u64, orders: &Orders) -> u64 {
        let segments = ((bytes + 3 * orders.train) / self.mss).next_multiple_of(2);
        let probe = if matches!(self.mode, Mode::ProbeBw { turn: 0, .. }) { 2 } else { 0 };
        (segments + probe) * self.mss
    }

    /// `bbr_inflight`.
    fn target(&self, bandwidth: f64, gain: f64, orders: &Orders) -> u64 {
        self.with_room(self.product(bandwidth, gain), orders)
    }

    /// `bbr_packets_in_net_at_edt`: what will be in the network when the next train leaves.
    fn in_network(&self, seen: &Seen, in_flight: u64, orders: &Orders) -> u64 {
        let arrives = self.bandwidth() * seen.due.since(seen.now).as_secs_f64();
        let train = if self.pacing_gain() > 1.0 { orders.train } else { 0 };
        (in_flight + train).saturating_sub(arrives as u64)
    }

    /// `bbr_ack_aggregation_cwnd`.
    fn for_aggregation(&self) -> u64 {
        let most = self.aggregation.most[0].max(self.aggregation.most[1]);
        match self.filled {
            Pipe::BeenFull => most.min((self.bandwidth() * MOST_AGGREGATION) as u64),
            Pipe::NotYetFull => 0,
        }
    }

    /// `bbr_set_cwnd`.
    fn set_window(&mut self, seen: &Seen, orders: &mut Orders) {
        if seen.acked > 0 && self.recover(seen, orders) == Conservation::Off {
            let wanted = self.product(self.bandwidth(), self.cwnd_gain()) + self.for_aggregation();
            let target = self.with_room(wanted, orders);
            if self.filled == Pipe::BeenFull {
                orders.cwnd = (orders.cwnd + seen.acked).min(target);
            } else if orders.cwnd < target || seen.delivered < INITIAL_WINDOW * self.mss {
                orders.cwnd += seen.acked;
            }
            orders.cwnd = orders.cwnd.max(LEAST_WINDOW * self.mss);
        }
        if matches!(self.mode, Mode::ProbeRtt(_)) {
            orders.cwnd = orders.cwnd.min(LEAST_WINDOW * self.mss);
        }
    }

    /// `bbr_set_cwnd_to_recover_or_restore`: what is lost makes room for as much; in the first round of recovery what leaves is
    /// what arrives; afterwards the window is what it was.
    fn recover(&mut self, seen: &Seen, orders: &mut Orders) -> Conservation {
        let before = core::mem::replace(&mut self.phase, seen.phase);
        orders.cwnd = orders.cwnd.saturating_sub(seen.lost).max(self.mss);
        let arrives = seen.in_flight + seen.acked;
        if seen.phase == Phase::Recovery && before != Phase::Recovery {
            self.conservation = Conservation::On;
            self.rounds.restart(seen.delivered);
            orders.cwnd = arrives;
        } else if seen.phase == Phase::Open && before != Phase::Open {
            orders.cwnd = self.good.restore(orders.cwnd);
            self.conservation = Conservation::Off;
        }
        if self.conservation == Conservation::On {
            orders.cwnd = orders.cwnd.max(arrives);
        }
        self.conservation
    }
}
