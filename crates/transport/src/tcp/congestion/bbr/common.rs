//! Common parts of both versions: rounds, detection of a full pipe, the saved window, the states of ProbeRTT.

use hopline_core::{Duration, Instant};

/// Round-trip time assumed before the first sample.
pub(super) const NOMINAL_RTT: Duration = Duration::from_millis(1);

/// Progress of ProbeRTT, the search for the minimum round-trip time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProbeRttPhase {
    /// More than the small window is in flight.
    Draining,
    /// The small window lasts until this time and for a round.
    HoldUntil(Instant),
    /// The round is over.
    RoundDone(Instant),
}

/// Restart from idle: data are sent again after a pause, and none of them is acknowledged yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdleRestartState {
    No,
    FromIdle,
}

/// Origin of the first pacing rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacingBasis {
    /// An assumed round-trip time.
    NominalRtt,
    /// A measured round-trip time.
    MeasuredRtt,
}

/// Counter of packet-timed rounds. A round ends with the acknowledgment of a segment that was sent after it began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundCounter {
    /// Number of rounds so far.
    pub(super) count: u64,
    /// Bytes delivered at the start of this round.
    round_start_delivered: u64,
    /// `true` if the current acknowledgment started a round.
    pub(super) round_start: bool,
}

impl RoundCounter {
    /// Processes an acknowledgment of a segment that was sent when `prior` bytes had been delivered; by now `delivered`
    /// are.
    pub(super) fn update(&mut self, prior: u64, delivered: u64) {
        if self.round_start_delivered == u64::MAX {
            self.round_start_delivered = delivered;
        }
        self.round_start = prior >= self.round_start_delivered;
        if self.round_start {
            self.count += 1;
            self.round_start_delivered = delivered;
        }
    }

    /// Starts a new round now.
    pub(super) fn restart(&mut self, delivered: u64) {
        self.round_start_delivered = delivered;
    }

    /// Starts a new round with the next acknowledgment; its data are not counted yet. Data that are in flight now do
    /// not end it, even if nothing was delivered since they were sent.
    pub(super) fn restart_at_next_ack(&mut self) {
        self.round_start_delivered = u64::MAX;
    }
}

/// Detection of a full pipe: three rounds in which the delivery rate grew by less than a quarter.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullBwDetector {
    /// Reference delivery rate, bytes per second.
    full_bw: f64,
    pub(super) full_bw_count: u8,
}

/// Least growth factor that counts, and number of rounds without it that mean a full pipe.
const FULL_BW_GROWTH: f64 = 1.25;
const FULL_BW_ROUNDS: u8 = 3;

impl FullBwDetector {
    /// Starts to look for growth beyond `rate` bytes per second.
    pub(super) fn with_baseline(rate: f64) -> Self {
        Self { full_bw: rate, full_bw_count: 0 }
    }

    /// Records the delivery rate of a round. Returns whether the pipe is full.
    pub(super) fn reached(&mut self, rate: f64) -> bool {
        if rate >= FULL_BW_GROWTH * self.full_bw {
            *self = Self::with_baseline(rate);
            return false;
        }
        self.full_bw_count = self.full_bw_count.saturating_add(1);
        self.full_bw_count >= FULL_BW_ROUNDS
    }
}

/// Window before recovery or ProbeRTT reduced it, bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PriorCwnd(u64);

impl PriorCwnd {
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
