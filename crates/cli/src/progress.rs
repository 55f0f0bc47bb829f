//! Progress on stderr, if it is a terminal.

use crate::console;
use crate::forecast::Forecast;
use crate::problems::print_error_line;
use hopline_lab::counted::{count_text, count_text_as};
use hopline_lab::{Observer, Work};
use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Progress bar over virtual time.
pub(crate) struct Progress {
    bar: ProgressBar,
    state: Arc<Mutex<WorkState>>,
}

/// State of the work.
#[derive(Debug, Default)]
struct WorkState {
    forecast: Forecast,
    events: u64,
    /// Estimate of the costs, for a plan.
    estimate: Option<Estimate>,
}

/// Estimate of the costs of a plan, once each of its points has been run.
#[derive(Debug, Default)]
struct Estimate {
    name: String,
    work: Work,
    ended: u64,
    cpu_s: f64,
    is_printed: bool,
}

impl Progress {
    /// Creates a bar; hidden if `quiet`.
    pub(crate) fn new(quiet: bool) -> Self {
        Self::over(WorkState::default(), quiet)
    }

    /// Creates a bar for a plan called `name`, with lines on stderr about its amount of work and its cost.
    pub(crate) fn of_plan(name: &str, quiet: bool) -> Self {
        let estimate = Estimate { name: name.to_owned(), ..Estimate::default() };
        Self::over(WorkState { estimate: (!quiet).then_some(estimate), ..WorkState::default() }, quiet)
    }

    fn over(known: WorkState, quiet: bool) -> Self {
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        let known = Arc::new(Mutex::new(known));
        let shown = known.clone();
        let words = move |state: &ProgressState, text: &mut dyn Write| {
            let known = shown.lock().expect("nobody panics with it");
            // A failure is ignored, since it could not be reported.
            let _ = write!(text, "{}", known.words(state.elapsed().as_secs_f64()));
        };
        let style = ProgressStyle::with_template("{bar:24} {percent:>3} %  {words}");
        bar.set_style(style.expect("the template is well formed").with_key("words", words));
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, state: known }
    }

    /// Changes the state, and prints a resulting line.
    fn update(&self, change: impl FnOnce(&mut WorkState) -> Option<String>) {
        let said = change(&mut self.state.lock().expect("nobody panics with it"));
        if let Some(line) = said {
            self.bar.suspend(|| print_error_line(&line));
        }
    }
}

impl WorkState {
    /// Returns the text after the bar; with the bar, within 80 columns.
    fn words(&self, elapsed_s: f64) -> String {
        let short = |seconds: f64| format!("{:#}", HumanDuration(duration(seconds)));
        let to_go = self.forecast.eta_s(elapsed_s).map_or_else(|| "?".to_owned(), short);
        let rate = if elapsed_s > 0.0 { self.events as f64 / elapsed_s } else { 0.0 };
        format!("{} gone, {to_go} to go, {} events/s", short(elapsed_s), HumanCount(rate as u64))
    }
}

/// Returns a duration; values that no clock reaches are limited.
fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::from_secs(u32::MAX.into()))
}

impl Estimate {
    fn planned(&mut self, work: Work) -> Option<String> {
        let known = std::mem::replace(&mut self.work, work);
        let work = &self.work;
        (known.runs != work.runs && work.missing > 0).then(|| {
            let there = match work.runs - work.missing {
                0 => String::new(),
                there => format!(", {} of them there already", HumanCount(there)),
            };
            format!(
                "{}: {}, {}, {:.1} h of virtual time{there}",
                self.name,
                count_text(work.left_s.len(), "point"),
                count_text_as(work.runs as usize, HumanCount(work.runs), "run"),
                work.total_s / 3600.0
            )
        })
    }

    /// Counts a finished run, which `forecast` includes. Returns the estimate of the rest once every point has been run.
    fn ended(&mut self, forecast: &Forecast, cpu_s: f64) -> Option<String> {
        self.ended += 1;
        self.cpu_s += cpu_s;
        let left = self.work.missing.saturating_sub(self.ended);
        if self.is_printed || left == 0 || !forecast.has_rate_of_all_points() {
            return None;
        }
        self.is_printed = true;
        let cpu_left_s = forecast.left_s();
        let threads = self.work.jobs.max(1);
        Some(format!(
            "{}: a run takes {:.2} s of CPU time; the {} to go take about {}, on {threads} {} of their own about {}",
            self.name,
            self.cpu_s / self.ended as f64,
            HumanCount(left),
            HumanDuration(duration(cpu_left_s)),
            if threads == 1 { "core" } else { "cores" },
            HumanDuration(duration(cpu_left_s / threads as f64)),
        ))
    }
}

