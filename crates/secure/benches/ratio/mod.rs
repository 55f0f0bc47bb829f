//! What was measured in this run, and how much longer one thing took than another.

use core::time::Duration;
use std::collections::BTreeMap;
use std::time::Instant;

/// Time and count, by what was done and by whom.
#[derive(Default)]
pub(crate) struct Measured(BTreeMap<(String, &'static str), Vec<f64>>);

impl Measured {
    /// `who` did `what` so often in this time; the time.
    pub(crate) fn note(&mut self, what: &str, who: &'static str, count: u64, time: Duration) -> Duration {
        // Warming up takes few at a time; that is no measurement.
        if count >= 64 {
            let each = time.as_secs_f64() * 1e9 / count as f64;
            self.0.entry((what.to_owned(), who)).or_default().push(each);
        }
        time
    }

    /// Medians of both, and the ratio.
    #[expect(clippy::print_stdout, reason = "a benchmark says what it measured")]
    pub(crate) fn print(&self, yardstick: &'static str, who: &'static str) {
        println!("\n{:30} {yardstick:>10} {who:>10}  ratio", "ns each, median");
        for (what, _) in self.0.keys().filter(|(_, of)| *of == yardstick) {
            let median = |of| {
                let mut all = self.0.get(&(what.clone(), of)).cloned().unwrap_or_default();
                all.sort_by(f64::total_cmp);
                all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
            };
            let (theirs, ours) = (median(yardstick), median(who));
            println!("{what:30} {theirs:10.0} {ours:10.0}  {:.3}", ours / theirs);
        }
    }
}

/// How long it takes.
#[expect(clippy::disallowed_methods, reason = "a benchmark reads a clock")]
pub(crate) fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}
