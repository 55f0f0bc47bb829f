//! Failures of user-defined algorithms.

use core::fmt;

/// Failure of a user-defined algorithm to return a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnFailure {
    /// Name of the method that was called.
    pub method: &'static str,
    /// Error text of the algorithm; may have many lines.
    pub why: String,
}

impl fmt::Display for OwnFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.method, self.why)
    }
}
