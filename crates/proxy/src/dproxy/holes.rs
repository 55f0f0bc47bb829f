//! Recovery of holes on the receiving side: times of requests and their repetition, and giving up (§III-C.2
//! and C.3).
//!
//! [`RequestScheduler`] is the state of a link: the average recovery time, and the number of requests. [`HoleList`] are
//! those of one flow over it. Requests are sent in order and the link keeps the order, so replays arrive in
//! order too.

use crate::rtt::WindowedMaxDuration;
use core::num::NonZeroU8;
use hopline_core::{Duration, Instant};
use std::collections::VecDeque;

/// Parameters of the recovery of holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveryConfig {
    /// Maximum number of requests for a hole by its timer, including the first; after them it is given up.
    /// Default 4: "on the fourth time" (§III-C.2; C3).
    pub max_timer_requests: NonZeroU8,
    /// Repetition of unanswered requests. Default successive (§III-C.2; C2).
    pub timeout_rule: TimeoutRule,
    /// Use of the order rule. Default on (§III-C.3).
    pub order_rule: OrderRule,
    /// Maximum number of requests for a hole by the order rule; after them only its timer repeats requests.
    /// Default no limit but `patience`: the paper names none (C7).
    pub max_order_requests: Option<NonZeroU8>,
    /// Recoveries that enter the average. Default all (C1).
    pub sample_rule: SampleRule,
    /// Initial average time from a request to its replay. Default 10 ms (C1).
    pub initial_average: Duration,
    /// Minimum average. Default a microsecond: the paper names none (C1).
    pub min_average: Duration,
    /// Time after which a hole is given up, regardless of requests. Default 200 ms (C5).
    pub max_wait: Duration,
    /// Number of packets that may arrive after a hole before it is requested, so that reordered packets are
    /// not requested. 0 to 2; default 0 (C11). If no later packet arrives, the request follows after the
    /// average recovery time. For ten to twenty seconds after packets arrived late, a hole is requested only
    /// once it is older than their lateness, whatever this number is.
    pub reordering_threshold: u8,
}

impl RecoveryConfig {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        max_timer_requests: NonZeroU8::new(4).expect("not zero"),
        timeout_rule: TimeoutRule::Successive,
        order_rule: OrderRule::On,
        max_order_requests: None,
        sample_rule: SampleRule::All,
        initial_average: Duration::from_millis(10),
        min_average: Duration::from_micros(1),
        max_wait: Duration::from_millis(200),
        reordering_threshold: 0,
    };
}

impl Default for RecoveryConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Times at which an unanswered request is repeated (§III-C.2: after 2, 3 and 4 times the average). A request
/// of the order rule restarts the timer without lengthening it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutRule {
    /// 2 averages after the first request, 3 after the second, 4 after the third and any later one. The hole
    /// is given up 4 averages after the last.
    Successive,
    /// 2, 3 and 4 averages after the first request. The hole is given up 4 averages after the last.
    Cumulative,
    /// Never, for an ablation. A hole that is not recovered is given up when `patience` ends.
    Off,
}

/// Recoveries that enter the "average retransmission time" (§III-C.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleRule {
    /// All, each from its first request to its end, even if it fails; except those of which the order rule
    /// has shown that a request was lost. The average thus follows a queue in which replays wait.
    All,
    /// Those with one request (Karn). If replays wait for longer than all requests, the average does not
    /// change.
    SingleRequest,
}

/// Order rule: a replay shows that the replays of earlier requests are lost (§III-C.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderRule {
    /// The lost replays are requested again at once.
    On,
    /// The rule is not used, for an ablation.
    Off,
}

/// Counters of a recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryStats {
    /// Holes seen.
    pub holes: u64,
    /// Requests made.
    pub requests: u64,
    /// Of those, the ones by a timeout.
    pub timeouts: u64,
    /// Of those, the ones by the order rule: a later replay had arrived.
    pub order_rule_requests: u64,
    /// Holes filled after a request.
    pub recovered: u64,
    /// Holes filled before a request, or by a packet sent before the request: late, not lost.
    pub late: u64,
    /// Holes given up after the last attempt, or when `patience` ended.
    pub given_up: u64,
    /// Holes given up because the other end has not cached their packets.
    pub not_cached: u64,
}

