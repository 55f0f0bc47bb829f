//! Length of queues. Losses while the queue is clearly shorter than its maximum are not overflow losses.

use hopline_core::{Duration, Instant};

/// Factor of the longest queue per round trip: half is left after 138. Own choice, not swept.
const DECAY: f64 = 0.995;
/// Share of the longest queue by which a queue has to be shorter, so that it is clearly below. Own choice, not swept.
const CLEAR_SHARE: f64 = 0.25;
/// Least time by which it has to be shorter, seconds: the variation of a queue that is always full is smaller. Own choice,
/// not swept.
const CLEAR_SECONDS: f64 = 0.008;

/// Length of the queue relative to its maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueLevel {
    /// Clearly below the maximum, for long enough that losses found now happened below it too.
    Below,
    /// Possibly full.
    MaybeFull,
}

/// Longest recent queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QueueMaximum {
    /// Longest queue, seconds, with decay.
    longest: f64,
    below_since: Option<Instant>,
}

impl QueueMaximum {
    /// Records the queueing delay of a packet. Returns the level of the queue.
    pub(super) fn record(&mut self, now: Instant, queue: Duration, srtt: Duration) -> QueueLevel {
        let queue = queue.as_secs_f64();
        self.longest = self.longest.max(queue);
        if queue >= self.longest - (self.longest * CLEAR_SHARE).max(CLEAR_SECONDS) {
            self.below_since = None;
            return QueueLevel::MaybeFull;
        }
        let since = *self.below_since.get_or_insert(now);
        // A loss is found a while after the packets around it have arrived.
        if now.since(since) >= srtt / 2 { QueueLevel::Below } else { QueueLevel::MaybeFull }
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
    fn a_queue_counts_as_below_the_maximum_after_half_a_round_trip() {
        let (mut maximum, srtt) = (QueueMaximum::default(), Duration::from_millis(50));
        let mut at = |ms, queue| maximum.record(Instant::from_millis(ms), Duration::from_millis(queue), srtt);
        assert_eq!(at(0, 40), QueueLevel::MaybeFull);
        assert_eq!(at(10, 29), QueueLevel::MaybeFull);
        assert_eq!(at(34, 0), QueueLevel::MaybeFull);
        assert_eq!(at(35, 29), QueueLevel::Below);
        assert_eq!(at(36, 31), QueueLevel::MaybeFull);
        assert_eq!(at(37, 29), QueueLevel::MaybeFull, "anew");
    }

    #[test]
    fn a_queue_of_a_few_milliseconds_never_counts_as_below_the_maximum() {
        let mut maximum = QueueMaximum::default();
        for ms in 0..1000 {
            let queue = Duration::from_millis(ms % 8);
            assert_eq!(
                maximum.record(Instant::from_millis(ms), queue, Duration::from_millis(1)),
                QueueLevel::MaybeFull
            );
        }
    }

    #[test]
    fn the_maximum_decays() {
        let mut maximum = QueueMaximum::default();
        maximum.record(Instant::ZERO, Duration::from_millis(100), Duration::ZERO);
        let below = |maximum: &mut QueueMaximum| {
            maximum.record(Instant::ZERO, Duration::from_millis(30), Duration::ZERO)
        };
        assert_eq!(below(&mut maximum), QueueLevel::Below);
        (0..300).for_each(|_| maximum.on_round());
        assert_eq!(below(&mut maximum), QueueLevel::MaybeFull);
    }
}
