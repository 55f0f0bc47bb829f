//! Runs a plan on all cores.
//!
//! Runs are spread over threads and passed to a sink as they end. The set of runs depends on the plan and on
//! the results alone, never on the number of threads or on the order in which they end.

use crate::engine::Engine;
use crate::objective::MetricSelection;
use crate::plan::{Keep, Plan, Runs};
use crate::record::Record;
use crate::run::{Observer, RunError, Work};
use crate::stats::NextStep;
use hopline_scenario::Scenario;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// Destination of records.
pub trait Sink {
    /// Error if a record cannot be stored.
    type Error;

    /// Returns whether run `run` of point `point` is stored already.
    fn has(&self, point: usize, run: u64) -> bool;

    /// Returns the values of a metric in runs 1 to `runs` of a point, where there are any.
    ///
    /// # Errors
    ///
    /// If records can no longer be read.
    fn values(&mut self, point: usize, target: &MetricSelection, runs: u64) -> Result<Vec<f64>, Self::Error>;

    /// Stores a record.
    ///
    /// # Errors
    ///
    /// If the record cannot be stored; no further runs are made.
    fn store(&mut self, record: Record) -> Result<(), Self::Error>;
}

/// Reason for which a plan was not completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecuteError<E> {
    /// The watcher interrupted it.
    Interrupted,
    /// This machine could not make a run, for this reason.
    Machine(String),
    /// A record could not be stored.
    Sink(E),
}

/// Reason that there is no record of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoRecord {
    /// The watcher interrupted it.
    Interrupted,
    /// This machine could not make the run, for this reason.
    Machine(String),
}

/// A run of a point: numbers of the point and the run.
pub type PointRun = (usize, u64);

/// Runs that a plan needs: a first round, and further ones until the requested precision is reached.
#[derive(Clone, Debug)]
pub struct Rounds {
    runs: u64,
}

impl Rounds {
    /// Returns the first round of `plan`.
    #[must_use]
    pub const fn of(plan: &Plan) -> Self {
        match plan.runs {
            Runs::Fixed(runs) => Self { runs },
            Runs::Until { first, .. } => Self { runs: first },
        }
    }

    /// Returns the number of runs of each point, up to this round.
    #[must_use]
    pub const fn runs(&self) -> u64 {
        self.runs
    }

    /// Returns the runs of this round that `sink` does not have. All points of a run are adjacent, so that an
    /// early look at a long plan is a fair one.
    pub fn missing<S: Sink>(&self, plan: &Plan, sink: &S) -> Vec<PointRun> {
        let all = (1..=self.runs).flat_map(|run| (0..plan.points.len()).map(move |point| (point, run)));
        all.filter(|&(point, run)| !sink.has(point, run)).collect()
    }

    /// Returns whether another round is needed, and advances to it, when `sink` has all runs of this round.
    ///
    /// # Errors
    ///
    /// If records can no longer be read.
    pub fn next<S: Sink>(&mut self, plan: &Plan, sink: &mut S) -> Result<bool, S::Error> {
        let Runs::Until { precision, target, max: most, .. } = &plan.runs else { return Ok(false) };
        let mut wanted = self.runs;
        for point in 0..plan.points.len() {
            let values = sink.values(point, target, self.runs)?;
            // Values of a metric are finite. A point with failed runs is judged by its other runs.
            if let Ok(NextStep::Runs(next)) = precision.next(&values, plan.confidence) {
                wanted = wanted.max(next as u64);
            }
        }
        let next = wanted.min(*most);
        let more = next > self.runs;
        self.runs = next.max(self.runs);
        Ok(more)
    }
}

/// Makes all runs of `plan` that `sink` does not have yet, on `jobs` threads; `None`: one for each core.
/// Returns the number of runs of each point.
///
/// # Errors
///
/// [`ExecuteError`]; records stored until then remain.
pub fn execute<S: Sink>(
    plan: &Plan,
    jobs: Option<NonZeroUsize>,
    sink: &mut S,
    watch: &dyn Observer,
) -> Result<u64, ExecuteError<S::Error>> {
    let jobs = jobs.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let mut rounds = Rounds::of(plan);
    loop {
        let missing = rounds.missing(plan, sink);
        watch.planned(work_of(plan, rounds.runs(), &missing, jobs));
        run_on_threads(plan, &missing, jobs, sink, watch)?;
        if !rounds.next(plan, sink).map_err(ExecuteError::Sink)? {
            return Ok(rounds.runs());
        }
    }
}

