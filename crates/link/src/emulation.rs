//! A seeded emulated link: rate, queue, latency, loss at random or in bursts, reordering, duplication, corruption,
//! blackouts. One model for virtual time and for real sockets.

use crate::course::{Condition, Opportunities, Position, index_at};
use crate::loss::Losses;
use hopline_core::{Duration, Instant, Purpose, Stream};
use std::collections::VecDeque;
use std::sync::Arc;

/// Impairments of one direction of a link, applied in this order: queue, rate, blackouts, loss, corruption, jitter,
/// reordering, duplication. A lost packet has used the rate, as a packet lost on the air has. The default is perfect and
/// instant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Emulation {
    /// Propagation delay.
    pub latency: Duration,
    /// Rate in bits per second; `None`: no serialisation delay.
    pub rate: Option<u64>,
    /// Delivery opportunities, in place of a rate; `None`: use the rate.
    pub opportunities: Option<Arc<Opportunities>>,
    /// Changes of rate, delay and loss, sorted by time. Rates have no effect beside opportunities.
    pub conditions: Option<Arc<[Condition]>>,
    /// Queue limit in packets, without the one in transmission; `None`: no limit.
    pub queue: Option<usize>,
    /// Loss rate, 0 to 1.
    pub loss: f64,
    /// Mean length of a loss burst, in packets (Gilbert–Elliott: all packets are lost in the bad state, and none in the good
    /// one). `None`: independent losses. A burst shorter than those of independent losses, 1 / (1 − `loss`), counts as one
    /// of that length.
    pub burst: Option<f64>,
    /// Delay jitter: the largest additional delay of a packet, drawn uniformly, as on a medium with contention. Packets keep
    /// their order unless `overtakes` is set.
    pub jitter: Duration,
    /// Permission to reorder: packets with less jitter or under a new condition overtake earlier packets, as after a route
    /// change.
    pub overtakes: bool,
    /// Probability that a packet gets the additional delay, and may be reordered.
    pub reorder: f64,
    /// Additional delay of a reordered packet.
    pub extra_delay: Duration,
    /// Distribution of the additional delay.
    pub extra: Extra,
    /// Probability that a packet is duplicated; the copy is delayed like a reordered packet.
    pub duplicate: f64,
    /// Probability that a bit of the packet is flipped.
    pub corrupt: f64,
    /// Probability that an ECN-capable packet is marked (RFC 3168); in virtual time only.
    pub mark: f64,
    /// Blackouts, from start to end: packets sent meanwhile are lost.
    pub blackouts: Vec<(Instant, Instant)>,
}

/// Distribution of the additional delay of a reordered packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Extra {
    /// Uniform from zero to `extra_delay`.
    #[default]
    UpTo,
    /// Always `extra_delay`.
    Exactly,
}

impl Emulation {
    /// Returns an emulation with a delay only.
    #[must_use]
    pub fn delay(latency: Duration) -> Self {
        Self { latency, ..Self::default() }
    }
}

/// Counters of one direction of a link. Every packet that was sent was dropped by the queue, blacked out, lost or delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Packets handed to the link.
    pub sent: u64,
    /// Bytes handed to the link, from the network layer's header on.
    pub sent_bytes: u64,
    /// Packets that will arrive or have arrived, corrupted ones included; a duplicated one counts once.
    pub delivered: u64,
    /// Packets dropped because the queue was full.
    pub queue_drops: u64,
    /// Packets lost in a blackout.
    pub blacked_out: u64,
    /// Packets that were lost at random or in a burst.
    pub lost: u64,
    /// Loss bursts: lost packets that follow one that was not lost.
    pub bursts: u64,
    /// Packets with the additional delay.
    pub reordered: u64,
    /// Packets that arrive twice.
    pub duplicated: u64,
    /// Packets with a flipped bit.
    pub corrupted: u64,
    /// Largest number of packets that waited at once.
    pub longest_queue: u64,
    /// Sum of the times that packets waited for the rate before their own serialisation.
    pub waited: Duration,
}

impl Counts {
    /// Returns the mean time of a packet in the queue; zero without packets.
    #[must_use]
    pub fn mean_wait(&self) -> Duration {
        Duration::from_nanos(self.waited.as_nanos() / (self.sent - self.queue_drops).max(1))
    }
}

