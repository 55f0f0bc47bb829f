//! Random delays, so that neighbours that receive the same packet do not respond together (RFC 4728 §8.2.4, §9:
//! BroadcastJitter).

use super::config::{Config, NoCache, NoCacheJitter, RouteCache};
use hopline_core::{Duration, Instant, Purpose, RandomStream};

/// Length of a moment. It is longer than the random MAC delays within a flood, and not longer than a flood, so that the next
/// flood has other delays.
const TIME_SLOT: Duration = Duration::from_millis(100);

/// Source of a node's random delays.
#[derive(Clone, Debug)]
pub(super) enum Jitter {
    /// A random stream, with a new draw for each delay.
    Stream(RandomStream),
    /// The node's key and the moment alone ([`NoCacheJitter::ByTimeSlot`]).
    TimeSlot { key: u64 },
}

impl Jitter {
    pub(super) fn new(config: &Config, mut stream: RandomStream) -> Self {
        match config.cache {
            RouteCache::Off(NoCache { jitter: NoCacheJitter::ByTimeSlot, .. }) => {
                Self::TimeSlot { key: stream.bits() }
            }
            RouteCache::Off(_) | RouteCache::Paths(_) => Self::Stream(stream),
        }
    }

    /// A delay below `limit`, or zero if that is zero.
    pub(super) fn below(&mut self, now: Instant, limit: Duration) -> Duration {
        match self {
            Self::Stream(stream) => stream.duration_below(limit),
            Self::TimeSlot { key } => {
                let moment = now.as_nanos() / TIME_SLOT.as_nanos();
                RandomStream::keyed(*key, moment, 0, Purpose::Routing).duration_below(limit)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopline_core::NodeId;

    const LIMIT: Duration = Duration::from_millis(10);

    fn of_node(config: Config, node: u32) -> Jitter {
        Jitter::new(&config, RandomStream::new(1, 1, NodeId(node), Purpose::Routing))
    }

    fn by_time_slot() -> Config {
        let cache = RouteCache::Off(NoCache { jitter: NoCacheJitter::ByTimeSlot, ..NoCache::DOOR });
        Config { cache, ..Config::rfc4728() }
    }

    #[test]
    fn by_time_slot_a_delay_depends_only_on_node_and_slot() {
        let mut fresh = of_node(by_time_slot(), 3);
        let mut used = fresh.clone();
        let delays: Vec<_> = (0..100).map(|secs| used.below(Instant::from_secs(secs), LIMIT)).collect();
        assert_eq!(fresh.below(Instant::from_secs(99), LIMIT), delays[99]);
        assert!(delays.iter().all(|delay| *delay < LIMIT));
        let mean = delays.iter().map(|delay| delay.as_secs_f64()).sum::<f64>() / 100.0;
        assert!((0.004..0.006).contains(&mean), "{mean}");
        let mut other = of_node(by_time_slot(), 4);
        assert_ne!(other.below(Instant::from_secs(99), LIMIT), delays[99]);
    }

    #[test]
    fn otherwise_each_delay_is_drawn_anew() {
        for config in [Config::rfc4728(), Config::rfc4728().without_cache()] {
            let mut jitter = of_node(config, 3);
            let now = Instant::from_secs(1);
            assert_ne!(jitter.below(now, LIMIT), jitter.below(now, LIMIT));
            assert_eq!(jitter.below(now, Duration::ZERO), Duration::ZERO);
        }
    }
}
