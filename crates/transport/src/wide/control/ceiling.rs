//! Length of queues. Losses while the queue is clearly shorter than its maximum are not overflow losses.

use hopline_core::{Duration, Instant};

/// Decay of the longest queue per round trip.
const HOLDS: f64 = 0.995;
/// Distance from the longest queue that makes a queue clearly shorter: this share of it, and at least this many seconds.
const SHARE: f64 = 0.25;
const LEAST: f64 = 0.008;

/// Length of the queue relative to its maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// Clearly below the maximum, for long enough that losses found now happened below it too.
    Below,
    /// Possibly full.
    Full,
}

/// Longest recent queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ceiling {
    /// Longest queue, seconds, with decay.
    longest: f64,
    below_since: Option<Instant>,
}

impl Ceiling {
    /// Records the queueing delay of a packet. Returns the level of the queue.
    pub(super) fn take(&mut self, now: Instant, queue: Duration, srtt: Duration) -> Level {
        let queue = queue.as_secs_f64();
        self.longest = self.longest.max(queue);
        if queue >= self.longest - (self.longest * SHARE).max(LEAST) {
            self.below_since = None;
            return Level::Full;
        }
        let since = *self.below_since.get_or_insert(now);
        // A loss is found a while after the packets around it have arrived.
        if now.since(since) >= srtt / 2 { Level::Below } else { Level::Full }
    }

    /// Applies the decay at the end of a round trip.
    pub(super) fn round(&mut self) {
        self.longest *= HOLDS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_below_once_it_has_been_so_for_half_a_round_trip() {
        let (mut ceiling, srtt) = (Ceiling::default(), Duration::from_millis(50));
        let mut at = |ms, queue| ceiling.take(Instant::from_millis(ms), Duration::from_millis(queue), srtt);
        assert_eq!(at(0, 40), Level::Full);
        assert_eq!(at(10, 29), Level::Full);
        assert_eq!(at(34, 0), Level::Full);
        assert_eq!(at(35, 29), Level::Below);
        assert_eq!(at(36, 31), Level::Full);
        assert_eq!(at(37, 29), Level::Full, "anew");
    }

    #[test]
    fn a_queue_of_a_few_milliseconds_is_never_known_to_be_below() {
        let mut ceiling = Ceiling::default();
        for ms in 0..1000 {
            let queue = Duration::from_millis(ms % 8);
            assert_eq!(ceiling.take(Instant::from_millis(ms), queue, Duration::from_millis(1)), Level::Full);
        }
    }

    #[test]
    fn what_was_long_is_forgotten() {
        let mut ceiling = Ceiling::default();
        ceiling.take(Instant::ZERO, Duration::from_millis(100), Duration::ZERO);
        let below =
            |ceiling: &mut Ceiling| ceiling.take(Instant::ZERO, Duration::from_millis(30), Duration::ZERO);
        assert_eq!(below(&mut ceiling), Level::Below);
        (0..300).for_each(|_| ceiling.round());
        assert_eq!(below(&mut ceiling), Level::Full);
    }
}
