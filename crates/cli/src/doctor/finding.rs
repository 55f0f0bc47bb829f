//! Feature of this machine, as found.

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
pub(super) type Availability = (State, String);

impl Finding {
    pub(super) fn new(
        what: &'static str,
        (state, detail): Availability,
        purpose: &'static str,
        remedy: &'static str,
    ) -> Self {
        let remedy = (state != State::Present).then_some(remedy);
        Self { what, state, detail, purpose, remedy }
    }
}

/// Returns the text of a file of the kernel; `None` if it does not exist or may not be read.
pub(super) fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}
