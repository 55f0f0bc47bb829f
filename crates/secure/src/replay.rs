//! Replay window: each number is accepted once, and numbers too far behind the highest not at all.

/// Numbers in a word.
const WORD: u64 = 64;

/// A bitmap of the numbers up to the highest, as a ring of words (RFC 6479).
#[derive(Clone, Debug)]
pub(crate) struct ReplayWindow {
    /// Bit `n % 64` of word `n / 64 % len` is set if `n` has come. A power of two of words, and more than the
    /// window is wide: the highest number's is only partly in use.
    words: Box<[u64]>,
    width: u64,
    highest: Option<u64>,
}

/// Position of a number relative to the replay window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    /// Higher than all before.
    Newest,
    /// Lower, and not there yet.
    Older,
    /// It has come before.
    Repeated,
    /// Too far behind to know.
    TooOld,
}

impl ReplayWindow {
    /// Creates a window of `width` numbers, a multiple of 64.
    pub(crate) fn new(width: u32) -> Self {
        let width = u64::from(width);
        let words = (width / WORD + 1).next_power_of_two();
        Self { words: vec![0; words as usize].into(), width, highest: None }
    }

    /// Returns the highest number that was accepted.
    pub(crate) const fn highest(&self) -> Option<u64> {
        self.highest
    }

    /// Returns the position of `number`.
    pub(crate) fn position(&self, number: u64) -> Position {
        let Some(highest) = self.highest else { return Position::Newest };
        if number > highest {
            return Position::Newest;
        }
        if highest - number >= self.width {
            return Position::TooOld;
        }
        let (word, bit) = self.bit_position(number);
        if self.words[word] & bit == 0 { Position::Older } else { Position::Repeated }
    }

    /// Records that `number`, which is newest or late, has come.
    pub(crate) fn record(&mut self, number: u64) {
        if self.highest.is_none_or(|highest| number > highest) {
            let last = self.highest.map_or(0, |highest| highest / WORD);
            let skipped = (number / WORD - last).min(self.words.len() as u64);
            for step in 1..=skipped {
                let (word, _) = self.bit_position((last + step) * WORD);
                self.words[word] = 0;
            }
            self.highest = Some(number);
        }
        let (word, bit) = self.bit_position(number);
        self.words[word] |= bit;
    }

    fn bit_position(&self, number: u64) -> (usize, u64) {
        let mask = self.words.len() as u64 - 1;
        (((number / WORD) & mask) as usize, 1 << (number % WORD))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_whole_window_may_arrive_in_reverse() {
        let mut window = ReplayWindow::new(1024);
        for number in (0..1024).rev() {
            assert!(matches!(window.position(number), Position::Older | Position::Newest), "{number}");
            window.record(number);
        }
        assert!((0..1024).all(|number| window.position(number) == Position::Repeated));
        window.record(1024);
        assert_eq!(window.position(0), Position::TooOld);
        assert_eq!(window.position(1), Position::Repeated);
    }

    #[test]
    fn a_large_step_clears_the_window() {
        let mut window = ReplayWindow::new(1024);
        window.record(5);
        window.record(1 << 40);
        assert_eq!(window.position(5), Position::TooOld);
        assert_eq!(window.position((1 << 40) - 1024), Position::TooOld);
        assert!((1..1024).all(|back| window.position((1 << 40) - back) == Position::Older));
        assert_eq!(window.position(1 << 40), Position::Repeated);
    }

    proptest! {
        /// Against a set that forgets nothing.
        #[test]
        fn each_number_is_accepted_once(numbers in prop::collection::vec(0..5000u64, 1..400), scale in 1..40u64) {
            let mut window = ReplayWindow::new(1024);
            let mut taken = BTreeSet::new();
            for number in numbers.into_iter().map(|number| number * scale) {
                let expected = match taken.last() {
                    Some(&highest) if number > highest => Position::Newest,
                    None => Position::Newest,
                    Some(&highest) if highest - number >= 1024 => Position::TooOld,
                    Some(_) if taken.contains(&number) => Position::Repeated,
                    Some(_) => Position::Older,
                };
                prop_assert_eq!(window.position(number), expected);
                if matches!(expected, Position::Newest | Position::Older) {
                    window.record(number);
                    taken.insert(number);
                }
            }
        }
    }
}
