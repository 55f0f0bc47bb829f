//! Handoffs of mobile hosts between base stations.

use super::DelayStats;
use hopline_core::{Duration, Instant};

/// The handoffs of a mobile host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Handoffs {
    /// Changes from one station to another that the new one has confirmed, and from the request to that.
    pub completed: DelayStats,
    /// Pauses at handoffs after which packets came: the longest time without a packet, from the last one
    /// before the handoff to the first one from the new station.
    pub pauses: DelayStats,
}

impl Handoffs {
    /// Returns these, and those of another host.
    #[must_use]
    pub fn with(self, other: &Self) -> Self {
        Self { completed: self.completed.with(&other.completed), pauses: self.pauses.with(&other.pauses) }
    }
}

/// Takes them down.
#[derive(Clone, Debug, Default)]
pub(crate) struct HandoffLog {
    handoffs: Handoffs,
    last_packet: Option<Instant>,
    /// The longest pause so far of the change that goes on.
    current_pause: Option<Duration>,
}

impl HandoffLog {
    /// Records that the host turns to another station.
    pub(crate) fn on_handoff_start(&mut self) {
        self.current_pause = self.last_packet.map(|_| Duration::ZERO);
    }

    /// Records that a station has confirmed the handoff.
    pub(crate) fn on_handoff_completed(&mut self, took: Duration) {
        self.handoffs.completed.record(took);
    }

    /// Records that a packet for the host has come, from its current station or another one.
    pub(crate) fn on_packet(&mut self, now: Instant, from_current: bool) {
        let since = self.last_packet.replace(now).map_or(Duration::ZERO, |last| now.since(last));
        if let Some(longest) = &mut self.current_pause {
            *longest = (*longest).max(since);
            if from_current {
                self.handoffs.pauses.record(*longest);
                self.current_pause = None;
            }
        }
    }

    /// Counts anew.
    pub(crate) fn restart(&mut self) {
        self.handoffs = Handoffs::default();
    }

    pub(crate) fn handoffs(&self) -> Handoffs {
        self.handoffs.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn a_pause_lasts_from_the_last_packet_before_to_the_first_from_the_new_station() {
        let mut log = HandoffLog::default();
        log.on_packet(at(10), true);
        log.on_handoff_start();
        log.on_packet(at(16), false);
        log.on_packet(at(20), true);
        log.on_packet(at(90), true);
        assert_eq!(log.handoffs().pauses.max(), Some(Duration::from_millis(6)));
        assert_eq!(log.handoffs().pauses.count(), 1, "what comes later is no matter of the change");
    }

    #[test]
    fn a_host_without_packets_has_no_pause() {
        let mut log = HandoffLog::default();
        log.on_handoff_start();
        log.on_packet(at(500), true);
        assert_eq!(log.handoffs().pauses.count(), 0);
    }
}
