//! Progress on stderr, where there is a terminal to show it.

use crate::console;
use hopline_lab::Watch;
use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A bar over virtual time.
pub(crate) struct Progress {
    bar: ProgressBar,
    events: Arc<AtomicU64>,
}

impl Progress {
    /// A bar; none if `quiet`.
    pub(crate) fn new(quiet: bool) -> Self {
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        let events = Arc::new(AtomicU64::new(0));
        let counted = events.clone();
        let rate = move |state: &ProgressState, text: &mut dyn Write| {
            let seconds = state.elapsed().as_secs_f64();
            let rate = if seconds > 0.0 { counted.load(Ordering::Relaxed) as f64 / seconds } else { 0.0 };
            // Where even that fails there is nobody to tell.
            let _ = write!(text, "{}", HumanCount(rate as u64));
        };
        let template = "{bar:40} {percent:>3} %  {elapsed} gone, {eta} to go, {events} events/s";
        let style = ProgressStyle::with_template(template).expect("the template is well formed");
        bar.set_style(style.with_key("events", rate));
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, events }
    }
}

/// The bar goes when the work is over, however it ended.
impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Watch for Progress {
    fn planned(&self, total_s: f64) {
        self.bar.set_length((total_s * 1e3) as u64);
    }

    fn advanced(&self, by: hopline_lab::VirtualTime, events: u64) {
        self.bar.inc(by.as_millis());
        self.events.fetch_add(events, Ordering::Relaxed);
    }

    fn interrupted(&self) -> bool {
        console::interrupted()
    }
}
