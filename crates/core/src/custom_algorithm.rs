//! Failures of user-defined algorithms.

use core::fmt;

/// Failure of a user-defined algorithm to return a result.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CustomAlgorithmError {
    /// Name of the method that was called.
    pub method: &'static str,
    /// Error text of the algorithm; may have many lines.
    pub message: String,
}

impl CustomAlgorithmError {
    /// Creates a failure of `method` with the error text `why`.
    #[must_use]
    pub const fn new(method: &'static str, why: String) -> Self {
        Self { method, message: why }
    }
}

impl fmt::Display for CustomAlgorithmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.method, self.message)
    }
}
