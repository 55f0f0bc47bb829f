//! Sets of numbers, as runs.

use core::ops::Range;
use std::collections::VecDeque;

/// Disjoint runs that do not touch, in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RangeSet {
    runs: VecDeque<Range<u64>>,
}

impl RangeSet {
    /// Adds `range`. Returns the number of new elements.
    pub(super) fn insert(&mut self, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        // Nearly always the last run grows, or there is one more behind it.
        let first = match self.runs.back() {
            Some(last) if range.start > last.end => self.runs.len(),
            _ => self.runs.partition_point(|run| run.end < range.start),
        };
        let last = first + self.runs.range(first..).take_while(|run| run.start <= range.end).count();
        if first == last {
            self.runs.insert(first, range.clone());
            return range.end - range.start;
        }
        let known: u64 = self
            .runs
            .range(first..last)
            .map(|run| run.end.min(range.end).saturating_sub(run.start.max(range.start)))
            .sum();
        let joined = self.runs[first].start.min(range.start)..self.runs[last - 1].end.max(range.end);
        self.runs.drain(first + 1..last);
        self.runs[first] = joined;
        range.end - range.start - known
    }

    pub(super) fn contains(&self, number: u64) -> bool {
        let at = self.runs.partition_point(|run| run.end <= number);
        self.runs.get(at).is_some_and(|run| run.start <= number)
    }

    /// Returns whether the set contains all of `range`.
    pub(super) fn covers(&self, range: Range<u64>) -> bool {
        let at = self.runs.partition_point(|run| run.end <= range.start);
        range.is_empty()
            || self.runs.get(at).is_some_and(|run| run.start <= range.start && range.end <= run.end)
    }

    /// Returns the runs in descending order.
    pub(super) fn descending(&self) -> impl Iterator<Item = &Range<u64>> {
        self.runs.iter().rev()
    }

    /// Returns the end of the run that contains or touches `position`, or `position`.
    pub(super) fn end_of_run(&self, position: u64) -> u64 {
        let at = self.runs.partition_point(|run| run.end < position);
        self.runs.get(at).filter(|run| run.start <= position).map_or(position, |run| run.end)
    }

    /// Removes numbers below `position`.
    pub(super) fn remove_below(&mut self, position: u64) {
        while let Some(run) = self.runs.front_mut() {
            if run.end > position {
                run.start = run.start.max(position);
                break;
            }
            self.runs.pop_front();
        }
    }

    /// Removes the lowest runs, so that at most `most` are left.
    pub(super) fn keep_highest(&mut self, most: usize) {
        while self.runs.len() > most {
            self.runs.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_contains_exactly_the_inserted_numbers(pieces in proptest::collection::vec((0u64..60, 0u64..9), 0..30)) {
            let (mut ranges, mut model) = (RangeSet::default(), BTreeSet::new());
            for (start, len) in pieces {
                let before = model.len();
                model.extend(start..start + len);
                prop_assert_eq!(ranges.insert(start..start + len), (model.len() - before) as u64);
            }
            for number in 0..70 {
                prop_assert_eq!(ranges.contains(number), model.contains(&number));
                let end = (number..).find(|n| !model.contains(n)).unwrap_or(number);
                if model.contains(&number) {
                    prop_assert_eq!(ranges.end_of_run(number), end);
                    prop_assert!(ranges.covers(number..end) && !ranges.covers(number..end + 1));
                }
            }
            let runs: Vec<_> = ranges.descending().cloned().collect();
            prop_assert!(runs.windows(2).all(|pair| pair[1].end < pair[0].start));
        }
    }

    #[test]
    fn the_lowest_ranges_are_removed() {
        let mut ranges = RangeSet::default();
        for start in [0, 10, 20] {
            ranges.insert(start..start + 5);
        }
        ranges.remove_below(12);
        assert_eq!(ranges.descending().cloned().collect::<Vec<_>>(), [20..25, 12..15]);
        ranges.keep_highest(1);
        assert_eq!(ranges.descending().next(), Some(&(20..25)));
        assert_eq!(ranges.descending().count(), 1);
    }
}
