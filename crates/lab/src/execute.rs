//! Runs a plan on all cores.
//!
//! Runs are spread over threads and handed to a sink as they end. Which runs there are follows from the plan and from
//! the results alone, never from the number of threads or from the order in which they end.

use crate::plan::{Plan, Point, Runs};
use crate::question::Asked;
use crate::record::{Done, Record};
use crate::run::{Interrupted, Watch, Work, untraced};
use crate::stats::NextStep;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// Where records go.
pub trait Sink {
    /// Why a record could not be kept.
    type Error;

    /// Whether run `run` of point `point` is there already.
    fn has(&self, point: usize, run: u64) -> bool;

    /// Values of a metric in runs 1 to `runs` of a point, where there are any.
    ///
    /// # Errors
    ///
    /// Records that can no longer be read.
    fn values(&mut self, point: usize, target: &Asked, runs: u64) -> Result<Vec<f64>, Self::Error>;

    /// Keeps a record.
    ///
    /// # Errors
    ///
    /// The record could not be kept; nothing more is run.
    fn take(&mut self, record: Record) -> Result<(), Self::Error>;
}

/// Why a plan did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecuteError<E> {
    /// The watcher asked to give up.
    Interrupted,
    /// A record could not be kept.
    Sink(E),
}

/// One run of one point.
type Task = (usize, u64);

/// Runs everything of `plan` that `sink` does not have yet, on `jobs` threads; `None`: as many as there are cores.
/// Returns how many runs each point has.
///
/// # Errors
///
/// [`ExecuteError`]; what was kept until then stays kept.
pub fn execute<S: Sink>(
    plan: &Plan,
    jobs: Option<NonZeroUsize>,
    sink: &mut S,
    watch: &dyn Watch,
) -> Result<u64, ExecuteError<S::Error>> {
    let jobs = jobs.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let mut runs = match plan.runs {
        Runs::Fixed(runs) => runs,
        Runs::Until { first, .. } => first,
    };
    loop {
        round(plan, runs, jobs, sink, watch)?;
        match more(plan, runs, sink).map_err(ExecuteError::Sink)? {
            Some(next) => runs = next,
            None => return Ok(runs),
        }
    }
}

/// How many runs each point needs next, if `runs` are not enough.
fn more<S: Sink>(plan: &Plan, runs: u64, sink: &mut S) -> Result<Option<u64>, S::Error> {
    let Runs::Until { precision, target, most, .. } = &plan.runs else { return Ok(None) };
    let mut wanted = runs;
    for point in 0..plan.points.len() {
        let values = sink.values(point, target, runs)?;
        // Values of a metric are finite; a point of which runs failed asks by those that did not.
        if let Ok(NextStep::Runs(next)) = precision.next(&values, plan.confidence) {
            wanted = wanted.max(next as u64);
        }
    }
    let next = wanted.min(*most);
    Ok((next > runs).then_some(next))
}

/// Runs 1 to `runs` of every point, as far as they are missing.
fn round<S: Sink>(
    plan: &Plan,
    runs: u64,
    jobs: usize,
    sink: &mut S,
    watch: &dyn Watch,
) -> Result<(), ExecuteError<S::Error>> {
    // All points of a run are neighbours in this order, so that an early look at a long plan is a fair one.
    let all = (1..=runs).flat_map(|run| (0..plan.points.len()).map(move |point| (point, run)));
    let tasks: Vec<Task> = all.filter(|&(point, run)| !sink.has(point, run)).collect();
    watch.planned(work(plan, runs, &tasks, jobs));
    let next = AtomicUsize::new(0);
    // Few records wait for the sink: memory does not grow with the number of runs.
    let (sender, receiver) = mpsc::sync_channel::<Result<Record, Interrupted>>(2 * jobs);
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(tasks.len()) {
            let (sender, tasks, next) = (sender.clone(), &tasks, &next);
            scope.spawn(move || {
                while let Some(&(point, run)) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let record = one(plan, point, run, watch);
                    let last = record.is_err();
                    // The receiver goes when a record cannot be kept: nothing more is wanted then.
                    if sender.send(record).is_err() || last {
                        break;
                    }
                }
            });
        }
        drop(sender);
        for record in receiver {
            let record = record.map_err(|Interrupted| ExecuteError::Interrupted)?;
            if let Ok(done) = &record.result {
                watch.ended(record.point, done.sim_s, done.cpu_s);
            }
            sink.take(record).map_err(ExecuteError::Sink)?;
        }
        Ok(())
    })
}

fn work(plan: &Plan, runs: u64, tasks: &[Task], jobs: usize) -> Work {
    let mut left_s = vec![0.0; plan.points.len()];
    for &(point, _) in tasks {
        left_s[point] += plan.points[point].scenario.duration().as_secs_f64();
    }
    let total_s = plan.total_s(runs);
    Work {
        runs: runs * plan.points.len() as u64,
        missing: tasks.len() as u64,
        total_s,
        there_s: total_s - left_s.iter().sum::<f64>(),
        left_s,
        jobs,
    }
}

/// One run. What goes wrong in it is its result.
fn one(plan: &Plan, point: usize, run: u64, watch: &dyn Watch) -> Result<Record, Interrupted> {
    let simulated = catch_unwind(AssertUnwindSafe(|| simulate(plan, &plan.points[point], run, watch)));
    let result = match simulated {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(Failed::Interrupted)) => return Err(Interrupted),
        Ok(Err(Failed::Problems(why))) => Err(why),
        Err(panic) => Err(format!("the simulator failed: {}", message(&*panic))),
    };
    Ok(Record { point, run, result })
}

enum Failed {
    Interrupted,
    Problems(String),
}

fn simulate(plan: &Plan, point: &Point, run: u64, watch: &dyn Watch) -> Result<Done, Failed> {
    let spec = point.scenario.spec(run).map_err(|problems| Failed::Problems(problems.to_string()))?;
    let done = untraced(&spec, run, watch).map_err(|Interrupted| Failed::Interrupted)?;
    Ok(Done::of(&spec, &done, run, plan.keep))
}

fn message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason given")
}

/// Keeps records in memory.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    records: BTreeMap<Task, Record>,
}

impl Memory {
    /// The records, by point and run.
    #[must_use]
    pub fn into_records(self) -> Vec<Record> {
        self.records.into_values().collect()
    }
}

impl Sink for Memory {
    type Error = std::convert::Infallible;

    fn has(&self, point: usize, run: u64) -> bool {
        self.records.contains_key(&(point, run))
    }

    fn values(&mut self, point: usize, target: &Asked, runs: u64) -> Result<Vec<f64>, Self::Error> {
        let records = self.records.range((point, 1)..=(point, runs));
        Ok(records.filter_map(|(_, r)| r.result.as_ref().ok()?.value(target)).collect())
    }

    fn take(&mut self, record: Record) -> Result<(), Self::Error> {
        self.records.insert((record.point, record.run), record);
        Ok(())
    }
}
