//! hopline for Python: the lab behind `import hopline`.
//!
//! The extension is as small as possible: documents, plans and results cross the boundary as JSON text, tables as Arrow. The
//! public interface with its names, defaults and docstrings is written in Python.

mod elsewhere;
mod errors;
mod evaluation;
mod experiment;
mod own;
mod paper;
mod plan;
mod result;
mod scenario;
mod single;
mod table;
mod watched;

use pyo3::prelude::*;

/// Part of the package `hopline` that is written in Rust.
#[pymodule]
mod _hopline {
    use super::*;

    #[pymodule_export]
    use super::elsewhere::{Bundle, Course};
    #[pymodule_export]
    use super::evaluation::{Evaluation, evaluate};
    #[pymodule_export]
    use super::experiment::{compare, stored};
    #[pymodule_export]
    use super::own::{Ack, Head, Loss, Packet, Queue, Timeout, WindowState};
    #[pymodule_export]
    use super::paper::{Reproduction, papers, reproduce};
    #[pymodule_export]
    use super::plan::Plan;
    #[pymodule_export]
    use super::result::Comparison;
    #[pymodule_export]
    use super::scenario::{Scenario, schema};
    #[pymodule_export]
    use super::single::{Single, run};
    #[pymodule_export]
    use super::table::Table;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
