//! Classes of Python as machines in the simulator. What a class must have is checked in `hopline/own.py`.
//!
//! Instances are called with the interpreter attached, a call at a time: runs on several threads take turns in Python, and only there.

mod discipline;
mod instance;
mod law;

pub(crate) use discipline::{Head, Packet, Queue};
pub(crate) use law::{Ack, Loss, Timeout, WindowState};

use hopline_scenario::Machines;
use instance::Class;
use pyo3::prelude::*;
use std::sync::Arc;

/// The machines that `classes` make, by name.
///
/// # Errors
/// A `TypeError` that says which class lacks what.
pub(crate) fn machines(py: Python<'_>, classes: Vec<(String, Py<PyAny>)>) -> PyResult<Machines> {
    let described = py.import("hopline.own")?.getattr("_described")?;
    // A thread keeps its state in the interpreter: made anew at every call, that took most of the time.
    let mut machines = Machines::default().within(|work| Python::attach(|py| py.detach(work)));
    for (name, class) in classes {
        let (kind, takes_seed, digest): (String, bool, String) = described.call1((&class,))?.extract()?;
        let class = Arc::new(Class::new(class, takes_seed));
        machines = match kind.as_str() {
            "law" => machines.with_law(&name, &digest, move |seed| law::instance(&class, seed)),
            _discipline => {
                machines.with_discipline(&name, &digest, move |seed| discipline::instance(&class, seed))
            }
        };
    }
    Ok(machines)
}
