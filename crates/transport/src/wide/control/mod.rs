//! Rate-based congestion control.
//!
//! The rate follows the link. It grows while there is no queue, in small steps at first and then in larger ones. It is
//! reduced if the queueing delay is above [`queue_high`](super::ControlConfig::queue_high) for half a round trip, on ECN
//! marks, or on losses above the baseline. It then returns to the measured rate of the link, and below it until the queue
//! has drained. Losses at the baseline have no effect.
//!
//! ```text
//!                 first burst             link rate
//!                 has arrived             is found
//! InitialWindow ─────────────▶ Startup ─────────────▶ Cruise ◀────────────────────┐
//!                                 │                    │ │ │                      │
//!                           queue │   queue, marks or  │ │ │ base delay expired,  │
//!                        or marks │   losses in a      │ │ │ unverified losses    │
//!                                 ▼   queue; probe     │ │ └──────▶ ProbeRtt ─────┤
//!                               Drain ◀────────────────┘ │ excess losses,         │
//!                                 │   for competing      │ scheduled test         │
//!                       time over │   traffic            └────────▶ ProbeLoss ────┤
//!                                 ▼                                               │
//!                           EvaluateDrain ────────────────────────────────────────┤
//!                                 │                                               │
//!                                 │ queue does not drain,                         │
//!                                 │ or stands for long         queue is gone,     │
//!                                 ▼                            or stay too long   │
//!                            Competitive ─────────────────────────────────────────┘
//!
//! Every state but InitialWindow ──▶ Startup: long outage, or another path
//! ```
//!
//! | state | sends at | until |
//! |---|---|---|
//! | InitialWindow | no rate; ten packets in flight | the first burst has arrived |
//! | Startup | a rate that doubles up to the first estimate, and grows by an increasing gain above it | the link carries less, or losses are too many |
//! | Cruise | the rate, which grows while there is no queue | congestion, or a measurement is due |
//! | Drain | 75 % of the reduced rate | the time that the queue takes if only this flow fills it |
//! | EvaluateDrain | the reduced rate | a round trip shows the effect of the drain |
//! | ProbeRtt | 20 % of the rate for a round trip, then the rate | the packets of the low rate have arrived |
//! | ProbeLoss | 80 % of the rate | one cause of the losses is likelier than the other |
//! | Competitive | 120 % of a window as CUBIC's per round trip | the queue is gone, or 192 round trips |
//!
//! [`StateMachine::enter`] is the only place that assigns the state. [`state`] lists all transitions.

mod ceiling;
mod compete;
mod growth;
mod jitter;
mod losses;
mod phase;
mod rate;
mod reaction;
mod standing;
mod state;
#[cfg(test)]
mod tests;

pub(super) use phase::{Heed, Limit, News};
pub(super) use rate::Arrival;

use super::config::ControlConfig;
use super::rtt::SAME;
use ceiling::{Ceiling, Level};
use compete::Cubic;
use hopline_core::{Duration, Instant};
use jitter::Jitter;
use losses::{Losses, Verdict};
use phase::{Beat, Doubt, Evidence, Round, Seen, Settled, Trial};
use rate::{Largest, Sampler};
use standing::Standing;
use state::{State, StateMachine};

/// Gain above the first estimate in a round trip. It grows in the following ones, up to doubling.
const GAIN: f64 = 1.1;
/// Least number of settled packets in a round trip.
const ROUND_PACKETS: u64 = 4;
/// Pacing gain in competitive mode, in which the window limits the bytes in flight.
const COMPETE_PACE: f64 = 1.2;
/// Share of the rate while the base delay is measured, and time after which the measurement expires.
const REFRESH: f64 = 0.2;
const REFRESH_AFTER: Duration = Duration::from_secs(5);
/// Round trips before the first test of the losses.
const TEST_AFTER: u32 = 8;

