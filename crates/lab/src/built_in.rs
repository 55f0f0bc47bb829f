//! Folders of the repository that are built into hopline.

use hopline_config::source::Problem;
use include_dir::Dir;
use tempfile::TempDir;

/// Unpacks a folder of `what` into a temporary one, which is removed on drop.
pub(crate) fn unpack(folder: &Dir<'_>, what: &str) -> Result<TempDir, Problem> {
    let unpack = || {
        let unpacked = tempfile::Builder::new().prefix(&format!("hopline-{what}-")).tempdir()?;
        folder.extract(unpacked.path())?;
        Ok::<_, std::io::Error>(unpacked)
    };
    unpack().map_err(|e| Problem::new(format!("cannot unpack the {what}: {e}")))
}