/// Range or number that can be missing.
pub(super) trait Missing: Copy + PartialEq {
    /// Returns the parts that are still missing after `arrived`: all of it if they do not overlap.
    fn without(self, arrived: Self) -> [Option<Self>; 2];
}

impl Missing for u32 {
    fn without(self, arrived: Self) -> [Option<Self>; 2] {
        [(self != arrived).then_some(self), None]
    }
}

/// Kind of packet that fills a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FilledBy {
    /// A replay, as far as can be told.
    Replay,
    /// The original packet, which was late and not lost.
    Original,
}

/// Handling of the rest of a partly filled hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remainder {
    /// The request covered the rest too.
    AlreadyRequested,
    /// The rest was not requested yet, and is requested now.
    RequestAgain,
}

/// State of the requests over a link. `I`: range or number that can be missing.
#[derive(Debug)]
pub(super) struct RequestScheduler<I> {
    config: RecoveryConfig,
    recovery_average: Duration,
    /// Number of requests so far.
    request_count: u64,
    /// Pending requests, in order.
    pending: Vec<I>,
    stats: RecoveryStats,
    /// Lateness of reordered packets.
    reordering: WindowedMaxDuration,
}

/// Minimum time for which the lateness of a packet counts; the maximum is twice as long.
const REORDERING_WINDOW: Duration = Duration::from_secs(10);
/// Maximum lateness that delays requests.
const MAX_REORDERING: Duration = Duration::from_millis(50);

/// Missing ranges of a flow, in order.
#[derive(Debug)]
pub(super) struct HoleList<I> {
    open: VecDeque<Hole<I>>,
    /// Holes filled recently after one request: by a replay, unless the replay still arrives.
    recently_filled: VecDeque<FilledHole<I>>,
}

/// Number of filled holes remembered, to recognise a replay that arrives after the original.
const MAX_FILLED: usize = 16;

#[derive(Clone, Copy, Debug)]
struct FilledHole<I> {
    missing: I,
    opened_at: Instant,
    requested_at: Instant,
    filled_at: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Hole<I> {
    missing: I,
    opened_at: Instant,
    /// Time and number of the last request over the link. Without a request: time at which the hole was
    /// opened, and 0.
    last_request: Instant,
    last_request_number: u64,
    /// Time of the first request.
    first_request: Instant,
    next_timeout: Instant,
    requests: u8,
    /// Requests by a timeout, and by the order rule.
    timer_requests: u8,
    order_requests: u8,
    /// Packets received after the hole.
    packets_after: u8,
}

impl<I> Hole<I> {
    /// Creates a hole that is not requested yet.
    const fn new(now: Instant, what: I, due: Instant) -> Self {
        let [opened, asked, first] = [now; 3];
        Self {
            missing: what,
            opened_at: opened,
            last_request: asked,
            last_request_number: 0,
            first_request: first,
            next_timeout: due,
            requests: 0,
            timer_requests: 0,
            order_requests: 0,
            packets_after: 1,
        }
    }
}

impl<I: Missing> RequestScheduler<I> {
    pub(super) fn new(config: RecoveryConfig) -> Self {
        let average = config.initial_average.max(config.min_average);
        Self {
            config,
            recovery_average: average,
            request_count: 0,
            pending: Vec::new(),
            stats: RecoveryStats::default(),
            reordering: WindowedMaxDuration::new(REORDERING_WINDOW),
        }
    }

    pub(super) const fn stats(&self) -> &RecoveryStats {
        &self.stats
    }

    /// Returns the average time from a request to its replay.
    pub(super) const fn recovery_average(&self) -> Duration {
        self.recovery_average
    }

    pub(super) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Takes the pending requests.
    pub(super) fn drain_pending(&mut self) -> impl Iterator<Item = I> {
        self.pending.drain(..)
    }

    fn request(&mut self, now: Instant, hole: &mut Hole<I>) {
        self.request_count += 1;
        self.stats.requests += 1;
        if hole.requests == 0 {
            hole.first_request = now;
        }
        hole.requests = hole.requests.saturating_add(1);
        (hole.last_request, hole.last_request_number) = (now, self.request_count);
        hole.next_timeout = (now + self.timer_interval(hole.timer_requests.saturating_add(1)))
            .min(hole.opened_at + self.config.max_wait);
        self.pending.push(hole.missing);
    }

