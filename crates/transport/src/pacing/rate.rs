//! Rate-based pacing: releases segments at a rate set by congestion control.
//!
//! Segments are sent in bursts of a configured size. The interval after a burst is the time that its bytes take at the
//! rate. A sender that could not send (because of the window, or for want of data) makes up for at most half of that time
//! (Linux: `tcp_update_skb_after_send`).

use hopline_core::{Duration, Instant};

/// Clock that releases segments at a rate.
#[derive(Clone, Copy, Debug)]
pub struct RatePacing {
    /// Rate, data bytes per second.
    rate: f64,
    /// Size of a burst, bytes.
    train: u64,
    /// Number of initial segments that are sent unpaced.
    free: u32,
    due: Instant,
    last: Train,
}

/// Last burst.
#[derive(Clone, Copy, Debug, Default)]
struct Train {
    at: Instant,
    bytes: u64,
    /// Delay of the burst after its release time.
    late: Duration,
}

impl RatePacing {
    /// Creates a clock: the first burst may be sent at once, and the first `free` segments are unpaced.
    #[must_use]
    pub(crate) fn new(free: u32) -> Self {
        Self { rate: f64::INFINITY, train: 0, free, due: Instant::ZERO, last: Train::default() }
    }

    /// Sets the rate, data bytes per second, above 0, and the size of bursts in bytes, from the next burst on. A longer
    /// segment is a burst of its own.
    pub(crate) fn set(&mut self, rate: f64, train: u64) {
        debug_assert!(rate > 0.0, "segments would never leave");
        (self.rate, self.train) = (rate, train);
    }

    /// Returns the rate, data bytes per second.
    #[must_use]
    pub fn bytes_per_sec(&self) -> f64 {
        self.rate
    }

    /// Returns the release time of a segment of `len` data bytes: `now` if it need not wait.
    #[must_use]
    pub(crate) fn next_release(&self, now: Instant, len: u64) -> Instant {
        if self.free > 0 || self.continues(now, len) { now } else { self.due.max(now) }
    }

    /// Returns the release time of the next burst; in the past if it need not wait.
    #[must_use]
    pub(crate) fn due(&self) -> Instant {
        self.due
    }

    /// Records the release of a segment of `len` data bytes.
    pub(crate) fn released(&mut self, now: Instant, len: u64) {
        if self.free > 0 {
            self.free -= 1;
            return;
        }
        if !self.continues(now, len) {
            self.last = Train { at: now, bytes: 0, late: now.since(self.due) };
        }
        self.last.bytes += len;
        let takes = Duration::from_secs_f64(self.last.bytes as f64 / self.rate);
        self.due = now + takes.saturating_sub(self.last.late.min(takes / 2));
    }

    fn continues(&self, now: Instant, len: u64) -> bool {
        self.last.at == now && self.last.bytes > 0 && self.last.bytes + len <= self.train
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(us: u64) -> Instant {
        Instant::from_nanos(us * 1000)
    }

    /// Returns a clock of a megabyte a second, with bursts of two segments of 1000 bytes, busy since 1 s.
    fn busy() -> RatePacing {
        let mut pacing = RatePacing::new(0);
        pacing.set(1e6, 2000);
        pacing.due = micros(1_000_000);
        pacing
    }

    #[test]
    fn a_train_leaves_together_and_the_next_when_its_bytes_are_through() {
        let mut pacing = busy();
        let at = micros(1_000_000);
        assert_eq!(pacing.next_release(at, 1000), at);
        pacing.released(at, 1000);
        assert_eq!(pacing.next_release(at, 1000), at, "the second of the train");
        pacing.released(at, 1000);
        assert_eq!(pacing.next_release(at, 1000), micros(1_002_000));
    }

    #[test]
    fn a_train_that_came_to_a_halt_is_over() {
        let mut pacing = busy();
        pacing.released(micros(1_000_000), 1000);
        assert_eq!(pacing.next_release(micros(1_000_200), 1000), micros(1_001_000));
    }

    #[test]
    fn half_a_trains_time_is_made_up_for_and_no_more() {
        let mut pacing = busy();
        pacing.released(micros(1_000_300), 1000);
        assert_eq!(pacing.due(), micros(1_001_000), "300 us late");
        pacing.released(micros(9_000_000), 1000);
        assert_eq!(pacing.due(), micros(9_000_500));
    }

    #[test]
    fn the_first_segments_are_free_and_a_new_rate_holds_from_the_next_train_on() {
        let mut pacing = RatePacing::new(2);
        pacing.set(1e6, 1000);
        let at = micros(500);
        for _ in 0..2 {
            assert_eq!(pacing.next_release(at, 1000), at);
            pacing.released(at, 1000);
        }
        assert_eq!(pacing.next_release(at, 1000), at);
        pacing.released(at, 1000);
        let due = pacing.due();
        pacing.set(2e6, 1000);
        assert_eq!(pacing.next_release(at, 1000), due);
    }

    #[test]
    fn a_segment_longer_than_a_train_leaves_alone() {
        let mut pacing = busy();
        pacing.released(micros(1_000_000), 9000);
        assert_eq!(pacing.next_release(micros(1_000_000), 1), micros(1_009_000));
    }

    #[test]
    fn the_slowest_rate_is_far_away_and_not_beyond_time() {
        let mut pacing = busy();
        pacing.set(1e-30, 2000);
        pacing.released(micros(1_000_000), 1000);
        assert!(pacing.due() > Instant::from_secs(1_000_000));
    }
}
