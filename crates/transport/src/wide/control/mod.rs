//! How fast to send.
//!
//! The rate follows the link: it grows while packets do not wait on the way, first a little and then ever faster; where they wait longer than
//! [`queue_high`](super::ControlConfig::queue_high) for half a round trip, or are marked, or are lost more than usual, it goes back to
//! what the link was seen to carry, and below that until the queue has drained. Losses as usual change nothing.

mod compete;
mod losses;
mod rate;

pub(super) use rate::Arrival;

use super::config::ControlConfig;
use compete::Cubic;
use hopline_core::{Duration, Instant};
use losses::{Cause, Learns, Losses, Verdict};
use rate::{Largest, Sampler};

/// Samples of the queue that a verdict takes at least: one may have waited for something else.
const SAMPLES: u32 = 4;
/// A round trip has so many settled packets at least.
const ROUND_PACKETS: u64 = 4;
/// A link that carries less than this share of what is sent is saturated.
const FULL: f64 = 0.97;
/// Beyond the first guess the rate grows by this in a round trip, and by ever more in those after it, up to doubling.
const GAIN: f64 = 1.1;
/// The rate grows by a packet in this time, seconds, in this time.
const ADD: f64 = 0.05;
/// Where the window says how much may be under way, packets leave a little faster than it fills.
const COMPETE_PACE: f64 = 1.2;
/// After so many losses it is time to see whether those who fill the queue are still there.
const RECHECK: u32 = 4;
/// Share of the rate at which it is found out how long packets take without waiting; and how long what was found holds.
const REFRESH: f64 = 0.5;
const REFRESH_AFTER: Duration = Duration::from_secs(5);
/// By so much less is sent to see whether losses are the rate's.
const TEST: f64 = 0.8;
/// Usual losses beyond this are put to the test now and then: after so many round trips, and each time after twice as many.
const TESTED_ABOVE: f64 = 0.03;
const TEST_AFTER: u32 = 8;
/// A ceiling rises by this whenever the rate does.
const CEILING_RISES: f64 = 1.005;
const TEST_AT_LEAST: u32 = 512;

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
    /// What arrived.
    delivered: Largest<8>,
    losses: Losses,
    round: Round,
    beat: Beat,
    /// Round trips in a row in which there always was a queue.
    queued_rounds: u32,
    /// Round trips until losses are tested, and from that test to the next.
    test_in: u32,
    test_after: u32,
    /// A rate that was too high for the path without a queue to tell: it is approached with care.
    ceiling: f64,
    doubt: Doubt,
    /// Queues in a row that did not drain.
    undrained: u32,
    /// The rate before the first of these.
    before: f64,
    /// The window beside those who fill them.
    rival: Option<Cubic>,
    reductions: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// Nothing is known: the first packets are under way.
    Opening,
    /// Growing fast. `guess`: what the first packets said of the link; `gain`: by how much the rate grows beyond that.
    Startup { guess: f64, gain: f64, trial: Trial },
    /// Following the link; `step`: the share by which the rate grows next.
    Cruise { step: f64 },
    /// Letting a queue drain.
    Drain { until: Instant },
    /// Waiting for a round trip to tell what that did.
    Settle,
    /// Sending little for two round trips, so that packets come without waiting: how long that takes was last seen long ago.
    Refresh { rounds: u32 },
    /// Beside senders that keep the queue full, whatever we do.
    Compete(Cubic),
    /// Sending less to see whether losses are the rate's: what was seen of them, the rate to return to, and whether what arrives was sent
    /// so.
    Test { of: Evidence, rate: f64, settled: Settled },
}

/// What the link makes of a new rate.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Trial {
    /// The first packet that left so.
    from: u64,
    first: Option<Arrival>,
}

impl Trial {
    const fn of(from: u64) -> Self {
        Self { from, first: None }
    }

