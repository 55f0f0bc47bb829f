//! Progress on stderr, where there is a terminal to show it.

use crate::console;
use crate::problems::say;
use hopline_lab::{Watch, Work};
use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A bar over virtual time.
pub(crate) struct Progress {
    bar: ProgressBar,
    events: Arc<AtomicU64>,
    estimate: Option<Mutex<Estimate>>,
}

/// What a plan costs, once each of its points has been run.
#[derive(Debug, Default)]
struct Estimate {
    name: String,
    work: Work,
    ended: u64,
    virtual_s: f64,
    cpu_s: f64,
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
        Self { bar, events, estimate: None }
    }

    /// The same for a plan called `name`, with lines on stderr about how much there is to do and what it costs.
    pub(crate) fn of_plan(name: &str, quiet: bool) -> Self {
        let estimate = Estimate { name: name.to_owned(), ..Estimate::default() };
        let mut progress = Self::new(quiet);
        progress.estimate = (!quiet).then(|| Mutex::new(estimate));
        progress
    }

    /// Changes what is known of the cost, and says what there is to say.
    fn know(&self, change: impl FnOnce(&mut Estimate) -> Option<String>) {
        let Some(estimate) = &self.estimate else { return };
        let said = change(&mut estimate.lock().expect("nobody panics with it"));
        if let Some(line) = said {
            self.bar.suspend(|| say(&line));
        }
    }
}

impl Estimate {
    fn planned(&mut self, work: Work) -> Option<String> {
        let known = std::mem::replace(&mut self.work, work);
        (known.runs != work.runs && work.missing > 0).then(|| {
            let there = match work.runs - work.missing {
                0 => String::new(),
                there => format!(", {} of them there already", HumanCount(there)),
            };
            format!(
                "{}: {} points, {} runs, {:.1} h of virtual time{there}",
                self.name,
                work.points,
                HumanCount(work.runs),
                work.total_s / 3600.0
            )
        })
    }

    /// Every point has been run once, or as good as: the runs of one number are neighbours in the order of a plan.
    fn ended(&mut self, virtual_s: f64, cpu_s: f64) -> Option<String> {
        self.ended += 1;
        self.virtual_s += virtual_s;
        self.cpu_s += cpu_s;
        let left = self.work.missing.saturating_sub(self.ended);
        if self.ended != self.work.points as u64 || left == 0 || self.virtual_s <= 0.0 {
            return None;
        }
        let left_s = (self.work.total_s - self.work.there_s - self.virtual_s).max(0.0);
        let cpu_left_s = self.cpu_s / self.virtual_s * left_s;
        let threads = self.work.jobs.max(1);
        Some(format!(
            "{}: a run takes {:.2} s of CPU time; the {} to go take about {}, on {threads} {} of their own about {}",
            self.name,
            self.cpu_s / self.ended as f64,
            HumanCount(left),
            HumanDuration(Duration::from_secs_f64(cpu_left_s)),
            if threads == 1 { "core" } else { "cores" },
            HumanDuration(Duration::from_secs_f64(cpu_left_s / threads as f64)),
        ))
    }
}

/// The bar goes when the work is over, however it ended.
impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Watch for Progress {
    fn planned(&self, work: Work) {
        self.bar.set_length((work.total_s * 1e3) as u64);
        self.bar.set_position((work.there_s * 1e3) as u64);
        self.bar.reset_eta();
        self.know(|estimate| estimate.planned(work));
    }

    fn ended(&self, virtual_s: f64, cpu_s: f64) {
        self.know(|estimate| estimate.ended(virtual_s, cpu_s));
    }

    fn advanced(&self, by: hopline_lab::VirtualTime, events: u64) {
        self.bar.inc(by.as_millis());
        self.events.fetch_add(events, Ordering::Relaxed);
    }

    fn interrupted(&self) -> bool {
        console::interrupted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(missing: u64) -> Work {
        let (runs, virtual_s) = (5700, 200.0);
        let there_s = (runs - missing) as f64 * virtual_s;
        Work { points: 57, runs, missing, total_s: runs as f64 * virtual_s, there_s, jobs: 2 }
    }

    fn estimate(missing: u64) -> (Estimate, Option<String>) {
        let mut estimate = Estimate { name: "door".to_owned(), ..Estimate::default() };
        let said = estimate.planned(work(missing));
        (estimate, said)
    }

    #[test]
    fn how_much_there_is_to_do_is_said_before_anything_runs() {
        assert_eq!(estimate(5700).1.as_deref(), Some("door: 57 points, 5,700 runs, 316.7 h of virtual time"));
        let resumed = estimate(57).1.unwrap();
        assert!(resumed.ends_with(", 5,643 of them there already"), "{resumed}");
        assert_eq!(estimate(0).1, None, "nothing to do");
        let (mut again, _) = estimate(5700);
        assert_eq!(again.planned(work(5700)), None, "it is said once");
    }

    #[test]
    fn what_it_costs_is_said_once_every_point_was_run() {
        let (mut estimate, _) = estimate(5700);
        let said: Vec<Option<String>> = (0..60).map(|_| estimate.ended(200.0, 0.5)).collect();
        assert_eq!(said.iter().flatten().count(), 1);
        let line = said[56].as_deref().unwrap();
        // 5643 runs of half a second: 2821 s.
        let expected = "door: a run takes 0.50 s of CPU time; the 5,643 to go take about 47 minutes, on 2 cores of their own about 24 minutes";
        assert_eq!(line, expected);
    }

    #[test]
    fn a_plan_that_ends_with_its_first_runs_needs_no_estimate() {
        let (mut estimate, _) = estimate(57);
        assert!((0..57).all(|_| estimate.ended(200.0, 0.5).is_none()));
        let mut nothing = Estimate::default();
        assert_eq!(nothing.ended(0.0, 0.0), None);
    }
}
