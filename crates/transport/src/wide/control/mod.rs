//! How fast to send.
//!
//! The rate follows the link: it grows while packets do not wait on the way, first a little and then ever faster; where they wait longer than
//! [`queue_high`](super::ControlConfig::queue_high) for half a round trip, or are marked, or are lost more than usual, it goes back to
//! what the link was seen to carry, and below that until the queue has drained. Losses as usual change nothing.

mod ceiling;
mod compete;
mod growth;
mod jitter;
mod losses;
mod phase;
mod rate;
mod reaction;
mod standing;

pub(super) use phase::{Heed, Limit, News};
pub(super) use rate::Arrival;

use super::config::ControlConfig;
use super::rtt::SAME;
use ceiling::{Ceiling, Level};
use compete::Cubic;
use hopline_core::{Duration, Instant};
use jitter::Jitter;
use losses::{Losses, Verdict};
use phase::{Beat, Doubt, Evidence, Phase, Round, Seen, Settled, Trial};
use rate::{Largest, Sampler};
use standing::Standing;

/// Beyond the first guess the rate grows by this in a round trip, and by ever more in those after it, up to doubling.
const GAIN: f64 = 1.1;
/// A round trip has so many settled packets at least.
const ROUND_PACKETS: u64 = 4;
/// Where the window says how much may be under way, packets leave a little faster than it fills.
const COMPETE_PACE: f64 = 1.2;
/// Share of the rate at which it is found out how long packets take without waiting; and how long what was found holds.
const REFRESH: f64 = 0.2;
const REFRESH_AFTER: Duration = Duration::from_secs(5);
/// Losses are put to the test after so many round trips, first.
const TEST_AFTER: u32 = 8;

/// The controller of one connection. Rates are bytes per second, headers included.
#[derive(Clone, Debug)]
pub(super) struct Control {
    config: ControlConfig,
    /// Bytes of a full packet.
    packet: f64,
    phase: Phase,
    rate: f64,
    /// The same a round trip ago: that of what arrives now.
    rate_before: f64,
    sampler: Sampler,
    /// What the link was seen to carry.
    carried: Largest<8>,
    /// The same just now.
    now_carried: f64,
    /// The way without waiting is sought again when it was not seen for so long.
    refresh_after: Duration,
    /// What arrived, of late and in all.
    delivered: Largest<8>,
    arrived: u64,
    losses: Losses,
    /// While losses are not believed to be the path's, they bring the rate no further down than here.
    floor: f64,
    round: Round,
    beat: Beat,
    /// Round trips until losses are tested, and from that test to the next.
    test_in: u32,
    test_after: u32,
    /// A rate that was too high for the path without a queue to tell: it is approached with care.
    ceiling: f64,
    doubt: Doubt,
    jitter: Jitter,
    /// How long queues become.
    queues: Ceiling,
    /// Whether a packet came without waiting in the last round trip, but for jitter.
    no_queue: bool,
    /// Whose the queue is.
    standing: Standing,
    /// The rate before the first of the drains that relieved nothing.
    before: f64,
    /// The window beside those who fill them.
    rival: Option<Cubic>,
    reductions: u64,
}

