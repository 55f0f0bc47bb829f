//! Recovery of holes, on the side that sees them: when what is missing is asked for, when again, and when no more (§III-C.2 and C.3).
//!
//! [`Requests`] is what is known of a link: how long a recovery takes there, and how many requests were made. [`Holes`] are those of one
//! flow over it. Requests are sent in order and the link keeps the order, so replays come back in order too.

use crate::rtt::Longest;
use core::num::NonZeroU8;
use hopline_core::{Duration, Instant};
use std::collections::VecDeque;

/// How holes are recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Most requests for a hole that are due to its timer, the first one among them; then it is given up. Default 4: "on the fourth time"
    /// (§III-C.2; C3).
    pub attempts: NonZeroU8,
    /// When a request is repeated that nothing comes of. Default successive (§III-C.2; C2).
    pub timeouts: Timeouts,
    /// Whether replays that come show that others are lost. Default they do (§III-C.3).
    pub order_rule: OrderRule,
    /// Most requests for a hole that are due to the order rule; then its timer alone asks. Default no limit but `patience`: the paper
    /// names none (C7).
    pub order_requests: Option<NonZeroU8>,
    /// Recoveries that make the average. Default all (C1).
    pub samples: Samples,
    /// The average time from a request to its replay, before the first one. Default 10 ms (C1).
    pub initial: Duration,
    /// Least average. Default none but a microsecond: the paper names none (C1).
    pub floor: Duration,
    /// A hole is given up after so long, whatever was asked. Default 200 ms (C5).
    pub patience: Duration,
    /// Packets that may come after what is missing before it is asked for: what was only overtaken is then not asked for. 0 to 2; default
    /// 0 (C11). Where no later packet comes, an average recovery is waited for instead. Whatever it is, once packets were late it is asked
    /// for what is missing only when it is later than they were, for ten to twenty seconds.
    pub grace: u8,
}

impl Default for Recovery {
    fn default() -> Self {
        Self {
            attempts: NonZeroU8::new(4).expect("not zero"),
            timeouts: Timeouts::Successive,
            order_rule: OrderRule::On,
            order_requests: None,
            samples: Samples::All,
            initial: Duration::from_millis(10),
            floor: Duration::from_micros(1),
            patience: Duration::from_millis(200),
            grace: 0,
        }
    }
}

/// Times at which a request without effect is repeated (§III-C.2: after 2, 3 and 4 times the average). A request of the order rule begins
/// the wait anew, and makes it no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeouts {
    /// 2 averages after the first, 3 after the second, 4 after the third; 4 after the last, and any beyond, it is given up.
    Successive,
    /// 2, 3 and 4 averages after the first; 4 after the last it is given up.
    Cumulative,
    /// Never, for an ablation. What is not recovered is given up when patience ends.
    Off,
}

/// Recoveries that make the "average retransmission time" (§III-C.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Samples {
    /// All, each from its first request to its end, be it in vain; but for those of which the order rule has shown that a request was
    /// lost. So the average follows a queue in which replays wait.
    All,
    /// Those with one request (Karn). Where replays wait for longer than all requests it stays where it was.
    OneRequest,
}

/// Whether a replay shows that what was asked for before it is lost (§III-C.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderRule {
    /// It does: that is asked for again at once.
    On,
    /// It is not looked at, for an ablation.
    Off,
}

/// What a recovery has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryStats {
    /// Holes seen.
    pub holes: u64,
    /// Requests made.
    pub requests: u64,
    /// Of those, the ones that a timeout brought about.
    pub timeouts: u64,
    /// Of those, the ones that a replay which had overtaken the hole brought about.
    pub overtaken: u64,
    /// Holes filled after they were asked for.
    pub recovered: u64,
    /// Holes filled before they were asked for, or by what was sent before that: packets were late, not lost.
    pub late: u64,
    /// Holes given up after the last attempt, or when patience ended.
    pub given_up: u64,
    /// Holes given up because the other side keeps nothing of them.
    pub not_cached: u64,
}

/// What can be missing.
pub(super) trait Missing: Copy + PartialEq {
    /// What of it still is when `arrived` is there: all of it if that is something else.
    fn without(self, arrived: Self) -> [Option<Self>; 2];
}

impl Missing for u32 {
    fn without(self, arrived: Self) -> [Option<Self>; 2] {
        [(self != arrived).then_some(self), None]
    }
}

/// What fills a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// A replay, as far as can be told.
    Replay,
    /// What was late and not lost.
    Original,
}

/// What becomes of the rest of a hole that is filled in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// The request was for that too.
    Asked,
    /// It was not asked for yet, and is now.
    AsksAnew,
}

/// What is known of the requests over a link. `I`: what can be missing.
#[derive(Debug)]
pub(super) struct Requests<I> {
    config: Recovery,
    average: Duration,
    /// Requests so far.
    order: u64,
    /// What is to be asked for, in this order.
    asked: Vec<I>,
    stats: RecoveryStats,
    /// Lateness of packets that were only overtaken.
    late: Longest,
}

