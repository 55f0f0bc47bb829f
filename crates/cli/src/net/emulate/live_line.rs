//! Line on the terminal that shows how late the emulation is while it runs.

use crate::net::clock;
use hopline_emulate::{Emulation, Progress};
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Interval between two lines.
const INTERVAL: Duration = Duration::from_secs(1);

/// A line that is written again and again at the same place. Programs that write to the same terminal overwrite it.
#[derive(Debug)]
pub(super) struct LiveLine {
    /// Time of the next one; `None`: there is none.
    next: Option<Instant>,
}

impl LiveLine {
    /// Prepares to show a line if stderr is a terminal, unless a shell has it.
    pub(super) fn new(has_shell: bool) -> Self {
        let shows = !has_shell && io::stderr().is_terminal();
        Self { next: shows.then(|| clock::now() + INTERVAL) }
    }

    pub(super) fn show(&mut self, emulation: &Emulation) {
        let now = clock::now();
        if self.next.is_some_and(|next| now >= next) {
            self.next = Some(now + INTERVAL);
            // It stands at the beginning of the line, so that other output overwrites it.
            let _ = write!(io::stderr(), "\r{}\x1b[K\r", text(&emulation.progress()));
        }
    }

    /// Removes the line.
    pub(super) fn end(self) {
        if self.next.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
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
    use hopline_core::Instant as VirtualInstant;

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