/// Rate controller of one connection. Rates are bytes per second, headers included.
#[derive(Clone, Debug)]
pub(super) struct Control {
    config: ControlConfig,
    /// Length of a full packet, bytes.
    packet: f64,
    state: StateMachine,
    rate: f64,
    /// Rate a round trip ago, of the packets that arrive now.
    rate_before: f64,
    sampler: Sampler,
    /// Measured rate of the link, maximum of the last rounds.
    carried: Largest<8>,
    /// Last measurement of the rate of the link.
    now_carried: f64,
    /// Age of the base delay after which it is measured again.
    refresh_after: Duration,
    /// Delivery rate, maximum of the last rounds; total of delivered bytes.
    delivered: Largest<8>,
    arrived: u64,
    losses: Losses,
    /// Lower bound of the rate while losses are not attributed to the path.
    floor: f64,
    round: Round,
    beat: Beat,
    /// Round trips until the next test of the losses, and interval between tests.
    test_in: u32,
    test_after: u32,
    /// Ceiling: a rate that was too high for the path without a visible queue. Growth is slow near it.
    ceiling: f64,
    doubt: Doubt,
    jitter: Jitter,
    /// Longest recent queue.
    queues: Ceiling,
    /// `true` if a packet of the last round trip had no queueing delay, jitter aside.
    no_queue: bool,
    /// Detection of competing traffic.
    standing: Standing,
    /// Rate before the first of the drains without relief.
    before: f64,
    /// CUBIC window of competitive mode.
    rival: Option<Cubic>,
    reductions: u64,
}

impl Control {
    /// Creates the controller. `packet`: bytes of a full packet, headers included.
    pub(super) fn new(config: ControlConfig, packet: u32) -> Self {
        Self {
            config,
            packet: packet.into(),
            state: StateMachine::new(),
            rate: 0.0,
            rate_before: 0.0,
            sampler: Sampler::default(),
            carried: Largest::new(),
            now_carried: 0.0,
            refresh_after: REFRESH_AFTER,
            delivered: Largest::new(),
            arrived: 0,
            losses: Losses::new(config.excess, config.trust),
            floor: 0.0,
            round: Round::new(Instant::ZERO, 0),
            beat: Beat::new(Instant::ZERO),
            test_in: TEST_AFTER,
            test_after: TEST_AFTER,
            ceiling: f64::INFINITY,
            doubt: Doubt::None,
            jitter: Jitter::default(),
            queues: Ceiling::default(),
            no_queue: false,
            standing: Standing::new(config.rivals),
            before: 0.0,
            rival: None,
            reductions: 0,
        }
    }

    /// Returns the pacing rate, bytes per second; `None`: no pacing.
    pub(super) fn pace(&self) -> Option<f64> {
        match self.state.current() {
            State::InitialWindow => None,
            State::Drain { .. } => Some(self.rate * self.config.drain),
            State::ProbeRtt { settled: Settled::NotYet } => Some(self.rate * REFRESH),
            State::Competitive(_) => Some(self.rate * COMPETE_PACE),
            State::ProbeRtt { settled: Settled::Yes }
            | State::Startup { .. }
            | State::Cruise { .. }
            | State::EvaluateDrain { .. }
            | State::ProbeLoss { .. } => Some(self.rate),
        }
    }

    /// Returns the bytes that may be in flight, if `together` packets are acknowledged at once.
    pub(super) fn window(&self, least_rtt: Duration, reordering: Duration, together: u32) -> u64 {
        match self.state.current() {
            State::InitialWindow => return (f64::from(self.config.initial_window) * self.packet) as u64,
            State::Competitive(cubic) => return (cubic.window() * self.packet) as u64,
            _ => {}
        }
        let seconds = least_rtt.as_secs_f64() * self.config.in_flight + reordering.as_secs_f64();
        (self.rate * seconds + self.config.spare.max(together.into()) * self.packet) as u64
    }

    /// Returns the sending time of `packets` full packets; `None`: no estimate of the path yet.
    pub(super) fn time_of(&self, packets: u32) -> Option<Duration> {
        (self.rate > 0.0)
            .then(|| Duration::from_secs_f64((f64::from(packets) * self.packet / self.rate).min(10.0)))
    }

    /// Returns whether the path is known and its baseline loss rate is below `share`, so that acknowledgments are not
    /// urgent.
    pub(super) fn is_calm(&self, share: f64) -> bool {
        !matches!(self.state.current(), State::InitialWindow | State::Startup { .. })
            && self.losses.usual() < share
    }

    /// Starts on an open connection. Samples from the opening are discarded, since they do not show the rate of the link.
    pub(super) fn established(&mut self) {
        self.sampler.clear();
        self.carried.clear();
    }

    /// Returns whether a packet of the last round trip had no queueing delay, jitter aside.
    pub(super) const fn saw_no_queue(&self) -> bool {
        self.no_queue
    }

    /// Returns the number of reductions of the rate.
    pub(super) fn reductions(&self) -> u64 {
        self.reductions
    }

    /// Returns the transitions since the last call.
    #[cfg(test)]
    pub(super) fn take_history(&mut self) -> Vec<state::Transition> {
        self.state.take_history()
    }

