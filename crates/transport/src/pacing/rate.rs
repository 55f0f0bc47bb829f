//! Segments at a rate that somebody else decides on: what congestion control that goes by rates has its endpoint do.
//!
//! Segments leave in trains of so many bytes, each as long after the last as its bytes take at the rate. Who has been kept from
//! sending (by the window, or for want of data) makes up for half a train's time at most (Linux: `tcp_update_skb_after_send`).

use hopline_core::{Duration, Instant};

/// The clock that releases segments at a rate.
#[derive(Clone, Copy, Debug)]
pub struct RatePacing {
    /// Data bytes per second.
    rate: f64,
    /// Bytes that leave together.
    train: u64,
    /// Segments that leave at once, whatever the rate, before it counts.
    free: u32,
    due: Instant,
    last: Train,
}

/// The train that left last.
#[derive(Clone, Copy, Debug, Default)]
struct Train {
    at: Instant,
    bytes: u64,
    /// How much later it left than it might have.
    late: Duration,
}

impl RatePacing {
    /// A clock at rest: the first train may leave at once, and the first `free` segments as soon as they like.
    #[must_use]
    pub(crate) fn new(free: u32) -> Self {
        Self { rate: f64::INFINITY, train: 0, free, due: Instant::ZERO, last: Train::default() }
    }

    /// From the next train on, `rate` data bytes per second, above 0, in trains of so many bytes; a segment that is longer is a
    /// train.
    pub(crate) fn set(&mut self, rate: f64, train: u64) {
        debug_assert!(rate > 0.0, "segments would never leave");
        (self.rate, self.train) = (rate, train);
    }

    /// The rate, data bytes per second.
    #[must_use]
    pub fn bytes_per_sec(&self) -> f64 {
        self.rate
    }

    /// When a segment of `len` data bytes may leave: `now` if it need not wait.
    #[must_use]
    pub(crate) fn next_release(&self, now: Instant, len: u64) -> Instant {
        if self.free > 0 || self.continues(now, len) { now } else { self.due.max(now) }
    }

    /// When the next train may leave; in the past if it need not wait.
    #[must_use]
    pub(crate) fn due(&self) -> Instant {
        self.due
    }

    /// A segment of `len` data bytes left.
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

    /// A megabyte a second, in trains of two segments of 1000 bytes, busy since 1 s.
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
