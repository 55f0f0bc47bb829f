//! Detection of the passed packets that the mobile interface's queue has dropped.
//!
//! A packet that passes is queued at the interface within the system call that delivers the verdict. Drops counted right
//! after it belong to the packets that have just passed. While the queue may be full, packets pass one by one, so that
//! drops are attributed exactly. Otherwise several pass between two reads of the counter, and the last ones count as
//! dropped.

use bytes::Bytes;
use hopline_linux::qdisc::QdiscStats;
use std::collections::VecDeque;

/// Assumed length of the queue, in packets, until it has been seen longer.
const MIN_QUEUE_LEN: u32 = 16;
/// Maximum packets between two reads of the counter.
const MAX_CANDIDATES: usize = 64;

/// Packets that have passed since the last read, and the counter then.
#[derive(Debug, Default)]
pub(super) struct DropDetector {
    candidates: VecDeque<Bytes>,
    /// Injected packets since the last read.
    injected: u32,
    /// Of those, known to have been dropped.
    known_drops: u32,
    last: Option<QdiscStats>,
    /// Maximum length of the queue seen without a drop.
    max_len: u32,
    dropped: VecDeque<Bytes>,
    /// Drops detected.
    pub(super) drops: u64,
}

impl DropDetector {
    /// Records a packet that is about to pass to the mobile side.
    pub(super) fn record(&mut self, packet: Bytes) {
        self.candidates.push_back(packet);
    }

    /// Records an injected packet towards the mobile side.
    pub(super) fn record_injected(&mut self) {
        self.injected += 1;
    }

    /// Records an injected packet that was dropped with an error.
    pub(super) fn record_send_failure(&mut self) {
        self.injected += 1;
        self.known_drops += 1;
    }

    /// Returns whether drops are possible since the last read.
    pub(super) fn may_have_drops(&self) -> bool {
        let passed = self.candidates.len() as u32 + self.injected;
        let most = self.last.map_or(u32::MAX, |last| last.packets.saturating_add(passed));
        passed > 0 && (most > self.max_len.max(MIN_QUEUE_LEN) || self.candidates.len() >= MAX_CANDIDATES)
    }

    /// Processes a read of the counter; `None` if the queue has none.
    pub(super) fn handle_reading(&mut self, now: Option<QdiscStats>) {
        let dropped = match (self.last, now) {
            // A queueing discipline that was replaced counts from 0.
            (Some(last), Some(now)) if now.drops.wrapping_sub(last.drops) < u32::MAX / 2 => {
                now.drops.wrapping_sub(last.drops)
            }
            _ => 0,
        };
        if let Some(now) = now {
            self.max_len = match dropped {
                0 => self.max_len.max(now.packets),
                _ => self.max_len.min(now.packets.saturating_sub(1)),
            };
        }
        self.drops += u64::from(dropped);
        let unknown = dropped.saturating_sub(self.known_drops) as usize;
        let first = self.candidates.len().saturating_sub(unknown);
        self.dropped.extend(self.candidates.drain(first..));
        self.candidates.clear();
        (self.injected, self.known_drops) = (0, 0);
        self.last = now;
    }

    /// Returns the next dropped packet.
    pub(super) fn next(&mut self) -> Option<Bytes> {
        self.dropped.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(numbers: impl IntoIterator<Item = u8>) -> Vec<Bytes> {
        numbers.into_iter().map(|n| Bytes::from(vec![n])).collect()
    }

    fn waiting(packets: u32, drops: u32) -> Option<QdiscStats> {
        Some(QdiscStats { packets, bytes: packets * 1500, drops })
    }

    /// Returns the packets detected as dropped after some have passed and the counter was read.
    fn after(
        refusals: &mut DropDetector,
        numbers: impl IntoIterator<Item = u8>,
        now: Option<QdiscStats>,
    ) -> Vec<Bytes> {
        packets(numbers).into_iter().for_each(|packet| refusals.record(packet));
        refusals.handle_reading(now);
        std::iter::from_fn(|| refusals.next()).collect()
    }

    #[test]
    fn the_last_packets_before_the_reading_are_the_dropped_ones() {
        let mut refusals = DropDetector::default();
        assert_eq!(after(&mut refusals, 0..3, waiting(98, 5)), packets([]), "what was before is nobody's");
        assert_eq!(after(&mut refusals, 3..7, waiting(100, 7)), packets([5, 6]));
        assert_eq!(after(&mut refusals, 7..9, waiting(90, 7)), packets([]));
        assert_eq!(
            after(&mut refusals, 9..10, waiting(100, 17)),
            packets([9]),
            "and others of somebody else"
        );
        assert_eq!(refusals.drops, 12);
    }

    #[test]
    fn the_counter_is_not_read_while_the_queue_is_shorter_than_seen() {
        let mut refusals = DropDetector::default();
        assert!(!refusals.may_have_drops());
        refusals.record(Bytes::new());
        assert!(refusals.may_have_drops(), "nothing is known yet");
        refusals.handle_reading(waiting(60, 0));
        refusals.handle_reading(waiting(10, 0));
        for passed in 1..=51 {
            refusals.record(Bytes::new());
            assert_eq!(refusals.may_have_drops(), passed > 50);
        }
        refusals.handle_reading(waiting(20, 1));
        refusals.record(Bytes::new());
        assert!(refusals.may_have_drops(), "it has dropped with less in it");
    }

    #[test]
    fn the_number_of_candidates_is_bounded() {
        let mut refusals = DropDetector::default();
        refusals.handle_reading(waiting(10_000, 0));
        refusals.handle_reading(waiting(0, 0));
        let passed = (0..).take_while(|_| {
            refusals.record(Bytes::new());
            !refusals.may_have_drops()
        });
        assert_eq!(passed.count(), MAX_CANDIDATES - 1);
    }

    #[test]
    fn injected_packets_are_distinguished() {
        let mut refusals = DropDetector::default();
        refusals.handle_reading(waiting(10, 0));
        refusals.record_send_failure();
        assert_eq!(after(&mut refusals, 0..1, waiting(10, 1)), packets([]));
        assert_eq!(after(&mut refusals, 0..1, waiting(10, 2)), packets([0]));
    }

    #[test]
    fn a_reset_or_missing_counter_reports_no_drops() {
        let mut refusals = DropDetector::default();
        refusals.handle_reading(waiting(10, 50));
        assert_eq!(after(&mut refusals, 0..2, waiting(10, 3)), packets([]));
        assert_eq!(after(&mut refusals, 0..2, None), packets([]));
        assert_eq!(after(&mut refusals, 0..2, waiting(10, 9)), packets([]));
        assert_eq!(after(&mut refusals, 0..2, waiting(10, 10)), packets([1]));
    }
}
