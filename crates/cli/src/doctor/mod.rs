//! What this machine offers.
//!
//! Every fact is looked at without changing anything: files are read, programs are asked for their version, and a network
//! namespace is tried in a process of its own, with which it goes.

mod kernel;
mod machine;
mod program;

use serde::Serialize;

/// Something that hopline can use.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Finding {
    /// What.
    pub(crate) what: &'static str,
    /// Whether it is there.
    pub(crate) state: State,
    /// How much of it, which version, or why it is not known.
    pub(crate) detail: String,
    /// What it is for.
    pub(crate) purpose: &'static str,
    /// How to get it; `null` where it is there.
    pub(crate) remedy: Option<&'static str>,
}

/// Whether something is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// It is.
    Present,
    /// It is not, or may not be used.
    Missing,
    /// It cannot be seen from here.
    Unknown,
}

/// What a look at something showed.
type Look = (State, String);

impl Finding {
    fn new(what: &'static str, (state, detail): Look, purpose: &'static str, remedy: &'static str) -> Self {
        let remedy = (state != State::Present).then_some(remedy);
        Self { what, state, detail, purpose, remedy }
    }
}

/// Everything that is looked at, in the order in which people read it.
pub(crate) fn findings() -> Vec<Finding> {
    machine::findings().into_iter().chain(kernel::findings()).chain(program::findings()).collect()
}

/// The text of a file of the kernel; `None` if it is not there or may not be read.
fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}
