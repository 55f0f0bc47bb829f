//! Script files, and the shell scripts that they call.

use crate::problems::Failure;
use hopline_config::source::Source;
use hopline_lab::Problem;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Script with its path.
pub(super) struct ScriptFile {
    pub(super) source: Arc<Source>,
    directory: PathBuf,
}

impl ScriptFile {
    fn read(path: &Path) -> Result<Self, Failure> {
        let directory = path.parent().map(Path::to_owned).unwrap_or_default();
        Ok(Self { source: Source::read(path)?, directory })
    }

    /// Returns the text of a shell script that the script calls by a path relative to itself.
    pub(super) fn read_beside(&self, path: &str) -> Option<String> {
        Source::read(&self.directory.join(path)).ok().map(|source| source.text.clone())
    }
}

/// Returns the scripts of files and, recursively, of folders, in the order of their names.
pub(super) fn find(paths: &[PathBuf]) -> Result<Vec<ScriptFile>, Failure> {
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            let before = found.len();
            collect(path, &mut found)?;
            if found.len() == before {
                return Err(Problem::new(format!("{}: no scripts in this folder", path.display()))
                    .help("scripts of packetdrill have names that end in .pkt")
                    .into());
            }
        } else {
            found.push(ScriptFile::read(path)?);
        }
    }
    Ok(found)
}

fn collect(directory: &Path, found: &mut Vec<ScriptFile>) -> Result<(), Failure> {
    let unreadable = |error| Problem::new(format!("{}: {error}", directory.display()));
    let entries = fs::read_dir(directory).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let mut paths: Vec<_> = entries.map_err(unreadable)?.into_iter().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        // A link to a folder above would never end.
        if path.is_dir() && !path.is_symlink() {
            collect(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "pkt") {
            found.push(ScriptFile::read(&path)?);
        }
    }
    Ok(())
}
