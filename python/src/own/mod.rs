//! User-defined algorithms: Python classes in the simulator. `hopline/own.py` checks the methods of a class.
//!
//! Instances are called with the interpreter attached, one call at a time. Runs on several threads take turns only in Python
//! code.

mod discipline;
mod instance;
mod law;

pub(crate) use discipline::{Head, Packet, Queue};
pub(crate) use law::{Ack, Loss, Timeout, WindowState};

use hopline_scenario::CustomAlgorithms;
use instance::Class;
use pyo3::prelude::*;
use std::sync::Arc;

/// Returns the algorithms and disciplines of `classes`, by name.
///
/// # Errors
/// A `TypeError` that says which method a class lacks.
pub(crate) fn machines(py: Python<'_>, classes: Vec<(String, Py<PyAny>)>) -> PyResult<CustomAlgorithms> {
    let described = py.import("hopline.own")?.getattr("_described")?;
    // A thread keeps its state in the interpreter. Creating that state at every call took most of the time.
    let mut machines =
        CustomAlgorithms::default().with_thread_context(|work| Python::attach(|py| py.detach(work)));
    for (name, class) in classes {
        let (kind, takes_seed, digest): (String, bool, String) = described.call1((&class,))?.extract()?;
        let class = Arc::new(Class::new(class, takes_seed));
        machines = match kind.as_str() {
            "law" => {
                machines.with_congestion_control(&name, &digest, move |seed| law::instance(&class, seed))
            }
            _discipline => {
                machines.with_discipline(&name, &digest, move |seed| discipline::instance(&class, seed))
            }
        };
    }
    Ok(machines)
}
