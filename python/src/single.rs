//! A single run.

use crate::errors;
use crate::scenario::Scenario;
use crate::table::Table;
use crate::watched::watched;
use hopline_lab::description::Description;
use hopline_lab::output::ReportFile;
use hopline_lab::plan::{Keep, KeepNodes, KeepPairs, KeepSeries, Plan};
use hopline_lab::record::{CompletedRun, Record};
use hopline_lab::tables::{self, LeadingCells};
use hopline_lab::{Comparison, Problems, Work, report, run::untraced, text, view};
use pyo3::prelude::*;
use std::path::PathBuf;

/// Result of a run.
#[pyclass(frozen, module = "hopline._hopline")]
#[derive(Debug)]
pub(crate) struct Single {
    record: Record,
    comparison: Comparison,
    text: String,
}

/// Performs run number `number` of `scenario`.
#[pyfunction]
pub(crate) fn run(
    py: Python<'_>,
    scenario: &Scenario,
    number: u64,
    command: Vec<String>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Single> {
    const KEEP: Keep = Keep { series: KeepSeries::All, nodes: KeepNodes::Keep, pairs: KeepPairs::Drop };
    let scenario = &scenario.0;
    let made = watched(py, progress, |watch| {
        // Errors in the selected metric are reported before a run begins.
        let plan = Plan::new(scenario, &[])?;
        let spec = scenario.spec(number)?;
        let total_s = scenario.duration().as_secs_f64();
        watch.planned(Work { runs: 1, missing: 1, total_s, left_s: vec![total_s], ..Work::default() });
        let run = match untraced(&spec, number, watch) {
            Ok(run) => run,
            Err(error) => return Ok(Err(error)),
        };
        watch.ended(0, total_s, run.cpu_s);
        let done = CompletedRun::of(&spec, &run, number, KEEP);
        let text = text::run::describe(scenario, &spec, number, &run, &done);
        let description = Description::of_run(&plan, command, number)?;
        let comparison = Comparison::of_run(description, number, done.clone());
        Ok(Ok(Single { record: Record { point: 0, run: number, result: Ok(done) }, comparison, text }))
    })?;
    made.map_err(|e: Problems| errors::problems(&e))?.map_err(|e| errors::run(&e))
}

#[pymethods]
impl Single {
    /// Returns the output of `hopline run --json`.
    #[getter]
    fn json(&self) -> String {
        self.record.json().to_string()
    }

    /// Returns the output of `hopline run`.
    #[getter]
    fn text(&self) -> &str {
        &self.text
    }

    /// Returns a table by name.
    fn table(&self, name: &str) -> PyResult<Table> {
        Table::of(table_named(name)?.batch(&LeadingCells::none(), [&self.record]))
    }

    /// Returns the page of `hopline run --report`, for a notebook.
    fn html(&self) -> String {
        report::notebook(&view::report(&self.comparison))
    }

    /// Returns the distributions of delays and response times, in JSON.
    #[getter]
    fn distributions(&self) -> PyResult<String> {
        serde_json::to_string(&self.comparison.points[0].distributions).map_err(errors::internal)
    }

    /// Returns the network, in JSON.
    #[getter]
    fn map(&self) -> PyResult<String> {
        serde_json::to_string(&self.comparison.description.map).map_err(errors::internal)
    }

    /// Writes the report.
    fn report(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        write_report(py, path, &self.comparison)
    }
}

/// Writes the report of `comparison` to `path`: complete, or not at all.
pub(crate) fn write_report(py: Python<'_>, path: PathBuf, comparison: &Comparison) -> PyResult<()> {
    py.detach(|| {
        let file = ReportFile::new(path);
        file.check()?;
        file.write(&report::html(&view::report(comparison)))
    })
    .map_err(|e| errors::output(&e))
}

/// Returns the table called `name`.
pub(crate) fn table_named(name: &str) -> PyResult<tables::Table> {
    match name {
        "runs" => Ok(tables::Table::Runs),
        "metrics" => Ok(tables::Table::Metrics),
        "flows" => Ok(tables::Table::Flows),
        "series" => Ok(tables::Table::Series),
        "neighborhoods" => Ok(tables::Table::Neighborhoods),
        _ => Err(errors::internal(format!("there is no table {name}"))),
    }
}