/// Makes `runs`, and passes them to `sink` as they end.
fn run_on_threads<S: Sink>(
    plan: &Plan,
    runs: &[PointRun],
    jobs: usize,
    sink: &mut S,
    watch: &dyn Observer,
) -> Result<(), ExecuteError<S::Error>> {
    let next = AtomicUsize::new(0);
    // Few records wait for the sink: memory does not grow with the number of runs.
    let (sender, receiver) = mpsc::sync_channel::<Result<Record, NoRecord>>(2 * jobs);
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(runs.len()) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                plan.points[0].scenario.machines().run_in_context(&mut || {
                    while let Some(&(point, run)) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let record = run_one(
                            &plan.engine,
                            &plan.points[point].scenario,
                            (point, run),
                            plan.keep,
                            watch,
                        );
                        let last = record.is_err();
                        // The receiver is dropped when a record cannot be stored; no further runs are needed
                        // then.
                        if sender.send(record).is_err() || last {
                            break;
                        }
                    }
                });
            });
        }
        drop(sender);
        for record in receiver {
            let record = record.map_err(|reason| match reason {
                NoRecord::Interrupted => ExecuteError::Interrupted,
                NoRecord::Machine(why) => ExecuteError::Machine(why),
            })?;
            if let Ok(done) = &record.result {
                watch.ended(record.point, done.sim_s, done.cpu_s);
            }
            sink.store(record).map_err(ExecuteError::Sink)?;
        }
        Ok(())
    })
}

/// Returns the amount of work, of which `missing` is not done.
#[must_use]
pub fn work_of(plan: &Plan, runs: u64, missing: &[PointRun], jobs: usize) -> Work {
    let mut left_s = vec![0.0; plan.points.len()];
    for &(point, _) in missing {
        left_s[point] += plan.points[point].scenario.duration().as_secs_f64();
    }
    let total_s = plan.total_s(runs);
    Work {
        runs: runs * plan.points.len() as u64,
        missing: missing.len() as u64,
        total_s,
        there_s: total_s - left_s.iter().sum::<f64>(),
        left_s,
        jobs,
    }
}

/// Makes a run of `scenario`, which is that point of a plan, by `engine`. An error in the run is its result.
///
/// # Errors
///
/// [`NoRecord`].
pub fn run_one(
    engine: &Engine,
    scenario: &Scenario,
    (point, run): PointRun,
    keep: Keep,
    watch: &dyn Observer,
) -> Result<Record, NoRecord> {
    let made = catch_unwind(AssertUnwindSafe(|| engine.run(scenario, run, keep, watch)));
    let result = match made {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(RunError::Interrupted)) => return Err(NoRecord::Interrupted),
        Ok(Err(RunError::Machine(why))) => return Err(NoRecord::Machine(why)),
        Ok(Err(error)) => Err(error.to_string()),
        Err(panic) => Err(format!("the simulator failed: {}", message(&*panic))),
    };
    Ok(Record { point, run, result })
}

fn message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason given")
}

/// Stores records in memory.
#[derive(Clone, Debug, Default)]
pub struct MemorySink {
    records: BTreeMap<PointRun, Record>,
}

impl MemorySink {
    /// Returns the records, by point and run.
    #[must_use]
    pub fn into_records(self) -> Vec<Record> {
        self.records.into_values().collect()
    }
}

impl Sink for MemorySink {
    type Error = std::convert::Infallible;

    fn has(&self, point: usize, run: u64) -> bool {
        self.records.contains_key(&(point, run))
    }

    fn values(&mut self, point: usize, target: &MetricSelection, runs: u64) -> Result<Vec<f64>, Self::Error> {
        let records = self.records.range((point, 1)..=(point, runs));
        Ok(records.filter_map(|(_, r)| r.result.as_ref().ok()?.value(target)).collect())
    }

    fn store(&mut self, record: Record) -> Result<(), Self::Error> {
        self.records.insert((record.point, record.run), record);
        Ok(())
    }
}
