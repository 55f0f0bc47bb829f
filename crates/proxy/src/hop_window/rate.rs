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