/// So long a packet that was late counts at least, and twice that at most.
const LATE_FOR: Duration = Duration::from_secs(10);
/// Packets that are later than this are asked for.
const LATEST: Duration = Duration::from_millis(50);

/// What is missing of a flow, in order.
#[derive(Debug)]
pub(super) struct Holes<I> {
    open: VecDeque<Hole<I>>,
    /// Those filled of late after one request: by a replay, unless one comes yet.
    filled: VecDeque<Filled<I>>,
}

/// Holes whose replay is recognised when it comes too late.
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
    /// Of the last request: when it was, and which of all over the link. Of none: when the hole was opened, and 0.
    asked: Instant,
    order: u64,
    /// Time of the first request.
    first: Instant,
    due: Instant,
    requests: u8,
    /// Requests among them that a timeout and the order rule brought about.
    timeouts: u8,
    overtaken: u8,
    /// Packets that have come after it.
    later: u8,
}

impl<I> Hole<I> {
    /// One that is not asked for yet.
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

    /// The average time from a request to its replay.
    pub(super) const fn average(&self) -> Duration {
        self.average
    }

    pub(super) fn has_asked(&self) -> bool {
        !self.asked.is_empty()
    }

    /// What is to be asked for now.
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

    /// Returns how long something is waited for after so many requests of the timer.
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

    /// A packet came that was not lost.
    fn note_late(&mut self, now: Instant, by: Duration) {
        self.late.sample(now, by.min(LATEST));
    }

    /// A hole is full.
    fn filled(&mut self, now: Instant, hole: &Hole<I>, by: By) {
        if hole.requests == 0 || by == By::Original {
            self.stats.late += 1;
            self.note_late(now, now.since(hole.opened));
            return;
        }
        self.stats.recovered += 1;
        self.sample(now, hole);
    }

    /// The recovery of a hole has ended (C1).
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

    /// The first of them.
    pub(super) fn first(&self) -> Option<I> {
        self.open.front().map(|hole| hole.what)
    }

    /// When to call [`Holes::expire`].
    pub(super) fn due(&self) -> Option<Instant> {
        self.open.iter().map(|hole| hole.due).min()
    }

    /// A packet has come, and this is missing before it, after all that is missing already.
    pub(super) fn open(&mut self, now: Instant, what: I, requests: &mut Requests<I>) {
        requests.stats.holes += 1;
        // Where packets come late, what is missing may only have been overtaken.
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

    /// Something has come that is not missing. If it is the replay of what was asked for once, that was late and not lost.
    pub(super) fn note_copy(&mut self, now: Instant, arrived: I, requests: &mut Requests<I>) {
        let Some(at) = self.filled.iter().position(|filled| filled.what == arrived) else { return };
        // Later than that it is the sender's retransmission.
        if let Some(filled) = self.filled.remove(at)
            && now.since(filled.asked) <= requests.average * 2
        {
            requests.note_late(now, filled.at.since(filled.opened));
        }
    }

    /// A packet has come beyond all holes (C11).
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

    /// Something has come. Whether it was missing.
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

    /// What was asked for before a request that is answered, and is not there, is lost (§III-C.3). "Before" is by the order of requests,
    /// not of sequence numbers: a hole that was asked for again stands behind those that were asked for meanwhile (C7).
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

    /// The other side keeps nothing of this (C8). Whether it was missing.
    pub(super) fn forget(&mut self, what: I, requests: &mut Requests<I>) -> bool {
        let before = self.open.len();
        self.open.retain(|hole| hole.what.without(what)[0] == Some(hole.what));
        let gone = before - self.open.len();
        requests.stats.not_cached += gone as u64;
        gone > 0
    }

    /// The first one is not waited for any longer.
    pub(super) fn give_up_first(&mut self, requests: &mut Requests<I>) {
        requests.stats.given_up += u64::from(self.open.pop_front().is_some());
    }

    /// What `is_lost` says is not waited for any longer.
    pub(super) fn give_up_those(&mut self, is_lost: impl Fn(I) -> bool, requests: &mut Requests<I>) {
        let before = self.open.len();
        self.open.retain(|hole| !is_lost(hole.what));
        requests.stats.given_up += (before - self.open.len()) as u64;
    }

    /// Nothing is waited for any longer.
    pub(super) fn give_up(&mut self, requests: &mut Requests<I>) {
        requests.stats.given_up += self.open.len() as u64;
        *self = Self::new();
    }

    /// Does what is due: asks again, or gives up.
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

    /// Many holes take memory only while they are there.
    fn shrink(&mut self) {
        const SMALL: usize = 16;
        if self.open.is_empty() && self.open.capacity() > SMALL {
            self.open = VecDeque::new();
        }
    }
}

#[cfg(test)]
mod tests;