    /// Returns the waiting time after this number of requests by the timer.
    fn timer_interval(&self, requests: u8) -> Duration {
        let attempts = self.config.max_timer_requests.get();
        let averages = match self.config.timeout_rule {
            TimeoutRule::Successive => u64::from(requests.min(3)) + 1,
            TimeoutRule::Cumulative if requests == 1 => 2,
            TimeoutRule::Cumulative if requests < attempts => 1,
            TimeoutRule::Cumulative => 4,
            TimeoutRule::Off => return self.config.max_wait,
        };
        self.recovery_average.saturating_mul(averages)
    }

    /// Records the lateness of a packet that was not lost.
    fn record_reordering(&mut self, now: Instant, by: Duration) {
        self.reordering.sample(now, by.min(MAX_REORDERING));
    }

    /// Records that a hole is filled.
    fn on_filled(&mut self, now: Instant, hole: &Hole<I>, by: FilledBy) {
        if hole.requests == 0 || by == FilledBy::Original {
            self.stats.late += 1;
            self.record_reordering(now, now.since(hole.opened_at));
            return;
        }
        self.stats.recovered += 1;
        self.sample(now, hole);
    }

    /// Updates the average after the recovery of a hole (C1).
    fn sample(&mut self, now: Instant, hole: &Hole<I>) {
        let counts = match self.config.sample_rule {
            SampleRule::All => hole.requests > 0 && hole.order_requests == 0,
            SampleRule::SingleRequest => hole.requests == 1,
        };
        if counts {
            let mixed = (7 * self.recovery_average.as_nanos() + now.since(hole.first_request).as_nanos()) / 8;
            self.recovery_average = Duration::from_nanos(mixed).max(self.config.min_average);
        }
    }
}

impl<I: Missing> HoleList<I> {
    pub(super) const fn new() -> Self {
        Self { open: VecDeque::new(), recently_filled: VecDeque::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Returns the first missing range.
    pub(super) fn first(&self) -> Option<I> {
        self.open.front().map(|hole| hole.missing)
    }

    /// Returns the time of the next call of [`HoleList::handle_timeout`].
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.open.iter().map(|hole| hole.next_timeout).min()
    }

    /// Opens a hole: `what` is missing before a packet that has arrived, and after all other holes.
    pub(super) fn open(&mut self, now: Instant, what: I, requests: &mut RequestScheduler<I>) {
        requests.stats.holes += 1;
        // On a link that reorders, missing packets may only have been overtaken.
        requests.reordering.sample(now, Duration::ZERO);
        let late = requests.reordering.get();
        let wait = if late.is_zero() { requests.recovery_average } else { late };
        let due = now + wait.min(requests.config.max_wait);
        let mut hole = Hole::new(now, what, due);
        if requests.config.reordering_threshold == 0 && late.is_zero() {
            requests.request(now, &mut hole);
        }
        self.open.push_back(hole);
    }

    /// Handles a packet that is not missing. If it is the replay of a filled hole with one request, the
    /// packet that filled it was late, not lost.
    pub(super) fn handle_duplicate(&mut self, now: Instant, arrived: I, requests: &mut RequestScheduler<I>) {
        let Some(at) = self.recently_filled.iter().position(|filled| filled.missing == arrived) else {
            return;
        };
        // A later duplicate is the sender's retransmission.
        if let Some(filled) = self.recently_filled.remove(at)
            && now.since(filled.requested_at) <= requests.recovery_average * 2
        {
            requests.record_reordering(now, filled.filled_at.since(filled.opened_at));
        }
    }

    /// Records a packet that arrived beyond all holes (C11).
    pub(super) fn handle_beyond(&mut self, now: Instant, requests: &mut RequestScheduler<I>) {
        if requests.config.reordering_threshold == 0 || !requests.reordering.get().is_zero() {
            return;
        }
        for hole in self.open.iter_mut().filter(|hole| hole.requests == 0) {
            hole.packets_after = hole.packets_after.saturating_add(1);
            if hole.packets_after > requests.config.reordering_threshold {
                requests.request(now, hole);
            }
        }
    }

    /// Handles an arrival. Returns whether it was missing.
    pub(super) fn handle_arrival(
        &mut self,
        now: Instant,
        arrived: I,
        (by, rest): (FilledBy, Remainder),
        requests: &mut RequestScheduler<I>,
    ) -> bool {
        let (mut latest, mut was_missing, mut at) = (0, false, 0);
        while let Some(&hole) = self.open.get(at) {
            let parts = hole.missing.without(arrived);
            if parts[0] == Some(hole.missing) {
                at += 1;
                continue;
            }
            was_missing = true;
            latest = latest.max(hole.last_request_number);
            self.open.remove(at);
            if parts == [None, None] || rest == Remainder::RequestAgain {
                requests.on_filled(now, &hole, by);
                if hole.requests == 1 && by == FilledBy::Replay {
                    self.recently_filled.truncate(MAX_FILLED - 1);
                    let Hole { missing: what, opened_at: opened, last_request: asked, .. } = hole;
                    self.recently_filled.push_front(FilledHole {
                        missing: what,
                        opened_at: opened,
                        requested_at: asked,
                        filled_at: now,
                    });
                }
            }
            for what in parts.into_iter().flatten() {
                let mut part = Hole { missing: what, ..hole };
                if rest == Remainder::RequestAgain {
                    (part.requests, part.timer_requests, part.order_requests) = (0, 0, 0);
                    requests.request(now, &mut part);
                }
                self.open.insert(at, part);
                at += 1;
            }
        }
        if was_missing && by == FilledBy::Replay {
            self.request_overtaken(now, latest, requests);
        }
        self.release_memory();
        was_missing
    }

    /// Requests holes again after their replay was overtaken: they were requested before an answered request,
    /// and are not filled (§III-C.3). "Before" is by the order of requests, not of sequence numbers: a
    /// repeated request comes after those made meanwhile (C7).
    fn request_overtaken(&mut self, now: Instant, latest: u64, requests: &mut RequestScheduler<I>) {
        if requests.config.order_rule == OrderRule::Off {
            return;
        }
        let most = requests.config.max_order_requests;
        for hole in &mut self.open {
            let may_ask = most.is_none_or(|most| hole.order_requests < most.get());
            if (1..latest).contains(&hole.last_request_number) && may_ask {
                hole.order_requests = hole.order_requests.saturating_add(1);
                requests.stats.order_rule_requests += 1;
                requests.request(now, hole);
            }
        }
    }

    /// Gives up `what`, which the other end has not cached (C8). Returns whether it was missing.
    pub(super) fn give_up_range(&mut self, what: I, requests: &mut RequestScheduler<I>) -> bool {
        let before = self.open.len();
        self.open.retain(|hole| hole.missing.without(what)[0] == Some(hole.missing));
        let gone = before - self.open.len();
        requests.stats.not_cached += gone as u64;
        gone > 0
    }

    /// Gives up the first hole.
    pub(super) fn give_up_first(&mut self, requests: &mut RequestScheduler<I>) {
        requests.stats.given_up += u64::from(self.open.pop_front().is_some());
    }

    /// Gives up the holes that `is_lost` selects.
    pub(super) fn give_up_where(&mut self, is_lost: impl Fn(I) -> bool, requests: &mut RequestScheduler<I>) {
        let before = self.open.len();
        self.open.retain(|hole| !is_lost(hole.missing));
        requests.stats.given_up += (before - self.open.len()) as u64;
    }

    /// Gives up all holes.
    pub(super) fn give_up_all(&mut self, requests: &mut RequestScheduler<I>) {
        requests.stats.given_up += self.open.len() as u64;
        *self = Self::new();
    }

    /// Repeats requests that are due, or gives up.
    pub(super) fn handle_timeout(&mut self, now: Instant, requests: &mut RequestScheduler<I>) {
        let RecoveryConfig { max_timer_requests: attempts, max_wait: patience, .. } = requests.config;
        self.open.retain_mut(|hole| {
            if hole.next_timeout > now {
                return true;
            }
            let by_timer = if hole.requests > 0 { hole.timer_requests.saturating_add(1) } else { 0 };
            if by_timer >= attempts.get() || hole.opened_at + patience <= now {
                requests.stats.given_up += 1;
                if requests.config.sample_rule == SampleRule::All {
                    requests.sample(now, hole);
                }
                return false;
            }
            requests.stats.timeouts += u64::from(by_timer > 0);
            hole.timer_requests = by_timer;
            requests.request(now, hole);
            true
        });
        self.release_memory();
    }

    /// Releases memory after a large number of holes.
    fn release_memory(&mut self) {
        const SMALL: usize = 16;
        if self.open.is_empty() && self.open.capacity() > SMALL {
            self.open = VecDeque::new();
        }
    }
}

#[cfg(test)]
mod tests;
