//! What a last hop can do, as ACKs tell it.

use hopline_core::{Duration, Instant};

/// The greatest of the rates of late, in bytes a second.
///
/// Time goes on only with samples of a hop that was kept busy: what a sender with little to say gets says nothing of the hop.
#[derive(Debug)]
pub(super) struct Greatest {
    since: Instant,
    now: f64,
    before: f64,
}

/// So long a rate counts at least, and twice that at most.
const LATE: Duration = Duration::from_millis(500);

impl Greatest {
    pub(super) const fn new(now: Instant) -> Self {
        Self { since: now, now: 0.0, before: 0.0 }
    }

    pub(super) fn sample(&mut self, now: Instant, rate: f64, busy: bool) {
        if busy && now.since(self.since) >= LATE {
            (self.before, self.now, self.since) = (self.now, 0.0, now);
        }
        self.now = self.now.max(rate);
    }

    pub(super) const fn get(&self) -> f64 {
        self.now.max(self.before)
    }
}

/// Bytes beyond its rate that a hop hands over at once, as radios that aggregate, take turns or repair in order do. A window that
/// is to keep such a hop busy needs as much room beside the product of rate and round trip (BBRv3, draft-ietf-ccwg-bbr, `extra_acked`).
///
/// A window that is smaller than the bursts of the hop makes each burst as large as itself: it grows until it is not.
#[derive(Debug)]
pub(super) struct Bursts {
    largest: Greatest,
    /// Since when the hop has served more than its rate carries, and how much that is in all.
    since: Instant,
    bytes: u64,
    /// The rate that bursts were measured against.
    rate: f64,
}

/// Beside a rate that has grown by this factor, bursts are measured anew: they were taken for larger than they are.
const GROWN: f64 = 1.05;
/// Longest time that a burst makes up for: a hop that serves more at once was gone.
const LONGEST_BURST: Duration = Duration::from_millis(100);

impl Bursts {
    pub(super) const fn new(now: Instant) -> Self {
        Self { largest: Greatest::new(now), since: now, bytes: 0, rate: 0.0 }
    }

    /// So many bytes have arrived over a hop of this rate.
    pub(super) fn sample(&mut self, now: Instant, bytes: u64, rate: f64) {
        if rate > GROWN * self.rate {
            *self = Self { rate, ..Self::new(now) };
        }
        let expected = rate * now.since(self.since).as_secs_f64();
        if self.bytes as f64 <= expected {
            (self.since, self.bytes) = (now, 0);
        }
        self.bytes += bytes;
        let beyond = self.bytes as f64 - rate * now.since(self.since).as_secs_f64();
        self.largest.sample(now, beyond.min(rate * LONGEST_BURST.as_secs_f64()), true);
    }

    /// The largest burst of late, in bytes.
    pub(super) const fn largest(&self) -> f64 {
        self.largest.get()
    }
}

/// The shortest round trip of late, and when to look for it again: a hop that is kept busy does not show it by itself.
#[derive(Debug)]
pub(super) struct Shortest {
    round_trip: Option<Duration>,
    seen: Instant,
    /// Since when little is let on its way, so that the next sample is of an empty queue.
    looks: Option<Instant>,
}

/// So long a round trip counts, then it is looked for.
const COUNTS: Duration = Duration::from_secs(10);
/// So long it is looked for at most.
const LOOKS: Duration = Duration::from_secs(1);

impl Shortest {
    pub(super) const fn new(now: Instant) -> Self {
        Self { round_trip: None, seen: now, looks: None }
    }

    /// `alone`: it had hardly anything before it.
    pub(super) fn sample(&mut self, now: Instant, took: Duration, alone: bool) {
        let is_shorter = self.round_trip.is_none_or(|known| took <= known);
        let is_over = self.looks.is_some_and(|since| alone || now.since(since) >= LOOKS);
        if is_shorter || is_over {
            (self.round_trip, self.seen, self.looks) = (Some(took), now, None);
        } else if self.looks.is_none() && now.since(self.seen) >= COUNTS {
            self.looks = Some(now);
        }
    }

    pub(super) const fn get(&self) -> Option<Duration> {
        self.round_trip
    }

    pub(super) const fn is_looked_for(&self) -> bool {
        self.looks.is_some()
    }
}
