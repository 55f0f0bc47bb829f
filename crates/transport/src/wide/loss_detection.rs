//! Time-based loss detection as in RFC 8985. Packet numbers are in the order of sending, which makes it simple.

use super::config::LossDetectionConfig;
use hopline_core::{Duration, Instant};

/// Least number of rounds for which the largest lateness is kept.
const LATENESS_ROUNDS: u32 = 16;

/// State of loss detection: the newest acknowledged packet, and the lateness of reordered ones.
#[derive(Clone, Debug)]
pub(super) struct OutOfOrderDetection {
    config: LossDetectionConfig,
    /// Highest acknowledged number, with its round-trip time.
    newest: Option<NewestAcked>,
    /// Largest lateness of packets relative to later ones, in the current and in the previous period.
    lateness: [Duration; 2],
    rounds: u32,
}

/// Acknowledged transmission that was sent last.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewestAcked {
    pub(super) packet_number: u64,
    pub(super) rtt: Duration,
}

impl OutOfOrderDetection {
    pub(super) const fn new(config: LossDetectionConfig) -> Self {
        Self { config, newest: None, lateness: [Duration::ZERO; 2], rounds: 0 }
    }

    pub(super) fn newest(&self) -> Option<NewestAcked> {
        self.newest
    }

    /// Processes the acknowledgment of a transmission sent at `at`. `before`: [`newest`](Self::newest) before this
    /// acknowledgment arrived. After a lost acknowledgment, the next one reports several arrivals at once. Only packets
    /// sent before the newest of an earlier acknowledgment are therefore late.
    pub(super) fn on_ack(&mut self, now: Instant, number: u64, at: Instant, before: Option<NewestAcked>) {
        let rtt = now.since(at);
        if let Some(before) = before.filter(|before| number < before.packet_number) {
            self.lateness[0] = self.lateness[0].max(rtt.saturating_sub(before.rtt));
        }
        if self.newest.is_none_or(|newest| number > newest.packet_number) {
            self.newest = Some(NewestAcked { packet_number: number, rtt });
        }
    }

    /// Ends a round trip.
    pub(super) fn on_round(&mut self) {
        self.rounds += 1;
        if self.rounds >= LATENESS_ROUNDS {
            self.rounds = 0;
            self.lateness = [Duration::ZERO, self.lateness[0]];
        }
    }

    /// Returns the reordering window: the time for which a transmission may be overtaken before it counts as lost.
    pub(super) fn reordering_window(&self, least_rtt: Duration, srtt: Duration) -> Duration {
        let [a, b] = self.lateness;
        let seen = a.max(b);
        let narrow = least_rtt / u64::from(self.config.reordering_divisor);
        narrow.max(seen + seen / 8).min(srtt.max(narrow))
    }
}
