//! Loss detection by the order of arrival, and the reordering of the last hop.
//!
//! If a last hop is first in, first out, a packet sent before one that has arrived is lost. If it reorders,
//! the packet may be late: it counts as lost only once it is later than packets are on this hop (RACK, RFC
//! 8985 §6.2). The lateness is measured. Until a packet has been late there is no wait.

use crate::rtt::Longest;
use hopline_core::{Duration, Instant, Seq32};
use std::collections::VecDeque;

/// Minimum time for which the lateness of a packet counts; the maximum is twice as long.
const LATE_FOR: Duration = Duration::from_secs(10);
/// Maximum lateness: a packet that is later counts as lost, for the sender waits too.
const LATEST: Duration = Duration::from_millis(50);
/// Number of remembered retransmissions, to recognise their duplicates.
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

    /// Returns the time at which a missing transmission was due, if a later one has arrived.
    pub(super) fn passed(&self, order: u32, sent: Instant) -> Option<Instant> {
        self.0.filter(|arrived| is_before(order, arrived.order)).map(|arrived| sent + arrived.took)
    }

    /// As [`Self::passed`], for a transmission that arrives now, if the later one arrived before.
    fn passed_before(&self, now: Instant, order: u32, sent: Instant) -> Option<Instant> {
        self.passed(order, sent).filter(|_| self.0.is_some_and(|arrived| arrived.at < now))
    }
}

/// Cause of a retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// A later transmission had arrived; the packet was due at this time.
    Passed(Instant),
    /// There was no acknowledgment; the packet was sent at this time.
    Overdue(Instant),
    /// It had been retransmitted before: an arrival may be of any transmission.
    Again,
}

/// A retransmission.
#[derive(Clone, Copy, Debug)]
struct Repair {
    seq: Seq32,
    cause: Cause,
    /// Time of its arrival, if it was not repeated.
    arrived: Option<Instant>,
}

/// Lateness of packets, and retransmissions that may have been needless.
#[derive(Debug)]
pub(super) struct Order {
    late: Longest,
    /// Retransmissions, newest last.
    repairs: VecDeque<Repair>,
}

impl Order {
    pub(super) const fn new() -> Self {
        Self { late: Longest::of(LATE_FOR), repairs: VecDeque::new() }
    }

    /// Returns the time for which an overtaken packet is waited for.
    pub(super) fn tolerance(&self) -> Duration {
        self.late.get()
    }

    /// Records the arrival of a packet with one transmission, perhaps after a later one.
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

    /// Records the arrival of a packet with one retransmission: of the original or of the retransmission.
    pub(super) fn repaired_arrives(&mut self, now: Instant, seq: Seq32) {
        if let Some(repair) = self.repairs.iter_mut().rev().find(|repair| repair.seq == seq) {
            repair.arrived.get_or_insert(now);
        }
    }

    /// Handles the report of a duplicate of the packet at `seq`. `None`: it was not made here. Otherwise the
    /// time that the first transmission took, if the retransmission did not wait that long.
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
