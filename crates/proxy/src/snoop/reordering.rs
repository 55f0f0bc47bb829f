//! Loss detection by the order of arrival, and the reordering of the last hop.
//!
//! If a last hop is first in, first out, a packet sent before one that has arrived is lost. If it reorders,
//! the packet may be late: it counts as lost only once it is later than packets are on this hop (RACK, RFC
//! 8985 §6.2). The lateness is measured. Until a packet has been late there is no wait.

use crate::rtt::WindowedMaxDuration;
use hopline_core::{Duration, Instant, Seq32};
use std::collections::VecDeque;

/// Minimum time for which the lateness of a packet counts; the maximum is twice as long.
const REORDERING_WINDOW: Duration = Duration::from_secs(10);
/// Maximum lateness: a packet that is later counts as lost, for the sender waits too.
const MAX_REORDERING: Duration = Duration::from_millis(50);
/// Number of remembered retransmissions, to recognise their duplicates.
const MAX_RETRANSMISSIONS: usize = 64;

/// A transmission that has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArrivedTransmission {
    pub(super) transmission: u32,
    pub(super) latency: Duration,
    arrived_at: Instant,
}

/// The latest transmission of its kind that has arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LatestArrivals(Option<ArrivedTransmission>);

impl LatestArrivals {
    pub(super) fn record(&mut self, now: Instant, order: u32, took: Duration) {
        if self.0.is_none_or(|known| is_before(known.transmission, order)) {
            self.0 = Some(ArrivedTransmission { transmission: order, latency: took, arrived_at: now });
        }
    }

    /// Returns the time at which a missing transmission was due, if a later one has arrived.
    pub(super) fn overtaken_at(&self, order: u32, sent: Instant) -> Option<Instant> {
        self.0.filter(|arrived| is_before(order, arrived.transmission)).map(|arrived| sent + arrived.latency)
    }

    /// As [`Self::overtaken_at`], for a transmission that arrives now, if the later one arrived before.
    fn overtaken_before(&self, now: Instant, order: u32, sent: Instant) -> Option<Instant> {
        self.overtaken_at(order, sent).filter(|_| self.0.is_some_and(|arrived| arrived.arrived_at < now))
    }
}

/// Cause of a retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LossCause {
    /// A later transmission had arrived; the packet was due at this time.
    Overtaken(Instant),
    /// There was no acknowledgment; the packet was sent at this time.
    Overdue(Instant),
    /// It had been retransmitted before: an arrival may be of any transmission.
    Repeated,
}

/// A retransmission.
#[derive(Clone, Copy, Debug)]
struct LocalRetransmission {
    seq: Seq32,
    cause: LossCause,
    /// Time of its arrival, if it was not repeated.
    arrived_at: Option<Instant>,
}

/// Lateness of packets, and retransmissions that may have been needless.
#[derive(Debug)]
pub(super) struct ReorderingEstimator {
    max_lateness: WindowedMaxDuration,
    /// Retransmissions, newest last.
    retransmissions: VecDeque<LocalRetransmission>,
}

impl ReorderingEstimator {
    pub(super) const fn new() -> Self {
        Self { max_lateness: WindowedMaxDuration::new(REORDERING_WINDOW), retransmissions: VecDeque::new() }
    }

    /// Returns the time for which an overtaken packet is waited for.
    pub(super) fn tolerance(&self) -> Duration {
        self.max_lateness.get()
    }

    /// Records the arrival of a packet with one transmission, perhaps after a later one.
    pub(super) fn record_arrival(
        &mut self,
        now: Instant,
        latest: &LatestArrivals,
        order: u32,
        sent: Instant,
    ) {
        self.max_lateness.sample(now, Duration::ZERO);
        if let Some(expected) = latest.overtaken_before(now, order, sent) {
            self.record_lateness(now, expected, now);
        }
    }

    pub(super) fn record_retransmission(&mut self, seq: Seq32, cause: LossCause) {
        if self.retransmissions.len() == MAX_RETRANSMISSIONS {
            self.retransmissions.pop_front();
        }
        self.retransmissions.push_back(LocalRetransmission { seq, cause, arrived_at: None });
    }

    /// Records the arrival of a packet with one retransmission: of the original or of the retransmission.
    pub(super) fn record_retransmitted_arrival(&mut self, now: Instant, seq: Seq32) {
        if let Some(repair) = self.retransmissions.iter_mut().rev().find(|repair| repair.seq == seq) {
            repair.arrived_at.get_or_insert(now);
        }
    }

    /// Handles the report of a duplicate of the packet at `seq`. `None`: it was not made here. Otherwise the
    /// time that the first transmission took, if the retransmission did not wait that long.
    pub(super) fn handle_dsack(&mut self, now: Instant, seq: Seq32) -> Option<Option<Duration>> {
        let found = self.retransmissions.iter().position(|repair| repair.seq == seq);
        let repair = found.and_then(|index| self.retransmissions.remove(index))?;
        Some(match (repair.cause, repair.arrived_at) {
            (LossCause::Overtaken(expected), Some(arrived)) => {
                self.record_lateness(now, expected, arrived);
                None
            }
            (LossCause::Overdue(sent), Some(arrived)) => Some(arrived.since(sent)),
            (_, None) | (LossCause::Repeated, _) => None,
        })
    }

    fn record_lateness(&mut self, now: Instant, expected: Instant, arrived: Instant) {
        if arrived > expected {
            self.max_lateness.sample(now, arrived.since(expected).min(MAX_REORDERING));
        }
    }
}

/// Returns whether transmission `a` came before `b`; numbers wrap around.
pub(super) const fn is_before(a: u32, b: u32) -> bool {
    Seq32(a).before(Seq32(b))
}
