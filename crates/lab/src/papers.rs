//! The papers that hopline brings along.

use crate::claims::FILE;
use hopline_scenario::source::Problem;
use include_dir::{Dir, include_dir};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The repository's `papers/`, as it was when hopline was built.
static BUILT_IN: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../papers");

/// A folder of papers.
#[derive(Debug)]
pub struct Papers {
    folder: PathBuf,
    /// Where the papers that hopline brings along are unpacked; removed at the end.
    _unpacked: Option<TempDir>,
}

impl Papers {
    /// The papers in `folder`, or those that hopline brings along.
    ///
    /// # Errors
    ///
    /// There is no room to unpack them.
    pub fn open(folder: Option<&Path>) -> Result<Self, Problem> {
        if let Some(folder) = folder {
            return Ok(Self { folder: folder.to_owned(), _unpacked: None });
        }
        let unpacked = unpack().map_err(|e| Problem::new(format!("cannot unpack the papers: {e}")))?;
        Ok(Self { folder: unpacked.path().to_owned(), _unpacked: Some(unpacked) })
    }

    /// Names of the papers.
    ///
    /// # Errors
    ///
    /// A folder that cannot be read.
    pub fn names(&self) -> Result<Vec<String>, Problem> {
        let unreadable = |e| Problem::new(format!("{}: {e}", self.folder.display()));
        let entries = fs::read_dir(&self.folder).map_err(unreadable)?;
        let folders = entries.flatten().filter(|entry| entry.path().join(FILE).exists());
        let mut names: Vec<String> =
            folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        Ok(names)
    }

    /// The folder of a paper.
    ///
    /// # Errors
    ///
    /// There is no such paper.
    pub fn folder(&self, paper: &str) -> Result<PathBuf, Problem> {
        let names = self.names()?;
        if names.iter().any(|name| name == paper) {
            return Ok(self.folder.join(paper));
        }
        Err(Problem::new(format!("there is no paper `{paper}`"))
            .help(format!("the papers are {}", names.join(", "))))
    }
}

fn unpack() -> std::io::Result<TempDir> {
    let folder = tempfile::Builder::new().prefix("hopline-papers-").tempdir()?;
    BUILT_IN.extract(folder.path())?;
    Ok(folder)
}
