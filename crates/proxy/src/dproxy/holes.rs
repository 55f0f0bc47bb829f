//! Recovery of holes on the receiving side: times of requests and their repetition, and giving up (§III-C.2
//! and C.3).
//!
//! [`Requests`] is the state of a link: the average recovery time, and the number of requests. [`Holes`] are
//! those of one flow over it. Requests are sent in order and the link keeps the order, so replays arrive in
//! order too.

use crate::rtt::Longest;
use core::num::NonZeroU8;
use hopline_core::{Duration, Instant};
use std::collections::VecDeque;

/// Parameters of the recovery of holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Maximum number of requests for a hole by its timer, including the first; after them it is given up.
    /// Default 4: "on the fourth time" (§III-C.2; C3).
    pub attempts: NonZeroU8,
    /// Repetition of unanswered requests. Default successive (§III-C.2; C2).
    pub timeouts: Timeouts,
    /// Use of the order rule. Default on (§III-C.3).
    pub order_rule: OrderRule,
    /// Maximum number of requests for a hole by the order rule; after them only its timer repeats requests.
    /// Default no limit but `patience`: the paper names none (C7).
    pub order_requests: Option<NonZeroU8>,
    /// Recoveries that enter the average. Default all (C1).
    pub samples: Samples,
    /// Initial average time from a request to its replay. Default 10 ms (C1).
    pub initial: Duration,
    /// Minimum average. Default a microsecond: the paper names none (C1).
    pub floor: Duration,
    /// Time after which a hole is given up, regardless of requests. Default 200 ms (C5).
    pub patience: Duration,
    /// Number of packets that may arrive after a hole before it is requested, so that reordered packets are
    /// not requested. 0 to 2; default 0 (C11). If no later packet arrives, the request follows after the
    /// average recovery time. For ten to twenty seconds after packets arrived late, a hole is requested only
    /// once it is older than their lateness, whatever this number is.
    pub grace: u8,
}

impl Recovery {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        attempts: NonZeroU8::new(4).expect("not zero"),
        timeouts: Timeouts::Successive,
        order_rule: OrderRule::On,
        order_requests: None,
        samples: Samples::All,
        initial: Duration::from_millis(10),
        floor: Duration::from_micros(1),
        patience: Duration::from_millis(200),
        grace: 0,
    };
}

impl Default for Recovery {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Times at which an unanswered request is repeated (§III-C.2: after 2, 3 and 4 times the average). A request
/// of the order rule restarts the timer without lengthening it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeouts {
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
pub enum Samples {
    /// All, each from its first request to its end, even if it fails; except those of which the order rule
    /// has shown that a request was lost. The average thus follows a queue in which replays wait.
    All,
    /// Those with one request (Karn). If replays wait for longer than all requests, the average does not
    /// change.
    OneRequest,
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
    pub overtaken: u64,
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
pub(super) enum By {
    /// A replay, as far as can be told.
    Replay,
    /// The original packet, which was late and not lost.
    Original,
}

/// Handling of the rest of a partly filled hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// The request covered the rest too.
    Asked,
    /// The rest was not requested yet, and is requested now.
    AsksAnew,
}

/// State of the requests over a link. `I`: range or number that can be missing.
#[derive(Debug)]
pub(super) struct Requests<I> {
    config: Recovery,
    average: Duration,
    /// Number of requests so far.
    order: u64,
    /// Pending requests, in order.
    asked: Vec<I>,
    stats: RecoveryStats,
    /// Lateness of reordered packets.
    late: Longest,
}

/// Minimum time for which the lateness of a packet counts; the maximum is twice as long.
const LATE_FOR: Duration = Duration::from_secs(10);
/// Maximum lateness that delays requests.
const LATEST: Duration = Duration::from_millis(50);

/// Missing ranges of a flow, in order.
#[derive(Debug)]
pub(super) struct Holes<I> {
    open: VecDeque<Hole<I>>,
    /// Holes filled recently after one request: by a replay, unless the replay still arrives.
    filled: VecDeque<Filled<I>>,
}

/// Number of filled holes remembered, to recognise a replay that arrives after the original.
const FILLED: usize = 16;

#[derive(Clone, Copy, Debug)]
struct Filled<I> {
    what: I,
    opened: Instant,
    asked: Instant,
    at: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Hole<I> {
    what: I,
    opened: Instant,
    /// Time and number of the last request over the link. Without a request: time at which the hole was
    /// opened, and 0.
    asked: Instant,
    order: u64,
    /// Time of the first request.
    first: Instant,
    due: Instant,
    requests: u8,
    /// Requests by a timeout, and by the order rule.
    timeouts: u8,
    overtaken: u8,
    /// Packets received after the hole.
    later: u8,
}

impl<I> Hole<I> {
    /// Creates a hole that is not requested yet.
    const fn new(now: Instant, what: I, due: Instant) -> Self {
        let [opened, asked, first] = [now; 3];
        Self { what, opened, asked, order: 0, first, due, requests: 0, timeouts: 0, overtaken: 0, later: 1 }
    }
}

impl<I: Missing> Requests<I> {
    pub(super) fn new(config: Recovery) -> Self {
        let average = config.initial.max(config.floor);
        Self {
            config,
            average,
            order: 0,
            asked: Vec::new(),
            stats: RecoveryStats::default(),
            late: Longest::of(LATE_FOR),
        }
    }

