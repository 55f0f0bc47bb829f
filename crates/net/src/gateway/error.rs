//! Why a gateway cannot open.

/// Why a gateway cannot open.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A parameter is out of its range.
    #[error("`{field}` must be {must}")]
    Config {
        /// Which.
        field: &'static str,
        /// What it must be.
        must: &'static str,
    },
    /// The system does not do what was asked.
    #[error(transparent)]
    System(#[from] crate::Error),
}
