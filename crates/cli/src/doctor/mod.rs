//! Features of this machine.
//!
//! Nothing is changed: files are read, programs print their version, and a network namespace is created in a process of its
//! own, and disappears with it.

mod finding;
mod kernel;
mod machine;
mod program;

pub(crate) use finding::{Finding, State};

/// Returns all findings, in the order in which they are printed.
pub(crate) fn findings() -> Vec<Finding> {
    machine::findings().into_iter().chain(kernel::findings()).chain(program::findings()).collect()
}
