//! The largest of recent values.

use std::collections::VecDeque;

/// The largest value of the last so many units of a time of its own, such as round trips. Exact, where Linux keeps the best three
/// (`lib/win_minmax.c`).
#[derive(Clone, Debug, Default)]
pub(super) struct MaxFilter {
    /// Times and values, later and smaller from front to back.
    samples: VecDeque<(u64, f64)>,
}

impl MaxFilter {
    /// Takes a value of `time`, which never goes backwards. What is more than `window` older is forgotten.
    pub(super) fn update(&mut self, time: u64, value: f64, window: u64) {
        while self.samples.back().is_some_and(|&(_, smaller)| smaller <= value) {
            self.samples.pop_back();
        }
        self.samples.push_back((time, value));
        while self.samples.front().is_some_and(|&(then, _)| time - then > window) {
            self.samples.pop_front();
        }
    }

    /// Returns the newest entry: its time and its value.
    #[cfg(test)]
    pub(super) fn newest(&self) -> Option<(u64, f64)> {
        self.samples.back().copied()
    }

    /// The largest; 0 before the first.
    pub(super) fn max(&self) -> f64 {
        self.samples.front().map_or(0.0, |&(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maximum_expires_after_the_window() {
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
    fn it_holds_at_most_one_sample_per_unit_of_the_window() {
        let mut filter = MaxFilter::default();
        for time in 0..10_000_u32 {
            filter.update(u64::from(time / 10), f64::from(10_000 - time), 10);
        }
        assert!(filter.samples.len() <= 110, "{}", filter.samples.len());
        (0..1000).for_each(|_| filter.update(1000, 0.1, 10));
        assert!(filter.samples.len() <= 112);
    }
}
