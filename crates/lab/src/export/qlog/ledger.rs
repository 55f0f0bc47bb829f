//! Packets that are neither acknowledged nor declared lost, by the units that they take.

use hopline_core::Instant;
use std::collections::BTreeMap;
use std::ops::Range;

/// Packet in a ledger.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry<T> {
    /// Packet number.
    pub(super) number: u64,
    /// Units that the packet takes; not empty.
    pub(super) units: Range<u64>,
    /// Time of sending, or of arrival.
    pub(super) at: Instant,
    /// Data of the caller.
    pub(super) data: T,
}

/// Packets by their first unit. A unit is what is acknowledged: a sequence number, a position in a block, or a packet
/// number.
#[derive(Clone, Debug)]
pub(super) struct Ledger<T> {
    open: BTreeMap<(u64, u64), Entry<T>>,
    /// Number of units of the longest packet so far.
    longest: u64,
}

impl<T> Default for Ledger<T> {
    fn default() -> Self {
        Self { open: BTreeMap::new(), longest: 0 }
    }
}

impl<T> Ledger<T> {
    /// Adds a packet. One that takes no units is not acknowledged, and not kept.
    pub(super) fn add(&mut self, entry: Entry<T>) {
        let Range { start, end } = entry.units;
        if end > start {
            self.longest = self.longest.max(end - start);
            self.open.insert((start, entry.number), entry);
        }
    }

    /// Removes and returns the packets with all units below `below` or in one of `blocks`, in the order of their
    /// numbers.
    pub(super) fn take_covered(&mut self, below: u64, blocks: &[Range<u64>]) -> Vec<Entry<T>> {
        let mut taken = self.take_within(0..below);
        for block in blocks {
            taken.extend(self.take_within(block.clone()));
        }
        taken.sort_by_key(|entry| entry.number);
        taken
    }

    /// Removes and returns the packets that share a unit with `units`, in the order of their numbers.
    pub(super) fn take_overlapping(&mut self, units: &Range<u64>) -> Vec<Entry<T>> {
        let first = units.start.saturating_sub(self.longest);
        self.take_where(first..units.end, |entry| entry.units.end > units.start)
    }

    fn take_within(&mut self, units: Range<u64>) -> Vec<Entry<T>> {
        let end = units.end;
        self.take_where(units, |entry| entry.units.end <= end)
    }

    /// Removes and returns the packets with their first unit in `starts`, if `matches`.
    fn take_where(&mut self, starts: Range<u64>, matches: impl Fn(&Entry<T>) -> bool) -> Vec<Entry<T>> {
        if starts.is_empty() {
            return Vec::new();
        }
        let found = self.open.range((starts.start, 0)..(starts.end, 0));
        let keys: Vec<_> = found.filter(|(_, entry)| matches(entry)).map(|(&key, _)| key).collect();
        let mut taken: Vec<_> = keys.iter().filter_map(|key| self.open.remove(key)).collect();
        taken.sort_by_key(|entry| entry.number);
        taken
    }
}

/// Returns ascending numbers as ranges, both ends included.
pub(super) fn ranges(numbers: impl IntoIterator<Item = u64>) -> Vec<[u64; 2]> {
    let mut ranges: Vec<[u64; 2]> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some([_, last]) if *last + 1 == number => *last = number,
            _ => ranges.push([number; 2]),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(packets: &[(u64, Range<u64>)]) -> Ledger<()> {
        let mut ledger = Ledger::default();
        for (number, units) in packets.iter().cloned() {
            ledger.add(Entry { number, units, at: Instant::ZERO, data: () });
        }
        ledger
    }

    fn numbers(taken: Vec<Entry<()>>) -> Vec<u64> {
        taken.into_iter().map(|entry| entry.number).collect()
    }

    #[test]
    fn an_acknowledgment_covers_whole_packets_and_each_once() {
        let mut ledger = ledger(&[(0, 0..1), (1, 1..101), (2, 101..201), (3, 201..301), (4, 301..401)]);
        assert_eq!(numbers(ledger.take_covered(150, &[])), [0, 1], "half of packet 2 is not all of it");
        assert_eq!(numbers(ledger.take_covered(101, std::slice::from_ref(&(201..301)))), [3]);
        assert_eq!(numbers(ledger.take_covered(101, std::slice::from_ref(&(201..301)))), [0; 0]);
        assert_eq!(numbers(ledger.take_covered(401, &[])), [2, 4]);
    }

    #[test]
    fn data_that_are_sent_again_overlap_all_earlier_packets_with_them() {
        let packets = [(5, 100..101), (6, 100..200), (7, 200..300), (8, 300..400)];
        assert_eq!(numbers(ledger(&packets).take_overlapping(&(100..200))), [5, 6]);
        assert_eq!(numbers(ledger(&packets).take_overlapping(&(250..350))), [7, 8]);
        assert_eq!(numbers(ledger(&packets).take_overlapping(&(0..100))), [0; 0]);
        assert_eq!(numbers(ledger(&packets).take_overlapping(&(0..0))), [0; 0]);
    }

    #[test]
    fn a_packet_without_units_is_not_kept() {
        assert_eq!(numbers(ledger(&[(1, 7..7)]).take_covered(u64::MAX, &[])), [0; 0]);
    }

    #[test]
    fn numbers_become_closed_ranges() {
        assert_eq!(ranges([1, 2, 3, 7, 9, 10]), [[1, 3], [7, 7], [9, 10]]);
        assert!(ranges([]).is_empty());
    }
}
