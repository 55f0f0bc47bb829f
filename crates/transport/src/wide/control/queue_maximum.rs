//! Length of the queue relative to its recent maximum. A full queue drops packets, and a short one does not: losses while the queue is
//! short are those of the path.

use super::super::rtt::DELAY_TOLERANCE;
use hopline_core::{Duration, Instant};

/// Factor of the longest queue per round trip: half is left after 138. Own choice, not swept.
const DECAY: f64 = 0.995;
/// Share of the longest queue below which a queue is short: far from full, even if the longest one was not full. Own choice, not
/// swept.
const SHORT_SHARE: f64 = 0.5;

/// Length of the queue relative to its maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueLevel {
    /// No queue in recent time, or one that has always been full.
    Invisible,
    /// Below half of the maximum, for long enough that losses found now happened below it, too.
    Short,
    /// Possibly full.
    MaybeFull,
}

/// Longest recent queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QueueMaximum {
    /// Longest queue, seconds, with decay.
    longest: f64,
    short_since: Option<Instant>,
}

impl QueueMaximum {
    /// Records the queueing delay of a packet. Returns the level of the queue.
    pub(super) fn record(&mut self, now: Instant, queue: Duration, srtt: Duration) -> QueueLevel {
        let queue = queue.as_secs_f64();
        self.longest = self.longest.max(queue);
        // The base delay and the delay of the packet each have the tolerance.
        let is_visible = self.longest > 2.0 * DELAY_TOLERANCE.as_secs_f64();
        if !is_visible || queue >= self.longest * SHORT_SHARE {
            self.short_since = None;
            return if is_visible { QueueLevel::MaybeFull } else { QueueLevel::Invisible };
        }
        let since = *self.short_since.get_or_insert(now);
        // A loss is found a while after the packets around it have arrived.
        if now.since(since) >= srtt / 2 { QueueLevel::Short } else { QueueLevel::MaybeFull }
    }

    /// Applies the decay at the end of a round trip.
    pub(super) fn on_round(&mut self) {
        self.longest *= DECAY;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_short_after_half_a_round_trip_below_half_of_the_maximum() {
        let (mut maximum, srtt) = (QueueMaximum::default(), Duration::from_millis(50));
        let mut at = |ms, queue| maximum.record(Instant::from_millis(ms), Duration::from_millis(queue), srtt);
        assert_eq!(at(0, 40), QueueLevel::MaybeFull);
        assert_eq!(at(10, 19), QueueLevel::MaybeFull);
        assert_eq!(at(34, 0), QueueLevel::MaybeFull);
        assert_eq!(at(35, 19), QueueLevel::Short);
        assert_eq!(at(36, 20), QueueLevel::MaybeFull);
        assert_eq!(at(37, 19), QueueLevel::MaybeFull, "anew");
    }

    #[test]
    fn a_queue_within_the_tolerance_of_two_delays_is_invisible() {
        let mut maximum = QueueMaximum::default();
        let mut record =
            |us| maximum.record(Instant::from_secs(1), Duration::from_micros(us), Duration::ZERO);
        assert_eq!(record(0), QueueLevel::Invisible);
        assert_eq!(record(600), QueueLevel::Invisible);
        assert_eq!(record(601), QueueLevel::MaybeFull);
        assert_eq!(record(0), QueueLevel::Short);
    }

    #[test]
    fn the_maximum_decays() {
        let mut maximum = QueueMaximum::default();
        maximum.record(Instant::ZERO, Duration::from_millis(100), Duration::ZERO);
        let short = |maximum: &mut QueueMaximum| {
            maximum.record(Instant::ZERO, Duration::from_millis(30), Duration::ZERO)
        };
        assert_eq!(short(&mut maximum), QueueLevel::Short);
        (0..300).for_each(|_| maximum.on_round());
        assert_eq!(short(&mut maximum), QueueLevel::MaybeFull);
    }
}
