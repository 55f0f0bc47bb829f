//! Common parts of algorithms and disciplines: a class, its instances, and their exceptions.

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A class, or any callable that creates instances.
#[derive(Debug)]
pub(super) struct Class {
    class: Py<PyAny>,
    takes_seed: bool,
}

impl Class {
    pub(super) const fn new(class: Py<PyAny>, takes_seed: bool) -> Self {
        Self { class, takes_seed }
    }

    /// Creates an instance.
    pub(super) fn make<'py>(&self, py: Python<'py>, seed: u64) -> PyResult<Bound<'py, PyAny>> {
        let class = self.class.bind(py);
        if !self.takes_seed {
            return class.call0();
        }
        let keywords = PyDict::new(py);
        keywords.set_item("seed", seed)?;
        class.call((), Some(&keywords))
    }
}

/// Bound method of an instance.
#[derive(Debug)]
pub(super) struct Method(Py<PyAny>);

impl Method {
    pub(super) fn of(instance: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        Ok(Self(instance.getattr(name)?.unbind()))
    }

    /// Returns a bound method, if the instance has it.
    pub(super) fn optional(instance: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<Self>> {
        Ok(instance.getattr_opt(name)?.map(|method| Self(method.unbind())))
    }

    pub(super) fn bind<'py>(&self, py: Python<'py>) -> &Bound<'py, PyAny> {
        self.0.bind(py)
    }
}

/// Calls Python, and returns an exception as text.
pub(super) fn attached<R>(call: impl FnOnce(Python<'_>) -> PyResult<R>) -> Result<R, String> {
    Python::attach(|py| call(py).map_err(|error| traceback(py, &error)))
}

/// Returns an exception as Python prints it.
fn traceback(py: Python<'_>, error: &PyErr) -> String {
    let formatted = || -> PyResult<String> {
        let raised = (error.get_type(py), error.value(py), error.traceback(py));
        let lines = py.import("traceback")?.call_method1("format_exception", raised)?;
        Ok(lines.extract::<Vec<String>>()?.concat())
    };
    // Formatting may fail too: then the message alone.
    formatted().map_or_else(|_| error.to_string(), |text| text.trim_end().to_owned())
}
