//! The congestion window: growth and reduction (RFC 5681 §3.1).

use super::Phase;
use crate::tcp::config::{Config, Growth, IdleRestart, InitialSsthresh, Reduction};

/// Largest window that window scaling can express (RFC 7323 §2.3).
const LARGEST: u32 = 1 << 30;

/// `cwnd` and `ssthresh`, bytes.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub(super) mss: u32,
    pub(super) cwnd: u32,
    pub(super) ssthresh: u32,
    /// What duplicates add to `cwnd` in recovery; kept apart so that leaving recovery forgets it.
    pub(super) inflation: u32,
    limit: u32,
    /// Bytes acknowledged towards the next segment of linear growth (RFC 3465 §2.1).
    counted: u32,
}

impl Window {
    pub(super) fn new(config: &Config, mss: u32) -> Self {
        let limit = config.window_clamp.map_or(LARGEST, |n| n.saturating_mul(mss).min(LARGEST));
        let ssthresh = match config.initial_ssthresh {
            InitialSsthresh::Unlimited => LARGEST,
            InitialSsthresh::Segments(n) => n.saturating_mul(mss).min(LARGEST),
            InitialSsthresh::WindowClamp => limit,
        };
        let cwnd = config.initial_window.bytes(mss).min(limit);
        Self { mss, cwnd, ssthresh, inflation: 0, limit, counted: 0 }
    }

    /// Opens the window for an ACK of `acked` new bytes.
    pub(super) fn grow(&mut self, config: &Config, acked: u64, phase: Phase) {
        let acked = acked.min(u64::from(LARGEST)) as u32;
        if self.cwnd < self.ssthresh {
            self.cwnd += match config.growth {
                Growth::PerAck => self.mss, // RFC 5681 §3.1 (2)
                // RFC 3465 §2.3: after a time-out L is 1
                Growth::Bytes { limit } => acked.min(self.mss * if phase == Phase::Loss { 1 } else { limit }),
            };
        } else {
            match config.growth {
                // RFC 5681 §3.1 (3)
                Growth::PerAck => {
                    self.cwnd +=
                        (u64::from(self.mss) * u64::from(self.mss) / u64::from(self.cwnd)).max(1) as u32;
                }
                Growth::Bytes { .. } => {
                    self.counted = self.counted.saturating_add(acked);
                    if self.counted >= self.cwnd {
                        self.counted -= self.cwnd;
                        self.cwnd += self.mss;
                    }
                }
            }
        }
        self.cwnd = self.cwnd.min(self.limit.max(self.mss));
    }

    /// Sets `ssthresh` for a loss with `flight` bytes in flight; returns `cwnd` for recovery.
    pub(super) fn reduce(&mut self, config: &Config, flight: u64) -> u32 {
        self.counted = 0;
        let window = (self.cwnd + self.inflation).min(self.limit);
        let whole = |bytes: u32| bytes / self.mss * self.mss;
        match config.reduction {
            // RFC 5681 §3.1 (4)
            Reduction::FlightSize => {
                self.ssthresh = ((flight / 2).min(u64::from(LARGEST)) as u32).max(2 * self.mss);
                self.ssthresh
            }
            Reduction::Window => {
                self.ssthresh = whole(window / 2).max(2 * self.mss);
                (window / 2).max(self.mss)
            }
            Reduction::WholeWindow => {
                self.ssthresh = whole(window / 2).max(2 * self.mss);
                whole(window / 2).max(self.mss)
            }
        }
    }

    /// One segment: the loss window.
    pub(super) fn collapse(&mut self) {
        self.cwnd = self.mss;
        self.counted = 0;
    }

    /// Back to what it was before a reduction, or to what it has grown to since.
    pub(super) fn restore(&mut self, before: &Self) {
        self.cwnd = self.cwnd.max(before.cwnd);
        self.ssthresh = before.ssthresh;
        self.inflation = 0;
        self.counted = before.counted;
    }

    /// `cwnd` and `ssthresh` as they were, what duplicates add in recovery aside.
    pub(super) fn keep(&mut self, before: &Self) {
        self.cwnd = before.cwnd;
        self.ssthresh = before.ssthresh;
        self.counted = before.counted;
    }

    /// Neither `cwnd` nor `ssthresh` below what it was.
    pub(super) fn keep_at_least(&mut self, before: &Self) {
        self.cwnd = self.cwnd.max(before.cwnd);
        self.ssthresh = self.ssthresh.max(before.ssthresh);
    }

    /// Restart after idle time (RFC 5681 §4.1).
    pub(super) fn restart(&mut self, config: &Config) {
        match config.idle_restart {
            IdleRestart::Never => {}
            IdleRestart::InitialWindow => self.cwnd = self.cwnd.min(config.initial_window.bytes(self.mss)),
            IdleRestart::OneSegment => self.collapse(),
        }
    }
}
