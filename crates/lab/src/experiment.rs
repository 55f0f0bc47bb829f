//! From a plan to a comparison: in memory, or in a directory that survives whatever happens.

use crate::Problems;
use crate::animation::{self, Animation, Window};
use crate::comparison::{Comparison, Detail};
use crate::description::Description;
use crate::execute::{ExecuteError, Memory, execute};
use crate::plan::{Plan, Runs};
use crate::record::Record;
use crate::run::{Interrupted, Quietly, RunError, Watch, untraced};
use crate::store::{Start, Status, Store, StoreError};
use std::num::NonZeroUsize;
use std::path::Path;

/// How a plan is run.
#[derive(Clone, Copy)]
pub struct How<'a> {
    /// Threads; `None`: as many as there are cores.
    pub jobs: Option<NonZeroUsize>,
    /// The command that was given, for those who want to repeat it.
    pub command: &'a [String],
    /// Who watches.
    pub watch: &'a dyn Watch,
}

/// Why there is no result.
#[derive(Debug)]
pub enum ExperimentError {
    /// The watcher asked to give up. What was kept until then stays.
    Interrupted,
    /// The plan makes no sense.
    Problems(Problems),
    /// Results could not be kept or read.
    Store(StoreError),
    /// A run that is stored fails when it is made once more: which, and why.
    Failed(String),
}

impl From<StoreError> for ExperimentError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Problems> for ExperimentError {
    fn from(problems: Problems) -> Self {
        Self::Problems(problems)
    }
}

impl From<ExecuteError<StoreError>> for ExperimentError {
    fn from(error: ExecuteError<StoreError>) -> Self {
        match error {
            ExecuteError::Interrupted => Self::Interrupted,
            ExecuteError::Sink(error) => Self::Store(error),
        }
    }
}

/// Runs `plan` in memory. Returns the comparison and all records, by point and run.
///
/// # Errors
///
/// [`ExperimentError::Interrupted`], or what is wrong with the plan; nothing is kept then.
pub fn in_memory(plan: &Plan, how: How<'_>) -> Result<(Comparison, Vec<Record>), ExperimentError> {
    let description = Description::of(plan, how.command.to_vec())?;
    let mut memory = Memory::default();
    let runs = match execute(plan, how.jobs, &mut memory, how.watch) {
        Ok(runs) => runs,
        Err(ExecuteError::Interrupted) => return Err(ExperimentError::Interrupted),
        Err(ExecuteError::Sink(never)) => match never {},
    };
    let records = memory.into_records();
    Ok((Comparison::of(description, runs, &records), records))
}

/// Runs `plan` in the directory `path`, or goes on with it, and completes its tables. Returns the directory too.
///
/// # Errors
///
/// [`ExperimentError`]. The runs that ended until then are kept, and the same call goes on from there.
pub fn in_directory(
    plan: &Plan,
    how: How<'_>,
    path: &Path,
    start: Start,
) -> Result<(Comparison, Store), ExperimentError> {
    let mut store = open(plan, how, path, start)?;
    let runs = execute(plan, how.jobs, &mut store, how.watch)?;
    Ok((complete(&mut store, runs)?, store))
}

/// Opens the directory `path` for the results of `plan`, to begin or to go on.
///
/// # Errors
///
/// [`ExperimentError`]: it holds something else, or what this build would not have made.
pub fn open(plan: &Plan, how: How<'_>, path: &Path, start: Start) -> Result<Store, ExperimentError> {
    let description = Description::of(plan, how.command.to_vec())?;
    let mut store = Store::open(path, &description, start)?;
    repeats(plan, &mut store, path, how.watch)?;
    refuse_fewer(plan, &store, path)?;
    Ok(store)
}

/// The comparison of what is stored in `path`, complete or not; a complete one gets its tables anew.
///
/// # Errors
///
/// What cannot be read or written.
pub fn stored(path: &Path) -> Result<(Comparison, Store), StoreError> {
    let mut store = Store::read(path)?;
    let runs = store.runs();
    let comparison = match store.status() {
        Status::Complete => complete(&mut store, runs)?,
        Status::Unfinished => compared(&mut store, runs)?,
    };
    Ok((comparison, store))
}

