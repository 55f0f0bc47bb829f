//! Errors of opening a gateway.

/// Error of opening a gateway.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A parameter is out of its range.
    #[error("`{field}` must be {must}")]
    Config {
        /// Name of the parameter.
        field: &'static str,
        /// Permitted range.
        must: &'static str,
    },
    /// A system operation failed.
    #[error(transparent)]
    System(#[from] hopline_linux::Error),
}
