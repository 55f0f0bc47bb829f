//! Reproduction of papers.

use crate::errors;
use crate::plan::effort_of;
use crate::result::{Comparison, Records};
use crate::scenario::settings;
use crate::watched::watched;
use hopline_lab::claims::{self, Register, evaluate};
use hopline_lab::experiment::{ExperimentError, RunOptions, in_directory, in_memory};
use hopline_lab::output::ReportFile;
use hopline_lab::papers::Papers;
use hopline_lab::plan::{Effort, Plan};
use hopline_lab::store::Start;
use hopline_lab::{Problems, report, text, view};
use pyo3::prelude::*;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Results of the reproduction of a paper.
#[pyclass(frozen, module = "hopline._hopline")]
#[derive(Debug)]
pub(crate) struct Reproduction {
    register: Register,
    made: Vec<(usize, hopline_lab::Comparison)>,
    effort: Effort,
}

/// Name of a paper, its title, and names and titles of its figures.
type Listed = (String, String, Vec<(String, String)>);

/// Returns every paper, with names and titles of the figures that can be reproduced.
#[pyfunction]
pub(crate) fn papers(folder: Option<PathBuf>) -> PyResult<Vec<Listed>> {
    let papers = Papers::open(folder.as_deref()).map_err(errors::problem)?;
    let of = |name: String| {
        let folder = papers.folder(&name).map_err(errors::problem)?;
        let register = Register::load(&folder).map_err(|e| errors::problems(&e))?;
        let figures = register.figures.iter().map(|f| (f.id.clone(), f.title.clone())).collect();
        Ok((name, register.paper, figures))
    };
    papers.names().map_err(errors::problem)?.into_iter().map(of).collect()
}

/// Runs the plans of a paper, of one figure or of all, and evaluates its claims.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "one a part of what Python passes on")]
pub(crate) fn reproduce(
    py: Python<'_>,
    paper: &str,
    figure: Option<&str>,
    effort: &str,
    folder: Option<PathBuf>,
    output: Option<PathBuf>,
    given: Vec<(String, String)>,
    jobs: Option<NonZeroUsize>,
    command: Vec<String>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Reproduction> {
    let (effort, over) = (effort_of(effort), settings("set", &given)?);
    let made = watched(py, progress, |watch| {
        let papers = Papers::open(folder.as_deref()).map_err(Problems::from)?;
        let register = Register::load(&papers.folder(paper).map_err(Problems::from)?)?;
        let chosen = register.chosen(figure).map_err(Problems::from)?;
        // Every plan is read before the first is run, so that an error in the last one is reported at once.
        let plan = |number: &usize| register.plan(&register.figures[*number], &over, effort);
        let plans: Vec<Plan> = chosen.iter().map(plan).collect::<Result<_, _>>()?;
        let how = RunOptions { jobs, command: &command, watch };
        let mut made = Vec::new();
        for (number, plan) in chosen.into_iter().zip(&plans) {
            let folder = output.as_ref().map(|output| output.join(&register.figures[number].id));
            made.push((number, one(plan, how, folder.as_deref())?));
        }
        Ok::<_, ExperimentError>(Reproduction { register, made, effort })
    })?;
    made.map_err(errors::experiment)
}

fn one(
    plan: &Plan,
    how: RunOptions<'_>,
    folder: Option<&Path>,
) -> Result<hopline_lab::Comparison, ExperimentError> {
    match folder {
        None => Ok(in_memory(plan, how)?.0),
        Some(folder) => Ok(in_directory(plan, how, folder, Start::Resume)?.0),
    }
}

#[pymethods]
impl Reproduction {
    /// Returns the output of `hopline reproduce --json`.
    #[getter]
    fn json(&self) -> PyResult<String> {
        let made = self.made();
        let evidence = evaluate(&self.register, &made).map_err(errors::problem)?;
        Ok(claims::json(&self.register, &made, &evidence, self.effort).to_string())
    }

    /// Returns the output of `hopline reproduce`.
    #[getter]
    fn text(&self) -> PyResult<String> {
        let made = self.made();
        let evidence = evaluate(&self.register, &made).map_err(errors::problem)?;
        Ok(text::reproduction::describe(&self.register, &made, &evidence, self.effort))
    }

    /// Returns the figures: names and comparisons.
    #[getter]
    fn figures(&self) -> Vec<(String, Comparison)> {
        let figure = |(number, comparison): &(usize, hopline_lab::Comparison)| {
            let result = Comparison { comparison: comparison.clone(), records: Records::None };
            (self.register.figures[*number].id.clone(), result)
        };
        self.made.iter().map(figure).collect()
    }

    /// Returns the claims, the conclusions and the charts, for a notebook.
    fn html(&self) -> PyResult<String> {
        Ok(report::notebook(&self.view()?))
    }

    /// Writes the report.
    fn report(&self, path: PathBuf) -> PyResult<()> {
        let file = ReportFile::new(path);
        let page = report::html(&self.view()?);
        file.check().and_then(|()| file.write(&page)).map_err(|e| errors::output(&e))
    }
}

impl Reproduction {
    fn made(&self) -> Vec<(usize, &hopline_lab::Comparison)> {
        self.made.iter().map(|(number, comparison)| (*number, comparison)).collect()
    }

    fn view(&self) -> PyResult<report::Report> {
        let made = self.made();
        let evidence = evaluate(&self.register, &made).map_err(errors::problem)?;
        Ok(view::reproduction(&self.register, &made, &evidence, self.effort))
    }
}
