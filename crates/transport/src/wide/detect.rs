//! Which transmissions are lost, by time (as RFC 8985; packet numbers make it simple: they are the order of sending).

use super::config::DetectConfig;
use hopline_core::{Duration, Instant};

/// Lateness is remembered for so many rounds at least.
const MEMORY_ROUNDS: u32 = 16;

/// Of what arrived, what was sent last; and how late others are.
#[derive(Clone, Debug)]
pub(super) struct Detection {
    config: DetectConfig,
    /// The highest number that is acknowledged, and its round trip.
    newest: Option<Newest>,
    /// How much later than those sent after them packets have come, at most: in this stretch of rounds and in the one before.
    lateness: [Duration; 2],
    rounds: u32,
}

/// The acknowledged transmission that left last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Newest {
    pub(super) number: u64,
    pub(super) rtt: Duration,
}

impl Detection {
    pub(super) const fn new(config: DetectConfig) -> Self {
        Self { config, newest: None, lateness: [Duration::ZERO; 2], rounds: 0 }
    }

    pub(super) fn newest(&self) -> Option<Newest> {
        self.newest
    }

    /// A transmission is acknowledged that left at `at`; `before`: what [`newest`](Self::newest) was before this acknowledgment came. What
    /// several of them would have told is told by one where some are lost: only what left before the newest of an earlier one is late.
    pub(super) fn acknowledged(&mut self, now: Instant, number: u64, at: Instant, before: Option<Newest>) {
        let rtt = now.since(at);
        if let Some(before) = before.filter(|before| number < before.number) {
            self.lateness[0] = self.lateness[0].max(rtt.saturating_sub(before.rtt));
        }
        if self.newest.is_none_or(|newest| number > newest.number) {
            self.newest = Some(Newest { number, rtt });
        }
    }

    /// A round trip is over.
    pub(super) fn round(&mut self) {
        self.rounds += 1;
        if self.rounds >= MEMORY_ROUNDS {
            self.rounds = 0;
            self.lateness = [Duration::ZERO, self.lateness[0]];
        }
    }

    /// How long a transmission may be overtaken before it is lost.
    pub(super) fn window(&self, least_rtt: Duration, srtt: Duration) -> Duration {
        let [a, b] = self.lateness;
        let seen = a.max(b);
        let narrow = least_rtt / u64::from(self.config.share);
        narrow.max(seen + seen / 8).min(srtt.max(narrow))
    }
}
