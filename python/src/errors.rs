//! Errors, as the exceptions of `hopline.errors`.

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

/// Returns a `ScenarioError` with all problems of an input, each with its position.
pub(crate) fn problems(problems: &Problems) -> PyErr {
    let all: PyResult<Vec<Py<PyAny>>> =
        Python::attach(|py| problems.0.iter().map(|p| problem_object(py, p)).collect());
    all.map_or_else(|error| error, |all| of_class("ScenarioError", (all,)))
}

/// Returns a `ScenarioError` with one problem.
pub(crate) fn problem(problem: Problem) -> PyErr {
    problems(&problem.into())
}

/// Returns the exception of an experiment without result.
pub(crate) fn experiment(error: ExperimentError) -> PyErr {
    match error {
        // The signal or callback that interrupted the work raised an exception of its own.
        ExperimentError::Interrupted => interrupted(),
        ExperimentError::Problems(error) => problems(&error),
        ExperimentError::Store(error) => store(&error),
        ExperimentError::Failed(why) => run_failed(&why),
    }
}

/// Returns the exception of a run that did not finish.
pub(crate) fn run(error: &RunError) -> PyErr {
    match error {
        RunError::Interrupted => interrupted(),
        RunError::Failed(_) | RunError::Machine(_) | RunError::NotRepeatable { .. } => {
            run_failed(&error.to_string())
        }
    }
}

fn run_failed(why: &str) -> PyErr {
    of_class("RunError", (why.to_owned(),))
}

/// Returns the exception of results that could not be stored or read.
pub(crate) fn store(error: &StoreError) -> PyErr {
    let said = error.to_string().replace("add --force to begin anew", "pass force=True to begin anew");
    match error {
        StoreError::OtherVersion { theirs, .. } => version(said, theirs, env!("CARGO_PKG_VERSION")),
        StoreError::Foreign { path, .. }
        | StoreError::OtherPlan { path, .. }
        | StoreError::OtherBuild { path, .. }
        | StoreError::MoreRuns { path, .. }
        | StoreError::NeedsParquet { path }
        | StoreError::Busy { path }
        | StoreError::Damaged { path, .. } => results(said, path),
        StoreError::Io { .. } => PyOSError::new_err(said),
    }
}

/// Returns the exception of an output file that could not be written.
pub(crate) fn output(error: &OutputError) -> PyErr {
    let said = error.to_string();
    match error {
        OutputError::Exists { target }
        | OutputError::Appeared { target, .. }
        | OutputError::InUse { target }
        | OutputError::Foreign { target, .. }
        | OutputError::WrongKind { target, .. } => results(said, target),
        OutputError::Io { .. } => PyOSError::new_err(said),
    }
}

/// Returns the exception of rejected data of another machine.
pub(crate) fn remote(error: &RemoteError) -> PyErr {
    match error {
        RemoteError::OtherVersion { theirs, ours } => version(error.to_string(), theirs, ours),
        RemoteError::Interrupted => interrupted(),
        RemoteError::NoKernel(_) => emulation(error.to_string()),
        RemoteError::Damaged(_) | RemoteError::Differs { .. } => {
            of_class("RemoteError", (error.to_string(),))
        }
    }
}

/// Returns the exception of an emulation that cannot run.
pub(crate) fn emulation(said: String) -> PyErr {
    of_class("EmulationError", (said,))
}

/// Returns the exception of an internal failure, which no caller can handle.
pub(crate) fn internal(error: impl std::fmt::Display) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

pub(crate) fn interrupted() -> PyErr {
    PyKeyboardInterrupt::new_err("interrupted")
}

fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("hopline.errors")?.getattr(name)
}

/// Returns an exception of `hopline.errors`, created with `arguments`.
fn of_class(name: &str, arguments: impl for<'py> pyo3::call::PyCallArgs<'py>) -> PyErr {
    Python::attach(|py| match class(py, name).and_then(|class| class.call1(arguments)) {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    })
}

fn version(said: String, theirs: &str, ours: &str) -> PyErr {
    of_class("VersionError", (said, theirs.to_owned(), ours.to_owned()))
}

fn results(said: String, path: &Path) -> PyErr {
    of_class("ResultsError", (said, path.to_owned()))
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
