//! Error of a configuration.

/// A parameter out of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigError {
    /// Name of the field, with dots: `rto.min`.
    pub field: &'static str,
    /// Condition that the field has to meet.
    pub requirement: &'static str,
}

impl core::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} must be {}", self.field, self.requirement)
    }
}

impl core::error::Error for ConfigError {}
