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
    burst: u64,
    /// Number of initial segments that are sent unpaced.
    unpaced: u32,
    next_burst: Instant,
    last_burst: Burst,
}

/// Last burst.
#[derive(Clone, Copy, Debug, Default)]
struct Burst {
    at: Instant,
    bytes: u64,
    /// Delay of the burst after its release time.
    delay: Duration,
}

impl RatePacing {
    /// Creates a clock: the first burst may be sent at once, and the first `free` segments are unpaced.
    #[must_use]
    pub(crate) fn new(free: u32) -> Self {
        Self {
            rate: f64::INFINITY,
            burst: 0,
            unpaced: free,
            next_burst: Instant::ZERO,
            last_burst: Burst::default(),
        }
    }

    /// Sets the rate, data bytes per second, above 0, and the size of bursts in bytes, from the next burst on. A longer
    /// segment is a burst of its own.
    pub(crate) fn set_rate(&mut self, rate: f64, train: u64) {
        debug_assert!(rate > 0.0, "segments would never leave");
        (self.rate, self.burst) = (rate, train);
    }

    /// Returns the rate, data bytes per second.
    #[must_use]
    pub fn bytes_per_sec(&self) -> f64 {
        self.rate
    }

    /// Returns the release time of a segment of `len` data bytes: `now` if it need not wait.
    #[must_use]
    pub(crate) fn release_time(&self, now: Instant, len: u64) -> Instant {
        if self.unpaced > 0 || self.continues_burst(now, len) { now } else { self.next_burst.max(now) }
    }

    /// Returns the release time of the next burst; in the past if it need not wait.
    #[must_use]
    pub(crate) fn next_burst(&self) -> Instant {
        self.next_burst
    }

    /// Records the release of a segment of `len` data bytes.
    pub(crate) fn on_released(&mut self, now: Instant, len: u64) {
        if self.unpaced > 0 {
            self.unpaced -= 1;
            return;
        }
        if !self.continues_burst(now, len) {
            self.last_burst = Burst { at: now, bytes: 0, delay: now.since(self.next_burst) };
        }
        self.last_burst.bytes += len;
        let takes = Duration::from_secs_f64(self.last_burst.bytes as f64 / self.rate);
        self.next_burst = now + takes.saturating_sub(self.last_burst.delay.min(takes / 2));
    }

    fn continues_burst(&self, now: Instant, len: u64) -> bool {
        self.last_burst.at == now && self.last_burst.bytes > 0 && self.last_burst.bytes + len <= self.burst
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
        pacing.set_rate(1e6, 2000);
        pacing.next_burst = micros(1_000_000);
        pacing
    }

    #[test]
    fn a_burst_is_released_at_once_and_the_next_after_its_sending_time() {
        let mut pacing = busy();
        let at = micros(1_000_000);
        assert_eq!(pacing.release_time(at, 1000), at);
        pacing.on_released(at, 1000);
        assert_eq!(pacing.release_time(at, 1000), at, "the second of the train");
        pacing.on_released(at, 1000);
        assert_eq!(pacing.release_time(at, 1000), micros(1_002_000));
    }

    #[test]
    fn an_interrupted_burst_is_over() {
        let mut pacing = busy();
        pacing.on_released(micros(1_000_000), 1000);
        assert_eq!(pacing.release_time(micros(1_000_200), 1000), micros(1_001_000));
    }

    #[test]
    fn at_most_half_a_burst_time_is_caught_up() {
        let mut pacing = busy();
        pacing.on_released(micros(1_000_300), 1000);
        assert_eq!(pacing.next_burst(), micros(1_001_000), "300 us late");
        pacing.on_released(micros(9_000_000), 1000);
        assert_eq!(pacing.next_burst(), micros(9_000_500));
    }

    #[test]
    fn the_first_segments_are_unpaced_and_a_new_rate_applies_from_the_next_burst() {
        let mut pacing = RatePacing::new(2);
        pacing.set_rate(1e6, 1000);
        let at = micros(500);
        for _ in 0..2 {
            assert_eq!(pacing.release_time(at, 1000), at);
            pacing.on_released(at, 1000);
        }
        assert_eq!(pacing.release_time(at, 1000), at);
        pacing.on_released(at, 1000);
        let due = pacing.next_burst();
        pacing.set_rate(2e6, 1000);
        assert_eq!(pacing.release_time(at, 1000), due);
    }

    #[test]
    fn a_segment_longer_than_a_burst_is_sent_alone() {
        let mut pacing = busy();
        pacing.on_released(micros(1_000_000), 9000);
        assert_eq!(pacing.release_time(micros(1_000_000), 1), micros(1_009_000));
    }

    #[test]
    fn the_lowest_rate_does_not_overflow_the_release_time() {
        let mut pacing = busy();
        pacing.set_rate(1e-30, 2000);
        pacing.on_released(micros(1_000_000), 1000);
        assert!(pacing.next_burst() > Instant::from_secs(1_000_000));
    }
}
