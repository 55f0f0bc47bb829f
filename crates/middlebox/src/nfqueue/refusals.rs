//! Detection of the passed packets that the mobile interface's queue has dropped.
//!
//! A packet that passes is queued at the interface within the system call that delivers the verdict. Drops counted right
//! after it belong to the packets that have just passed. While the queue may be full, packets pass one by one, so that
//! drops are attributed exactly. Otherwise several pass between two reads of the counter, and the last ones count as
//! dropped.

use bytes::Bytes;
use hopline_linux::qdisc::Counted;
use std::collections::VecDeque;

/// Assumed length of the queue, in packets, until it has been seen longer.
const SHORTEST: u32 = 16;
/// Maximum packets between two reads of the counter.
const SUSPECTS: usize = 64;

/// Packets that have passed since the last read, and the counter then.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    suspects: VecDeque<Bytes>,
    /// Injected packets since the last read.
    injected: u32,
    /// Of those, known to have been dropped.
    known: u32,
    last: Option<Counted>,
    /// Maximum length of the queue seen without a drop.
    held: u32,
    refused: VecDeque<Bytes>,
    /// Drops detected.
    pub(super) drops: u64,
}

impl Refusals {
    /// Records a packet that is about to pass to the mobile side.
    pub(super) fn note(&mut self, packet: Bytes) {
        self.suspects.push_back(packet);
    }

    /// Records an injected packet towards the mobile side.
    pub(super) fn note_injected(&mut self) {
        self.injected += 1;
    }

    /// Records an injected packet that was dropped with an error.
    pub(super) fn note_no_room(&mut self) {
        self.injected += 1;
        self.known += 1;
    }

    /// Returns whether drops are possible since the last read.
    pub(super) fn are_possible(&self) -> bool {
        let passed = self.suspects.len() as u32 + self.injected;
        let most = self.last.map_or(u32::MAX, |last| last.packets.saturating_add(passed));
        passed > 0 && (most > self.held.max(SHORTEST) || self.suspects.len() >= SUSPECTS)
    }

    /// Processes a read of the counter; `None` if the queue has none.
    pub(super) fn look(&mut self, now: Option<Counted>) {
        let dropped = match (self.last, now) {
            // A queueing discipline that was replaced counts from 0.
            (Some(last), Some(now)) if now.drops.wrapping_sub(last.drops) < u32::MAX / 2 => {
                now.drops.wrapping_sub(last.drops)
            }
            _ => 0,
        };
        if let Some(now) = now {
            self.held = match dropped {
                0 => self.held.max(now.packets),
                _ => self.held.min(now.packets.saturating_sub(1)),
            };
        }
        self.drops += u64::from(dropped);
        let unknown = dropped.saturating_sub(self.known) as usize;
        let first = self.suspects.len().saturating_sub(unknown);
        self.refused.extend(self.suspects.drain(first..));
        self.suspects.clear();
        (self.injected, self.known) = (0, 0);
        self.last = now;
    }

    /// Returns the next dropped packet.
    pub(super) fn next(&mut self) -> Option<Bytes> {
        self.refused.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(numbers: impl IntoIterator<Item = u8>) -> Vec<Bytes> {
        numbers.into_iter().map(|n| Bytes::from(vec![n])).collect()
    }

    fn waiting(packets: u32, drops: u32) -> Option<Counted> {
        Some(Counted { packets, bytes: packets * 1500, drops })
    }

    /// Returns the packets detected as dropped after some have passed and the counter was read.
    fn after(
        refusals: &mut Refusals,
        numbers: impl IntoIterator<Item = u8>,
        now: Option<Counted>,
    ) -> Vec<Bytes> {
        packets(numbers).into_iter().for_each(|packet| refusals.note(packet));
        refusals.look(now);
        std::iter::from_fn(|| refusals.next()).collect()
    }

    #[test]
    fn the_last_of_those_that_passed_found_no_room() {
        let mut refusals = Refusals::default();
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
    fn nobody_looks_while_the_queue_has_held_more() {
        let mut refusals = Refusals::default();
        assert!(!refusals.are_possible());
        refusals.note(Bytes::new());
        assert!(refusals.are_possible(), "nothing is known yet");
        refusals.look(waiting(60, 0));
        refusals.look(waiting(10, 0));
        for passed in 1..=51 {
            refusals.note(Bytes::new());
            assert_eq!(refusals.are_possible(), passed > 50);
        }
        refusals.look(waiting(20, 1));
        refusals.note(Bytes::new());
        assert!(refusals.are_possible(), "it has dropped with less in it");
    }

    #[test]
    fn what_passes_unlooked_at_is_bounded() {
        let mut refusals = Refusals::default();
        refusals.look(waiting(10_000, 0));
        refusals.look(waiting(0, 0));
        let passed = (0..).take_while(|_| {
            refusals.note(Bytes::new());
            !refusals.are_possible()
        });
        assert_eq!(passed.count(), SUSPECTS - 1);
    }

    #[test]
    fn our_own_are_told_apart() {
        let mut refusals = Refusals::default();
        refusals.look(waiting(10, 0));
        refusals.note_no_room();
        assert_eq!(after(&mut refusals, 0..1, waiting(10, 1)), packets([]));
        assert_eq!(after(&mut refusals, 0..1, waiting(10, 2)), packets([0]));
    }

    #[test]
    fn a_queue_that_begins_anew_or_says_nothing_has_dropped_nothing() {
        let mut refusals = Refusals::default();
        refusals.look(waiting(10, 50));
        assert_eq!(after(&mut refusals, 0..2, waiting(10, 3)), packets([]));
        assert_eq!(after(&mut refusals, 0..2, None), packets([]));
        assert_eq!(after(&mut refusals, 0..2, waiting(10, 9)), packets([]));
        assert_eq!(after(&mut refusals, 0..2, waiting(10, 10)), packets([1]));
    }
}
