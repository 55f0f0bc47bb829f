//! Remote execution: plans with runs in threads, processes, or a cluster.

use crate::errors;
use crate::experiment::{kept, start_of};
use crate::plan::Plan;
use crate::result::{Comparison, Records};
use crate::watched::watched;
use hopline_lab::description::Description;
use hopline_lab::execute::{MemorySink, PointRun, Sink};
use hopline_lab::experiment::{self, ExperimentError, RunOptions};
use hopline_lab::objective::MetricSelection;
use hopline_lab::record::Record;
use hopline_lab::remote::{self, Batch, Next, SchedulerError};
use hopline_lab::store::{Store, StoreError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::sync::Mutex;

/// Parts of a plan that a worker needs.
#[pyclass(frozen, module = "hopline._hopline")]
#[derive(Debug)]
pub(crate) struct Bundle(remote::Bundle);

#[pymethods]
impl Bundle {
    /// Decodes the bundle of another process. `command`: path of the command `hopline` here, if there is one.
    #[staticmethod]
    fn from_bytes(bytes: &[u8], command: PathBuf) -> PyResult<Self> {
        let bundle = remote::Bundle::from_bytes(bytes).map_err(|e| errors::remote(&e))?;
        Ok(Self(bundle.with_command(command)))
    }

    /// Performs the runs of a batch, and returns their records as a Parquet file.
    fn perform<'py>(&self, py: Python<'py>, id: u64, runs: Vec<PointRun>) -> PyResult<Bound<'py, PyBytes>> {
        let batch = Batch { id, runs };
        let made = watched(py, None, |watch| self.0.execute(&batch, watch))?;
        Ok(PyBytes::new(py, &made.map_err(|e| errors::remote(&e))?))
    }
}

/// Storage of the records of a course.
#[derive(Debug)]
enum Kept {
    Here(MemorySink),
    There(Box<Store>, PathBuf),
}

impl Sink for Kept {
    type Error = StoreError;

    fn has(&self, point: usize, run: u64) -> bool {
        match self {
            Self::Here(memory) => memory.has(point, run),
            Self::There(store, _) => store.has(point, run),
        }
    }

    fn values(&mut self, point: usize, target: &MetricSelection, runs: u64) -> Result<Vec<f64>, StoreError> {
        match self {
            Self::Here(memory) => Ok(match memory.values(point, target, runs) {
                Ok(values) => values,
            }),
            Self::There(store, _) => store.values(point, target, runs),
        }
    }

    fn store(&mut self, record: Record) -> Result<(), StoreError> {
        match self {
            Self::Here(memory) => match memory.store(record) {
                Ok(()) => Ok(()),
            },
            Self::There(store, _) => store.store(record),
        }
    }
}

/// Progress of a plan: gives out batches, and takes their results.
#[pyclass(frozen, module = "hopline._hopline")]
#[derive(Debug)]
pub(crate) struct Course {
    /// `None` once it was completed.
    course: Mutex<Option<remote::Scheduler<Kept>>>,
    command: Vec<String>,
}

#[pymethods]
impl Course {
    /// Begins `plan`, or resumes the results in `output`.
    #[new]
    fn new(
        py: Python<'_>,
        plan: &Plan,
        output: Option<PathBuf>,
        start: &str,
        command: Vec<String>,
    ) -> PyResult<Self> {
        let start = start_of(start);
        let opened = watched(py, None, |watch| match output {
            None => Ok(Kept::Here(MemorySink::default())),
            Some(path) => {
                let how = RunOptions { jobs: None, command: &command, watch };
                experiment::open(&plan.0, how, &path, start).map(|store| Kept::There(Box::new(store), path))
            }
        })?;
        let course = remote::Scheduler::new(plan.0.clone(), opened.map_err(errors::experiment)?);
        Ok(Self { course: Mutex::new(Some(course)), command })
    }

    /// Returns the bundle of the plan.
    fn bundle<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.with(|course| Ok(PyBytes::new(py, &remote::Bundle::of(course.plan()).to_bytes())))
    }

    /// Returns the next batch for one of `workers` workers: its number, points and runs. `None`: all batches are given out,
    /// wait for results. An empty batch: all runs are done.
    fn next(&self, workers: usize) -> PyResult<Option<(u64, Vec<PointRun>)>> {
        self.with(|course| match course.next(workers).map_err(|e| errors::store(&e))? {
            Next::Batch(batch) => Ok(Some((batch.id, batch.runs))),
            Next::Wait => Ok(None),
            Next::Done(_) => Ok(Some((0, Vec::new()))),
        })
    }

    /// Stores the result of batch `id`. Returns the number of new runs in it.
    fn take(&self, py: Python<'_>, id: u64, result: &[u8]) -> PyResult<usize> {
        py.detach(|| {
            self.with(|course| match course.handle_result(id, result) {
                Ok(records) => Ok(records.len()),
                Err(SchedulerError::Remote(error)) => Err(errors::remote(&error)),
                Err(SchedulerError::Sink(error)) => Err(errors::store(&error)),
            })
        })
    }

    /// Reports that batch `id` was lost.
    fn lost(&self, id: u64) -> PyResult<()> {
        self.with(|course| {
            course.requeue(id);
            Ok(())
        })
    }

    /// Returns the number of finished runs, and of all runs known so far.
    #[getter]
    fn progress(&self) -> PyResult<(u64, u64)> {
        self.with(|course| Ok((course.stored_runs(), course.runs() * course.plan().points.len() as u64)))
    }

    /// Returns the comparison, once all runs are done.
    fn complete(&self, py: Python<'_>) -> PyResult<Comparison> {
        let course = self.course.lock().expect("nobody panics with it").take();
        let course = course.ok_or_else(|| errors::internal("it was completed before"))?;
        let command = self.command.clone();
        watched(py, None, |_| complete(course, command))?.map_err(errors::experiment)
    }
}

impl Course {
    fn with<T>(&self, act: impl FnOnce(&mut remote::Scheduler<Kept>) -> PyResult<T>) -> PyResult<T> {
        let mut course = self.course.lock().expect("nobody panics with it");
        act(course.as_mut().ok_or_else(|| errors::internal("it was completed before"))?)
    }
}

fn complete(course: remote::Scheduler<Kept>, command: Vec<String>) -> Result<Comparison, ExperimentError> {
    let (runs, plan) = (course.runs(), course.plan().clone());
    match course.into_sink() {
        Kept::Here(memory) => {
            let records = memory.into_records();
            let description = Description::of(&plan, command)?;
            let comparison = hopline_lab::Comparison::of(description, runs, &records);
            Ok(Comparison { comparison, records: Records::Here(records) })
        }
        Kept::There(mut store, path) => {
            let comparison = experiment::complete(&mut store, runs)?;
            kept(comparison, &store, &path)
        }
    }
}
