//! What both versions have in common: rounds, whether the pipe is full, the window from before, the search for the least round
//! trip.

use hopline_core::{Duration, Instant};

/// Round trip that is assumed before one is known.
pub(super) const NOMINAL_ROUND_TRIP: Duration = Duration::from_millis(1);

/// How far the search for the least round trip is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Search {
    /// More is in flight than the small window.
    Draining,
    /// It lasts until then and for a round.
    Until(Instant),
    /// The round is over.
    RoundOver(Instant),
}

/// Whether data leave after silence, and nothing of them has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Restart {
    No,
    FromIdle,
}

/// What the first rate was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacedBy {
    /// A round trip that was assumed.
    NominalRoundTrip,
    /// One that was measured.
    RoundTrip,
}

/// Rounds of packets: one ends when something is acknowledged that was sent after it began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    /// Rounds so far.
    pub(super) count: u64,
    /// Bytes delivered when this one began.
    began: u64,
    /// The acknowledgment at hand began one.
    pub(super) starts: bool,
}

impl Rounds {
    /// Takes an acknowledgment of a segment at whose sending `prior` bytes had been delivered; by now it is `delivered`.
    pub(super) fn update(&mut self, prior: u64, delivered: u64) {
        self.starts = prior >= self.began;
        if self.starts {
            self.count += 1;
            self.began = delivered;
        }
    }

    /// A round begins now.
    pub(super) fn restart(&mut self, delivered: u64) {
        self.began = delivered;
    }
}

/// Whether sending faster brings more: the pipe is full after three rounds that brought less than a quarter more.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// Bytes per second that were reached.
    baseline: f64,
    rounds: u8,
}

/// Growth that counts, and rounds without it.
const GROWTH: f64 = 1.25;
const ROUNDS: u8 = 3;

impl FullPipe {
    /// Looks for growth beyond `rate` bytes per second.
    pub(super) fn from(rate: f64) -> Self {
        Self { baseline: rate, rounds: 0 }
    }

    /// A round reached `rate`. Returns whether the pipe is full.
    pub(super) fn reached(&mut self, rate: f64) -> bool {
        if rate >= GROWTH * self.baseline {
            *self = Self::from(rate);
            return false;
        }
        self.rounds = self.rounds.saturating_add(1);
        self.rounds >= ROUNDS
    }
}

/// The window as it was before recovery or the search for the least round trip made it smaller, bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GoodWindow(u64);

impl GoodWindow {
    /// Notes the window, which is as large as it is meant to be.
    pub(super) fn save(&mut self, cwnd: u64) {
        self.0 = cwnd;
    }

    /// Notes a window that is already smaller for one of these reasons.
    pub(super) fn save_reduced(&mut self, cwnd: u64) {
        self.0 = self.0.max(cwnd);
    }

    /// The window that takes the place of `cwnd`.
    pub(super) fn restore(self, cwnd: u64) -> u64 {
        self.0.max(cwnd)
    }
}
