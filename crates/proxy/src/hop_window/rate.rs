//! Estimators of the last hop's rate, bursts and round-trip time.

use hopline_core::{Duration, Instant};

/// Windowed maximum of the rate, bytes per second.
///
/// The window advances only with samples of a busy hop: the rate of a sender with little data does not show
/// the capacity of the hop.
#[derive(Debug)]
pub(super) struct Greatest {
    since: Instant,
    now: f64,
    before: f64,
}

/// Minimum time for which a rate counts; the maximum is twice as long.
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

/// Estimator of burst size: bytes beyond its rate that a hop delivers at once, as radios do that aggregate,
/// take turns or repair in order. To keep such a hop busy, the window needs as much room beyond the
/// bandwidth-delay product (BBRv3, draft-ietf-ccwg-bbr, `extra_acked`).
///
/// If the window is smaller than the bursts of the hop, each burst is as large as the window, which therefore
/// grows until it suffices.
#[derive(Debug)]
pub(super) struct Bursts {
    largest: Greatest,
    /// Time since which the hop has delivered more than its rate carries, and the bytes delivered since.
    since: Instant,
    bytes: u64,
    /// Rate against which bursts were measured.
    rate: f64,
}

/// Growth of the rate after which bursts are measured anew: they were overestimated.
const GROWN: f64 = 1.05;
/// Longest time that a burst makes up for: a hop that delivers more at once had an outage.
const LONGEST_BURST: Duration = Duration::from_millis(100);

impl Bursts {
    pub(super) const fn new(now: Instant) -> Self {
        Self { largest: Greatest::new(now), since: now, bytes: 0, rate: 0.0 }
    }

    /// Records the arrival of `bytes` over a hop of this rate.
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

    /// Returns the largest recent burst, bytes.
    pub(super) const fn largest(&self) -> f64 {
        self.largest.get()
    }
}

/// Windowed minimum of the round-trip time, and its probing: a busy hop does not show it by itself.
#[derive(Debug)]
pub(super) struct Shortest {
    round_trip: Option<Duration>,
    seen: Instant,
    /// Time since which the window is reduced, so that the next sample is of an empty queue.
    looks: Option<Instant>,
}

/// Time for which a minimum counts before it is probed again.
const COUNTS: Duration = Duration::from_secs(10);
/// Maximum duration of a probe.
const LOOKS: Duration = Duration::from_secs(1);

impl Shortest {
    pub(super) const fn new(now: Instant) -> Self {
        Self { round_trip: None, seen: now, looks: None }
    }

    /// Records a sample. `alone`: hardly anything was in flight before it.
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
