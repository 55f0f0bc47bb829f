//! Backoff: draw, count-down while the medium is idle, freeze while it is busy (802.11-2020 §10.3.3).

use super::config::{BackoffRange, Config};
use hopline_core::{Duration, Instant, RandomStream};

/// The backoff counter and contention window of one station.
#[derive(Clone, Debug)]
pub(super) struct Backoff {
    slot: Duration,
    cw: u16,
    cw_min: u16,
    cw_max: u16,
    range: BackoffRange,
    counter: BackoffCounter,
    stream: RandomStream,
}

/// State of the backoff counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BackoffCounter {
    /// No backoff is pending.
    Done,
    /// This many slots are left; the medium is not idle.
    Frozen { slots: u16 },
    /// This many slots were left at `from`, and pass as long as the medium stays idle.
    Counting { slots: u16, from: Instant },
}

impl Backoff {
    /// Creates a station without pending backoff. Its numbers come from `stream`.
    pub(super) fn new(config: &Config, stream: RandomStream) -> Self {
        Self {
            slot: config.slot,
            cw: config.cw_min,
            cw_min: config.cw_min,
            cw_max: config.cw_max,
            range: config.backoff_range,
            counter: BackoffCounter::Done,
            stream,
        }
    }

    /// The contention window.
    pub(super) const fn cw(&self) -> u16 {
        self.cw
    }

    /// Resets the contention window to the smallest, after a success or after giving up.
    pub(super) fn reset_window(&mut self) {
        self.cw = self.cw_min;
    }

    /// Doubles the contention window after a failed attempt: 2·CW + 1, up to the largest window.
    pub(super) fn double_window(&mut self) {
        self.cw = (2 * self.cw + 1).min(self.cw_max);
    }

    /// Draws a new backoff, frozen until [`Backoff::resume`].
    pub(super) fn draw_backoff(&mut self) {
        let values = match self.range {
            BackoffRange::Inclusive => u32::from(self.cw) + 1,
            BackoffRange::Exclusive => u32::from(self.cw),
        };
        self.counter = BackoffCounter::Frozen { slots: self.stream.below(values) as u16 };
    }

    /// Sets a backoff of no slots: only the interframe space remains.
    pub(super) fn set_zero_backoff(&mut self) {
        self.counter = BackoffCounter::Frozen { slots: 0 };
    }

    /// Returns whether a backoff is pending at `now`. A backoff is not pending once all its slots have passed.
    pub(super) fn is_pending(&self, now: Instant) -> bool {
        match self.counter {
            BackoffCounter::Done => false,
            BackoffCounter::Frozen { .. } => true,
            BackoffCounter::Counting { slots, from } => from + self.slot * u64::from(slots) > now,
        }
    }

    /// Resumes the backoff on an idle medium, with slots counted from `from`. Returns the time at which the last slot will
    /// have passed; `None` if no backoff is pending. Has no effect while counting.
    pub(super) fn resume(&mut self, from: Instant) -> Option<Instant> {
        let (slots, from) = match self.counter {
            BackoffCounter::Done => return None,
            BackoffCounter::Frozen { slots } => (slots, from),
            BackoffCounter::Counting { slots, from } => (slots, from),
        };
        self.counter = BackoffCounter::Counting { slots, from };
        Some(from + self.slot * u64::from(slots))
    }

    /// Freezes the backoff on a busy medium: only slots that have passed completely count.
    pub(super) fn freeze(&mut self, now: Instant) {
        if let BackoffCounter::Counting { slots, from } = self.counter {
            let passed = now.since(from) / self.slot;
            self.counter = if from + self.slot * u64::from(slots) < now {
                BackoffCounter::Done
            } else {
                BackoffCounter::Frozen { slots: slots - passed as u16 }
            };
        }
    }

    /// Ends the backoff, as the frame is sent.
    pub(super) fn finish(&mut self) {
        self.counter = BackoffCounter::Done;
    }
}