    /// What the link carried of it, once packets over so long and of so many bytes have arrived.
    fn take(&mut self, number: u64, arrival: Arrival, span: Duration, bytes: f64) -> Option<f64> {
        if number < self.from {
            return None;
        }
        let first = *self.first.get_or_insert(arrival);
        let enough = arrival.sent.since(first.sent) >= span && (arrival.upto - first.upto) as f64 >= bytes;
        enough.then(|| rate::between(first, arrival)).flatten()
    }
}

/// A share of packets that was lost, and the rate at which they were sent.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Evidence {
    share: f64,
    sent: f64,
}

/// Whether more than usual was lost: once may be chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doubt {
    None,
    Once,
}

/// Whether what arrives was sent since the phase began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Settled {
    NotYet,
    Yes,
}

/// What happened since the round trip began.
#[derive(Clone, Copy, Debug)]
struct Round {
    since: Instant,
    /// It is over when this packet is settled.
    end: u64,
    delivered: u64,
    packets: u64,
    /// Least queue.
    queue: Option<Duration>,
    limit: Limit,
}

/// The same over half a round trip, for what must not wait.
#[derive(Clone, Copy, Debug)]
struct Beat {
    since: Instant,
    samples: u32,
    queue: Duration,
}

/// What a round trip told. Rates are bytes per second.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// What the link carried.
    carried: f64,
    /// What arrived.
    delivered: f64,
    /// How fast it was sent.
    sent: f64,
    /// Least queue.
    queue: Duration,
}

impl Seen {
    /// Whether the link carried less than was sent.
    fn is_saturated(&self) -> bool {
        self.carried < self.sent * FULL
    }
}

/// What held the sender back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    /// Rate or window.
    Path,
    /// Its user, or the peer's room.
    User,
}

/// What the endpoint is to heed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heed {
    Nothing,
    /// A round trip is over.
    Round,
    /// The same; and how long packets take without waiting is to be learnt anew.
    Refresh,
}

