//! A seeded emulated link: rate, queue, latency, loss at random or in bursts, reordering, duplication, corruption,
//! blackouts. One model for virtual time and for real sockets.

use crate::conditions::{Condition, Opportunities, TraceCursor, index_at};
use crate::loss::GilbertElliott;
use core::fmt;
use hopline_core::{Duration, Instant, Purpose, RandomStream, settings};
use std::collections::VecDeque;
use std::sync::Arc;

settings! {
    /// Impairments of one direction of a link, applied in this order: queue, rate, blackouts, loss, corruption, jitter,
    /// reordering, duplication. A lost packet has used the rate, as a packet lost on the air has. The default is perfect and
    /// instant. Start from [`Emulation::delay`] or the default, and use the setters.
    ///
    /// # Example
    ///
    /// ```
    /// use hopline_link::Emulation;
    /// use std::time::Duration;
    ///
    /// let path = Emulation::delay(Duration::from_millis(25)).with_rate(Some(10_000_000)).with_loss(0.02);
    /// assert!(path.validate().is_ok());
    /// let error = path.with_loss(2.0).validate().expect_err("more than all packets");
    /// assert_eq!(error.to_string(), "loss must be 0 to 1");
    /// ```
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct Emulation {
        /// Propagation delay. Default 0.
        latency, with_latency: Duration as into,
        /// Rate in bits per second; `None` (default): no serialisation delay.
        rate, with_rate: Option<u64>,
        /// Delivery opportunities, in place of a rate; `None` (default): use the rate.
        opportunities, with_opportunities: Option<Arc<Opportunities>> as owned,
        /// Changes of rate, delay and loss, sorted by time. Rates have no effect beside opportunities. Default
        /// `None`.
        conditions, with_conditions: Option<Arc<[Condition]>> as owned,
        /// Queue limit in packets, without the one in transmission; `None` (default): no limit.
        queue, with_queue: Option<usize>,
        /// Loss rate. 0 to 1, default 0.
        loss, with_loss: f64,
        /// Mean length of a loss burst, in packets (Gilbert–Elliott: all packets are lost in the bad state, and none in the good
        /// one). `None` (default): independent losses. A burst shorter than those of independent losses, 1 / (1 − `loss`), counts as one
        /// of that length.
        burst, with_burst: Option<f64>,
        /// Delay jitter: the largest additional delay of a packet, drawn uniformly, as on a medium with contention. Packets keep
        /// their order unless [`allow_reordering`](Self::allow_reordering) is set. Default 0.
        jitter, with_jitter: Duration as into,
        /// Permission to reorder: packets with less jitter or under a new condition overtake earlier packets, as after a route
        /// change. Default `false`.
        allow_reordering, with_allow_reordering: bool,
        /// Probability that a packet gets the additional delay, and may be reordered. 0 to 1, default 0.
        reorder, with_reorder: f64,
        /// Additional delay of a reordered packet. Default 0.
        extra_delay, with_extra_delay: Duration as into,
        /// Distribution of the additional delay. Default uniform.
        extra_distribution, with_extra_distribution: DelayDistribution,
        /// Probability that a packet is duplicated; the copy is delayed like a reordered packet. 0 to 1,
        /// default 0.
        duplicate, with_duplicate: f64,
        /// Probability that a bit of the packet is flipped. 0 to 1, default 0.
        corrupt, with_corrupt: f64,
        /// Probability that an ECN-capable packet is marked (RFC 3168); in virtual time only. 0 to 1, default 0.
        mark, with_mark: f64,
        /// Blackouts, from start to end: packets sent meanwhile are lost. Default none.
        blackouts, with_blackouts: Vec<(Instant, Instant)> as owned,
    }
}

/// Distribution of the additional delay of a reordered packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DelayDistribution {
    /// Uniform from zero to `extra_delay`.
    #[default]
    Uniform,
    /// Always `extra_delay`.
    Fixed,
}

