//! The largest of recent values.

use std::collections::VecDeque;

/// The largest value of the last so many units of a time of its own, such as round trips. Exact, where Linux keeps the best three
/// (`lib/win_minmax.c`).
#[derive(Clone, Debug, Default)]
pub(super) struct MaxFilter {
    /// Times and values, later and smaller from front to back.
    best: VecDeque<(u64, f64)>,
}

impl MaxFilter {
    /// Takes a value of `time`, which never goes backwards. What is more than `window` older is forgotten.
    pub(super) fn update(&mut self, time: u64, value: f64, window: u64) {
        while self.best.back().is_some_and(|&(_, smaller)| smaller <= value) {
            self.best.pop_back();
        }
        self.best.push_back((time, value));
        while self.best.front().is_some_and(|&(then, _)| time - then > window) {
            self.best.pop_front();
        }
    }

    /// The largest; 0 before the first.
    pub(super) fn max(&self) -> f64 {
        self.best.front().map_or(0.0, |&(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_counts_until_it_is_too_old_and_then_the_largest_since() {
        let mut filter = MaxFilter::default();
        assert!(filter.max().abs() < f64::EPSILON);
        for (time, value, expected) in
            [(0, 5.0, 5.0), (3, 9.0, 9.0), (7, 4.0, 9.0), (9, 6.0, 9.0), (13, 1.0, 9.0), (14, 2.0, 6.0)]
        {
            filter.update(time, value, 10);
            assert!((filter.max() - expected).abs() < 1e-9, "{time}: {}", filter.max());
        }
        filter.update(1000, 0.5, 10);
        assert!((filter.max() - 0.5).abs() < 1e-9);
    }

    #[test]
    fn it_holds_as_much_as_its_window_at_most() {
        let mut filter = MaxFilter::default();
        for time in 0..10_000_u32 {
            filter.update(u64::from(time / 10), f64::from(10_000 - time), 10);
        }
        assert!(filter.best.len() <= 110, "{}", filter.best.len());
        (0..1000).for_each(|_| filter.update(1000, 0.1, 10));
        assert!(filter.best.len() <= 112);
    }
}