/// Most variants whose runs a page plays.
pub const MOST_ANIMATED: usize = 12;

/// Adds to `comparison` what its page plays: run 1 of the first point of `plan` and of those compared with it, each run once
/// more up to the end of `window`. Together they fit a page.
///
/// # Errors
///
/// [`ExperimentError::Interrupted`].
pub fn animate(
    plan: &Plan,
    comparison: &mut Comparison,
    window: Window,
    how: How<'_>,
) -> Result<(), ExperimentError> {
    let first = |point: &usize| plan.points[*point].baseline == plan.points[0].baseline;
    let points: Vec<usize> = (0..plan.points.len()).filter(first).take(MOST_ANIMATED).collect();
    let jobs = how.jobs.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let mut animated = Vec::new();
    for some in points.chunks(jobs) {
        let watch = &Quietly(how.watch);
        // A run that fails is a result already: it is not played.
        let one = |point: usize| {
            let spec = plan.points[point].scenario.spec(1).ok()?;
            Some((point, animation::record(&spec, 1, window, watch)))
        };
        let recorded: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = some.iter().map(|&point| scope.spawn(move || one(point))).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok().flatten()).collect()
        });
        for (point, animation) in recorded {
            animated.push((point, animation.map_err(|Interrupted| ExperimentError::Interrupted)?));
        }
    }
    let (points, mut animations): (Vec<usize>, Vec<Animation>) = animated.into_iter().unzip();
    animation::fit(&mut animations, animation::BUDGET_BYTES);
    for (point, animation) in points.into_iter().zip(animations) {
        comparison.points[point].animation = Some(animation);
    }
    Ok(())
}

/// Writes the tables of an experiment whose points all have `runs` runs, and compares on the way.
///
/// # Errors
///
/// What cannot be read or written.
pub fn complete(store: &mut Store, runs: u64) -> Result<Comparison, StoreError> {
    let mut comparison = Comparison::new(store.description().clone(), runs);
    store.complete(runs, &mut |record| comparison.add(record, Detail::Flows))?;
    Ok(comparison)
}

fn compared(store: &mut Store, runs: u64) -> Result<Comparison, StoreError> {
    let mut comparison = Comparison::new(store.description().clone(), runs);
    store.each(runs, |record| {
        comparison.add(record, Detail::Flows);
        Ok::<(), StoreError>(())
    })?;
    Ok(comparison)
}

/// Whether this build gives the fingerprint of a run that is there already: results of two builds are not mixed.
fn repeats(plan: &Plan, store: &mut Store, path: &Path, watch: &dyn Watch) -> Result<(), ExperimentError> {
    let Some(stored) = store.cheapest()? else { return Ok(()) };
    let point = &plan.points[stored.point];
    let spec = point.scenario.spec(stored.run)?;
    let again = untraced(&spec, stored.run, &Quietly(watch));
    let run = format!("run {} of {}", stored.run, point.label);
    let again = again.map_err(|error| match error {
        RunError::Interrupted => ExperimentError::Interrupted,
        error => ExperimentError::Failed(format!("{run}, which is stored, can no longer be made: {error}")),
    })?;
    if again.outcome.fingerprint == stored.fingerprint {
        return Ok(());
    }
    Err(StoreError::OtherBuild { path: path.to_owned(), run }.into())
}

fn refuse_fewer(plan: &Plan, store: &Store, path: &Path) -> Result<(), StoreError> {
    let most = match plan.runs {
        Runs::Fixed(runs) => runs,
        Runs::Until { most, .. } => most,
    };
    let there = store.runs();
    if there <= most {
        Ok(())
    } else {
        Err(StoreError::MoreRuns { path: path.to_owned(), there, asked: most })
    }
}