impl Emulation {
    /// Returns an emulation with a delay only.
    #[must_use]
    pub fn delay(latency: impl Into<Duration>) -> Self {
        Self::default().with_latency(latency)
    }

    /// Delivery opportunities, in place of a rate; `None` (default): use the rate.
    #[must_use]
    pub const fn opportunities(&self) -> Option<&Arc<Opportunities>> {
        self.opportunities.as_ref()
    }

    /// Changes of rate, delay and loss, sorted by time. Rates have no effect beside opportunities. Default `None`.
    #[must_use]
    pub const fn conditions(&self) -> Option<&Arc<[Condition]>> {
        self.conditions.as_ref()
    }

    /// Blackouts, from start to end: packets sent meanwhile are lost. Default none.
    #[must_use]
    pub fn blackouts(&self) -> &[(Instant, Instant)] {
        &self.blackouts
    }

    /// Checks every parameter against its range. A [`Direction`] takes a probability out of its range as the nearest bound.
    ///
    /// # Errors
    /// The first parameter that is out of range.
    pub fn validate(&self) -> Result<(), EmulationError> {
        let share = |x: f64| (0.0..=1.0).contains(&x);
        let conditions = self.conditions.as_deref().unwrap_or_default();
        let rules = [
            (self.rate != Some(0), "rate", "above 0"),
            (share(self.loss), "loss", "0 to 1"),
            (self.burst.is_none_or(|burst| burst >= 1.0), "burst", "at least 1 packet"),
            (share(self.reorder), "reorder", "0 to 1"),
            (share(self.duplicate), "duplicate", "0 to 1"),
            (share(self.corrupt), "corrupt", "0 to 1"),
            (share(self.mark), "mark", "0 to 1"),
            (conditions.is_sorted_by_key(|condition| condition.from), "conditions", "sorted by time"),
            (conditions.iter().all(|c| c.rate != Some(0)), "conditions.rate", "above 0"),
            (conditions.iter().all(|c| c.loss.is_none_or(share)), "conditions.loss", "0 to 1"),
            (self.blackouts.iter().all(|(from, until)| from <= until), "blackouts", "from start to end"),
        ];
        match rules.iter().find(|(ok, ..)| !ok) {
            Some(&(_, field, requirement)) => Err(EmulationError { field, requirement }),
            None => Ok(()),
        }
    }
}

/// Parameter of an emulation that is out of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EmulationError {
    /// Name of the parameter.
    pub field: &'static str,
    /// Permitted values.
    pub requirement: &'static str,
}

impl fmt::Display for EmulationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} must be {}", self.field, self.requirement)
    }
}

impl core::error::Error for EmulationError {}

/// Counters of one direction of a link. Every packet that was sent was dropped by the queue, blacked out, lost or delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DirectionStats {
    /// Packets handed to the link.
    pub sent: u64,
    /// Bytes handed to the link, from the network layer's header on.
    pub sent_bytes: u64,
    /// Packets that will arrive or have arrived, corrupted ones included; a duplicated one counts once.
    pub delivered: u64,
    /// Packets dropped because the queue was full.
    pub queue_drops: u64,
    /// Packets lost in a blackout.
    pub blackout_drops: u64,
    /// Packets that were lost at random or in a burst.
    pub losses: u64,
    /// Loss bursts: lost packets that follow one that was not lost.
    pub loss_bursts: u64,
    /// Packets with the additional delay.
    pub reordered: u64,
    /// Packets that arrive twice.
    pub duplicated: u64,
    /// Packets with a flipped bit.
    pub corrupted: u64,
    /// Largest number of packets that waited at once.
    pub max_queue: u64,
    /// Sum of the times that packets waited for the rate before their own serialisation.
    pub queueing_time: Duration,
}

impl DirectionStats {
    /// Returns the mean time of a packet in the queue; zero without packets.
    #[must_use]
    pub fn mean_queueing_delay(&self) -> Duration {
        Duration::from_nanos(self.queueing_time.as_nanos() / (self.sent - self.queue_drops).max(1))
    }
}

