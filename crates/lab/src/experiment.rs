//! From a plan to a comparison: in memory, or in a directory that survives interruptions.

use crate::Problems;
use crate::animation::{self, Animation, Window};
use crate::comparison::{Comparison, Detail};
use crate::description::Description;
use crate::execute::{ExecuteError, MemorySink, execute};
use crate::plan::{Plan, Runs};
use crate::record::Record;
use crate::run::{Interrupted, InterruptionsOnly, Observer, RunError};
use crate::store::{Start, Status, Store, StoreError};
use std::num::NonZeroUsize;
use std::path::Path;

/// Options of a run of a plan.
#[derive(Clone, Copy)]
pub struct RunOptions<'a> {
    /// Number of threads; `None`: one for each core.
    pub jobs: Option<NonZeroUsize>,
    /// Command that was given, so that it can be repeated.
    pub command: &'a [String],
    /// Observer of progress.
    pub watch: &'a dyn Observer,
}

/// Reason for which there is no result.
#[derive(Debug)]
pub enum ExperimentError {
    /// The watcher interrupted it. Records stored until then remain.
    Interrupted,
    /// The plan is invalid.
    Problems(Problems),
    /// Results could not be stored or read.
    Store(StoreError),
    /// A stored run fails when it is repeated: its name and the reason. Or this machine could not make a run.
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
            ExecuteError::Machine(why) => Self::Failed(why),
            ExecuteError::Sink(error) => Self::Store(error),
        }
    }
}

/// Runs `plan` in memory. Returns the comparison and all records, by point and run.
///
/// # Errors
///
/// [`ExperimentError::Interrupted`], or errors of the plan; nothing is stored then.
pub fn in_memory(plan: &Plan, how: RunOptions<'_>) -> Result<(Comparison, Vec<Record>), ExperimentError> {
    let description = Description::of(plan, how.command.to_vec())?;
    let mut memory = MemorySink::default();
    let runs = match execute(plan, how.jobs, &mut memory, how.watch) {
        Ok(runs) => runs,
        Err(ExecuteError::Interrupted) => return Err(ExperimentError::Interrupted),
        Err(ExecuteError::Machine(why)) => return Err(ExperimentError::Failed(why)),
        Err(ExecuteError::Sink(never)) => match never {},
    };
    let records = memory.into_records();
    Ok((Comparison::of(description, runs, &records), records))
}

/// Runs `plan` in the directory `path`, or continues it, and completes its tables. Returns the directory too.
///
/// # Errors
///
/// [`ExperimentError`]. Runs that ended until then remain stored, and the same call continues from there.
pub fn in_directory(
    plan: &Plan,
    how: RunOptions<'_>,
    path: &Path,
    start: Start,
) -> Result<(Comparison, Store), ExperimentError> {
    let mut store = open(plan, how, path, start)?;
    let runs = execute(plan, how.jobs, &mut store, how.watch)?;
    Ok((complete(&mut store, runs)?, store))
}

/// Opens the directory `path` for the results of `plan`, to begin or to continue.
///
/// # Errors
///
/// [`ExperimentError`] if it holds other data, or results that this build would not have made.
pub fn open(plan: &Plan, how: RunOptions<'_>, path: &Path, start: Start) -> Result<Store, ExperimentError> {
    let description = Description::of(plan, how.command.to_vec())?;
    let mut store = Store::open(path, &description, start)?;
    check_reproducible(plan, &mut store, path, how.watch)?;
    check_not_fewer(plan, &store, path)?;
    Ok(store)
}

/// Returns the comparison of the results in `path`, complete or not; a complete one gets its tables anew.
///
/// # Errors
///
/// If files cannot be read or written.
pub fn stored(path: &Path) -> Result<(Comparison, Store), StoreError> {
    let mut store = Store::read(path)?;
    let runs = store.runs();
    let comparison = match store.status() {
        Status::Complete => complete(&mut store, runs)?,
        Status::Unfinished => compared(&mut store, runs)?,
    };
    Ok((comparison, store))
}

/// Maximum number of variants with an animation in a page.
pub const MAX_ANIMATED: usize = 12;

/// Adds the animations of the page to `comparison`: run 1 of the first point of `plan` and of those compared
/// with it, each repeated up to the end of `window`. Together they fit a page.
///
/// # Errors
///
/// [`ExperimentError::Interrupted`].
pub fn animate(
    plan: &Plan,
    comparison: &mut Comparison,
    window: Window,
    how: RunOptions<'_>,
) -> Result<(), ExperimentError> {
    let first = |point: &usize| plan.points[*point].baseline == plan.points[0].baseline;
    let points: Vec<usize> = (0..plan.points.len()).filter(first).take(MAX_ANIMATED).collect();
    let jobs = how.jobs.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let mut animated = Vec::new();
    for some in points.chunks(jobs) {
        let watch = &InterruptionsOnly(how.watch);
        // A failed run is a result already, and gets no animation.
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

/// Writes the tables of an experiment with `runs` runs of each point, and compares them.
///
/// # Errors
///
/// If files cannot be read or written.
pub fn complete(store: &mut Store, runs: u64) -> Result<Comparison, StoreError> {
    let mut comparison = Comparison::new(store.description().clone(), runs);
    store.complete(runs, &mut |record| comparison.add(record, Detail::Flows))?;
    Ok(comparison)
}

fn compared(store: &mut Store, runs: u64) -> Result<Comparison, StoreError> {
    let mut comparison = Comparison::new(store.description().clone(), runs);
    store.for_each(runs, |record| {
        comparison.add(record, Detail::Flows);
        Ok::<(), StoreError>(())
    })?;
    Ok(comparison)
}

/// Returns whether this build reproduces the fingerprint of a stored run: results of two builds must not be
/// mixed.
fn check_reproducible(
    plan: &Plan,
    store: &mut Store,
    path: &Path,
    watch: &dyn Observer,
) -> Result<(), ExperimentError> {
    let Some(stored) = store.cheapest()? else { return Ok(()) };
    let point = &plan.points[stored.point];
    let again = plan.engine.run(&point.scenario, stored.run, plan.keep, &InterruptionsOnly(watch));
    let run = format!("run {} of {}", stored.run, point.label);
    let again = again.map_err(|error| match error {
        RunError::Interrupted => ExperimentError::Interrupted,
        error => ExperimentError::Failed(format!("{run}, which is stored, can no longer be made: {error}")),
    })?;
    if again.fingerprint == stored.fingerprint {
        return Ok(());
    }
    Err(StoreError::OtherBuild { path: path.to_owned(), run }.into())
}

fn check_not_fewer(plan: &Plan, store: &Store, path: &Path) -> Result<(), StoreError> {
    let most = match plan.runs {
        Runs::Fixed(runs) => runs,
        Runs::Until { max: most, .. } => most,
    };
    let there = store.runs();
    if there <= most {
        Ok(())
    } else {
        Err(StoreError::MoreRuns { path: path.to_owned(), there, asked: most })
    }
}
