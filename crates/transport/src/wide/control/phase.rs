//! Inputs of the rate controller, and what it counts in a round trip.

use super::rate::{self, Arrival};
use hopline_core::{Duration, Instant};

/// Least number of queue samples for a verdict, since a single packet may be late for another reason.
const SAMPLES: u32 = 4;
/// Ratio of the rate of the link to the sending rate below which the link is saturated.
pub(super) const FULL: f64 = 0.97;

/// Measurement of the link at a new rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Trial {
    /// First packet sent at the new rate.
    from: u64,
    /// Its arrival, or that of the first one after it, and the bytes delivered by then.
    first: Option<(Arrival, u64)>,
}

/// Result of a trial, bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Found {
    /// Rate of the link, if no packets are lost before it.
    pub(super) carried: f64,
    /// Delivery rate.
    pub(super) delivered: f64,
    /// Number of bytes measured.
    pub(super) bytes: f64,
}

impl Trial {
    pub(super) const fn of(from: u64) -> Self {
        Self { from, first: None }
    }

    /// Returns the result once packets over a sufficient time and with sufficient bytes have arrived. `delivered`: total
    /// of delivered bytes; `jitter`: possible error of an arrival time.
    pub(super) fn take(
        &mut self,
        (number, arrival): (u64, Arrival),
        delivered: u64,
        (span, bytes): (Duration, f64),
        jitter: Duration,
    ) -> Option<Found> {
        if number < self.from {
            return None;
        }
        let (first, before) = *self.first.get_or_insert((arrival, delivered));
        let sent = (arrival.upto - first.upto) as f64;
        if arrival.sent.since(first.sent) < span || sent < bytes {
            return None;
        }
        let carried = rate::between_at_best(first, arrival, jitter.saturating_mul(2))?;
        Some(Found {
            carried,
            delivered: carried * ((delivered - before) as f64 / sent).min(1.0),
            bytes: sent,
        })
    }
}

/// Loss rate, and the rate at which the packets were sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Evidence {
    pub(super) share: f64,
    pub(super) sent: f64,
    /// Shortest queue in that time.
    pub(super) queue: Duration,
}

/// Losses above the baseline in the last round trip. A single one may be chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    None,
    Once,
}

/// Origin of arriving packets: sent before or after the start of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    NotYet,
    Yes,
}

/// Counts of the current round trip.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    pub(super) since: Instant,
    /// Packet that ends the round trip when it is settled.
    pub(super) end: u64,
    pub(super) delivered: u64,
    pub(super) packets: u64,
    /// Shortest queue.
    pub(super) queue: Option<Duration>,
    pub(super) limit: Limit,
}

/// Counts of the current half-round, for reactions that must not wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beat {
    pub(super) since: Instant,
    pub(super) samples: u32,
    pub(super) queue: Duration,
}

/// Results of a round trip. Rates are bytes per second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Rate of the link.
    pub(super) carried: f64,
    /// Delivery rate.
    pub(super) delivered: f64,
    /// Sending rate.
    pub(super) sent: f64,
    /// Shortest queue.
    pub(super) queue: Duration,
}

impl Seen {
    /// Returns whether the rate of the link was below the sending rate.
    pub(super) fn is_saturated(&self) -> bool {
        self.carried < self.sent * FULL
    }
}

/// Limit of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::wide) enum Limit {
    /// The rate or the window.
    Path,
    /// The user, or the peer's receive window.
    User,
}

/// Outcome of a round for the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::wide) enum Heed {
    Nothing,
    /// A round trip is over.
    Round,
    /// A round trip is over, and the base delay has to be measured again.
    Refresh,
}

/// Input of the controller for an acknowledgment.
#[derive(Clone, Copy, Debug)]
pub(in crate::wide) struct News {
    pub(in crate::wide) now: Instant,
    /// Largest newly acknowledged number, its arrival, and its delay.
    pub(in crate::wide) newest: Option<(u64, Arrival, Duration)>,
    /// Delivered bytes, headers included; delivered packets; lost packets.
    pub(in crate::wide) delivered: u64,
    pub(in crate::wide) packets: u64,
    pub(in crate::wide) lost: u64,
    /// Packets among the delivered ones that were declared lost before.
    pub(in crate::wide) late: u64,
    /// Packets with an ECN mark.
    pub(in crate::wide) marks: u32,
    pub(in crate::wide) limit: Limit,
    /// Number of the next packet to send.
    pub(in crate::wide) next_number: u64,
    pub(in crate::wide) srtt: Duration,
    /// Least duration of a round trip that counts.
    pub(in crate::wide) round: Duration,
    /// Time since the last packet without queueing delay.
    pub(in crate::wide) base_age: Duration,
}

impl Round {
    pub(super) const fn new(since: Instant, end: u64) -> Self {
        Self { since, end, delivered: 0, packets: 0, queue: None, limit: Limit::Path }
    }
}

impl Beat {
    pub(super) const fn new(since: Instant) -> Self {
        Self { since, samples: 0, queue: Duration::from_secs(3600) }
    }

    pub(super) fn take(&mut self, queue: Duration) {
        self.samples += 1;
        self.queue = self.queue.min(queue);
    }

    /// Returns whether there are enough samples.
    pub(super) const fn is_told(&self) -> bool {
        self.samples >= SAMPLES
    }

    pub(super) fn is_over(&self, now: Instant, srtt: Duration) -> bool {
        self.is_told() && now.since(self.since) >= srtt / 2
    }
}