/// Copies of one packet, each with its arrival time and fate.
pub type Copies = [Option<(Instant, CopyState)>; 2];

const LOST: Copies = [None, None];

/// State in which a copy arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyState {
    /// Unchanged.
    Intact,
    /// With a flipped bit.
    Corrupted,
}

/// One direction of a link.
///
/// # Example
///
/// ```
/// use hopline_core::{Duration, Instant};
/// use hopline_link::{Direction, Emulation, CopyState};
///
/// let mut link = Direction::new(Emulation::delay(Duration::from_millis(25)), 1, 0);
/// let [first, copy] = link.transmit(Instant::ZERO, 1500);
/// assert_eq!(first, Some((Instant::from_millis(25), CopyState::Intact)));
/// assert_eq!(copy, None);
/// ```
#[derive(Clone, Debug)]
pub struct Direction {
    emulation: Emulation,
    /// Source of the other random choices: which bit is flipped.
    pub random: RandomStream,
    loss_model: GilbertElliott,
    /// Loss rate to which `losses` is set.
    current_loss: f64,
    /// Time at which the sender has serialised all enqueued bytes.
    busy_until: Instant,
    /// Position among the opportunities.
    cursor: TraceCursor,
    /// Times at which transmission of the waiting packets begins.
    queued: VecDeque<Instant>,
    /// Arrival time of the latest packet that was not reordered.
    latest_arrival: Instant,
    stats: DirectionStats,
}

impl Direction {
    /// Creates the direction of packets that `owner` sends. The same seed, owner and packets at the same times give the same
    /// fates.
    #[must_use]
    pub fn new(emulation: Emulation, seed: u64, owner: u64) -> Self {
        let mut random = RandomStream::keyed(seed, 0, owner, Purpose::Emulation);
        Self {
            loss_model: GilbertElliott::new(emulation.loss, emulation.burst, &mut random),
            current_loss: emulation.loss,
            emulation,
            random,
            busy_until: Instant::ZERO,
            cursor: TraceCursor::default(),
            queued: VecDeque::new(),
            latest_arrival: Instant::ZERO,
            stats: DirectionStats::default(),
        }
    }

    /// Replaces the impairments from now on.
    pub fn set_emulation(&mut self, emulation: Emulation) {
        self.loss_model = GilbertElliott::new(emulation.loss, emulation.burst, &mut self.random);
        self.current_loss = emulation.loss;
        self.cursor = TraceCursor::default();
        self.emulation = emulation;
    }

    /// Returns the counters so far.
    #[must_use]
    pub fn stats(&self) -> DirectionStats {
        self.stats
    }

    /// Returns whether the next packet is to be marked.
    pub fn draw_mark(&mut self) -> bool {
        self.emulation.mark > 0.0 && self.random.bernoulli(self.emulation.mark)
    }

    /// Sends `len` bytes at `now`.
    pub fn transmit(&mut self, now: Instant, len: usize) -> Copies {
        self.stats.sent += 1;
        self.stats.sent_bytes += len as u64;
        let Some(sent_at) = self.serialise(now, len) else {
            self.stats.queue_drops += 1;
            return LOST;
        };
        if self.emulation.blackouts.iter().any(|&(from, until)| (from..until).contains(&sent_at)) {
            self.stats.blackout_drops += 1;
            return LOST;
        }
        let condition = self.condition_at(sent_at);
        if let Some(position) = self.loss_model.next(&mut self.random) {
            self.stats.losses += 1;
            self.stats.loss_bursts += u64::from(position == 0);
            return LOST;
        }
        self.stats.delivered += 1;
        self.propagate(sent_at, condition)
    }