    /// Restarts on another path after an outage: with half the rate, and without the old estimates.
    pub(super) fn begin_anew(&mut self, now: Instant, next_number: u64) {
        self.rate /= 2.0;
        self.test_in = TEST_AFTER;
        self.test_after = TEST_AFTER;
        self.interrupted();
        self.carried.clear();
        self.delivered.clear();
        self.losses.begin_anew();
        self.jitter = Jitter::default();
        if self.is_beyond_first_burst() {
            self.state.enter(State::Startup { guess: self.rate, gain: GAIN, trial: Trial::of(next_number) });
        }
        self.begin_round(now, next_number);
    }

    /// Discards the samples after an outage, since they do not show the rate.
    pub(super) fn interrupted(&mut self) {
        self.sampler.clear();
        self.rate_before = 0.0;
    }

    /// Records packets that were found lost without an acknowledgment.
    pub(super) fn lost(&mut self, packets: u64) {
        self.losses.take(0, packets, 0);
        self.round.packets += packets;
    }

    /// Processes an acknowledgment.
    pub(super) fn on_ack(&mut self, news: &News) -> Heed {
        let heed = self.take(news);
        if self.is_beyond_first_burst() {
            self.rate = self.rate.max(self.least(news.srtt));
        }
        heed
    }

    /// Returns whether there is an estimate of the path.
    fn is_beyond_first_burst(&self) -> bool {
        !matches!(self.state.current(), State::InitialWindow)
    }

    /// Returns the least rate: a packet per round trip.
    fn least(&self, srtt: Duration) -> f64 {
        self.packet / srtt.as_secs_f64().max(1e-3)
    }

    fn take(&mut self, news: &News) -> Heed {
        self.losses.take(news.packets, news.lost, news.late);
        self.round.delivered += news.delivered;
        self.arrived += news.delivered;
        self.round.packets += news.packets + news.lost;
        if news.limit == Limit::User {
            self.round.limit = Limit::User;
        }
        let Some((number, arrival, delay)) = news.newest else { return Heed::Nothing };
        let queue = self.queue_of(delay);
        if let Some(rate) = self.sampler.take(arrival, news.srtt / 2) {
            self.carried.sample(rate);
            self.now_carried = rate;
        }
        self.round.queue = Some(self.round.queue.map_or(queue, |least| least.min(queue)));
        self.beat.take(queue);
        if self.queues.take(news.now, queue, news.srtt) == Level::Below {
            self.losses.take_below(news.packets, news.lost, news.late);
        }
        match *self.state.current() {
            State::InitialWindow => self.open(news),
            State::Startup { .. } if news.limit == Limit::Path => {
                self.measure_startup((number, arrival), news);
            }
            State::Drain { until, was } if news.now >= until => {
                self.state.enter(State::EvaluateDrain { was });
                self.begin_round(news.now, news.next_number);
            }
            _ => {}
        }
        if news.marks > 0 && self.state.current().grows() {
            self.congested(news, queue.max(news.srtt / 8));
        }
        if self.beat.is_over(news.now, news.srtt) {
            self.on_beat(news);
        }
        let over = number >= self.round.end
            && self.round.packets >= ROUND_PACKETS
            && news.now.since(self.round.since) >= news.round
            && self.is_beyond_first_burst();
        if !over {
            return Heed::Nothing;
        }
        let heed = self.on_round(news);
        if heed == Heed::Refresh {
            self.state.enter(State::ProbeRtt { settled: Settled::NotYet });
            self.refresh_after = news.base_age + REFRESH_AFTER;
            self.losses.begin_anew();
        }
        heed
    }

    /// Returns the queueing delay of a packet with this delay.
    fn queue_of(&mut self, delay: Duration) -> Duration {
        self.jitter.take(delay);
        // The delivery rate counts, not the sending rate: a flow that sends more would have more attributed to jitter.
        let gap = self.packet / self.delivered.get().max(1.0);
        delay.saturating_sub(self.jitter.forgiven(self.config.jitter, gap))
    }

    /// Ends a half-round: half a round trip, or more with few acknowledgments.
    fn on_beat(&mut self, news: &News) {
        let queue = core::mem::replace(&mut self.beat, Beat::new(news.now)).queue;
        if queue > self.queue_high() && self.state.current().grows() {
            self.congested(news, queue);
        }
    }

