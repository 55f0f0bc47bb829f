//! Plans, run in this process.

use crate::errors;
use crate::plan::{Plan, question};
use crate::result::{Comparison, Records};
use crate::watched::watched;
use hopline_lab::experiment::{ExperimentError, RunOptions, in_directory, in_memory};
use hopline_lab::store::{REPORT, Start, Store};
use hopline_lab::{report, view};
use pyo3::prelude::*;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Runs `plan` on `jobs` threads, in memory or in the directory `output`. `anew` replaces the results there; otherwise they
/// are resumed.
#[pyfunction]
pub(crate) fn compare(
    py: Python<'_>,
    plan: &Plan,
    output: Option<PathBuf>,
    start: &str,
    jobs: Option<NonZeroUsize>,
    command: Vec<String>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Comparison> {
    let start = start_of(start);
    let made = watched(py, progress, |watch| {
        let how = RunOptions { jobs, command: &command, watch };
        match output {
            None => {
                let (comparison, records) = in_memory(&plan.0, how)?;
                Ok(Comparison { comparison, records: Records::Here(records) })
            }
            Some(path) => {
                let (comparison, store) = in_directory(&plan.0, how, &path, start)?;
                kept(comparison, &store, &path)
            }
        }
    })?;
    made.map_err(errors::experiment)
}

/// Returns the comparison of the results stored in `path`, and writes its page again.
#[pyfunction]
pub(crate) fn stored(
    py: Python<'_>,
    path: PathBuf,
    metric: Option<&str>,
    bound: Option<&str>,
) -> PyResult<Comparison> {
    let asked = question(metric, bound);
    let made = watched(py, None, |_| {
        let (comparison, store) = hopline_lab::experiment::stored(&path)?;
        let comparison = comparison.with_objective(&asked).map_err(hopline_lab::Problems::from)?;
        kept(comparison, &store, &path)
    })?;
    made.map_err(errors::experiment)
}

/// Returns the comparison of the results stored in `path`, and writes its page beside the tables.
pub(crate) fn kept(
    comparison: hopline_lab::Comparison,
    store: &Store,
    path: &Path,
) -> Result<Comparison, ExperimentError> {
    store.put(REPORT, report::html(&view::report(&comparison)).as_bytes())?;
    Ok(Comparison { comparison, records: Records::Kept(path.to_owned()) })
}

/// Returns the treatment of existing results.
pub(crate) fn start_of(word: &str) -> Start {
    if word == "anew" { Start::Restart } else { Start::Resume }
}
