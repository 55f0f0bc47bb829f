//! Random delays, so that neighbours that receive the same packet do not respond together (RFC 4728 §8.2.4, §9:
//! BroadcastJitter).

use super::config::{Config, RouteCache, Uncached, UncachedJitter};
use hopline_core::{Duration, Instant, Purpose, Stream};

/// Length of a moment. It is longer than the random MAC delays within a flood, and not longer than a flood, so that the next
/// flood has other delays.
const MOMENT: Duration = Duration::from_millis(100);

/// Source of a node's random delays.
#[derive(Clone, Debug)]
pub(super) enum Jitter {
    /// A random stream, with a new draw for each delay.
    Stream(Stream),
    /// The node's key and the moment alone ([`UncachedJitter::ByMoment`]).
    Moment { key: u64 },
}

impl Jitter {
    pub(super) fn new(config: &Config, mut stream: Stream) -> Self {
        match config.cache {
            RouteCache::Off(Uncached { jitter: UncachedJitter::ByMoment, .. }) => {
                Self::Moment { key: stream.bits() }
            }
            RouteCache::Off(_) | RouteCache::Paths(_) => Self::Stream(stream),
        }
    }

    /// A delay below `limit`, or zero if that is zero.
    pub(super) fn below(&mut self, now: Instant, limit: Duration) -> Duration {
        match self {
            Self::Stream(stream) => stream.duration_below(limit),
            Self::Moment { key } => {
                let moment = now.as_nanos() / MOMENT.as_nanos();
                Stream::keyed(*key, moment, 0, Purpose::Routing).duration_below(limit)
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
        Jitter::new(&config, Stream::new(1, 1, NodeId(node), Purpose::Routing))
    }

    fn by_moment() -> Config {
        let cache = RouteCache::Off(Uncached { jitter: UncachedJitter::ByMoment, ..Uncached::DOOR });
        Config { cache, ..Config::rfc4728() }
    }

    #[test]
    fn by_moment_a_delay_depends_on_node_and_moment_only() {
        let mut fresh = of_node(by_moment(), 3);
        let mut used = fresh.clone();
        let delays: Vec<_> = (0..100).map(|secs| used.below(Instant::from_secs(secs), LIMIT)).collect();
        assert_eq!(fresh.below(Instant::from_secs(99), LIMIT), delays[99]);
        assert!(delays.iter().all(|delay| *delay < LIMIT));
        let mean = delays.iter().map(|delay| delay.as_secs_f64()).sum::<f64>() / 100.0;
        assert!((0.004..0.006).contains(&mean), "{mean}");
        let mut other = of_node(by_moment(), 4);
        assert_ne!(other.below(Instant::from_secs(99), LIMIT), delays[99]);
    }

    #[test]
    fn elsewhere_each_delay_is_another() {
        for config in [Config::rfc4728(), Config::rfc4728().without_cache()] {
            let mut jitter = of_node(config, 3);
            let now = Instant::from_secs(1);
            assert_ne!(jitter.below(now, LIMIT), jitter.below(now, LIMIT));
            assert_eq!(jitter.below(now, Duration::ZERO), Duration::ZERO);
        }
    }
}
