//! Common parts of both versions: rounds, detection of a full pipe, the saved window, the states of ProbeRTT.

use hopline_core::{Duration, Instant};

/// Round-trip time assumed before the first sample.
pub(super) const NOMINAL_ROUND_TRIP: Duration = Duration::from_millis(1);

/// Progress of ProbeRTT, the search for the minimum round-trip time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Search {
    /// More than the small window is in flight.
    Draining,
    /// The small window lasts until this time and for a round.
    Until(Instant),
    /// The round is over.
    RoundOver(Instant),
}

/// Restart from idle: data are sent again after a pause, and none of them is acknowledged yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Restart {
    No,
    FromIdle,
}

/// Origin of the first pacing rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacedBy {
    /// An assumed round-trip time.
    NominalRoundTrip,
    /// A measured round-trip time.
    RoundTrip,
}

/// Counter of packet-timed rounds. A round ends with the acknowledgment of a segment that was sent after it began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    /// Number of rounds so far.
    pub(super) count: u64,
    /// Bytes delivered at the start of this round.
    began: u64,
    /// `true` if the current acknowledgment started a round.
    pub(super) starts: bool,
}

impl Rounds {
    /// Processes an acknowledgment of a segment that was sent when `prior` bytes had been delivered; by now `delivered`
    /// are.
    pub(super) fn update(&mut self, prior: u64, delivered: u64) {
        self.starts = prior >= self.began;
        if self.starts {
            self.count += 1;
            self.began = delivered;
        }
    }

    /// Starts a new round now.
    pub(super) fn restart(&mut self, delivered: u64) {
        self.began = delivered;
    }
}

/// Detection of a full pipe: three rounds in which the delivery rate grew by less than a quarter.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// Reference delivery rate, bytes per second.
    baseline: f64,
    rounds: u8,
}

/// Least growth factor that counts, and number of rounds without it that mean a full pipe.
const GROWTH: f64 = 1.25;
const ROUNDS: u8 = 3;

impl FullPipe {
    /// Starts to look for growth beyond `rate` bytes per second.
    pub(super) fn from(rate: f64) -> Self {
        Self { baseline: rate, rounds: 0 }
    }

    /// Records the delivery rate of a round. Returns whether the pipe is full.
    pub(super) fn reached(&mut self, rate: f64) -> bool {
        if rate >= GROWTH * self.baseline {
            *self = Self::from(rate);
            return false;
        }
        self.rounds = self.rounds.saturating_add(1);
        self.rounds >= ROUNDS
    }
}

/// Window before recovery or ProbeRTT reduced it, bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GoodWindow(u64);

impl GoodWindow {
    /// Saves the window, which is not reduced now.
    pub(super) fn save(&mut self, cwnd: u64) {
        self.0 = cwnd;
    }

    /// Saves a window that recovery or ProbeRTT has reduced already.
    pub(super) fn save_reduced(&mut self, cwnd: u64) {
        self.0 = self.0.max(cwnd);
    }

    /// Returns the window that replaces `cwnd`.
    pub(super) fn restore(self, cwnd: u64) -> u64 {
        self.0.max(cwnd)
    }
}