/// What an acknowledgment told.
#[derive(Clone, Copy, Debug)]
pub(super) struct News {
    pub(super) now: Instant,
    /// Its largest number, if that is new: the arrival, and how long it waited on the way.
    pub(super) newest: Option<(u64, Arrival, Duration)>,
    /// Bytes that arrived, headers included; packets that arrived; packets that are lost.
    pub(super) delivered: u64,
    pub(super) packets: u64,
    pub(super) lost: u64,
    /// Of those that arrived, those that had been taken for lost.
    pub(super) late: u64,
    /// Packets that were marked.
    pub(super) marks: u32,
    pub(super) limit: Limit,
    /// The number of the packet that leaves next.
    pub(super) next_number: u64,
    pub(super) srtt: Duration,
    /// For how long no packet has come without waiting.
    pub(super) base_age: Duration,
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
            losses: Losses::new(config.excess),
            round: Round::new(Instant::ZERO, 0),
            beat: Beat::new(Instant::ZERO),
            queued_rounds: 0,
            test_in: TEST_AFTER,
            test_after: TEST_AFTER,
            ceiling: f64::INFINITY,
            doubt: Doubt::None,
            undrained: 0,
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
            Phase::Startup { .. } | Phase::Cruise { .. } | Phase::Settle | Phase::Test { .. } => Some(self.rate),
        }
    }

    /// Bytes that may be under way.
    pub(super) fn window(&self, least_rtt: Duration, reordering: Duration) -> u64 {
        let packets = f64::from(self.config.initial_window) * self.packet;
        if self.phase == Phase::Opening {
            return packets as u64;
        }
        if let Phase::Compete(cubic) = self.phase {
            return (cubic.window() * self.packet) as u64;
        }
        let seconds = least_rtt.as_secs_f64() * self.config.in_flight + reordering.as_secs_f64();
        (self.rate * seconds + 4.0 * self.packet) as u64
    }

    /// The state, for people.
    pub(super) fn describe(&self) -> String {
        format!("{:.2} Mb/s carried {:.2} {:?} usual {:.3} queued {}", self.rate * 8e-6, self.carried.get() * 8e-6, self.phase, self.losses.usual(), self.queued_rounds)
    }

    /// The connection is open: what was learnt of its opening says nothing of the link's rate.
    pub(super) fn established(&mut self) {
        self.sampler.clear();
        self.carried.clear();
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
            // A packet in a round trip is what the poorest path gets.
            self.rate = self.rate.max(self.packet / news.srtt.as_secs_f64().max(1e-3));
        }
        heed
    }

    fn take(&mut self, news: &News) -> Heed {
        self.losses.take(news.packets, news.lost, news.late);
        self.round.delivered += news.delivered;
        self.round.packets += news.packets + news.lost;
        if news.limit == Limit::User {
            self.round.limit = Limit::User;
        }
        let Some((number, arrival, queue)) = news.newest else { return Heed::Nothing };
        if let Some(rate) = self.sampler.take(arrival, news.srtt / 2) {
            self.carried.sample(rate);
            self.now_carried = rate;
        }
        self.round.queue = Some(self.round.queue.map_or(queue, |least| least.min(queue)));
        self.beat.take(queue);
        match &mut self.phase {
            Phase::Opening => self.open(news),
            Phase::Startup { guess, gain, trial } if news.limit == Limit::Path => {
                if let Some(carried) = trial.take(number, arrival, news.srtt / 4, 6.0 * self.packet) {
                    let (guess, gain) = (*guess, *gain);
                    self.grow_fast(guess, gain, carried, news);
                }
            }
            Phase::Drain { until } if news.now >= *until => {
                self.phase = Phase::Settle;
                self.begin_round(news.now, news.next_number);
            }
            _ => {}
        }
        if self.beat.is_over(news.now, news.srtt) {
            self.on_beat(news);
        }
        let over = number >= self.round.end
            && self.round.packets >= ROUND_PACKETS
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

    /// The first packets left together: how far apart they arrived is a first guess.
    fn open(&mut self, news: &News) {
        let first = self.config.initial_window;
        if self.round.packets + 2 < u64::from(first) && news.limit == Limit::Path && !self.sampler.is_beyond_burst() {
            return;
        }
        let by_window = f64::from(first) * self.packet / news.srtt.as_secs_f64().max(1e-6);
        let guess = self.sampler.burst(3.0 * self.packet).unwrap_or(by_window);
        self.rate = (guess / 2.0).max(by_window / 2.0);
        self.phase = Phase::Startup { guess, gain: GAIN, trial: Trial::of(news.next_number) };
        self.begin_round(news.now, news.next_number);
    }

    /// Half a round trip is over.
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
        self.queued_rounds = if seen.queue < self.queue_low() { 0 } else { self.queued_rounds + 1 };
        self.carried.round();
        self.delivered.sample(seen.delivered);
        self.delivered.round();
        self.begin_round(news.now, news.next_number);
        match self.phase {
            Phase::Opening | Phase::Drain { .. } => {}
            Phase::Startup { .. } | Phase::Cruise { .. } if round.limit == Limit::User => self.losses.begin_anew(),
            Phase::Startup { .. } => {}
            Phase::Settle => self.settle(seen, news),
            Phase::Refresh { rounds: 0 } => self.phase = Phase::Refresh { rounds: 1 },
            Phase::Refresh { .. } => self.follow(),
            Phase::Cruise { .. } if news.base_age > self.refresh_after => return Heed::Refresh,
            Phase::Compete(cubic) => self.compete(cubic, seen, news),
            Phase::Test { settled: Settled::NotYet, rate, of } => {
                self.losses.begin_anew();
                self.phase = Phase::Test { settled: Settled::Yes, rate, of };
            }
            Phase::Test { settled: Settled::Yes, rate, of } => self.judge(rate, of),
            Phase::Cruise { step } => match self.losses.round(self.learns(step, seen)) {
                Verdict::Excess(_) if seen.queue >= self.queue_low() => self.congested(news, seen.queue),
                Verdict::Excess(_) if self.doubt == Doubt::None => self.doubt = Doubt::Once,
                Verdict::Excess(share) => self.test(Evidence { share, sent: seen.sent }),
                Verdict::Usual(share) if self.is_test_due() => self.test(Evidence { share, sent: seen.sent }),
                Verdict::Open if self.doubt == Doubt::Once => {}
                Verdict::Open | Verdict::Usual(_) => {
                    self.doubt = Doubt::None;
                    self.grow(step, seen, news);
                }
            },
        }
        Heed::Round
    }

    /// Twice as fast as before, up to what the first packets let hope for; beyond, with care at first.
    fn grow_fast(&mut self, guess: f64, gain: f64, carried: f64, news: &News) {
        let found = match self.losses.growing() {
            Verdict::Excess(share) => Some(self.through(Evidence { share, sent: self.rate })),
            Verdict::Open | Verdict::Usual(_) if carried < self.rate * FULL => Some(carried),
            Verdict::Open | Verdict::Usual(_) => None,
        };
        if let Some(found) = found {
            self.rate = self.rate.min(found);
            return self.follow();
        }
        let up_to_guess = self.rate * 2.0 <= guess * 1.01;
        self.rate *= if up_to_guess { 2.0 } else { gain };
        let gain = if up_to_guess { gain } else { (gain * gain).min(2.0) };
        self.phase = Phase::Startup { guess, gain, trial: Trial::of(news.next_number) };
    }

    /// A round trip has told what draining did.
    fn settle(&mut self, seen: Seen, news: &News) {
        if seen.queue < self.queue_low() {
            self.losses.drained(self.config.drain * self.config.keep);
        }
        self.undrained = if seen.queue < self.queue_high() { 0 } else { self.undrained + 1 };
        self.follow();
        if self.undrained >= self.config.undrained {
            let packets = self.before.max(self.rate) * news.srtt.as_secs_f64() / self.packet;
            let cubic = self.rival.unwrap_or(Cubic::new(news.now, packets));
            self.rival = Some(cubic);
            self.phase = Phase::Compete(cubic);
        } else if self.undrained == 0 {
            self.rival = None;
        }
    }

    /// Grows as those do that fill the queue, until it empties.
    fn compete(&mut self, mut cubic: Cubic, seen: Seen, news: &News) {
        let srtt = news.srtt.as_secs_f64();
        let lost = self.losses.queue_lost();
        if lost {
            cubic.lose(news.now);
        } else {
            cubic.grow(news.now, srtt);
        }
        self.rate = cubic.window() * self.packet / srtt;
        (self.rival, self.phase) = (Some(cubic), Phase::Compete(cubic));
        self.reductions += u64::from(lost);
        if lost && cubic.losses() % RECHECK == 0 {
            self.undrained = self.config.undrained - 1;
            self.drain(news, seen.queue);
        } else if seen.queue < self.queue_low() {
            (self.undrained, self.rival) = (0, None);
            self.follow();
        }
    }

    fn learns(&self, step: f64, seen: Seen) -> Learns {
        let steady = step <= self.config.step && seen.queue < self.queue_high() / 2;
        if steady { Learns::Yes } else { Learns::No }
    }

    /// Whether a test of the losses is due.
    fn is_test_due(&mut self) -> bool {
        self.test_in = self.test_in.saturating_sub(1);
        self.test_in == 0 && self.losses.usual() > TESTED_ABOVE && self.rate_before > 0.0
    }

    /// Sends less for a while to see whether the share that is lost becomes less.
    fn test(&mut self, of: Evidence) {
        self.phase = Phase::Test { of, rate: self.rate, settled: Settled::NotYet };
        self.rate = self.rate.min(of.sent) * TEST;
    }

    /// What would have been enough for what came through.
    fn through(&self, seen: Evidence) -> f64 {
        seen.sent * (1.0 - seen.share) / (1.0 - self.losses.usual().min(0.9))
    }

    fn judge(&mut self, rate: f64, of: Evidence) {
        let Some((cause, share)) = self.losses.test(of.share, self.rate / of.sent) else { return };
        match cause {
            Cause::Path => {
                self.rate = rate;
                self.test_after = (self.test_after * 2).min(TEST_AT_LEAST);
            }
            Cause::Rate => {
                self.rate = self.rate.min(self.through(Evidence { share, sent: self.rate }));
                self.ceiling = self.rate;
                self.test_after = TEST_AFTER;
                self.reductions += 1;
            }
        }
        self.test_in = self.test_after;
        self.follow();
    }

    fn follow(&mut self) {
        self.doubt = Doubt::None;
        self.losses.begin_anew();
        self.phase = Phase::Cruise { step: self.config.step };
    }

    fn grow(&mut self, step: f64, seen: Seen, news: &News) {
        let add = self.packet * news.srtt.as_secs_f64() / (ADD * ADD);
        let mut next = step;
        if seen.is_saturated() || seen.queue >= self.queue_low() {
            next = self.config.step;
        }
        if seen.is_saturated() {
            self.rate = self.rate.min(seen.carried) + add;
        } else if seen.queue < self.queue_low() && seen.carried >= self.rate * FULL {
            self.rate += self.rate * step + add;
            let most = self.delivered.get() / (1.0 - self.losses.usual().min(0.9)) * 2.0;
            self.rate = self.rate.min(most.max(self.packet / news.srtt.as_secs_f64()));
            self.ceiling *= CEILING_RISES;
            next = if self.rate < self.ceiling * FULL { (step * 2.0).min(self.config.step_max) } else { self.config.step };
        }
        self.phase = Phase::Cruise { step: next };
    }

    /// Packets wait too long: back to what the link carries, and below it for as long as the queue takes to drain.
    fn congested(&mut self, news: &News, queue: Duration) {
        if self.undrained == 0 {
            self.before = self.rate.min(self.now_carried.max(self.packet));
        }
        self.reduce(self.now_carried);
        self.drain(news, queue);
    }

    fn drain(&mut self, news: &News, queue: Duration) {
        self.test_in = self.test_after;
        let below = 1.0 - self.config.drain * self.config.keep;
        let most = news.srtt.as_secs_f64() * f64::from(self.config.drain_rounds);
        let seconds = (queue.as_secs_f64() / below).min(most);
        self.phase = Phase::Drain { until: news.now + Duration::from_secs_f64(seconds) };
        self.losses.begin_anew();
        self.begin_round(news.now, news.next_number);
    }

    fn reduce(&mut self, carried: f64) {
        if carried > 0.0 {
            self.rate = self.rate.min(carried);
        }
        self.rate *= self.config.keep;
        self.reductions += 1;
    }

    fn begin_round(&mut self, now: Instant, next_number: u64) {
        self.round = Round::new(now, next_number);
        self.beat = Beat::new(now);
    }

    fn queue_high(&self) -> Duration {
        let of_own = self.config.queue_packets * self.packet / self.rate.max(1.0);
        self.config.queue_high + Duration::from_secs_f64(of_own.min(10.0))
    }

    fn queue_low(&self) -> Duration {
        Duration::from_secs_f64(self.queue_high().as_secs_f64() * self.config.queue_low)
    }
}

impl Round {
    const fn new(since: Instant, end: u64) -> Self {
        Self { since, end, delivered: 0, packets: 0, queue: None, limit: Limit::Path }
    }
}

impl Beat {
    const fn new(since: Instant) -> Self {
        Self { since, samples: 0, queue: Duration::from_secs(3600) }
    }

    fn take(&mut self, queue: Duration) {
        self.samples += 1;
        self.queue = self.queue.min(queue);
    }

    fn is_over(&self, now: Instant, srtt: Duration) -> bool {
        self.samples >= SAMPLES && now.since(self.since) >= srtt / 2
    }
}
