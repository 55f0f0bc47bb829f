//! Scenarios, checked.

use crate::errors;
use hopline_config::document::Setting;
use hopline_config::from_json;
use hopline_config::source::{Problem, Source};
use hopline_lab::file_kinds;
use pyo3::prelude::*;
use serde_json::Value as Json;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Checked scenario: an immutable value.
#[pyclass(frozen, module = "hopline._hopline")]
#[derive(Debug)]
pub(crate) struct Scenario(pub(crate) hopline_lab::Scenario);

#[pymethods]
impl Scenario {
    /// Reads the scenario in the file `path`.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| hopline_lab::Scenario::load(&path, &[])).map(Self).map_err(|e| errors::problems(&e))
    }

    /// Parses a scenario, called `name` in messages. Its files are relative to `folder`.
    #[staticmethod]
    fn parse(py: Python<'_>, text: String, name: String, folder: PathBuf) -> PyResult<Self> {
        py.detach(|| read(Arc::new(Source { name, text }), &folder))
    }

    /// Parses a scenario from a document in JSON.
    #[staticmethod]
    fn document(py: Python<'_>, json: &str, name: &str, folder: PathBuf) -> PyResult<Self> {
        let source = from_json::document(name, &value(json)?).map_err(errors::problem)?;
        py.detach(|| read(source, &folder))
    }

    /// Returns the scenario with settings applied: paths, and values in JSON. `origin` names their source in messages.
    #[pyo3(name = "with_settings")]
    fn with(&self, py: Python<'_>, origin: &str, given: Vec<(String, String)>) -> PyResult<Self> {
        let settings = settings(origin, &given)?;
        py.detach(|| self.0.with(&settings)).map(Self).map_err(|e| errors::problems(&e))
    }

    /// Returns the scenario with more user-defined algorithms, classes by name: `tcp.congestion_control = "own:NAME"`.
    fn with_machines(&self, py: Python<'_>, classes: Vec<(String, Py<PyAny>)>) -> PyResult<Self> {
        let machines = self.0.machines().clone().merge(crate::own::machines(py, classes)?);
        py.detach(|| self.0.with_machines(machines)).map(Self).map_err(|e| errors::problems(&e))
    }

    /// Returns its name.
    #[getter]
    fn name(&self) -> String {
        self.0.name()
    }

    /// Returns the virtual time of a run, seconds.
    #[getter]
    fn duration_s(&self) -> f64 {
        self.0.duration().as_secs_f64()
    }

    /// Returns the scenario as written, settings included, in JSON.
    #[getter]
    fn written(&self) -> String {
        self.0.as_written().to_string()
    }

    /// Returns every parameter in effect, defaults included, in JSON.
    #[getter]
    fn parameters(&self) -> String {
        self.0.parameters().to_string()
    }

    /// Returns the folder that paths of files are relative to.
    #[getter]
    fn folder(&self) -> &Path {
        self.0.folder().path()
    }

    /// Returns the settings applied to the file, as on the command line: keys and values.
    #[getter]
    fn settings(&self) -> Vec<(String, String)> {
        self.0.settings().iter().map(|setting| (setting.path.clone(), setting.text())).collect()
    }

    /// Returns the path of the file, or the name of the text.
    #[getter]
    fn file(&self) -> &str {
        &self.0.source().name
    }

    /// Returns the map of run `run` as a report draws it, in JSON: names and positions of the nodes, and the links between
    /// them.
    fn map(&self, run: u64) -> PyResult<String> {
        let spec = self.0.spec(run).map_err(|e| errors::problems(&e))?;
        serde_json::to_string(&hopline_lab::map::Map::of(&spec)).map_err(errors::internal)
    }
}

/// Returns the JSON Schema of a kind of file: `scenario`, `plan` or `claims`.
#[pyfunction]
pub(crate) fn schema(kind: &str) -> PyResult<String> {
    let kind = file_kinds::by_name(kind).ok_or_else(|| {
        let known: Vec<&str> = file_kinds::FILE_KINDS.iter().map(|kind| kind.name).collect();
        errors::problem(
            Problem::new(format!("there is no kind of file `{kind}`"))
                .help(format!("there are {}", known.join(", "))),
        )
    })?;
    Ok(kind.schema().to_string())
}

fn read(source: Arc<Source>, folder: &Path) -> PyResult<Scenario> {
    hopline_lab::Scenario::parse(source, folder, &[]).map(Scenario).map_err(|e| errors::problems(&e))
}

/// Returns paths and values in JSON as settings, with `origin` as their source.
pub(crate) fn settings(origin: &str, given: &[(String, String)]) -> PyResult<Vec<Setting>> {
    let setting = |(path, json): &(String, String)| {
        Setting::of_value(origin, path, &value(json)?).map_err(errors::problem)
    };
    given.iter().map(setting).collect()
}

pub(crate) fn value(json: &str) -> PyResult<Json> {
    serde_json::from_str(json).map_err(errors::internal)
}
