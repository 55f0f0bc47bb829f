//! What goes wrong, as the exceptions of `hopline.errors`.

use hopline_lab::experiment::ExperimentError;
use hopline_lab::output::OutputError;
use hopline_lab::remote::RemoteError;
use hopline_lab::run::RunError;
use hopline_lab::store::StoreError;
use hopline_lab::{Problem, Problems};
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::path::Path;

/// `ScenarioError`: everything that is wrong with an input, each with its place.
pub(crate) fn problems(problems: &Problems) -> PyErr {
    Python::attach(|py| {
        let all: PyResult<Vec<Py<PyAny>>> = problems.0.iter().map(|p| problem_object(py, p)).collect();
        match all.and_then(|all| class(py, "ScenarioError")?.call1((all,))) {
            Ok(error) => PyErr::from_value(error),
            Err(error) => error,
        }
    })
}

/// The same of one problem.
pub(crate) fn problem(problem: Problem) -> PyErr {
    problems(&problem.into())
}

/// Why an experiment has no result.
pub(crate) fn experiment(error: ExperimentError) -> PyErr {
    match error {
        // Whoever interrupted raised an exception of their own.
        ExperimentError::Interrupted => interrupted(),
        ExperimentError::Problems(error) => problems(&error),
        ExperimentError::Store(error) => store(&error),
        ExperimentError::Failed(why) => run_failed(&why),
    }
}

/// Why a run did not come to its end.
pub(crate) fn run(error: &RunError) -> PyErr {
    match error {
        RunError::Interrupted => interrupted(),
        RunError::Failed(_) | RunError::NotRepeatable { .. } => run_failed(&error.to_string()),
    }
}

fn run_failed(why: &str) -> PyErr {
    PyRuntimeError::new_err(why.to_owned())
}

/// Why results could not be kept or read.
pub(crate) fn store(error: &StoreError) -> PyErr {
    let said = error.to_string().replace("add --force to begin anew", "pass force=True to begin anew");
    match error {
        StoreError::OtherVersion { theirs, .. } => version(said, theirs, env!("CARGO_PKG_VERSION")),
        StoreError::Foreign { path, .. }
        | StoreError::OtherPlan { path, .. }
        | StoreError::OtherBuild { path, .. }
        | StoreError::MoreRuns { path, .. }
        | StoreError::Busy { path }
        | StoreError::Damaged { path, .. } => results(said, path),
        StoreError::Io { .. } => PyOSError::new_err(said),
    }
}

/// Why a file of a result could not be written.
pub(crate) fn output(error: &OutputError) -> PyErr {
    let said = error.to_string();
    match error {
        OutputError::Exists { target } | OutputError::Foreign { target, .. } => results(said, target),
        OutputError::Io { .. } => PyOSError::new_err(said),
    }
}

/// Why something from another machine is not taken.
pub(crate) fn remote(error: &RemoteError) -> PyErr {
    match error {
        RemoteError::OtherVersion { theirs, ours } => version(error.to_string(), theirs, ours),
        RemoteError::Interrupted => interrupted(),
        RemoteError::Damaged(_) | RemoteError::Differs { .. } => {
            Python::attach(|py| match class(py, "RemoteError").and_then(|c| c.call1((error.to_string(),))) {
                Ok(error) => PyErr::from_value(error),
                Err(error) => error,
            })
        }
    }
}

/// A failure that no caller can do anything about.
pub(crate) fn internal(error: impl std::fmt::Display) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

pub(crate) fn interrupted() -> PyErr {
    PyKeyboardInterrupt::new_err("interrupted")
}

fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("hopline.errors")?.getattr(name)
}

fn version(said: String, theirs: &str, ours: &str) -> PyErr {
    Python::attach(|py| match class(py, "VersionError").and_then(|c| c.call1((said, theirs, ours))) {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    })
}

fn results(said: String, path: &Path) -> PyErr {
    Python::attach(|py| match class(py, "ResultsError").and_then(|c| c.call1((said, path))) {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    })
}

fn problem_object(py: Python<'_>, problem: &Problem) -> PyResult<Py<PyAny>> {
    let fields = PyDict::new(py);
    fields.set_item("message", &problem.message)?;
    fields.set_item("help", &problem.help)?;
    if let Some(at) = &problem.at {
        let (line, column) = at.line_column();
        fields.set_item("file", &at.source.name)?;
        fields.set_item("line", line)?;
        fields.set_item("column", column)?;
        fields.set_item("text", at.source.text.lines().nth(line - 1).unwrap_or_default())?;
    }
    Ok(class(py, "Problem")?.call(PyTuple::empty(py), Some(&fields))?.unbind())
}
