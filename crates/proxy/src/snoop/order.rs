//! Conclusions from the order in which packets arrive, and the trust that this order deserves.
//!
//! A last hop that is first in, first out has lost what it was given before something that has arrived. One that reorders has not, perhaps:
//! what is missing is then lost only when it is later than packets are there (RACK, RFC 8985 §6.2). How late they are is measured. Before
//! a packet was late nothing waits.

use crate::rtt::Longest;
use hopline_core::{Duration, Instant, Seq32};
use std::collections::VecDeque;

/// So long a packet that was late counts at least, and twice that at most.
const LATE_FOR: Duration = Duration::from_secs(10);
/// Packets that are later than this are lost, for the sender waits too.
const LATEST: Duration = Duration::from_millis(50);
/// Packets sent again whose duplicates are recognised.
const REMEMBERED: usize = 64;

/// A transmission that has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) order: u32,
    pub(super) took: Duration,
    at: Instant,
}

/// The latest transmission of its kind that has arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Latest(Option<Arrival>);

impl Latest {
    pub(super) fn note(&mut self, now: Instant, order: u32, took: Duration) {
        if self.0.is_none_or(|known| is_before(known.order, order)) {
            self.0 = Some(Arrival { order, took, at: now });
        }
    }

    /// Returns the time at which a transmission that is missing was due, if one after it has arrived.
    pub(super) fn passed(&self, order: u32, sent: Instant) -> Option<Instant> {
        self.0.filter(|arrived| is_before(order, arrived.order)).map(|arrived| sent + arrived.took)
    }

    /// The same of one that arrives now, if the other one came earlier.
    fn passed_before(&self, now: Instant, order: u32, sent: Instant) -> Option<Instant> {
        self.passed(order, sent).filter(|_| self.0.is_some_and(|arrived| arrived.at < now))
    }
}

/// Why a packet was sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// Something that was sent later had arrived, and it should have been there at this moment.
    Passed(Instant),
    /// Nothing was heard of it since it was sent, at this moment.
    Overdue(Instant),
    /// It had been sent again before: what arrives may be any of them.
    Again,
}

/// A packet that was sent again.
#[derive(Clone, Copy, Debug)]
struct Repair {
    seq: Seq32,
    cause: Cause,
    /// Time of its arrival, if no more repairs were made of it.
    arrived: Option<Instant>,
}

/// Lateness of packets, and repairs that may have been needless.
#[derive(Debug)]
pub(super) struct Order {
    late: Longest,
    /// Latest last.
    repairs: VecDeque<Repair>,
}

impl Order {
    pub(super) const fn new() -> Self {
        Self { late: Longest::of(LATE_FOR), repairs: VecDeque::new() }
    }

    /// Returns the time for which a packet that was passed is waited for.
    pub(super) fn tolerance(&self) -> Duration {
        self.late.get()
    }

    /// A packet that was sent once has arrived, perhaps after one that was sent later.
    pub(super) fn arrives(&mut self, now: Instant, latest: &Latest, order: u32, sent: Instant) {
        self.late.sample(now, Duration::ZERO);
        if let Some(expected) = latest.passed_before(now, order, sent) {
            self.note_late(now, expected, now);
        }
    }

    pub(super) fn note_repair(&mut self, seq: Seq32, cause: Cause) {
        if self.repairs.len() == REMEMBERED {
            self.repairs.pop_front();
        }
        self.repairs.push_back(Repair { seq, cause, arrived: None });
    }

    /// A packet has arrived that was sent again once, or its repair has.
    pub(super) fn repaired_arrives(&mut self, now: Instant, seq: Seq32) {
        if let Some(repair) = self.repairs.iter_mut().rev().find(|repair| repair.seq == seq) {
            repair.arrived.get_or_insert(now);
        }
    }

    /// The host has reported a duplicate of what begins at `seq`. `None`: not one that was made here. Otherwise how long the first
    /// transmission took, if that is what the repair did not wait for.
    pub(super) fn note_duplicate(&mut self, now: Instant, seq: Seq32) -> Option<Option<Duration>> {
        let found = self.repairs.iter().position(|repair| repair.seq == seq);
        let repair = found.and_then(|index| self.repairs.remove(index))?;
        Some(match (repair.cause, repair.arrived) {
            (Cause::Passed(expected), Some(arrived)) => {
                self.note_late(now, expected, arrived);
                None
            }
            (Cause::Overdue(sent), Some(arrived)) => Some(arrived.since(sent)),
            (_, None) | (Cause::Again, _) => None,
        })
    }

    fn note_late(&mut self, now: Instant, expected: Instant, arrived: Instant) {
        if arrived > expected {
            self.late.sample(now, arrived.since(expected).min(LATEST));
        }
    }
}

/// Returns whether transmission `a` came before `b`; numbers wrap around.
pub(super) const fn is_before(a: u32, b: u32) -> bool {
    Seq32(a).before(Seq32(b))
}