    fn on_round(&mut self, news: &News) -> Heed {
        let round = self.round;
        let seconds = news.now.since(round.since).as_secs_f64().max(1e-6);
        let seen = Seen {
            carried: self.carried.latest(),
            delivered: round.delivered as f64 / seconds,
            sent: core::mem::replace(&mut self.rate_before, self.rate),
            queue: round.queue.unwrap_or(Duration::ZERO),
        };
        if news.base_age < REFRESH_AFTER {
            self.refresh_after = REFRESH_AFTER;
        }
        self.carried.round();
        let trusted = self.losses.is_trusted();
        self.losses.age(news.now, news.srtt, self.time_of(1).unwrap_or_default());
        self.floor = match (trusted, self.losses.is_trusted()) {
            (true, false) => self.rate * self.config.trust.floor,
            (false, false) => self.floor.min(self.rate),
            (_, true) => 0.0,
        };
        self.delivered.sample(seen.delivered);
        self.delivered.round();
        self.queues.round();
        self.no_queue = seen.queue <= SAME;
        self.standing.round(news.now, self.waited(seen));
        self.round = Round::new(news.now, news.next_number);
        // Where few acknowledgments come in a round trip, it goes on.
        if self.beat.is_told() {
            self.beat = Beat::new(news.now);
        }
        match *self.state.current() {
            State::InitialWindow | State::Drain { .. } => {}
            State::Startup { .. } | State::Cruise { .. } if round.limit == Limit::User => {
                self.losses.begin_anew()
            }
            State::Startup { .. } => {}
            State::EvaluateDrain { was } => self.evaluate_drain(was, seen, news),
            State::ProbeRtt { settled: Settled::NotYet } => self.state.settle(),
            State::ProbeRtt { settled: Settled::Yes } => self.follow(),
            State::Cruise { .. } if news.base_age > self.refresh_after => return Heed::Refresh,
            State::Competitive(cubic) => self.compete(cubic, news),
            State::ProbeLoss { settled: Settled::NotYet, .. } => {
                self.losses.begin_anew();
                self.state.settle();
            }
            State::ProbeLoss { settled: Settled::Yes, rate, of } => self.judge(rate, of, seen.queue),
            State::Cruise { step } => match self.losses.round(self.learns(step, seen)) {
                Verdict::Excess(_) if seen.queue >= self.queue_low() => self.congested(news, seen.queue),
                Verdict::Excess(share) if !self.losses.is_trusted() => {
                    self.rate = self.rate.min(self.through(share, seen.sent)).max(self.floor);
                    self.reductions += 1;
                    return Heed::Refresh;
                }
                Verdict::Excess(_) if self.doubt == Doubt::None => self.doubt = Doubt::Once,
                Verdict::Excess(share) => {
                    self.test(Evidence { share, sent: seen.sent, queue: seen.queue }, news.srtt)
                }
                Verdict::Usual(share) if self.is_test_due() => {
                    self.test(Evidence { share, sent: seen.sent, queue: seen.queue }, news.srtt);
                }
                Verdict::Open if self.doubt == Doubt::Once => {}
                Verdict::Open | Verdict::Usual(_) => {
                    self.doubt = Doubt::None;
                    self.grow(step, seen, news);
                }
            },
        }
        if round.limit == Limit::Path
            && !matches!(self.state.current(), State::InitialWindow | State::Startup { .. })
        {
            self.rate = self.rate.min(self.supported().max(self.floor));
        }
        Heed::Round
    }

    /// Returns the highest rate that the recent delivery rate supports. The sum of the rates of all flows is then not
    /// much above the rate of the link, even if flows misclassify congestive losses.
    fn supported(&self) -> f64 {
        let ahead = if self.losses.is_trusted() { self.config.ahead } else { self.config.trust.ahead };
        ahead * self.delivered.get() / (1.0 - self.losses.usual())
    }

    fn begin_round(&mut self, now: Instant, next_number: u64) {
        self.round = Round::new(now, next_number);
        self.beat = Beat::new(now);
    }

    fn queue_high(&self) -> Duration {
        self.config.queue_high + self.queue_of_own()
    }

    /// Returns whether a queue of this length was one, if it is gone now. The variation of a queue that is always full is
    /// smaller.
    fn was_a_queue(&self, queue: Duration) -> bool {
        queue >= self.queue_of_own().saturating_mul(3) / 4
    }

    /// Returns the part of the queue bound for the packets of the flow.
    fn queue_of_own(&self) -> Duration {
        let of_own = self.config.queue_packets * self.packet / self.rate.max(1.0);
        Duration::from_secs_f64(of_own.min(10.0))
    }

    fn queue_low(&self) -> Duration {
        Duration::from_secs_f64(self.queue_high().as_secs_f64() * self.config.queue_low)
    }
}
