//! A token bucket in front of a link.

use crate::spec::links::Policer;
use hopline_core::Instant;

/// Nanoseconds of a second.
const NANOS_PER_SEC: u128 = 1_000_000_000;

/// Tokens, in bits times nanoseconds per second, so that nothing is rounded.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenBucket {
    rate_bps: u128,
    size: u128,
    tokens: u128,
    since: Instant,
}

impl TokenBucket {
    pub(super) fn new(policer: Policer) -> Self {
        let size = u128::from(policer.burst_bytes) * 8 * NANOS_PER_SEC;
        Self { rate_bps: policer.rate_bps.into(), size, tokens: size, since: Instant::ZERO }
    }

    /// Takes the tokens for a packet, if there are enough.
    pub(super) fn admits(&mut self, now: Instant, bytes: u32) -> bool {
        let grown = u128::from(now.since(self.since).as_nanos()) * self.rate_bps;
        self.tokens = (self.tokens + grown).min(self.size);
        self.since = now;
        let needed = u128::from(bytes) * 8 * NANOS_PER_SEC;
        let enough = self.tokens >= needed;
        if enough {
            self.tokens -= needed;
        }
        enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopline_core::Duration;

    #[test]
    fn a_burst_passes_and_then_what_the_rate_allows() {
        let mut bucket = TokenBucket::new(Policer { rate_bps: 8_000, burst_bytes: 3_000 });
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        assert!(bucket.admits(at(0), 1_000) && bucket.admits(at(0), 2_000) && !bucket.admits(at(0), 1));
        assert!(!bucket.admits(at(499), 500) && bucket.admits(at(500), 500));
        assert!(bucket.admits(at(60_000), 3_000) && !bucket.admits(at(60_000), 1), "no more than it holds");
        assert!(!bucket.admits(at(120_000), 3_001), "too long a packet never passes");
    }
}
