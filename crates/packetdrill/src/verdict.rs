//! Verdict on a script.

/// Verdict on a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every event took place as written.
    Passed,
    /// An event took place otherwise, or not at all.
    Failed(Failure),
    /// The script needs a feature that the endpoint does not have.
    NotApplicable {
        /// Line of the script, from 1.
        line: usize,
        /// Name of the feature.
        reason: String,
    },
}

/// First event of a script that took place otherwise than written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Line of the script, from 1.
    pub line: usize,
    /// Event as the script has it.
    pub expected: String,
    /// Event as it took place.
    pub actual: String,
    /// Difference between the two.
    pub difference: String,
}
