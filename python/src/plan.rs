//! Plans of runs.

use crate::errors;
use crate::scenario::{Scenario, settings};
use hopline_config::document::Setting;
use hopline_config::source::{Origin, Source};
use hopline_lab::engine::KernelOptions;
use hopline_lab::plan::Effort;
use hopline_scenario::{Axis, Objective};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

/// Name of a plan without a file.
const UNNAMED: &str = "plan";

/// Points, and the number of runs of each.
#[pyclass(frozen, module = "hopline._hopline")]
#[derive(Debug)]
pub(crate) struct Plan(pub(crate) hopline_lab::Plan);

#[pymethods]
impl Plan {
    /// Returns the product of `vary`, keys with lists of values in JSON, over `scenario`. `None`: the `[sweep]` of the
    /// scenario.
    #[staticmethod]
    fn product(
        py: Python<'_>,
        scenario: &Scenario,
        vary: Option<Vec<(String, Vec<String>)>>,
        metric: Option<&str>,
        bound: Option<&str>,
    ) -> PyResult<Self> {
        let axes = match vary {
            None => scenario.0.sweep().map_err(|e| errors::problems(&e))?,
            Some(vary) => vary.iter().map(axis).collect::<PyResult<_>>()?,
        };
        let question = question(metric, bound);
        let plan =
            py.detach(|| hopline_lab::Plan::new(&scenario.0, &axes).and_then(|p| p.with_objective(question)));
        plan.map(Self).map_err(|e| errors::problems(&e))
    }

    /// Reads the plan in the file `path`, with settings for every point. `network`: its scenario may have programs.
    #[staticmethod]
    fn load(
        py: Python<'_>,
        path: PathBuf,
        given: Vec<(String, String)>,
        effort: &str,
        metric: Option<&str>,
        bound: Option<&str>,
        network: bool,
    ) -> PyResult<Self> {
        let over = settings("set", &given)?;
        let (effort, question) = (effort_of(effort), question(metric, bound));
        let load = if network { hopline_lab::Plan::load_network } else { hopline_lab::Plan::load };
        let plan = py.detach(|| load(&path, &over, effort)?.with_objective(question));
        plan.map(Self).map_err(|e| errors::problems(&e))
    }

    /// Parses a plan without a file. The path of its scenario is relative to `folder`.
    #[staticmethod]
    fn parse(
        py: Python<'_>,
        json: &str,
        folder: PathBuf,
        given: Vec<(String, String)>,
        effort: &str,
        metric: Option<&str>,
        bound: Option<&str>,
        network: bool,
    ) -> PyResult<Self> {
        let value = crate::scenario::value(json)?;
        let source = hopline_config::from_json::document(UNNAMED, &value).map_err(errors::problem)?;
        let over = settings("set", &given)?;
        let (effort, question) = (effort_of(effort), question(metric, bound));
        let parse = if network { hopline_lab::Plan::parse_network } else { hopline_lab::Plan::parse };
        let plan = py.detach(|| parse(&source, &folder, UNNAMED, &over, effort)?.with_objective(question));
        plan.map(Self).map_err(|e| errors::problems(&e))
    }

    /// Returns the plan with runs over Linux kernels, which the command `hopline` at `command` makes.
    fn with_kernels(
        &self,
        py: Python<'_>,
        command: PathBuf,
        kernel: Option<PathBuf>,
        syscall_cost_us: Option<u64>,
        no_routes: bool,
    ) -> PyResult<Self> {
        let options = KernelOptions { kernel, syscall_cost_us, no_routes, patience_s: None };
        let plan = py.detach(|| self.0.clone().with_kernels(&command, options));
        plan.map(Self).map_err(|problem| errors::emulation(problem.message))
    }

    /// Returns its name.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the label of the first point that has kernels without routes, and a simulated routing protocol.
    #[getter]
    fn without_routes(&self) -> Option<&str> {
        self.0.without_routes()
    }

    /// Returns the labels of its points.
    #[getter]
    fn labels(&self) -> Vec<&str> {
        self.0.points.iter().map(|point| point.label.as_str()).collect()
    }
}

/// Parses one key and its values.
fn axis((key, values): &(String, Vec<String>)) -> PyResult<Axis> {
    let setting = |json: &String| {
        Setting::of_value("vary", key, &crate::scenario::value(json)?).map_err(errors::problem)
    };
    values.iter().map(setting).collect()
}

/// Returns the share of a plan that is run.
pub(crate) fn effort_of(word: &str) -> Effort {
    if word == "quick" { Effort::Quick } else { Effort::Full }
}

/// Returns the selection of a metric and a constraint.
pub(crate) fn question(metric: Option<&str>, bound: Option<&str>) -> Objective {
    let part = |name: &str, text: Option<&str>| {
        let text = text?;
        let source = Arc::new(Source { name: name.to_owned(), text: text.to_owned() });
        Some((text.to_owned(), Origin { source, span: 0..text.len() }))
    };
    Objective { metric: part("metric", metric), bound: part("bound", bound) }
}
