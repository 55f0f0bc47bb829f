//! The numbers of movement files: what they stand for, and their ranges.

use super::text_error::{TextError, shorten};
use crate::separated::decimal_comma;
use core::ops::RangeInclusive;
use hopline_core::{Duration, Instant};

/// The fastest movement that is read, and written: the speed of light in m/s.
pub(super) const TOP_SPEED_MPS: f64 = 299_792_458.0;

/// Quantity that a number stands for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Quantity {
    X,
    Y,
    /// Height, which must be 0.
    Ground,
    /// Height, which must be the same everywhere.
    Height,
    Time,
    Latitude,
    Longitude,
    Speed,
    Node,
    Hops,
}

impl Quantity {
    /// Returns the name, range and an example.
    const fn rule(self) -> (&'static str, RangeInclusive<f64>, &'static str) {
        match self {
            Self::X => ("the x coordinate in metres, within 1e9 of 0", -1e9..=1e9, "83.4"),
            Self::Y => ("the y coordinate in metres, within 1e9 of 0", -1e9..=1e9, "239.4"),
            Self::Ground => ("the z coordinate, which must be 0: nodes move in the plane", 0.0..=0.0, "0.0"),
            Self::Height => ("the z coordinate in metres, within 1e9 of 0", -1e9..=1e9, "0.0"),
            Self::Time => ("the time in seconds, at least 0 and at most 1e9", 0.0..=1e9, "2.0"),
            Self::Latitude => ("the latitude in degrees, from -90 to 90", -90.0..=90.0, "52.52"),
            Self::Longitude => ("the longitude in degrees, from -180 to 180", -180.0..=180.0, "13.405"),
            Self::Speed => (
                "the speed in metres per second, at least 0 and at most that of light",
                0.0..=TOP_SPEED_MPS,
                "1.3",
            ),
            Self::Node => ("a node index", 0.0..=4_294_967_295.0, "0"),
            Self::Hops => ("a number of hops", 0.0..=4_294_967_295.0, "2"),
        }
    }

    /// Returns its name.
    pub(super) const fn name(self) -> &'static str {
        self.rule().0
    }

    /// Returns a description of the right values.
    pub(super) fn help(self) -> String {
        let (name, _, example) = self.rule();
        format!("expected {name}, such as {example}")
    }

    /// Returns the value that `word`, which begins at byte `at`, spells.
    pub(super) fn read(self, word: &str, at: usize) -> Result<f64, TextError> {
        let range = at..at + word.len();
        // Rust also reads `inf` and `nan`; none of the formats has them.
        let digits = word.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
        let Some(value) = word.parse::<f64>().ok().filter(|_| digits) else {
            let message = match word.is_empty() {
                true => "a number is missing here".to_owned(),
                false => format!("`{}` is not a number", shorten(word)),
            };
            return Err(TextError::new(range, message, decimal_comma(word).unwrap_or_else(|| self.help())));
        };
        if !self.rule().1.contains(&value) {
            return Err(TextError::new(range, format!("{} is out of range", shorten(word)), self.help()));
        }
        Ok(value + 0.0) // −0 becomes 0
    }

    /// Returns the instant that `word`, which begins at byte `at`, spells in seconds.
    pub(super) fn read_instant(word: &str, at: usize) -> Result<Instant, TextError> {
        Ok(Instant::ZERO + Duration::from_secs_f64(Self::Time.read(word, at)?))
    }
}