    pub(super) const fn stats(&self) -> &RecoveryStats {
        &self.stats
    }

    /// Returns the average time from a request to its replay.
    pub(super) const fn average(&self) -> Duration {
        self.average
    }

    pub(super) fn has_asked(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Takes the pending requests.
    pub(super) fn take_asked(&mut self) -> impl Iterator<Item = I> {
        self.asked.drain(..)
    }

    fn ask(&mut self, now: Instant, hole: &mut Hole<I>) {
        self.order += 1;
        self.stats.requests += 1;
        if hole.requests == 0 {
            hole.first = now;
        }
        hole.requests = hole.requests.saturating_add(1);
        (hole.asked, hole.order) = (now, self.order);
        hole.due =
            (now + self.interval(hole.timeouts.saturating_add(1))).min(hole.opened + self.config.patience);
        self.asked.push(hole.what);
    }

    /// Returns the waiting time after this number of requests by the timer.
    fn interval(&self, requests: u8) -> Duration {
        let attempts = self.config.attempts.get();
        let averages = match self.config.timeouts {
            Timeouts::Successive => u64::from(requests.min(3)) + 1,
            Timeouts::Cumulative if requests == 1 => 2,
            Timeouts::Cumulative if requests < attempts => 1,
            Timeouts::Cumulative => 4,
            Timeouts::Off => return self.config.patience,
        };
        self.average.saturating_mul(averages)
    }

    /// Records the lateness of a packet that was not lost.
    fn note_late(&mut self, now: Instant, by: Duration) {
        self.late.sample(now, by.min(LATEST));
    }

    /// Records that a hole is filled.
    fn filled(&mut self, now: Instant, hole: &Hole<I>, by: By) {
        if hole.requests == 0 || by == By::Original {
            self.stats.late += 1;
            self.note_late(now, now.since(hole.opened));
            return;
        }
        self.stats.recovered += 1;
        self.sample(now, hole);
    }

    /// Updates the average after the recovery of a hole (C1).
    fn sample(&mut self, now: Instant, hole: &Hole<I>) {
        let counts = match self.config.samples {
            Samples::All => hole.requests > 0 && hole.overtaken == 0,
            Samples::OneRequest => hole.requests == 1,
        };
        if counts {
            let mixed = (7 * self.average.as_nanos() + now.since(hole.first).as_nanos()) / 8;
            self.average = Duration::from_nanos(mixed).max(self.config.floor);
        }
    }
}

impl<I: Missing> Holes<I> {
    pub(super) const fn new() -> Self {
        Self { open: VecDeque::new(), filled: VecDeque::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Returns the first missing range.
    pub(super) fn first(&self) -> Option<I> {
        self.open.front().map(|hole| hole.what)
    }

    /// Returns the time of the next call of [`Holes::expire`].
    pub(super) fn due(&self) -> Option<Instant> {
        self.open.iter().map(|hole| hole.due).min()
    }

    /// Opens a hole: `what` is missing before a packet that has arrived, and after all other holes.
    pub(super) fn open(&mut self, now: Instant, what: I, requests: &mut Requests<I>) {
        requests.stats.holes += 1;
        // On a link that reorders, missing packets may only have been overtaken.
        requests.late.sample(now, Duration::ZERO);
        let late = requests.late.get();
        let wait = if late.is_zero() { requests.average } else { late };
        let due = now + wait.min(requests.config.patience);
        let mut hole = Hole::new(now, what, due);
        if requests.config.grace == 0 && late.is_zero() {
            requests.ask(now, &mut hole);
        }
        self.open.push_back(hole);
    }

    /// Handles a packet that is not missing. If it is the replay of a filled hole with one request, the
    /// packet that filled it was late, not lost.
    pub(super) fn note_copy(&mut self, now: Instant, arrived: I, requests: &mut Requests<I>) {
        let Some(at) = self.filled.iter().position(|filled| filled.what == arrived) else { return };
        // A later duplicate is the sender's retransmission.
        if let Some(filled) = self.filled.remove(at)
            && now.since(filled.asked) <= requests.average * 2
        {
            requests.note_late(now, filled.at.since(filled.opened));
        }
    }

    /// Records a packet that arrived beyond all holes (C11).
    pub(super) fn overtake(&mut self, now: Instant, requests: &mut Requests<I>) {
        if requests.config.grace == 0 || !requests.late.get().is_zero() {
            return;
        }
        for hole in self.open.iter_mut().filter(|hole| hole.requests == 0) {
            hole.later = hole.later.saturating_add(1);
            if hole.later > requests.config.grace {
                requests.ask(now, hole);
            }
        }
    }

    /// Handles an arrival. Returns whether it was missing.
    pub(super) fn arrive(
        &mut self,
        now: Instant,
        arrived: I,
        (by, rest): (By, Rest),
        requests: &mut Requests<I>,
    ) -> bool {
        let (mut latest, mut was_missing, mut at) = (0, false, 0);
        while let Some(&hole) = self.open.get(at) {
            let parts = hole.what.without(arrived);
            if parts[0] == Some(hole.what) {
                at += 1;
                continue;
            }
            was_missing = true;
            latest = latest.max(hole.order);
            self.open.remove(at);
            if parts == [None, None] || rest == Rest::AsksAnew {
                requests.filled(now, &hole, by);
                if hole.requests == 1 && by == By::Replay {
                    self.filled.truncate(FILLED - 1);
                    let Hole { what, opened, asked, .. } = hole;
                    self.filled.push_front(Filled { what, opened, asked, at: now });
                }
            }
            for what in parts.into_iter().flatten() {
                let mut part = Hole { what, ..hole };
                if rest == Rest::AsksAnew {
                    (part.requests, part.timeouts, part.overtaken) = (0, 0, 0);
                    requests.ask(now, &mut part);
                }
                self.open.insert(at, part);
                at += 1;
            }
        }
        if was_missing && by == By::Replay {
            self.ask_overtaken(now, latest, requests);
        }
        self.shrink();
        was_missing
    }

    /// Requests holes again after their replay was overtaken: they were requested before an answered request,
    /// and are not filled (§III-C.3). "Before" is by the order of requests, not of sequence numbers: a
    /// repeated request comes after those made meanwhile (C7).
    fn ask_overtaken(&mut self, now: Instant, latest: u64, requests: &mut Requests<I>) {
        if requests.config.order_rule == OrderRule::Off {
            return;
        }
        let most = requests.config.order_requests;
        for hole in &mut self.open {
            let may_ask = most.is_none_or(|most| hole.overtaken < most.get());
            if (1..latest).contains(&hole.order) && may_ask {
                hole.overtaken = hole.overtaken.saturating_add(1);
                requests.stats.overtaken += 1;
                requests.ask(now, hole);
            }
        }
    }

    /// Gives up `what`, which the other end has not cached (C8). Returns whether it was missing.
    pub(super) fn forget(&mut self, what: I, requests: &mut Requests<I>) -> bool {
        let before = self.open.len();
        self.open.retain(|hole| hole.what.without(what)[0] == Some(hole.what));
        let gone = before - self.open.len();
        requests.stats.not_cached += gone as u64;
        gone > 0
    }

    /// Gives up the first hole.
    pub(super) fn give_up_first(&mut self, requests: &mut Requests<I>) {
        requests.stats.given_up += u64::from(self.open.pop_front().is_some());
    }

    /// Gives up the holes that `is_lost` selects.
    pub(super) fn give_up_those(&mut self, is_lost: impl Fn(I) -> bool, requests: &mut Requests<I>) {
        let before = self.open.len();
        self.open.retain(|hole| !is_lost(hole.what));
        requests.stats.given_up += (before - self.open.len()) as u64;
    }

    /// Gives up all holes.
    pub(super) fn give_up(&mut self, requests: &mut Requests<I>) {
        requests.stats.given_up += self.open.len() as u64;
        *self = Self::new();
    }

    /// Repeats requests that are due, or gives up.
    pub(super) fn expire(&mut self, now: Instant, requests: &mut Requests<I>) {
        let Recovery { attempts, patience, .. } = requests.config;
        self.open.retain_mut(|hole| {
            if hole.due > now {
                return true;
            }
            let by_timer = if hole.requests > 0 { hole.timeouts.saturating_add(1) } else { 0 };
            if by_timer >= attempts.get() || hole.opened + patience <= now {
                requests.stats.given_up += 1;
                if requests.config.samples == Samples::All {
                    requests.sample(now, hole);
                }
                return false;
            }
            requests.stats.timeouts += u64::from(by_timer > 0);
            hole.timeouts = by_timer;
            requests.ask(now, hole);
            true
        });
        self.shrink();
    }

    /// Releases memory after a large number of holes.
    fn shrink(&mut self) {
        const SMALL: usize = 16;
        if self.open.is_empty() && self.open.capacity() > SMALL {
            self.open = VecDeque::new();
        }
    }
}

#[cfg(test)]
mod tests;