/// Copies of one packet, each with its arrival time and fate.
pub type Copies = [Option<(Instant, Fate)>; 2];

const GONE: Copies = [None, None];

/// State in which a copy arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Unchanged.
    Whole,
    /// With a flipped bit.
    Corrupt,
}

/// One direction of a link.
///
/// # Example
///
/// ```
/// use hopline_core::{Duration, Instant};
/// use hopline_link::{Direction, Emulation, Fate};
///
/// let mut link = Direction::new(Emulation::delay(Duration::from_millis(25)), 1, 0);
/// let [first, copy] = link.carry(Instant::ZERO, 1500);
/// assert_eq!(first, Some((Instant::from_millis(25), Fate::Whole)));
/// assert_eq!(copy, None);
/// ```
#[derive(Clone, Debug)]
pub struct Direction {
    emulation: Emulation,
    /// Source of the other random choices: which bit is flipped.
    pub random: Stream,
    losses: Losses,
    /// Loss rate to which `losses` is set.
    loss: f64,
    /// Time at which the sender has serialised all enqueued bytes.
    free_at: Instant,
    /// Position among the opportunities.
    position: Position,
    /// Times at which transmission of the waiting packets begins.
    waiting: VecDeque<Instant>,
    /// Arrival time of the latest packet that was not reordered.
    latest: Instant,
    counts: Counts,
}

impl Direction {
    /// Creates the direction of packets that `owner` sends. The same seed, owner and packets at the same times give the same
    /// fates.
    #[must_use]
    pub fn new(emulation: Emulation, seed: u64, owner: u64) -> Self {
        let mut random = Stream::keyed(seed, 0, owner, Purpose::Emulation);
        Self {
            losses: Losses::new(emulation.loss, emulation.burst, &mut random),
            loss: emulation.loss,
            emulation,
            random,
            free_at: Instant::ZERO,
            position: Position::default(),
            waiting: VecDeque::new(),
            latest: Instant::ZERO,
            counts: Counts::default(),
        }
    }

    /// Replaces the impairments from now on.
    pub fn change(&mut self, emulation: Emulation) {
        self.losses = Losses::new(emulation.loss, emulation.burst, &mut self.random);
        self.loss = emulation.loss;
        self.position = Position::default();
        self.emulation = emulation;
    }

    /// Returns the counters so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns whether the next packet is to be marked.
    pub fn marks(&mut self) -> bool {
        self.emulation.mark > 0.0 && self.random.bernoulli(self.emulation.mark)
    }

    /// Sends `len` bytes at `now`.
    pub fn carry(&mut self, now: Instant, len: usize) -> Copies {
        self.counts.sent += 1;
        self.counts.sent_bytes += len as u64;
        let Some(sent_at) = self.serialise(now, len) else {
            self.counts.queue_drops += 1;
            return GONE;
        };
        if self.emulation.blackouts.iter().any(|&(from, until)| (from..until).contains(&sent_at)) {
            self.counts.blacked_out += 1;
            return GONE;
        }
        let condition = self.condition_at(sent_at);
        if let Some(position) = self.losses.next(&mut self.random) {
            self.counts.lost += 1;
            self.counts.bursts += u64::from(position == 0);
            return GONE;
        }
        self.counts.delivered += 1;
        self.propagate(sent_at, condition)
    }

    /// Returns the condition of a packet that has been sent, and applies its loss rate. A burst continues as long as the
    /// loss rate stays the same.
    fn condition_at(&mut self, sent_at: Instant) -> Condition {
        let Some(conditions) = &self.emulation.conditions else { return Condition::default() };
        let condition =
            index_at(conditions, sent_at).map_or_else(Condition::default, |index| conditions[index]);
        let loss = condition.loss.unwrap_or(self.emulation.loss);
        if loss != self.loss {
            self.loss = loss;
            self.losses = Losses::new(loss, self.emulation.burst, &mut self.random);
        }
        condition
    }

    /// Returns the rate of a packet with transmission from `start` on.
    fn rate_at(&self, start: Instant) -> Option<u64> {
        let conditions = self.emulation.conditions.as_deref().unwrap_or_default();
        let condition = index_at(conditions, start).map(|index| conditions[index]);
        condition.and_then(|condition| condition.rate).or(self.emulation.rate)
    }

