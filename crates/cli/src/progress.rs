//! Progress on stderr, where there is a terminal to show it.

use crate::console;
use hopline_lab::Watch;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// A bar over virtual time.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// A bar for `total_s` seconds of virtual time; none if `quiet`.
    pub(crate) fn new(total_s: f64, quiet: bool) -> Self {
        let bar = ProgressBar::with_draw_target(
            Some((total_s * 1e3) as u64),
            if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() },
        );
        let style = ProgressStyle::with_template("{bar:40} {percent:>3} %  {elapsed} gone, {eta} to go")
            .expect("the template is well formed");
        bar.set_style(style);
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }
}

/// The bar goes when the work is over, however it ended.
impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

impl Watch for Progress {
    fn advanced(&self, by: hopline_lab::VirtualTime) {
        self.0.inc(by.as_millis());
    }

    fn interrupted(&self) -> bool {
        console::interrupted()
    }
}
