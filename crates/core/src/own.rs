//! Machines of somebody's own, in place of one of ours: how they fail.

use core::fmt;

/// Why a machine of somebody's own could not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnFailure {
    /// What it was asked: the name of the method.
    pub method: &'static str,
    /// What it says, which may have many lines.
    pub why: String,
}

impl fmt::Display for OwnFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.method, self.why)
    }
}