    /// Returns the condition of a packet that has been sent, and applies its loss rate. A burst continues as long as the
    /// loss rate stays the same.
    fn condition_at(&mut self, sent_at: Instant) -> Condition {
        let Some(conditions) = &self.emulation.conditions else { return Condition::default() };
        let condition =
            index_at(conditions, sent_at).map_or_else(Condition::default, |index| conditions[index]);
        let loss = condition.loss.unwrap_or(self.emulation.loss);
        if loss != self.current_loss {
            self.current_loss = loss;
            self.loss_model = GilbertElliott::new(loss, self.emulation.burst, &mut self.random);
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
            Some(all) => self.cursor.start_of_transmission(all, now),
            None => self.busy_until.max(now),
        };
        let rate = self.rate_at(start);
        if opportunities.is_none() && rate.is_none() {
            self.busy_until = start;
            return Some(start);
        }
        while self.queued.front().is_some_and(|&start| start <= now) {
            self.queued.pop_front();
        }
        if start > now {
            if self.emulation.queue.is_some_and(|most| self.queued.len() >= most) {
                return None;
            }
            self.queued.push_back(start);
            self.stats.max_queue = self.stats.max_queue.max(self.queued.len() as u64);
            self.stats.queueing_time += start - now;
        }
        self.busy_until = match (&opportunities, rate) {
            (Some(all), _) => self.cursor.transmit(all, now, len).1,
            (None, Some(rate)) => start + Duration::of_bits(len as u64 * 8, rate),
            (None, None) => start,
        };
        Some(self.busy_until)
    }

