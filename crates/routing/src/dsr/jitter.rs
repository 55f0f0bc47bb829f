//! Random delays, so that neighbours that hear the same do not answer together (RFC 4728 §8.2.4, §9: BroadcastJitter).

use super::config::{Config, RouteCache};
use hopline_core::{Duration, Instant, Purpose, Stream};

/// How long a moment lasts: longer than what chance at the MAC does to the times of a flood, and not longer than a flood,
/// so that the next one has other delays.
const MOMENT: Duration = Duration::from_millis(100);

/// Where a node's random delays come from.
#[derive(Clone, Debug)]
pub(super) enum Jitter {
    /// From a stream: each is another one.
    Stream(Stream),
    /// From the node's key and the moment alone. Where no routes are remembered, what a flood finds is to depend on when
    /// it happens, and not on what was sent before (TCP-DOOR §4.2).
    Moment { key: u64 },
}

impl Jitter {
    pub(super) fn new(config: &Config, mut stream: Stream) -> Self {
        match config.cache {
            RouteCache::Paths(_) => Self::Stream(stream),
            RouteCache::Off(_) => Self::Moment { key: stream.bits() },
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

    #[test]
    fn without_a_cache_a_delay_depends_on_node_and_moment_only() {
        let mut fresh = of_node(Config::rfc4728().without_cache(), 3);
        let mut used = fresh.clone();
        let delays: Vec<_> = (0..100).map(|secs| used.below(Instant::from_secs(secs), LIMIT)).collect();
        assert_eq!(fresh.below(Instant::from_secs(99), LIMIT), delays[99]);
        assert!(delays.iter().all(|delay| *delay < LIMIT));
        let mean = delays.iter().map(|delay| delay.as_secs_f64()).sum::<f64>() / 100.0;
        assert!((0.004..0.006).contains(&mean), "{mean}");
        let mut other = of_node(Config::rfc4728().without_cache(), 4);
        assert_ne!(other.below(Instant::from_secs(99), LIMIT), delays[99]);
    }

    #[test]
    fn with_a_cache_each_delay_is_another() {
        let mut jitter = of_node(Config::rfc4728(), 3);
        let now = Instant::from_secs(1);
        assert_ne!(jitter.below(now, LIMIT), jitter.below(now, LIMIT));
        assert_eq!(jitter.below(now, Duration::ZERO), Duration::ZERO);
    }
}