    /// Returns the time at which the last bit leaves the sender, or `None` if the queue is full.
    fn serialise(&mut self, now: Instant, len: usize) -> Option<Instant> {
        let opportunities = self.emulation.opportunities.clone();
        let start = match &opportunities {
            Some(all) => self.position.start(all, now),
            None => self.free_at.max(now),
        };
        let rate = self.rate_at(start);
        if opportunities.is_none() && rate.is_none() {
            self.free_at = start;
            return Some(start);
        }
        while self.waiting.front().is_some_and(|&start| start <= now) {
            self.waiting.pop_front();
        }
        if start > now {
            if self.emulation.queue.is_some_and(|most| self.waiting.len() >= most) {
                return None;
            }
            self.waiting.push_back(start);
            self.counts.longest_queue = self.counts.longest_queue.max(self.waiting.len() as u64);
            self.counts.waited += start - now;
        }
        self.free_at = match (&opportunities, rate) {
            (Some(all), _) => self.position.send(all, now, len).1,
            (None, Some(rate)) => start + Duration::of_bits(len as u64 * 8, rate),
            (None, None) => start,
        };
        Some(self.free_at)
    }

    /// Returns the copies of a packet that is not lost.
    fn propagate(&mut self, sent_at: Instant, condition: Condition) -> Copies {
        let e = &self.emulation;
        let fate = if self.random.bernoulli(e.corrupt) { Fate::Corrupt } else { Fate::Whole };
        let late = self.random.bernoulli(e.reorder);
        let twice = self.random.bernoulli(e.duplicate);
        self.counts.corrupted += u64::from(fate == Fate::Corrupt);
        self.counts.reordered += u64::from(late);
        self.counts.duplicated += u64::from(twice);
        let mut arrival = sent_at + condition.latency.unwrap_or(e.latency);
        if !e.jitter.is_zero() {
            arrival += self.random.duration_below(e.jitter);
        }
        if (!e.jitter.is_zero() || e.conditions.is_some()) && !e.overtakes {
            self.latest = self.latest.max(arrival);
            arrival = self.latest;
        }
        let mut extra = || match e.extra {
            Extra::UpTo => self.random.duration_below(e.extra_delay),
            Extra::Exactly => e.extra_delay,
        };
        let first = if late { arrival + extra() } else { arrival };
        [Some((first, fate)), twice.then(|| (arrival + extra(), Fate::Whole))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Instant {
        Instant::from_millis(n)
    }

    fn first(copies: Copies) -> Option<Instant> {
        copies[0].map(|(at, _)| at)
    }

    #[test]
    fn packets_wait_for_each_other_and_the_full_queue_drops() {
        let e = Emulation {
            rate: Some(8_000_000),
            queue: Some(1),
            ..Emulation::delay(Duration::from_millis(10))
        };
        let mut d = Direction::new(e, 1, 0);
        // 1000 bytes take 1 ms.
        assert_eq!(first(d.carry(ms(0), 1000)), Some(ms(11)));
        assert_eq!(first(d.carry(ms(0), 1000)), Some(ms(12)));
        assert_eq!(first(d.carry(ms(0), 1000)), None);
        assert_eq!(first(d.carry(ms(5), 1000)), Some(ms(16)));
        let counts = d.counts();
        assert_eq!((counts.sent, counts.delivered, counts.queue_drops), (4, 3, 1));
        assert_eq!((counts.sent_bytes, counts.longest_queue), (4000, 1));
        assert_eq!(counts.waited, Duration::from_millis(1));
        assert_eq!(counts.mean_wait(), Duration::from_micros(333) + Duration::from_nanos(333));
    }

    #[test]
    fn jitter_delays_packets_by_up_to_its_length_and_keeps_their_order() {
        let jitter = Duration::from_millis(8);
        let e = Emulation { jitter, ..Emulation::delay(Duration::from_millis(10)) };
        let mut d = Direction::new(e, 1, 0);
        let sent = |n: u64| Instant::from_nanos(n * 500_000);
        let arrivals: Vec<_> = (0..1000).map(|n| first(d.carry(sent(n), 1000)).unwrap()).collect();
        assert!(arrivals.is_sorted());
        let later: Vec<_> =
            (0..).zip(&arrivals).map(|(n, &at)| at - (sent(n) + Duration::from_millis(10))).collect();
        assert!(later.iter().all(|&by| by < jitter));
        let spread = later.iter().max().unwrap().saturating_sub(*later.iter().min().unwrap());
        assert!(spread > Duration::from_millis(4), "{spread}");
    }

    #[test]
    fn the_queue_counts_packets_whatever_their_length() {
        let e = Emulation { rate: Some(8_000_000), queue: Some(2), ..Emulation::default() };
        let mut d = Direction::new(e, 1, 0);
        assert_eq!(first(d.carry(ms(0), 10_000)), Some(ms(10)));
        assert!(first(d.carry(ms(0), 1)).is_some());
        assert!(first(d.carry(ms(0), 10_000)).is_some());
        assert_eq!(first(d.carry(ms(9), 1)), None);
        assert!(first(d.carry(ms(10), 1)).is_some(), "the first two are out of the queue by now");
    }

    #[test]
    fn a_queue_of_none_sends_only_when_idle() {
        let e = Emulation { rate: Some(8_000_000), queue: Some(0), ..Emulation::default() };
        let mut d = Direction::new(e, 1, 0);
        assert_eq!(first(d.carry(ms(0), 1000)), Some(ms(1)));
        assert_eq!(first(d.carry(ms(0), 1000)), None);
        assert_eq!(first(d.carry(ms(1), 1000)), Some(ms(2)));
    }

    #[test]
    fn nothing_gets_through_a_blackout_or_certain_loss() {
        let e = Emulation { blackouts: vec![(ms(1), ms(2))], ..Emulation::default() };
        let mut d = Direction::new(e, 1, 0);
        assert_eq!(first(d.carry(ms(0), 1)), Some(ms(0)));
        assert_eq!(first(d.carry(ms(1), 1)), None);
        assert_eq!(first(d.carry(ms(2), 1)), Some(ms(2)));
        assert_eq!(d.counts().blacked_out, 1);
        for burst in [None, Some(4.0)] {
            let mut d = Direction::new(Emulation { loss: 1.0, burst, ..Emulation::default() }, 1, 0);
            assert!((0..100).all(|n| first(d.carry(ms(n), 1)).is_none()));
            assert_eq!((d.counts().lost, d.counts().bursts), (100, 1));
        }
    }

    #[test]
    fn what_is_lost_has_used_the_rate() {
        let e = Emulation { rate: Some(8_000_000), loss: 0.5, ..Emulation::default() };
        let mut d = Direction::new(e, 1, 0);
        let arrivals: Vec<Instant> = (0..100).filter_map(|_| first(d.carry(ms(0), 1000))).collect();
        assert!(arrivals.len() < 70 && arrivals.last() > Some(&ms(90)), "{arrivals:?}");
    }

    #[test]
    fn certain_duplication_corruption_and_reordering() {
        let e = Emulation {
            duplicate: 1.0,
            corrupt: 1.0,
            reorder: 1.0,
            extra_delay: Duration::from_millis(50),
            ..Emulation::delay(Duration::from_millis(10))
        };
        let mut d = Direction::new(e.clone(), 1, 0);
        let [a, b] = d.carry(ms(0), 1);
        let (a, b) = (a.expect("arrives"), b.expect("arrives twice"));
        assert_eq!((a.1, b.1), (Fate::Corrupt, Fate::Whole));
        assert!(a.0 > ms(10) && a.0 < ms(60) && b.0 < ms(60) && a.0 != b.0);
        let counts = d.counts();
        assert_eq!((counts.delivered, counts.duplicated, counts.corrupted, counts.reordered), (1, 1, 1, 1));
        let mut d = Direction::new(Emulation { extra: Extra::Exactly, ..e }, 1, 0);
        assert_eq!(d.carry(ms(0), 1), [Some((ms(60), Fate::Corrupt)), Some((ms(60), Fate::Whole))]);
    }

    #[test]
    fn packets_leave_when_the_trace_lets_them() {
        let times = [5, 20].map(Duration::from_millis).to_vec();
        let opportunities = Opportunities::new(times).map(Arc::new).ok();
        let e = Emulation { opportunities, queue: Some(2), ..Emulation::delay(Duration::from_millis(1)) };
        let mut d = Direction::new(e, 1, 0);
        assert_eq!(first(d.carry(ms(0), 1500)), Some(ms(6)));
        assert_eq!(first(d.carry(ms(0), 1500)), Some(ms(21)));
        assert_eq!(first(d.carry(ms(0), 1500)), None, "two wait");
        assert_eq!(first(d.carry(ms(6), 1500)), Some(ms(26)), "the first has left");
        let counts = d.counts();
        assert_eq!((counts.queue_drops, counts.longest_queue), (1, 2));
        assert_eq!(counts.waited, Duration::from_millis(5 + 20 + 19));
    }

    #[test]
    fn conditions_hold_from_their_time_on() {
        let condition = |from, rate, latency: Option<u64>, loss| Condition {
            from: ms(from),
            rate,
            latency: latency.map(Duration::from_millis),
            loss,
        };
        let conditions = [
            condition(10, None, Some(50), None),
            condition(20, Some(800_000), Some(5), Some(1.0)),
            condition(40, None, Some(5), Some(0.0)),
        ];
        let e = Emulation {
            conditions: Some(Arc::from(conditions)),
            ..Emulation::delay(Duration::from_millis(1))
        };
        let mut d = Direction::new(e, 1, 0);
        assert_eq!(first(d.carry(ms(0), 100)), Some(ms(1)));
        assert_eq!(first(d.carry(ms(10), 100)), Some(ms(60)));
        assert_eq!(first(d.carry(ms(20), 1000)), None);
        assert_eq!(d.free_at, ms(30), "at the rate of that time");
        assert_eq!(first(d.carry(ms(40), 100)), Some(ms(60)), "none overtakes another");
        assert_eq!(first(d.carry(ms(70), 100)), Some(ms(75)));
        assert_eq!((d.counts().lost, d.counts().delivered), (1, 4));
    }

    #[test]
    fn a_shorter_route_overtakes_where_packets_may() {
        let shorter =
            Condition { from: ms(10), latency: Some(Duration::from_millis(5)), ..Condition::default() };
        let route = |overtakes| Emulation {
            conditions: Some(Arc::from([shorter])),
            overtakes,
            ..Emulation::delay(Duration::from_millis(50))
        };
        for (overtakes, second) in [(true, ms(15)), (false, ms(59))] {
            let mut d = Direction::new(route(overtakes), 1, 0);
            assert_eq!(first(d.carry(ms(9), 100)), Some(ms(59)));
            assert_eq!(first(d.carry(ms(10), 100)), Some(second));
        }
    }

    #[test]
    fn bursts_of_losses_go_on_while_other_conditions_change() {
        let delays = (0..20_000).map(|n| Condition {
            from: ms(n),
            latency: Some(Duration::from_millis(n % 2)),
            ..Condition::default()
        });
        let replayed = Emulation { conditions: Some(delays.collect()), ..Emulation::default() };
        for e in [Emulation::default(), replayed] {
            let e = Emulation { loss: 0.1, burst: Some(20.0), ..e };
            let mut d = Direction::new(e, 1, 0);
            for n in 0..20_000 {
                d.carry(ms(n), 1);
            }
            let counts = d.counts();
            let mean = counts.lost as f64 / counts.bursts as f64;
            assert!((15.0..25.0).contains(&mean), "bursts of {mean} packets: {counts:?}");
        }
    }

    #[test]
    fn same_seed_same_fates_and_each_direction_its_own() {
        let e = Emulation { loss: 0.2, burst: Some(3.0), reorder: 0.1, ..Emulation::default() };
        let fates = |seed, owner| {
            let mut d = Direction::new(e.clone(), seed, owner);
            (0..200).map(|n| d.carry(ms(n), 1)).collect::<Vec<_>>()
        };
        assert_eq!(fates(1, 0), fates(1, 0));
        assert_ne!(fates(1, 0), fates(2, 0));
        assert_ne!(fates(1, 0), fates(1, 1));
    }
}
