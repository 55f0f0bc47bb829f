//! Features of this machine.
//!
//! Nothing is changed: files are read, programs print their version, and a network namespace is created in a process of its
//! own, and disappears with it.

mod kernel;
mod machine;
mod program;

use serde::Serialize;

/// Feature that hopline can use.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Finding {
    /// Name.
    pub(crate) what: &'static str,
    /// Availability.
    pub(crate) state: State,
    /// Amount or version, or the reason why it is not known.
    pub(crate) detail: String,
    /// Purpose.
    pub(crate) purpose: &'static str,
    /// Advice on how to get it; `null` if it is present.
    pub(crate) remedy: Option<&'static str>,
}

/// Availability of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// The feature is available.
    Present,
    /// The feature does not exist, or may not be used.
    Missing,
    /// The availability cannot be determined.
    Unknown,
}

/// Availability, and its detail.
type Look = (State, String);

impl Finding {
    fn new(what: &'static str, (state, detail): Look, purpose: &'static str, remedy: &'static str) -> Self {
        let remedy = (state != State::Present).then_some(remedy);
        Self { what, state, detail, purpose, remedy }
    }
}

/// Returns all findings, in the order in which they are printed.
pub(crate) fn findings() -> Vec<Finding> {
    machine::findings().into_iter().chain(kernel::findings()).chain(program::findings()).collect()
}

/// Returns the text of a file of the kernel; `None` if it does not exist or may not be read.
fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}
