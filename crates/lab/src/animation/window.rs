//! Part of a run to be recorded.

use hopline_core::{Duration, Instant};
use std::fmt;
use std::str::FromStr;

/// A part of a run: from a moment to a later one, or to the end. By default the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    from: Duration,
    to: Option<Duration>,
}

/// Invalid window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowError(String);

impl fmt::Display for WindowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WindowError {}

/// Longest time accepted, seconds: the maximum duration of a run.
const MAX_S: f64 = 1e7;

impl Window {
    /// Creates a window from `from` on, up to `to` or the end of the run.
    ///
    /// # Errors
    ///
    /// If it ends before it begins.
    pub fn new(from: Duration, to: Option<Duration>) -> Result<Self, WindowError> {
        match to {
            Some(to) if to <= from => Err(WindowError(format!(
                "it ends at {} s and begins at {} s: nothing is left to play",
                to.as_secs_f64(),
                from.as_secs_f64()
            ))),
            _ => Ok(Self { from, to }),
        }
    }

    /// Returns the window if it begins within a run of this length.
    ///
    /// # Errors
    ///
    /// If it begins after the end of the run.
    pub fn within(self, run: Duration) -> Result<Self, WindowError> {
        if self.from >= run {
            let (from, run) = (self.from.as_secs_f64(), run.as_secs_f64());
            return Err(WindowError(format!("it begins at {from} s, and the run ends at {run} s")));
        }
        Ok(Self { from: self.from, to: Some(self.to.unwrap_or(run).min(run)) })
    }

    /// Returns its begin.
    pub(crate) fn begins(self) -> Instant {
        Instant::ZERO + self.from
    }

    /// Returns its end, or `otherwise` if it has none.
    pub(crate) fn ends_or(self, otherwise: Instant) -> Instant {
        self.to.map_or(otherwise, |to| Instant::ZERO + to)
    }

    /// Returns its end in a run of this length.
    pub(crate) fn ends(self, run: Duration) -> Instant {
        Instant::ZERO + self.to.unwrap_or(run).min(run)
    }
}

/// Parses `20s..40s`; either end may be left out.
impl FromStr for Window {
    type Err = WindowError;

    fn from_str(text: &str) -> Result<Self, WindowError> {
        let form = || WindowError("it takes FROM..TO, for example 20s..40s, 500ms..2s or 20s..".to_owned());
        let (from, to) = text.split_once("..").ok_or_else(form)?;
        let time = |text: &str| match text.trim() {
            "" => Ok(None),
            text => time(text).map(Some),
        };
        Self::new(time(from)?.unwrap_or(Duration::ZERO), time(to)?)
    }
}

fn time(text: &str) -> Result<Duration, WindowError> {
    let unit = text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit);
    let factor = match unit {
        "s" | "" => 1.0,
        "ms" => 1e-3,
        "us" | "µs" => 1e-6,
        _ => return Err(WindowError(format!("\"{text}\" is no time: the unit is s, ms or us, as in 20s"))),
    };
    match number.trim().parse::<f64>() {
        Ok(number) if (0.0..=MAX_S).contains(&(number * factor)) => {
            Ok(Duration::from_secs_f64(number * factor))
        }
        _ => Err(WindowError(format!("\"{text}\" is no time: a number and its unit, as in 20s"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn read(text: &str) -> Result<Window, String> {
        text.parse().map_err(|e: WindowError| e.to_string())
    }

    #[test]
    fn either_end_of_a_window_may_be_omitted() {
        let window = |from, to: Option<u64>| Window::new(MS(from), to.map(MS));
        assert_eq!(read("20s..40s").unwrap(), window(20_000, Some(40_000)).unwrap());
        assert_eq!(read(" 20 .. 40.5 ").unwrap(), window(20_000, Some(40_500)).unwrap());
        assert_eq!(read("500ms..2s").unwrap(), window(500, Some(2000)).unwrap());
        assert_eq!(read("1500000us..").unwrap(), window(1500, None).unwrap());
        assert_eq!(read("..").unwrap(), window(0, None).unwrap());
    }

    #[test]
    fn an_invalid_window_is_rejected_with_a_valid_example() {
        for (text, said) in [
            ("", "it takes FROM..TO"),
            ("20s", "it takes FROM..TO"),
            ("20m..40m", "\"20m\" is no time: the unit is s, ms or us"),
            ("a..b", "\"a\" is no time"),
            ("-1s..2s", "\"-1s\" is no time"),
            ("0..1e300", "\"1e300\" is no time"),
            ("nan..", "\"nan\" is no time"),
            ("\u{feff}1..2", "is no time"),
            ("40s..20s", "it ends at 20 s and begins at 40 s: nothing is left to play"),
            ("2..2", "nothing is left"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn a_window_is_cut_at_the_end_of_the_run_and_must_begin_before_it() {
        let window = read("5s..40s").unwrap().within(MS(10_000)).unwrap();
        assert_eq!(window, Window::new(MS(5000), Some(MS(10_000))).unwrap());
        let error = window.within(MS(5000)).unwrap_err().to_string();
        assert_eq!(error, "it begins at 5 s, and the run ends at 5 s");
    }
}
