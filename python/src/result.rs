//! Comparison, and its records.

use crate::errors;
use crate::plan::question;
use crate::single::{table_named, write_report};
use crate::table::Table;
use hopline_lab::comparison::{self, json_with_runs};
use hopline_lab::objective::MetricSelection;
use hopline_lab::record::Record;
use hopline_lab::store::{Store, StoreError};
use hopline_lab::tables::{self, Batch, LeadingCells};
use hopline_lab::{report, text, view};
use pyo3::prelude::*;
use std::path::PathBuf;

/// Results of the runs of an experiment.
#[pyclass(frozen, module = "hopline._hopline")]
#[derive(Debug)]
pub(crate) struct Comparison {
    pub(crate) comparison: hopline_lab::Comparison,
    pub(crate) records: Records,
}

/// Place of the records.
#[derive(Debug)]
pub(crate) enum Records {
    /// In memory, by point and run.
    Here(Vec<Record>),
    /// In this directory.
    Kept(PathBuf),
    /// The records were discarded.
    None,
}

impl Records {
    /// Calls `each` with the first `runs` runs of all points.
    fn each(&self, runs: u64, mut each: impl FnMut(Record)) -> Result<(), StoreError> {
        match self {
            Self::None => Ok(()),
            Self::Here(records) => {
                records.iter().cloned().for_each(each);
                Ok(())
            }
            Self::Kept(path) => Store::read(path)?.for_each(runs, |record| {
                each(record);
                Ok(())
            }),
        }
    }
}

#[pymethods]
impl Comparison {
    /// Returns the output of `hopline compare --json`; without every run, that of `hopline sweep --json`.
    fn json(&self, py: Python<'_>, with_runs: bool) -> PyResult<String> {
        py.detach(|| {
            if !with_runs {
                return Ok(self.comparison.json().to_string());
            }
            let mut records = Vec::new();
            self.records.each(self.comparison.runs, |record| records.push(record))?;
            Ok(json_with_runs(&self.comparison, &records).to_string())
        })
        .map_err(|e| errors::store(&e))
    }

    /// Returns the table and the conclusion as the command prints them.
    #[getter]
    fn text(&self, py: Python<'_>) -> String {
        py.detach(|| {
            text::comparison::describe(&self.comparison) + &text::comparison::conclusion(&self.comparison)
        })
    }

    /// Returns the conclusion, a paragraph for each group of variants that are compared with each other.
    #[getter]
    fn answer(&self, py: Python<'_>) -> String {
        py.detach(|| {
            let experiments = view::experiments(&self.comparison, view::NameForm::Full);
            let answers = experiments.iter().map(|e| report::Conclusion::of(e).text());
            answers.collect::<Vec<_>>().join("\n")
        })
    }

    /// Returns a table by name: `runs`, `metrics`, `flows`, `series`, `neighborhoods`.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        let table = table_named(name)?;
        let heads = LeadingCells::of(&self.comparison.description);
        let mut batch = Batch::new(&table.columns(&heads));
        let read = py.detach(|| {
            self.records.each(self.comparison.runs, |record| table.add(&heads, &record, &mut batch))
        });
        read.map_err(|e| errors::store(&e))?;
        Table::of(table.whole(&heads, batch))
    }

    /// Returns means and gains with their confidence intervals.
    fn estimates(&self, py: Python<'_>) -> PyResult<Table> {
        Table::of(py.detach(|| tables::estimates(&self.comparison)))
    }

    /// Returns the conclusion, the table and the charts, for a notebook.
    fn html(&self, py: Python<'_>) -> String {
        py.detach(|| report::notebook(&view::report(&self.comparison)))
    }

    /// Writes the report.
    fn report(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        write_report(py, path, &self.comparison)
    }

    /// Returns the comparison of the same runs by another metric or constraint.
    fn asking(&self, metric: Option<&str>, bound: Option<&str>) -> PyResult<Self> {
        let asked =
            self.comparison.clone().with_objective(&question(metric, bound)).map_err(errors::problem)?;
        let records = match &self.records {
            Records::Here(records) => Records::Here(records.clone()),
            Records::Kept(path) => Records::Kept(path.clone()),
            Records::None => Records::None,
        };
        Ok(Self { comparison: asked, records })
    }

    /// Returns the values of the selected metric in the runs of each variant, with those of its baseline, as the report
    /// draws them.
    #[getter]
    fn asked(&self) -> PyResult<Vec<(String, Vec<f64>)>> {
        let MetricSelection { .. } = &self.comparison.objective.asked;
        let key = self.comparison.objective.asked.key();
        let points = self.comparison.points.iter().zip(&self.comparison.description.points);
        Ok(points.map(|(point, d)| (d.label.clone(), point.all(key).unwrap_or_default().to_vec())).collect())
    }

    /// Returns the distributions of delays and response times in run 1 of each variant, in JSON.
    #[getter]
    fn distributions(&self) -> PyResult<String> {
        let points = self.comparison.points.iter().zip(&self.comparison.description.points);
        let all: Vec<_> = points.map(|(point, d)| (&d.label, &point.distributions)).collect();
        serde_json::to_string(&all).map_err(errors::internal)
    }

    /// Returns the network of run 1 of the first variant, in JSON.
    #[getter]
    fn map(&self) -> PyResult<String> {
        serde_json::to_string(&self.comparison.description.map).map_err(errors::internal)
    }

    /// Returns the failed runs: variant, number and reason.
    #[getter]
    fn failed(&self) -> Vec<(String, u64, String)> {
        let points = self.comparison.points.iter().zip(&self.comparison.description.points);
        let of_point =
            |(point, d): (&comparison::PointResult, &hopline_lab::description::PointDescription)| {
                let label = d.label.clone();
                point
                    .failed
                    .iter()
                    .map(move |(run, why)| (label.clone(), *run, why.clone()))
                    .collect::<Vec<_>>()
            };
        points.flat_map(of_point).collect()
    }

    /// Returns the directory in which the records are stored, if there is one.
    #[getter]
    fn directory(&self) -> Option<PathBuf> {
        match &self.records {
            Records::Kept(path) => Some(path.clone()),
            Records::Here(_) | Records::None => None,
        }
    }
}