    /// Returns the copies of a packet that is not lost.
    fn propagate(&mut self, sent_at: Instant, condition: Condition) -> Copies {
        let e = &self.emulation;
        let fate = if self.random.bernoulli(e.corrupt) { CopyState::Corrupted } else { CopyState::Intact };
        let late = self.random.bernoulli(e.reorder);
        let twice = self.random.bernoulli(e.duplicate);
        self.stats.corrupted += u64::from(fate == CopyState::Corrupted);
        self.stats.reordered += u64::from(late);
        self.stats.duplicated += u64::from(twice);
        let mut arrival = sent_at + condition.latency.unwrap_or(e.latency);
        if !e.jitter.is_zero() {
            arrival += self.random.duration_below(e.jitter);
        }
        if (!e.jitter.is_zero() || e.conditions.is_some()) && !e.allow_reordering {
            self.latest_arrival = self.latest_arrival.max(arrival);
            arrival = self.latest_arrival;
        }
        let mut extra = || match e.extra_distribution {
            DelayDistribution::Uniform => self.random.duration_below(e.extra_delay),
            DelayDistribution::Fixed => e.extra_delay,
        };
        let first = if late { arrival + extra() } else { arrival };
        [Some((first, fate)), twice.then(|| (arrival + extra(), CopyState::Intact))]
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
    fn packets_are_serialised_and_a_full_queue_drops() {
        let e = Emulation {
            rate: Some(8_000_000),
            queue: Some(1),
            ..Emulation::delay(Duration::from_millis(10))
        };
        let mut d = Direction::new(e, 1, 0);
        // 1000 bytes take 1 ms.
        assert_eq!(first(d.transmit(ms(0), 1000)), Some(ms(11)));
        assert_eq!(first(d.transmit(ms(0), 1000)), Some(ms(12)));
        assert_eq!(first(d.transmit(ms(0), 1000)), None);
        assert_eq!(first(d.transmit(ms(5), 1000)), Some(ms(16)));
        let counts = d.stats();
        assert_eq!((counts.sent, counts.delivered, counts.queue_drops), (4, 3, 1));
        assert_eq!((counts.sent_bytes, counts.max_queue), (4000, 1));
        assert_eq!(counts.queueing_time, Duration::from_millis(1));
        assert_eq!(counts.mean_queueing_delay(), Duration::from_micros(333) + Duration::from_nanos(333));
    }

    #[test]
    fn values_out_of_their_ranges_are_refused_by_name() {
        let some = Emulation::delay(Duration::from_millis(5)).with_loss(1.0).with_burst(Some(1.0));
        assert_eq!(some.validate(), Ok(()));
        let at = |n| Condition::starting_at(ms(n));
        let conditions = |all: [Condition; 2]| some.clone().with_conditions(Some(Arc::from(all)));
        for (emulation, field) in [
            (some.clone().with_rate(Some(0)), "rate"),
            (some.clone().with_loss(1.1), "loss"),
            (some.clone().with_loss(f64::NAN), "loss"),
            (some.clone().with_burst(Some(0.5)), "burst"),
            (some.clone().with_reorder(-0.1), "reorder"),
            (some.clone().with_duplicate(2.0), "duplicate"),
            (some.clone().with_corrupt(2.0), "corrupt"),
            (some.clone().with_mark(2.0), "mark"),
            (conditions([at(2), at(1)]), "conditions"),
            (conditions([at(1), at(2).with_rate(Some(0))]), "conditions.rate"),
            (conditions([at(1), at(2).with_loss(Some(2.0))]), "conditions.loss"),
            (some.clone().with_blackouts(vec![(ms(2), ms(1))]), "blackouts"),
        ] {
            assert_eq!(emulation.validate().map_err(|error| error.field), Err(field));
        }
    }

    #[test]
    fn jitter_delays_packets_by_up_to_its_length_and_keeps_their_order() {
        let jitter = Duration::from_millis(8);
        let e = Emulation { jitter, ..Emulation::delay(Duration::from_millis(10)) };
        let mut d = Direction::new(e, 1, 0);
        let sent = |n: u64| Instant::from_nanos(n * 500_000);
        let arrivals: Vec<_> = (0..1000).map(|n| first(d.transmit(sent(n), 1000)).unwrap()).collect();
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
        assert_eq!(first(d.transmit(ms(0), 10_000)), Some(ms(10)));
        assert!(first(d.transmit(ms(0), 1)).is_some());
        assert!(first(d.transmit(ms(0), 10_000)).is_some());
        assert_eq!(first(d.transmit(ms(9), 1)), None);
        assert!(first(d.transmit(ms(10), 1)).is_some(), "the first two are out of the queue by now");
    }

    #[test]
    fn a_queue_of_zero_packets_accepts_only_when_idle() {
        let e = Emulation { rate: Some(8_000_000), queue: Some(0), ..Emulation::default() };
        let mut d = Direction::new(e, 1, 0);
        assert_eq!(first(d.transmit(ms(0), 1000)), Some(ms(1)));
        assert_eq!(first(d.transmit(ms(0), 1000)), None);
        assert_eq!(first(d.transmit(ms(1), 1000)), Some(ms(2)));
    }

    #[test]
    fn nothing_gets_through_a_blackout_or_certain_loss() {
        let e = Emulation { blackouts: vec![(ms(1), ms(2))], ..Emulation::default() };
        let mut d = Direction::new(e, 1, 0);
        assert_eq!(first(d.transmit(ms(0), 1)), Some(ms(0)));
        assert_eq!(first(d.transmit(ms(1), 1)), None);
        assert_eq!(first(d.transmit(ms(2), 1)), Some(ms(2)));
        assert_eq!(d.stats().blackout_drops, 1);
        for burst in [None, Some(4.0)] {
            let mut d = Direction::new(Emulation { loss: 1.0, burst, ..Emulation::default() }, 1, 0);
            assert!((0..100).all(|n| first(d.transmit(ms(n), 1)).is_none()));
            assert_eq!((d.stats().losses, d.stats().loss_bursts), (100, 1));
        }
    }

    #[test]
    fn lost_packets_have_used_link_capacity() {
        let e = Emulation { rate: Some(8_000_000), loss: 0.5, ..Emulation::default() };
        let mut d = Direction::new(e, 1, 0);
        let arrivals: Vec<Instant> = (0..100).filter_map(|_| first(d.transmit(ms(0), 1000))).collect();
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
        let [a, b] = d.transmit(ms(0), 1);
        let (a, b) = (a.expect("arrives"), b.expect("arrives twice"));
        assert_eq!((a.1, b.1), (CopyState::Corrupted, CopyState::Intact));
        assert!(a.0 > ms(10) && a.0 < ms(60) && b.0 < ms(60) && a.0 != b.0);
        let counts = d.stats();
        assert_eq!((counts.delivered, counts.duplicated, counts.corrupted, counts.reordered), (1, 1, 1, 1));
        let mut d = Direction::new(Emulation { extra_distribution: DelayDistribution::Fixed, ..e }, 1, 0);
        assert_eq!(
            d.transmit(ms(0), 1),
            [Some((ms(60), CopyState::Corrupted)), Some((ms(60), CopyState::Intact))]
        );
    }

    #[test]
    fn packets_leave_at_delivery_opportunities() {
        let times = [5, 20].map(Duration::from_millis).to_vec();
        let opportunities = Opportunities::new(times).map(Arc::new).ok();
        let e = Emulation { opportunities, queue: Some(2), ..Emulation::delay(Duration::from_millis(1)) };
        let mut d = Direction::new(e, 1, 0);
        assert_eq!(first(d.transmit(ms(0), 1500)), Some(ms(6)));
        assert_eq!(first(d.transmit(ms(0), 1500)), Some(ms(21)));
        assert_eq!(first(d.transmit(ms(0), 1500)), None, "two wait");
        assert_eq!(first(d.transmit(ms(6), 1500)), Some(ms(26)), "the first has left");
        let counts = d.stats();
        assert_eq!((counts.queue_drops, counts.max_queue), (1, 2));
        assert_eq!(counts.queueing_time, Duration::from_millis(5 + 20 + 19));
    }

    #[test]
    fn conditions_apply_from_their_start_time() {
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
        assert_eq!(first(d.transmit(ms(0), 100)), Some(ms(1)));
        assert_eq!(first(d.transmit(ms(10), 100)), Some(ms(60)));
        assert_eq!(first(d.transmit(ms(20), 1000)), None);
        assert_eq!(d.busy_until, ms(30), "at the rate of that time");
        assert_eq!(first(d.transmit(ms(40), 100)), Some(ms(60)), "none overtakes another");
        assert_eq!(first(d.transmit(ms(70), 100)), Some(ms(75)));
        assert_eq!((d.stats().losses, d.stats().delivered), (1, 4));
    }

    #[test]
    fn a_shorter_delay_reorders_packets_if_allowed() {
        let shorter =
            Condition { from: ms(10), latency: Some(Duration::from_millis(5)), ..Condition::default() };
        let route = |overtakes| Emulation {
            conditions: Some(Arc::from([shorter])),
            allow_reordering: overtakes,
            ..Emulation::delay(Duration::from_millis(50))
        };
        for (overtakes, second) in [(true, ms(15)), (false, ms(59))] {
            let mut d = Direction::new(route(overtakes), 1, 0);
            assert_eq!(first(d.transmit(ms(9), 100)), Some(ms(59)));
            assert_eq!(first(d.transmit(ms(10), 100)), Some(second));
        }
    }

    #[test]
    fn loss_bursts_continue_across_other_changes() {
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
                d.transmit(ms(n), 1);
            }
            let counts = d.stats();
            let mean = counts.losses as f64 / counts.loss_bursts as f64;
            assert!((15.0..25.0).contains(&mean), "bursts of {mean} packets: {counts:?}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_impairments_per_direction() {
        let e = Emulation { loss: 0.2, burst: Some(3.0), reorder: 0.1, ..Emulation::default() };
        let fates = |seed, owner| {
            let mut d = Direction::new(e.clone(), seed, owner);
            (0..200).map(|n| d.transmit(ms(n), 1)).collect::<Vec<_>>()
        };
        assert_eq!(fates(1, 0), fates(1, 0));
        assert_ne!(fates(1, 0), fates(2, 0));
        assert_ne!(fates(1, 0), fates(1, 1));
    }
}
