//! hopline for Python: the lab behind `import hopline`.
//!
//! What is here is as little as can be: documents, plans and results cross as JSON text, tables as Arrow. What users meet,
//! names, defaults and docstrings, is written in Python beside it.

mod elsewhere;
mod errors;
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

/// What is written in Rust of the package `hopline`.
#[pymodule]
mod _hopline {
    use super::*;

    #[pymodule_export]
    use super::elsewhere::{Bundle, Course};
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