/// Removes the bar when the work has ended, with or without success.
impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Observer for Progress {
    fn planned(&self, work: Work) {
        self.bar.set_length((work.total_s * 1e3) as u64);
        self.bar.set_position((work.there_s * 1e3) as u64);
        self.update(|known| {
            known.forecast.planned(&work.left_s);
            known.estimate.as_mut()?.planned(work)
        });
    }

    fn ended(&self, point: usize, virtual_s: f64, cpu_s: f64) {
        self.update(|known| {
            known.forecast.ended(point, virtual_s, cpu_s);
            known.estimate.as_mut()?.ended(&known.forecast, cpu_s)
        });
    }

    fn advanced(&self, by: hopline_lab::VirtualTime, events: u64) {
        self.update(|known| {
            known.forecast.advanced(by.as_secs_f64());
            known.events += events;
            None
        });
        self.bar.inc(by.as_millis());
    }

    fn interrupted(&self) -> bool {
        console::interrupted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(missing: u64) -> Work {
        let (points, runs, virtual_s) = (57, 5700, 200.0);
        let there_s = (runs - missing) as f64 * virtual_s;
        let left_s = vec![missing as f64 * virtual_s / points as f64; points];
        Work { runs, missing, total_s: runs as f64 * virtual_s, there_s, left_s, jobs: 2 }
    }

    fn known(missing: u64) -> (WorkState, Option<String>) {
        let mut estimate = Estimate { name: "door".to_owned(), ..Estimate::default() };
        let mut forecast = Forecast::default();
        forecast.planned(&work(missing).left_s);
        let said = estimate.planned(work(missing));
        (WorkState { forecast, estimate: Some(estimate), events: 0 }, said)
    }

    /// Returns the output while the first runs of all points end one after the other, and some more.
    fn said(known: &mut WorkState, runs: usize) -> Vec<Option<String>> {
        let mut run = |number: usize| {
            known.forecast.ended(number % 57, 200.0, 0.5);
            known.estimate.as_mut().unwrap().ended(&known.forecast, 0.5)
        };
        (0..runs).map(&mut run).collect()
    }

    #[test]
    fn the_amount_of_work_is_printed_before_any_run() {
        assert_eq!(known(5700).1.as_deref(), Some("door: 57 points, 5,700 runs, 316.7 h of virtual time"));
        let resumed = known(57).1.unwrap();
        assert!(resumed.ends_with(", 5,643 of them there already"), "{resumed}");
        assert_eq!(known(0).1, None, "nothing to do");
        let (again, _) = known(5700);
        assert_eq!(again.estimate.unwrap().planned(work(5700)), None, "it is said once");
    }

    #[test]
    fn the_cost_is_printed_once_every_point_was_run() {
        let (mut known, _) = known(5700);
        let said = said(&mut known, 60);
        assert_eq!(said.iter().flatten().count(), 1);
        let line = said[56].as_deref().unwrap();
        // 5643 runs of half a second: 2821 s.
        let expected = "door: a run takes 0.50 s of CPU time; the 5,643 to go take about 47 minutes, on 2 cores of their own about 24 minutes";
        assert_eq!(line, expected);
    }

    #[test]
    fn a_plan_that_ends_with_its_first_runs_has_no_estimate() {
        let (mut known, _) = known(57);
        assert!(said(&mut known, 57).iter().all(Option::is_none));
        assert_eq!(Estimate::default().ended(&Forecast::default(), 0.0), None);
    }

    #[test]
    fn the_line_fits_into_80_columns() {
        let before_words = 24 + " 100 %  ".len();
        for elapsed_s in [0.0, 1e-9, 59.4, 89.0 * 60.0, 47.0 * 3600.0, 99.0 * 86_400.0] {
            // Two thousand million events per second are more than any machine reaches.
            let mut known =
                WorkState { events: (elapsed_s * 1_999_999_999.0) as u64, ..WorkState::default() };
            known.forecast.planned(&[1000.0]);
            known.forecast.advanced(500.0);
            let words = known.words(elapsed_s);
            assert!(before_words + words.chars().count() <= 80, "{words}");
            assert!(words.contains(" to go, ") && words.ends_with(" events/s"), "{words}");
        }
    }

    #[test]
    fn the_remaining_time_is_unknown_before_progress_and_bounded() {
        let mut known = WorkState::default();
        assert_eq!(known.words(0.2), "0s gone, ? to go, 0 events/s");
        known.forecast.planned(&[1e300]);
        known.forecast.advanced(1e-300);
        assert!(known.words(1.0).contains("y to go"), "{}", known.words(1.0));
    }
}
