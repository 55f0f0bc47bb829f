//! Evaluation of congestion control algorithms.

use crate::errors;
use crate::plan::effort_of;
use crate::result::{Comparison, Records};
use crate::scenario::settings;
use crate::watched::watched;
use hopline_lab::evaluation::{self, EvaluationPlan, Law, NetworkResult, Selection};
use hopline_lab::experiment::{ExperimentError, RunOptions};
use hopline_lab::output::ReportFile;
use hopline_lab::plan::Effort;
use hopline_lab::{Problems, report, text, view};
use pyo3::prelude::*;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Results of an evaluation.
#[pyclass(frozen, module = "hopline._hopline")]
#[derive(Debug)]
pub(crate) struct Evaluation {
    plan: EvaluationPlan,
    made: Vec<hopline_lab::Comparison>,
    results: Vec<NetworkResult>,
    effort: Effort,
}

/// Runs algorithms on the networks of an evaluation, and judges the runs. `classes`: user-defined algorithms by name.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "one a part of what Python passes on")]
pub(crate) fn evaluate(
    py: Python<'_>,
    laws: Vec<String>,
    classes: Vec<(String, Py<PyAny>)>,
    sections: Vec<String>,
    runs: Option<u64>,
    effort: &str,
    plan: Option<PathBuf>,
    given: Vec<(String, String)>,
    jobs: Option<NonZeroUsize>,
    command: Vec<String>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Evaluation> {
    let (effort, over) = (effort_of(effort), settings("set", &given)?);
    let machines = crate::own::machines(py, classes)?;
    let made = watched(py, progress, |watch| {
        let laws = laws.iter().map(|law| Law::parse(law));
        let laws = laws.collect::<Result<Vec<_>, _>>().map_err(Problems::from)?;
        let file = evaluation::open(plan.as_deref()).map_err(Problems::from)?;
        let plan = file.load(&laws, Selection { only: &sections, runs, effort, set: &over }, &machines)?;
        let made = plan.run(RunOptions { jobs, command: &command, watch })?;
        let results = plan.judge(&made);
        Ok::<_, ExperimentError>(Evaluation { plan, made, results, effort })
    })?;
    made.map_err(errors::experiment)
}

#[pymethods]
impl Evaluation {
    /// Returns the output of `hopline evaluate --json`.
    #[getter]
    fn json(&self) -> String {
        evaluation::json(&self.plan, &self.results).to_string()
    }

    /// Returns the output of `hopline evaluate`.
    #[getter]
    fn text(&self) -> String {
        text::evaluation::describe(&self.plan, &self.results, self.effort)
    }

    /// Returns the failed runs: network, algorithm, number and reason.
    #[getter]
    fn failed(&self) -> Vec<(String, String, u64, String)> {
        let mut all = Vec::new();
        for (network, result) in self.plan.networks.iter().zip(&self.results) {
            for (law, failed) in self.plan.laws.iter().zip(&result.failed) {
                let of_law =
                    |(run, why): &(u64, String)| (network.id.clone(), law.name.clone(), *run, why.clone());
                all.extend(failed.iter().map(of_law));
            }
        }
        all
    }

    /// Returns the networks: names and comparisons.
    #[getter]
    fn networks(&self) -> Vec<(String, Comparison)> {
        let network = |(network, comparison): (&evaluation::Network, &hopline_lab::Comparison)| {
            let result = Comparison { comparison: comparison.clone(), records: Records::None };
            (network.id.clone(), result)
        };
        self.plan.networks.iter().zip(&self.made).map(network).collect()
    }

    /// Writes the report.
    fn report(&self, path: PathBuf) -> PyResult<()> {
        let file = ReportFile::new(path);
        let page =
            report::html(&view::evaluation::report(&self.plan, &self.made, &self.results, self.effort));
        file.check().and_then(|()| file.write(&page)).map_err(|e| errors::output(&e))
    }
}
