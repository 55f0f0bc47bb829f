//! hopline for Python: the lab behind `import hopline`.

use pyo3::prelude::*;

/// What is written in Rust of the package `hopline`.
#[pymodule]
mod _hopline {
    use super::*;

    /// Version of hopline.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", VERSION)
    }
}
