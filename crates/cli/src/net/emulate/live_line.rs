//! Line on the terminal that shows the state of an emulation while it runs.

use crate::net::clock;
use hopline_core::{Duration as VirtualDuration, Instant as VirtualInstant};
use hopline_emulate::{Emulation, Progress};
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Interval between two lines.
const INTERVAL: Duration = Duration::from_secs(1);

/// A line that is written again and again at the same place. Programs that write to the same terminal overwrite it.
#[derive(Debug)]
struct Line {
    /// Time of the next one; `None`: there is none.
    next: Option<Instant>,
}

impl Line {
    /// Prepares to show a line if stderr is a terminal.
    fn new() -> Self {
        Self { next: io::stderr().is_terminal().then(|| clock::now() + INTERVAL) }
    }

    fn show(&mut self, text: impl FnOnce() -> String) {
        let Some(next) = self.next else { return };
        let now = clock::now();
        if now >= next {
            self.next = Some(now + INTERVAL);
            // It stands at the beginning of the line, so that other output overwrites it.
            let _ = write!(io::stderr(), "\r{}\x1b[K\r", text());
        }
    }

    /// Removes the line.
    fn end(self) {
        if self.next.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// Line of an emulation in real time.
#[derive(Debug)]
pub(super) struct LiveLine(Line);

impl LiveLine {
    /// Prepares to show a line, unless a shell has the terminal.
    pub(super) fn new(has_shell: bool) -> Self {
        Self(if has_shell { Line { next: None } } else { Line::new() })
    }

    pub(super) fn show(&mut self, emulation: &Emulation) {
        self.0.show(|| text(&emulation.progress()));
    }

    /// Removes the line.
    pub(super) fn end(self) {
        self.0.end();
    }
}

/// Line of an emulation in virtual time.
#[derive(Debug)]
pub(super) struct VirtualLine {
    line: Line,
    since: Instant,
    length: Option<VirtualDuration>,
}

impl VirtualLine {
    /// Prepares to show a line, for an emulation of this length, if it is known.
    pub(super) fn new(length: Option<VirtualDuration>) -> Self {
        Self { line: Line::new(), since: clock::now(), length }
    }

    pub(super) fn show(&mut self, now: VirtualInstant) {
        let since = self.since;
        let of = self.length.map(|length| format!(" of {}", length.as_secs_f64())).unwrap_or_default();
        self.line.show(|| {
            let real = since.elapsed().as_secs_f64();
            format!("{:.1}{of} s of virtual time, in {real:.0} s", now.as_secs_f64())
        });
    }

    /// Removes the line.
    pub(super) fn end(self) {
        self.line.end();
    }
}

fn text(progress: &Progress) -> String {
    let Progress { now, frames, lateness } = progress;
    let [p99, max] = [lateness.p99, lateness.max].map(|time| 1e3 * time.as_secs_f64());
    let verdict = if lateness.is_late() { "INVALID" } else { "valid" };
    format!(
        "{:.0} s, {frames} frames, late by {p99:.3} ms at p99, {max:.1} ms at most; {verdict}: {:.2} % more than 1 ms late",
        now.as_secs_f64(),
        100.0 * lateness.over_1_ms
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_time_frames_lateness_and_verdict() {
        let mut progress =
            Progress { now: VirtualInstant::from_millis(12_345), frames: 678, ..Progress::default() };
        progress.lateness.over_1_ms = 0.001;
        assert_eq!(
            text(&progress),
            "12 s, 678 frames, late by 0.000 ms at p99, 0.0 ms at most; valid: 0.10 % more than 1 ms late"
        );
        progress.lateness.over_1_ms = 0.03;
        assert!(text(&progress).ends_with("INVALID: 3.00 % more than 1 ms late"));
    }
}