impl Control {
    /// `packet`: bytes of a full packet, headers included.
    pub(super) fn new(config: ControlConfig, packet: u32) -> Self {
        Self {
            config,
            packet: packet.into(),
            phase: Phase::Opening,
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

    /// Bytes per second at which packets leave; `None`: as they come.
    pub(super) fn pace(&self) -> Option<f64> {
        match self.phase {
            Phase::Opening => None,
            Phase::Drain { .. } => Some(self.rate * self.config.drain),
            Phase::Refresh { rounds: 0 } => Some(self.rate * REFRESH),
            Phase::Refresh { .. } => Some(self.rate),
            Phase::Compete(_) => Some(self.rate * COMPETE_PACE),
            Phase::Startup { .. } | Phase::Cruise { .. } | Phase::Settle(_) | Phase::Test { .. } => {
                Some(self.rate)
            }
        }
    }

    /// Bytes that may be under way, if so many packets are acknowledged `together`.
    pub(super) fn window(&self, least_rtt: Duration, reordering: Duration, together: u32) -> u64 {
        let packets = f64::from(self.config.initial_window) * self.packet;
        if self.phase == Phase::Opening {
            return packets as u64;
        }
        if let Phase::Compete(cubic) = self.phase {
            return (cubic.window() * self.packet) as u64;
        }
        let seconds = least_rtt.as_secs_f64() * self.config.in_flight + reordering.as_secs_f64();
        (self.rate * seconds + self.config.spare.max(together.into()) * self.packet) as u64
    }

    /// In what time so many full packets leave; `None`: nothing is known of the path.
    pub(super) fn time_of(&self, packets: u32) -> Option<Duration> {
        (self.rate > 0.0)
            .then(|| Duration::from_secs_f64((f64::from(packets) * self.packet / self.rate).min(10.0)))
    }

    /// Whether the path is known, and less than this share lost: news of it are not urgent.
    pub(super) fn is_calm(&self, share: f64) -> bool {
        !matches!(self.phase, Phase::Opening | Phase::Startup { .. }) && self.losses.usual() < share
    }

    /// The connection is open: what was learnt of its opening says nothing of the link's rate.
    pub(super) fn established(&mut self) {
        self.sampler.clear();
        self.carried.clear();
    }

    /// Whether a packet came without waiting in the last round trip, but for jitter.
    pub(super) const fn saw_no_queue(&self) -> bool {
        self.no_queue
    }

    /// How often the rate was reduced.
    pub(super) fn reductions(&self) -> u64 {
        self.reductions
    }

    /// The path was silent and is another one: half the rate, and everything else to be learnt.
    pub(super) fn begin_anew(&mut self, now: Instant, next_number: u64) {
        self.rate /= 2.0;
        self.test_in = TEST_AFTER;
        self.test_after = TEST_AFTER;
        self.interrupted();
        self.carried.clear();
        self.delivered.clear();
        self.losses.begin_anew();
        self.jitter = Jitter::default();
        if self.phase != Phase::Opening {
            self.phase = Phase::Startup { guess: self.rate, gain: GAIN, trial: Trial::of(next_number) };
        }
        self.begin_round(now, next_number);
    }

    /// The path was silent: what arrives now says nothing of the rate.
    pub(super) fn interrupted(&mut self) {
        self.sampler.clear();
        self.rate_before = 0.0;
    }

    /// So many packets were found lost without an acknowledgment.
    pub(super) fn lost(&mut self, packets: u64) {
        self.losses.take(0, packets, 0);
        self.round.packets += packets;
    }

    /// Takes an acknowledgment.
    pub(super) fn on_ack(&mut self, news: &News) -> Heed {
        let heed = self.take(news);
        if self.phase != Phase::Opening {
            self.rate = self.rate.max(self.least(news.srtt));
        }
        heed
    }

    /// A packet in a round trip: what the poorest path gets.
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
        match &mut self.phase {
            Phase::Opening => self.open(news),
            Phase::Startup { guess, gain, trial } if news.limit == Limit::Path => {
                let least = (news.srtt / 4, 6.0 * self.packet);
                let found = trial.take((number, arrival), self.arrived, least, self.jitter.bend());
                if let Some(found) = found {
                    let (guess, gain) = (*guess, *gain);
                    self.grow_fast(guess, gain, found, news);
                }
            }
            &mut Phase::Drain { until, was } if news.now >= until => {
                self.phase = Phase::Settle(was);
                self.begin_round(news.now, news.next_number);
            }
            _ => {}
        }
        if news.marks > 0 && matches!(self.phase, Phase::Startup { .. } | Phase::Cruise { .. }) {
            self.congested(news, queue.max(news.srtt / 8));
        }
        if self.beat.is_over(news.now, news.srtt) {
            self.on_beat(news);
        }
        let over = number >= self.round.end
            && self.round.packets >= ROUND_PACKETS
            && news.now.since(self.round.since) >= news.round
            && self.phase != Phase::Opening;
        if !over {
            return Heed::Nothing;
        }
        let heed = self.on_round(news);
        if heed == Heed::Refresh {
            self.phase = Phase::Refresh { rounds: 0 };
            self.refresh_after = news.base_age + REFRESH_AFTER;
            self.losses.begin_anew();
        }
        heed
    }

    /// How long a packet with this delay has waited in a queue.
    fn queue_of(&mut self, delay: Duration) -> Duration {
        self.jitter.take(delay);
        // Of what arrives, and not of what is sent: else whoever sends more would be forgiven more.
        let gap = self.packet / self.delivered.get().max(1.0);
        delay.saturating_sub(self.jitter.forgiven(self.config.jitter, gap))
    }

    /// Half a round trip is over, or more where little is acknowledged.
    fn on_beat(&mut self, news: &News) {
        let queue = core::mem::replace(&mut self.beat, Beat::new(news.now)).queue;
        if queue > self.queue_high() && matches!(self.phase, Phase::Startup { .. } | Phase::Cruise { .. }) {
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
        match self.phase {
            Phase::Opening | Phase::Drain { .. } => {}
            Phase::Startup { .. } | Phase::Cruise { .. } if round.limit == Limit::User => {
                self.losses.begin_anew()
            }
            Phase::Startup { .. } => {}
            Phase::Settle(was) => self.settle(was, seen, news),
            Phase::Refresh { rounds: 0 } => self.phase = Phase::Refresh { rounds: 1 },
            Phase::Refresh { .. } => self.follow(),
            Phase::Cruise { .. } if news.base_age > self.refresh_after => return Heed::Refresh,
            Phase::Compete(cubic) => self.compete(cubic, news),
            Phase::Test { settled: Settled::NotYet, rate, of } => {
                self.losses.begin_anew();
                self.phase = Phase::Test { settled: Settled::Yes, rate, of };
            }
            Phase::Test { settled: Settled::Yes, rate, of } => self.judge(rate, of, seen.queue),
            Phase::Cruise { step } => match self.losses.round(self.learns(step, seen)) {
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
        if round.limit == Limit::Path && !matches!(self.phase, Phase::Opening | Phase::Startup { .. }) {
            self.rate = self.rate.min(self.supported().max(self.floor));
        }
        Heed::Round
    }

    /// The highest rate that what arrived of late supports: what senders sum up to is then not much more than what the link carries, whatever
    /// each believes of its losses.
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

    /// Whether so long a queue was one, if it is gone now. What varies by itself, as a queue that is always full does, is less.
    fn was_a_queue(&self, queue: Duration) -> bool {
        queue >= self.queue_of_own().saturating_mul(3) / 4
    }

    /// The share of it that the flow's own packets take.
    fn queue_of_own(&self) -> Duration {
        let of_own = self.config.queue_packets * self.packet / self.rate.max(1.0);
        Duration::from_secs_f64(of_own.min(10.0))
    }

    fn queue_low(&self) -> Duration {
        Duration::from_secs_f64(self.queue_high().as_secs_f64() * self.config.queue_low)
    }
}
