//! What the controller is about, and what it sees.

use super::compete::Cubic;
use super::rate::{self, Arrival};
use super::standing::Drained;
use hopline_core::{Duration, Instant};

/// Samples of the queue that a verdict takes at least: one may have waited for something else.
const SAMPLES: u32 = 4;
/// A link that carries less than this share of what is sent is saturated.
pub(super) const FULL: f64 = 0.97;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Phase {
    /// Nothing is known: the first packets are under way.
    Opening,
    /// Growing fast. `guess`: what the first packets said of the link; `gain`: by how much the rate grows beyond that.
    Startup { guess: f64, gain: f64, trial: Trial },
    /// Following the link; `step`: by how many units the rate grows next.
    Cruise { step: f64 },
    /// Letting a queue drain.
    Drain { until: Instant, was: Drained },
    /// Waiting for a round trip to tell what that did.
    Settle(Drained),
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
pub(super) struct Trial {
    /// The first packet that left so.
    from: u64,
    /// The first of them that arrived, and how many bytes had arrived by then.
    first: Option<(Arrival, u64)>,
}

/// What a trial found, bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Found {
    /// What the link carried, if nothing is lost in front of it.
    pub(super) carried: f64,
    /// What arrived.
    pub(super) delivered: f64,
    /// Bytes that it is about.
    pub(super) bytes: f64,
}

impl Trial {
    pub(super) const fn of(from: u64) -> Self {
        Self { from, first: None }
    }

    /// What the link made of it, once packets over so long and of so many bytes have arrived. `delivered`: bytes that have arrived by now; by
    /// `jitter` an arrival may be early or late.
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

/// A share of packets that was lost, and the rate at which they were sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Evidence {
    pub(super) share: f64,
    pub(super) sent: f64,
    /// Least queue meanwhile.
    pub(super) queue: Duration,
}

/// Whether more than usual was lost: once may be chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    None,
    Once,
}

/// Whether what arrives was sent since the phase began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    NotYet,
    Yes,
}

/// What happened since the round trip began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    pub(super) since: Instant,
    /// It is over when this packet is settled.
    pub(super) end: u64,
    pub(super) delivered: u64,
    pub(super) packets: u64,
    /// Least queue.
    pub(super) queue: Option<Duration>,
    pub(super) limit: Limit,
}

/// The same over half a round trip, for what must not wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beat {
    pub(super) since: Instant,
    pub(super) samples: u32,
    pub(super) queue: Duration,
}

/// What a round trip told. Rates are bytes per second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// What the link carried.
    pub(super) carried: f64,
    /// What arrived.
    pub(super) delivered: f64,
    /// How fast it was sent.
    pub(super) sent: f64,
    /// Least queue.
    pub(super) queue: Duration,
}

impl Seen {
    /// Whether the link carried less than was sent.
    pub(super) fn is_saturated(&self) -> bool {
        self.carried < self.sent * FULL
    }
}

/// What held the sender back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::wide) enum Limit {
    /// Rate or window.
    Path,
    /// Its user, or the peer's room.
    User,
}

/// What the endpoint is to heed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::wide) enum Heed {
    Nothing,
    /// A round trip is over.
    Round,
    /// The same; and how long packets take without waiting is to be learnt anew.
    Refresh,
}

/// What an acknowledgment told.
#[derive(Clone, Copy, Debug)]
pub(in crate::wide) struct News {
    pub(in crate::wide) now: Instant,
    /// Its largest number, if that is new: the arrival, and how long it waited on the way.
    pub(in crate::wide) newest: Option<(u64, Arrival, Duration)>,
    /// Bytes that arrived, headers included; packets that arrived; packets that are lost.
    pub(in crate::wide) delivered: u64,
    pub(in crate::wide) packets: u64,
    pub(in crate::wide) lost: u64,
    /// Of those that arrived, those that had been taken for lost.
    pub(in crate::wide) late: u64,
    /// Packets that were marked.
    pub(in crate::wide) marks: u32,
    pub(in crate::wide) limit: Limit,
    /// The number of the packet that leaves next.
    pub(in crate::wide) next_number: u64,
    pub(in crate::wide) srtt: Duration,
    /// A round trip that is shorter counts for nothing.
    pub(in crate::wide) round: Duration,
    /// For how long no packet has come without waiting.
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

    /// Whether it can tell something.
    pub(super) const fn is_told(&self) -> bool {
        self.samples >= SAMPLES
    }

    pub(super) fn is_over(&self, now: Instant, srtt: Duration) -> bool {
        self.is_told() && now.since(self.since) >= srtt / 2
    }
}
