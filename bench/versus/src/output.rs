//! Output of all runs, as CSV and JSON.

use crate::peer::Failure;
use serde::Serialize;
use std::fs;
use std::path::Path;

/// Writes `name.csv` and `name.json` into `folder`, which is created if it is missing.
///
/// # Errors
/// If a file cannot be written, with its place.
pub fn write<T: Serialize>(folder: &Path, name: &str, runs: &[T]) -> Result<(), Failure> {
    let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
    fs::create_dir_all(folder).map_err(failed)?;
    let mut table = csv::Writer::from_path(folder.join(format!("{name}.csv")))?;
    runs.iter().try_for_each(|run| table.serialize(run))?;
    table.flush()?;
    fs::write(folder.join(format!("{name}.json")), serde_json::to_string_pretty(runs)?).map_err(failed)?;
    Ok(())
}
