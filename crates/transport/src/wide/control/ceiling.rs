//! How long queues become: what is lost while they are clearly shorter was not lost for want of room.

use hopline_core::{Duration, Instant};

/// What is left in a round trip of the longest queue that was seen.
const HOLDS: f64 = 0.995;
/// A queue is clearly shorter than the longest by this share of it, and by so many seconds.
const SHARE: f64 = 0.25;
const LEAST: f64 = 0.008;

/// Where a queue is, of what it has been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// Clearly below the longest, for long enough that what is found lost now was lost so, too.
    Below,
    /// It may be full.
    Full,
}

/// The longest queue of late.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ceiling {
    /// Seconds.
    longest: f64,
    below_since: Option<Instant>,
}

impl Ceiling {
    /// A packet has waited so long.
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

    /// A round trip is over.
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
